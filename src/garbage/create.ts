// Fits the parts of this folder together: the remover, the regular passes and the pruning of one pod's containers.
import type { Environment } from '../config/environment.ts';
import type { CriRuntime } from '../cri/services.ts';
import { CONTAINER_LOGS } from '../core/log-links.ts';
import type { PodUid } from '../core/ids.ts';
import { GarbageCollector, type CollectorDeps } from './collector.ts';
import { ContainerPruner, type ContainerPrunerDeps } from './container-pruner.ts';
import { ContainerRemover, type ContainerRemoverDeps } from './container-remover.ts';
import type { Quiet } from '../lib/quiet-wait.ts';
import { criGarbage, type RemovalListener } from './cri-garbage.ts';
import { PodLeftovers, type PodLeftoversDeps } from './pod-leftovers.ts';

export type Garbage = {
  readonly collector: GarbageCollector;
  readonly leftovers: PodLeftovers;
  readonly pruner: ContainerPruner;
};

export type GarbageDeps = Pick<CollectorDeps, 'remover' | 'sourcesReady' | 'events'> & {
  readonly runtime: CriRuntime;
  readonly observed: ContainerPrunerDeps['observed'] & RemovalListener;
  readonly life: () => {
    readonly quiet: Quiet;
    readonly lifecycles: CollectorDeps['pods'] & {
      /** As `contentRemovable`, but false for a pod that nobody knows. */
      knownAndRemovable(uid: PodUid): boolean;
    };
  };
  readonly leftovers: Omit<PodLeftoversDeps, 'observed' | 'containers' | 'log'>;
};

const EVERY_MS = 60_000;

export const createRemover = (
  deps: Omit<ContainerRemoverDeps, 'runtime'> & {
    readonly runtime: CriRuntime;
    readonly observed: RemovalListener;
  },
): ContainerRemover =>
  new ContainerRemover(
    { ...deps, runtime: criGarbage(deps.runtime, deps.observed) },
    { containerLogs: CONTAINER_LOGS },
  );

export function createGarbage({ clock, config, flags, ...env }: Environment, deps: GarbageDeps): Garbage {
  const log = env.log.child({ component: 'garbage' });
  const { observed, life, remover, sourcesReady, events } = deps;
  const collector = new GarbageCollector(
    {
      clock,
      log,
      remover,
      sourcesReady,
      events,
      runtime: criGarbage(deps.runtime, observed),
      pods: {
        contentRemovable: (uid) => life().lifecycles.contentRemovable(uid),
        runtimeRemovable: (uid) => life().lifecycles.runtimeRemovable(uid),
      },
      quiet: (signal) => life().quiet(signal),
    },
    {
      policy: {
        minAgeMs: flags.minimumContainerTtlDurationMs,
        maxPerContainer: flags.maximumDeadContainersPerContainer,
        maxContainers: flags.maximumDeadContainers,
      },
      everyMs: EVERY_MS,
      podLogs: config.podLogsDir,
      containerLogs: CONTAINER_LOGS,
    },
  );
  const contentRemovable = (uid: PodUid): boolean => life().lifecycles.knownAndRemovable(uid);
  const pruner = new ContainerPruner(
    { observed, contentRemovable, collector, log },
    flags.maximumDeadContainersPerContainer,
  );
  const leftovers = new PodLeftovers({ ...deps.leftovers, observed, containers: collector, log });
  return { collector, leftovers, pruner };
}
