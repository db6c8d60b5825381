// The image manager's metric families.
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';

const PULL_BUCKETS = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
const MB = 1024 * 1024;
const GB = 1024 * MB;

const SIZES: readonly (readonly [belowBytes: number, label: string])[] = [
  [10 * MB, '0-10MB'],
  [100 * MB, '10MB-100MB'],
  [500 * MB, '100MB-500MB'],
  [GB, '500MB-1GB'],
  [5 * GB, '1GB-5GB'],
  [10 * GB, '5GB-10GB'],
  [20 * GB, '10GB-20GB'],
  [30 * GB, '20GB-30GB'],
  [40 * GB, '30GB-40GB'],
  [60 * GB, '40GB-60GB'],
  [100 * GB, '60GB-100GB'],
];

export const sizeLabel = (bytes: number): string => SIZES.find(([below]) => bytes < below)?.[1] ?? 'GT100GB';

export type ImageMetrics = {
  readonly pullDuration: Histogram;
  readonly ensureRequests: Counter;
  readonly mustPullChecks: Counter;
};

export function imageMetrics(registry: Registry, records: { intents: number; records: number }): ImageMetrics {
  registry.collected(
    'kubelet_imagemanager_ondisk_pullintents',
    '[ALPHA] Number of ImagePullIntents stored on disk.',
    'gauge',
    () => [[{}, records.intents]],
  );
  registry.collected(
    'kubelet_imagemanager_ondisk_pulledrecords',
    '[ALPHA] Number of ImagePulledRecords stored on disk.',
    'gauge',
    () => [[{}, records.records]],
  );
  // All records are held in memory, without a limit to come near to.
  registry.gauge(
    'kubelet_imagemanager_inmemory_pullintents_usage_percent',
    '[ALPHA] The ImagePullIntents in-memory cache usage in percent.',
  );
  registry.gauge(
    'kubelet_imagemanager_inmemory_pulledrecords_usage_percent',
    '[ALPHA] The ImagePulledRecords in-memory cache usage in percent.',
  );
  return {
    pullDuration: registry.histogram(
      'kubelet_image_pull_duration_seconds',
      '[ALPHA] Duration in seconds to pull an image.',
      ['image_size_in_bytes'],
      PULL_BUCKETS,
    ),
    ensureRequests: registry.counter(
      'kubelet_image_manager_ensure_image_requests_total',
      '[ALPHA] Number of ensure-image requests processed by the kubelet.',
      ['present_locally', 'pull_policy', 'pull_required'],
    ),
    mustPullChecks: registry.counter(
      'kubelet_imagemanager_image_mustpull_checks_total',
      '[ALPHA] Counter for how many times kubelet checked whether credentials need to be re-verified to access an image',
      ['result'],
    ),
  };
}
