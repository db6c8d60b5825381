// The node page, fitted to everything it shows.
import { detectCgroups } from '../host/cgroups/layout.ts';
import { goArch } from '../host/host-facts.ts';
import type { Images } from '../images/create.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import { readAcrossRotation } from '../logs/read-across.ts';
import { NodePage } from '../page/page.ts';
import { pagePorts, type PageParts } from '../page/page-ports.ts';
import type { PodLife } from '../pods/create.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { logContainerOf } from '../server/log-container.ts';
import { KnownPods } from '../server/pods-view.ts';
import type { Sources } from '../sources/create.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Upkeep } from './upkeep.ts';
import type { Volumes } from './volumes.ts';

export type PageDeps = Pick<PageParts, 'cluster' | 'explainer' | 'probes' | 'stats' | 'eviction' | 'podRuntime'> & {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly life: PodLife;
  readonly volumes: Volumes;
  readonly images: Images;
  readonly upkeep: Upkeep;
  readonly sources: Sources;
};

export async function buildPage(deps: PageDeps): Promise<NodePage> {
  const { base, edge, cluster } = deps;
  const { config, flags, nodeName, tracer, updates } = base;
  const { version, health, observer, cri } = edge;
  const pathOf = async (containerId: string, signal: AbortSignal): Promise<string> =>
    (await cri.runtime.containerStatus({ containerId }, signal)).status?.logPath ?? '';
  const ports = pagePorts(
    {
      ...deps,
      tracer,
      pods: new KnownPods(deps),
      workers: deps.life.workers,
      volumes: deps.volumes.manager,
      problems: deps.sources.problems,
      puller: deps.images.puller,
      images: deps.upkeep.imageGc,
      runtime: { version, health, cache: observer.cache },
      logs: { choose: logContainerOf, pathOf, read: readAcrossRotation },
    },
    {
      nodeName,
      version: KUBELET_VERSION,
      architecture: goArch(process.arch),
      maxPods: config.maxPods,
      cgroups: await detectCgroups(),
      config: () => updates.current,
    },
  );
  const { rootDir, nodePageAddress: address, nodePagePort: port, nodePageWrite: write } = flags;
  return new NodePage(ports, { rootDir, address, port, write, nodeName, addresses: () => cluster.nodeIps() });
}
