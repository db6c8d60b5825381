// What the volumes of a pod are worked on with.
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Attachments } from './attachments.ts';
import type { Expander } from './claims/expander.ts';
import type { PersistentVolumeEvents } from './mount-messages.ts';
import type { VolumeResolver } from './plugin.ts';
import type { StepMetrics } from './step-operations.ts';

export type PodVolumesDeps = {
  readonly resolver: VolumeResolver;
  /** Removes the binds into a volume, before the volume goes. */
  readonly cleanSubPaths: (uid: string, volume: string, signal: AbortSignal) => Promise<void>;
  /** Makes the pod's directories. */
  readonly ensurePodDirs: (uid: string) => Promise<void>;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: StepMetrics;
  readonly volumeEvents?: PersistentVolumeEvents;
  /** Absent where nothing is ever attached. */
  readonly attachments?: Pick<Attachments, 'whenAttached' | 'isUsable' | 'isAttached'>;
  /** False where volumes that must be attached are this node's own business. */
  readonly controllerAttaches?: boolean;
  /** Our own node, whose labels decide about volumes with an affinity. */
  readonly node?: () => Node | undefined;
  readonly expander?: Pick<Expander, 'expand'>;
  /** Whether another pod has this volume mounted, or may have. */
  readonly isUsedByOthers?: (uniqueName: string, uid: string) => boolean;
};

export type PodVolumesOpts = {
  readonly stepTimeoutMs: number;
  /** Called after every change of what is there. */
  readonly onChange: () => void;
};
