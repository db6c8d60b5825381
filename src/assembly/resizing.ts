// In-place resize, fitted with admission's checks and the runtime's plan.
import { join } from 'node:path';
import type { PodAdmission } from '../admission/pod-admission.ts';
import { updateProblem } from '../admission/pod-features.ts';
import { configuredResizeChecks } from '../admission/resize-check.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { declaredFeatures } from '../node/declared-features.ts';
import { createResizing, type Resizing } from '../resources/create-resizing.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { ActuatedState } from '../runtime/actuated-state.ts';
import { swapFactsOf } from '../runtime/configured-facts.ts';
import { maySwap } from '../runtime/linux-resources.ts';
import { isResized, resizableContainers } from '../runtime/resize-plan.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type ResizingNeeds = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly cgroups: PodCgroups;
  readonly active: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
  readonly wake: (uid: PodUid) => void;
  readonly admission: () => PodAdmission;
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
};

export const buildResizing = ({
  base,
  edge,
  cluster,
  admission,
  pressures,
  shuttingDown,
  ...rest
}: ResizingNeeds): Promise<Resizing> => {
  const { clock, config, flags, gates } = base;
  const log = base.log.child({ component: 'resize' });
  const swap = swapFactsOf({
    swapBehavior: config.memorySwap.swapBehavior,
    cgroupVersion: edge.cgroups.version,
    limitsSwap: edge.limitsSwap,
  });
  return createResizing(base, {
    ...rest,
    events: cluster.events,
    actuated: new ActuatedState({ clock, log }, { file: join(flags.rootDir, 'actuated_pods_state') }),
    checkWith: (allocated) =>
      configuredResizeChecks(base, {
        node: () => cluster.node(),
        allocated,
        usesSwap: (pod, container) => maySwap(pod, container, swap),
        pressures,
        shuttingDown,
      }),
    makeRoom: (room, signal) => admission().makeRoom(room, signal),
    plan: { containers: resizableContainers, isResized },
    updateProblem: (before, now) => updateProblem(before, now, declaredFeatures(gates, edge.health.state().features)),
  });
};
