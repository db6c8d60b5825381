// The embedded API server as one call: keys, storage, the world it starts with, controllers, kubeconfigs. Used by
// `kubelet-dev` and by the tests of everything that talks to an API server.
import { chmod, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { silentLogger, type Logger } from '../lib/logger.ts';
import { ApiServer, type ServedRequest } from './api/api-server.ts';
import { kubeconfig } from './api/pki/kubeconfig.ts';
import { openPki, type ClusterPki } from './api/pki/pki.ts';
import { ObjectStore } from './api/store.ts';
import { runAllControllers, type ControllerName } from './controllers/all.ts';
import type { ControllerDeps } from './controllers/controller.ts';
import type { CsiDriver } from './controllers/volumes/csi-drivers.ts';
import { seedCluster, seedStorage } from './seed.ts';

export type StartOptions = {
  /** Keys, database and kubeconfigs live here; a second start with the same directory continues the same cluster. */
  readonly dir: string;
  readonly host?: string;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** More addresses to listen on, once the machine has them; the first is where the service of the API leads to. */
  readonly alsoListenOn?: readonly string[];
  /** More names and addresses the server's certificate must carry. */
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** Scheduler, workloads, garbage collection and the rest; on unless a test wants to be alone. */
  readonly controllers?: boolean | readonly ControllerName[];
  /** CSI drivers the controllers provision, attach and grow volumes with; the first serves the default class. */
  readonly csiDrivers?: readonly CsiDriver[];
  readonly watchWindow?: number;
  /** Service account tokens live no longer than this, whatever is asked for. */
  readonly maxTokenSeconds?: number;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Told about every request the server answers. */
  readonly observe?: (served: ServedRequest) => void;
};

export interface RunningApiServer {
  readonly url: string;
  readonly port: number;
  readonly caPem: string;
  readonly caPath: string;
  readonly pki: ClusterPki;
  readonly server: ApiServer;
  readonly adminKubeconfigPath: string;
  /** A kubeconfig with a fresh client certificate for this user. */
  kubeconfig(user: string, groups?: readonly string[]): string;
  /** The kubeconfig of a node's kubelet. */
  nodeKubeconfig(name: string): string;
  stop(): Promise<void>;
}

const DEFAULT_WINDOW = 5000;
const SERVICE = { ip: '10.96.0.1', port: 443 };
const OWN_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

const addressesOf = (options: StartOptions, host: string): string[] => [
  ...new Set([
    '127.0.0.1',
    SERVICE.ip,
    ...(options.alsoListenOn ?? []),
    ...(host === '0.0.0.0' ? [] : [host]),
    ...(options.ipAddresses ?? []),
  ]),
];

/** All Secrets are in this file: nobody else may read it, nor what SQLite puts beside it with the same mode. */
async function privateDatabase(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await chmod(dir, 0o700);
  const path = join(dir, 'cluster.db');
  const file = await open(path, 'a', 0o600);
  try {
    await file.chmod(0o600);
  } finally {
    await file.close();
  }
  return path;
}

function startControllers(
  deps: ControllerDeps,
  pki: ClusterPki,
  { controllers, csiDrivers = [] }: StartOptions,
  seed: () => void,
  signal: AbortSignal,
): Promise<void> {
  if (controllers === false) return Promise.resolve();
  const only = Array.isArray(controllers) ? { only: controllers as readonly ControllerName[] } : {};
  return runAllControllers(deps, pki, { ...only, csiDrivers, seed }, signal);
}

export async function startApiServer(options: StartOptions): Promise<RunningApiServer> {
  const clock = options.clock ?? systemClock;
  const log = (options.log ?? silentLogger).child({ component: 'api-server' });
  const host = options.host ?? '127.0.0.1';
  const database = await privateDatabase(options.dir);
  const pki = await openPki(clock, {
    directory: join(options.dir, 'pki'),
    dnsNames: [...OWN_NAMES, ...(options.dnsNames ?? [])],
    ipAddresses: addressesOf(options, host),
  });
  const store = new ObjectStore(database);
  const server = new ApiServer(
    { store, pki, clock, log, ...(options.observe === undefined ? {} : { observe: options.observe }) },
    {
      host,
      port: options.port ?? 0,
      watchWindow: options.watchWindow ?? DEFAULT_WINDOW,
      ...(options.maxTokenSeconds === undefined ? {} : { maxTokenSeconds: options.maxTokenSeconds }),
    },
  );
  await server.listen();
  for (const address of options.alsoListenOn ?? []) server.alsoListen(address);
  const [endpoint] = options.alsoListenOn ?? [];
  const seed = (): void => seedCluster(server.registry, pki.caPem, SERVICE, { targetPort: server.port, endpoint });
  seed();
  const [driver] = options.csiDrivers ?? [];
  if (driver !== undefined) seedStorage(server.registry, driver.name);
  const url = `https://${host === '0.0.0.0' ? '127.0.0.1' : host}:${server.port}`;
  const make = (user: string, groups: readonly string[]): string =>
    kubeconfig(url, pki.caPem, {
      name: user,
      credential: pki.issueClient({ commonName: user, organizations: groups }),
    });
  const adminKubeconfigPath = join(options.dir, 'admin.kubeconfig');
  await writeFileAtomic(adminKubeconfigPath, make('kubernetes-admin', ['system:masters']), 0o600);
  const stopping = new AbortController();
  const parts: ControllerDeps = { registry: server.registry, clock, log };
  const controllers = startControllers(parts, pki, options, seed, stopping.signal);
  return {
    url,
    port: server.port,
    caPem: pki.caPem,
    caPath: join(options.dir, 'pki', 'ca.crt'),
    pki,
    server,
    adminKubeconfigPath,
    kubeconfig: (user, groups = []) => make(user, groups),
    nodeKubeconfig: (name) => make(`system:node:${name}`, ['system:nodes']),
    async stop() {
      stopping.abort();
      await controllers;
      await server.close();
      store.close();
    },
  };
}
