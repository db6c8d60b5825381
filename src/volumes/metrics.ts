// What upstream counts about volumes, under its names.
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';

export type Operation =
  | 'verify_controller_attached_volume'
  | 'volume_attach'
  | 'volume_mount'
  | 'volume_unmount'
  | 'unmount_device'
  | 'map_volume'
  | 'unmap_volume'
  | 'unmap_device'
  | 'volume_apply_access_control'
  | 'volume_fs_resize';

/** Devices are mapped, filesystems are mounted. */
export const operationOf = (step: string, isBlock: boolean): Operation =>
  step === 'unmount' ? (isBlock ? 'unmap_volume' : 'volume_unmount') : isBlock ? 'map_volume' : 'volume_mount';
/** What is left when the last pod has let go of a volume. */
export const deviceOperationOf = (isBlock: boolean): Operation => (isBlock ? 'unmap_device' : 'unmount_device');

export type EndedOperation = {
  readonly plugin: string;
  readonly operation: Operation;
  readonly succeeded: boolean;
  /** The volume is of a kind that was moved to CSI. */
  readonly migrated: boolean;
  /** How long it took from the wish for a mounted filesystem on, with all waits and failures. */
  readonly overallSeconds?: number;
};
/** How many volumes of one kind are wanted and how many are mounted. */
export type VolumeTotals = ReadonlyMap<string, { readonly desired: number; readonly actual: number }>;

type Outcomes = { readonly all: Counter; readonly failed: Counter };
const count = ({ all, failed }: Outcomes, succeeded: boolean): void => {
  all.inc();
  if (!succeeded) failed.inc();
};

const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export class VolumeMetrics {
  readonly #registry: Registry;
  readonly #operations: Histogram;
  readonly #totals: Histogram;
  readonly #reconstructed: Outcomes;
  readonly #forceCleaned: Outcomes;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#operations = registry.histogram(
      'storage_operation_duration_seconds',
      '[ALPHA] Storage operation duration',
      ['volume_plugin', 'operation_name', 'status', 'migrated'],
      BUCKETS,
    );
    this.#totals = registry.histogram(
      'volume_operation_total_seconds',
      '[ALPHA] Storage operation end to end duration in seconds',
      ['plugin_name', 'operation_name'],
      BUCKETS,
    );
    this.#reconstructed = {
      all: registry.counter(
        'reconstruct_volume_operations_total',
        '[ALPHA] The number of volumes that were attempted to be reconstructed from the operating system during kubelet startup. This includes both successful and failed reconstruction.',
      ),
      failed: registry.counter(
        'reconstruct_volume_operations_errors_total',
        '[ALPHA] The number of volumes that failed reconstruction from the operating system during kubelet startup.',
      ),
    };
    this.#forceCleaned = {
      all: registry.counter(
        'force_cleaned_failed_volume_operations_total',
        '[ALPHA] The number of volumes that were force cleaned after their reconstruction failed during kubelet startup. This includes both successful and failed cleanups.',
      ),
      failed: registry.counter(
        'force_cleaned_failed_volume_operation_errors_total',
        '[ALPHA] The number of volumes that failed force cleanup after their reconstruction failed during kubelet startup.',
      ),
    };
  }

  /** Shows how many volumes there are whenever somebody asks. */
  show(totals: () => VolumeTotals): void {
    this.#registry.collected(
      'volume_manager_total_volumes',
      '[ALPHA] Number of volumes in Volume Manager',
      'gauge',
      function* () {
        for (const [plugin_name, { desired, actual }] of totals()) {
          if (desired > 0) yield [{ plugin_name, state: 'desired_state_of_world' }, desired] as const;
          if (actual > 0) yield [{ plugin_name, state: 'actual_state_of_world' }, actual] as const;
        }
      },
    );
  }

  observe({ plugin, operation, succeeded, migrated, overallSeconds }: EndedOperation, seconds: number): void {
    const status = succeeded ? 'success' : 'fail-unknown';
    this.#operations.observe(seconds, {
      volume_plugin: plugin,
      operation_name: operation,
      status,
      migrated: String(migrated),
    });
    if (overallSeconds !== undefined)
      this.#totals.observe(overallSeconds, { plugin_name: plugin, operation_name: 'overall_volume_mount' });
  }

  /** A volume that was found on disk; false: nobody can say what it is. */
  reconstructed(succeeded: boolean): void {
    count(this.#reconstructed, succeeded);
  }

  /** One of the latter was removed, or could not be. */
  forceCleaned(succeeded: boolean): void {
    count(this.#forceCleaned, succeeded);
  }
}
