// The API server of a test: the embedded one, or real kube-apiserver and etcd when KUBEBUILDER_ASSETS names a folder
// that has them. Tests see one interface and cannot tell which it is, except where a controller is needed.
import { join } from 'node:path';
import type { ServedRequest } from '../../src/devcluster/api/api-server.ts';
import { startApiServer, type RunningApiServer, type StartOptions } from '../../src/devcluster/start-api-server.ts';
import type { Validity } from '../../src/lib/x509/certificate.ts';
import { issueClientPem } from './client-certificate.ts';
import { freePort } from './ports.ts';
import { assetsFolder, findAssets } from './real-assets.ts';
import { startRealApiServer } from './real-api-server.ts';

export type { ServedRequest };

export interface TestApiServer {
  readonly kind: 'embedded' | 'real';
  readonly url: string;
  readonly port: number;
  readonly caPem: string;
  readonly caPath: string;
  readonly adminKubeconfigPath: string;
  /** Whether pods get scheduled, and Deployments, Jobs and node health looked after. */
  readonly hasControllers: boolean;
  /** A kubeconfig with a fresh client certificate for this user. */
  kubeconfig(user: string, groups?: readonly string[]): string;
  nodeKubeconfig(name: string): string;
  /** A client certificate of the cluster's CA for these times, as one PEM file with its key. */
  issueClient(user: string, groups: readonly string[], validity: Validity): string;
  /**
   * Whether it was still starting: kube-apiserver answers before it is ready, and its node authorizer refuses nodes what
   * it has not read yet.
   */
  wasStarting(atMs: number): boolean;
  /** Every request answered so far, over all starts. */
  served(): Promise<readonly ServedRequest[]>;
  /** Stops it; everything stored stays. */
  stop(): Promise<void>;
  /** Starts it again on the same port, with what was stored. */
  start(): Promise<void>;
}

/** Which API server the tests run on here. */
export const apiServerKind = (): TestApiServer['kind'] => (assetsFolder() === undefined ? 'embedded' : 'real');

/** What only the embedded one can be told. */
export type EmbeddedOptions = Pick<StartOptions, 'maxTokenSeconds' | 'csiDrivers'>;

export async function startTestApiServer(dir: string, options: EmbeddedOptions = {}): Promise<TestApiServer> {
  const folder = assetsFolder();
  return folder === undefined
    ? await EmbeddedApiServer.open(dir, options)
    : await startRealApiServer(dir, findAssets(folder));
}

class EmbeddedApiServer implements TestApiServer {
  readonly kind = 'embedded';
  readonly hasControllers = true;
  readonly #dir: string;
  readonly #options: EmbeddedOptions;
  readonly #served: ServedRequest[];
  readonly #first: RunningApiServer;
  #running: RunningApiServer | undefined;

  private constructor(dir: string, options: EmbeddedOptions, running: RunningApiServer, served: ServedRequest[]) {
    this.#dir = dir;
    this.#options = options;
    this.#first = running;
    this.#running = running;
    this.#served = served;
  }

  static async open(dir: string, options: EmbeddedOptions): Promise<TestApiServer> {
    const served: ServedRequest[] = [];
    const observe = (request: ServedRequest): void => void served.push(request);
    // Tests stop it and start it again: it must find its port free.
    const running = await startApiServer({ dir, port: await freePort(), observe, ...options });
    return new EmbeddedApiServer(dir, options, running, served);
  }

  get url(): string {
    return this.#first.url;
  }

  get port(): number {
    return this.#first.port;
  }

  get caPem(): string {
    return this.#first.caPem;
  }

  get caPath(): string {
    return join(this.#dir, 'pki', 'ca.crt');
  }

  get adminKubeconfigPath(): string {
    return this.#first.adminKubeconfigPath;
  }

  kubeconfig(user: string, groups: readonly string[] = []): string {
    return this.#first.kubeconfig(user, groups);
  }

  nodeKubeconfig(name: string): string {
    return this.#first.nodeKubeconfig(name);
  }

  issueClient(user: string, groups: readonly string[], validity: Validity): string {
    return issueClientPem(join(this.#dir, 'pki'), { commonName: user, organizations: groups }, validity);
  }

  wasStarting(): boolean {
    return false;
  }

  served(): Promise<readonly ServedRequest[]> {
    return Promise.resolve(this.#served);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  async start(): Promise<void> {
    if (this.#running !== undefined) return;
    const observe = (request: ServedRequest): void => void this.#served.push(request);
    this.#running = await startApiServer({ dir: this.#dir, port: this.#first.port, observe, ...this.#options });
  }
}
