// How much memory pods keep from reclaim, counted when somebody asks.
import type { Registry } from '../lib/metrics.ts';

export function memoryQosMetrics(
  registry: Registry,
  tree: { protectedMemory(): { readonly min: number; readonly low: number } },
): void {
  registry.collected(
    'kubelet_memory_qos_node_memory_min_bytes',
    '[ALPHA] Total cgroup v2 memory.min in bytes for Guaranteed pods. This memory is hard-reserved and never reclaimed by the kernel.',
    'gauge',
    () => [[{}, tree.protectedMemory().min]],
  );
  registry.collected(
    'kubelet_memory_qos_node_memory_low_bytes',
    '[ALPHA] Total cgroup v2 memory.low in bytes for Burstable pods. This memory is soft-reserved and may be reclaimed under extreme pressure.',
    'gauge',
    () => [[{}, tree.protectedMemory().low]],
  );
}
