// The API servers the contract runs on: ours, and the real one where its binaries are (KUBEBUILDER_ASSETS).
import { startApiServer } from '../../../src/devcluster/start-api-server.ts';
import { startRealApiServer } from '../../harness/real-api-server.ts';
import { assetsFolder, findAssets } from '../../harness/real-assets.ts';
import { ApiClient } from './client.ts';
import { removeFolder, temporaryFolder } from '../../harness/temporary-folder.ts';

export type TestServer = {
  readonly admin: ApiClient;
  /** A client with the identity of a user. */
  as(user: string, groups: readonly string[]): ApiClient;
  stop(): Promise<void>;
};

type Running = { kubeconfig(user: string, groups: readonly string[]): string; stop(): Promise<void> };

async function open(start: (dir: string) => Promise<Running>): Promise<TestServer> {
  const dir = temporaryFolder('kts-api-');
  const running = await start(dir);
  const clients: ApiClient[] = [];
  const as = (user: string, groups: readonly string[]): ApiClient => {
    const client = ApiClient.fromKubeconfig(running.kubeconfig(user, groups));
    clients.push(client);
    return client;
  };
  return {
    admin: as('admin', ['system:masters']),
    as,
    async stop() {
      for (const client of clients) client.close();
      await running.stop();
      removeFolder(dir);
    },
  };
}

export const openEmbedded = (): Promise<TestServer> =>
  open((dir) => startApiServer({ dir, controllers: ['garbage-collector', 'namespaces', 'signing-requests'] }));

export const hasRealServer = (): boolean => assetsFolder() !== undefined;

export const openReal = (): Promise<TestServer> =>
  open((dir) => startRealApiServer(dir, findAssets(assetsFolder() ?? '')));
