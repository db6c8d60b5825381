// Tells everybody that a pod is not going to run here, and why.
import type { EventRecorder } from '../core/events.ts';
import { podKey, type Pod, type PodStatus } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import type { Logger } from '../lib/logger.ts';

export type RejectPodDeps = {
  readonly events: Pick<EventRecorder, 'pod'>;
  readonly status: { set(pod: Pod, status: PodStatus): unknown };
  readonly log: Logger;
  /** Counts rejections of pods that were admitted before. */
  readonly counted?: { rejectedLater(reason: string): void };
};

export function rejectPod(deps: RejectPodDeps, pod: Pod, reason: string, message: string): void {
  const { events, status, log, counted } = deps;
  counted?.rejectedLater(reason);
  log.info('pod rejected', { pod: podKey(pod), reason, message });
  events.pod(pod, 'Warning', reason, message);
  const generation = pod.metadata.generation ?? 0;
  status.set(pod, {
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    phase: 'Failed',
    reason,
    message: `Pod was rejected: ${message}`,
    qosClass: qosClassOf(pod),
  });
}
