// A node short of something takes no new pods, but for those that do not make it worse.
import { isCriticalPod, type Pod } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { toleratesTaint } from '../core/selectors.ts';
import type { Rejection } from './verdict.ts';

const MEMORY_TAINT = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

/** `conditions`: the pressures the eviction manager reports right now, e.g. `MemoryPressure`. */
export function checkEvictionConditions(pod: Pod, conditions: readonly string[]): Rejection | undefined {
  if (conditions.length === 0 || isCriticalPod(pod)) return undefined;
  if (conditions.length === 1 && conditions[0] === 'MemoryPressure') {
    if (qosClassOf(pod) !== 'BestEffort' || toleratesTaint(pod.spec.tolerations, MEMORY_TAINT)) return undefined;
  }
  return { reason: 'Evicted', message: `The node had condition: [${conditions.join(' ')}]. ` };
}
