// Fits the parts of this folder together and to the machine: the pod runtime and the user namespaces of its pods.
import type { Environment } from '../config/environment.ts';
import type { CriRuntime } from '../cri/services.ts';
import { uncancelled } from '../cri/uncancelled.ts';
import type { ConfigMap, Secret } from '../core/node.ts';
import { isSelinuxEnabled } from '../host/selinux.ts';
import { thermalPaths } from '../host/thermal.ts';
import { undefinedIfNotFound } from '../lib/errors.ts';
import { configuredFacts, type HostOfContainers } from './configured-facts.ts';
import { hookHttp } from './hook-http.ts';
import { runtimeMetrics } from './metrics.ts';
import type { ClusterView } from './needs.ts';
import { PodRuntime, type PodRuntimeDeps } from './pod-runtime.ts';
import { checkResolvConf } from './resolv-conf-check.ts';
import { firstIdOfSandbox } from './sandbox-users.ts';
import { subordinateIds } from './subordinate-ids.ts';
import { UserNamespaces } from './user-namespaces.ts';

const IDS_PER_POD = 65_536;

export type RuntimeDeps = Omit<PodRuntimeDeps, 'cri' | 'cluster' | 'infra'> & {
  readonly cri: CriRuntime;
  readonly cluster: Pick<ClusterView, 'nodeIps'>;
  readonly objects: Pick<ClusterView, 'services' | 'servicesRead' | 'runtimeHandler'> & {
    /** Rejects with `notFound`. */
    configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap>;
    secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
  };
  readonly node: { allocatableList: ClusterView['allocatable'] };
  readonly health: Pick<ClusterView, 'handlerFeatures'>;
  /** Pods with directories: their ranges of user ids are kept. */
  readonly podDirs: { list(): Promise<readonly string[]> };
};

export type RuntimeParts = { readonly runtime: PodRuntime; readonly userns: UserNamespaces };

export async function createRuntime(
  env: Environment,
  deps: RuntimeDeps,
  host: Omit<HostOfContainers, 'extraMaskedPaths' | 'selinux'>,
  signal: AbortSignal,
): Promise<RuntimeParts> {
  const { config, flags, clock, log, registry } = env;
  const { cluster, objects, node, health, podDirs, ...rest } = deps;
  const idsPerPod = config.userNamespaces?.idsPerPod ?? IDS_PER_POD;
  const range = await subordinateIds({ idsPerPod, maxPods: config.maxPods }, signal);
  const userns = new UserNamespaces({ rootDir: flags.rootDir, idsPerPod, maxPods: config.maxPods, range });
  const firstIdOf = (uid: string): Promise<number | undefined> => firstIdOfSandbox(deps.cri, uid, signal);
  await userns.restore(await podDirs.list(), { firstIdOf, log: log.child({ component: 'runtime' }) });
  const [extraMaskedPaths, selinux] = await Promise.all([thermalPaths(), isSelinuxEnabled()]);
  await checkResolvConf(config.resolvConf, config.clusterDomain, deps.events);
  const runtime = new PodRuntime(
    {
      ...rest,
      cri: uncancelled(clock, deps.cri, signal),
      cluster: {
        configMap: (namespace, name, stop) => undefinedIfNotFound(objects.configMap(namespace, name, stop)),
        secret: (namespace, name, stop) => undefinedIfNotFound(objects.secret(namespace, name, stop)),
        services: () => objects.services(),
        servicesRead: (stop) => objects.servicesRead(stop),
        nodeIps: () => cluster.nodeIps(),
        allocatable: () => node.allocatableList(),
        runtimeHandler: (className, stop) => objects.runtimeHandler(className, stop),
        handlerFeatures: (handler) => health.handlerFeatures(handler),
      },
      infra: { clock, log, metrics: runtimeMetrics(registry), http: hookHttp(clock), userns },
    },
    configuredFacts(env, { ...host, extraMaskedPaths, selinux }),
  );
  return { runtime, userns };
}
