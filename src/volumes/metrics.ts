// What upstream counts about volumes, under its names.
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';

export type Operation = 'volume_mount' | 'volume_unmount' | 'map_volume' | 'unmap_volume';

/** Devices are mapped, filesystems are mounted. */
export const operationOf = (step: string, isBlock: boolean): Operation =>
  step === 'unmount' ? (isBlock ? 'unmap_volume' : 'volume_unmount') : isBlock ? 'map_volume' : 'volume_mount';
export type EndedOperation = {
  readonly plugin: string;
  readonly operation: Operation;
  readonly succeeded: boolean;
  /** The volume is of a kind that was moved to CSI. */
  readonly migrated: boolean;
};
/** How many volumes of one kind are wanted and how many may be there. */
export type VolumeTotals = ReadonlyMap<string, { readonly desired: number; readonly actual: number }>;

const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export class VolumeMetrics {
  readonly #registry: Registry;
  readonly #operations: Histogram;
  readonly #totals: Histogram;
  readonly #reconstructed: Counter;

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
    this.#reconstructed = registry.counter(
      'reconstruct_volume_operations_total',
      '[ALPHA] The number of volumes that were attempted to be reconstructed from the operating system during kubelet startup. This includes both successful and failed reconstruction.',
    );
  }

  /** Shows how many volumes there are whenever somebody asks. */
  show(totals: () => VolumeTotals): void {
    this.#registry.collected(
      'volume_manager_total_volumes',
      '[ALPHA] Number of volumes in Volume Manager',
      'gauge',
      function* () {
        for (const [plugin_name, { desired, actual }] of totals()) {
          yield [{ plugin_name, state: 'desired_state_of_world' }, desired] as const;
          yield [{ plugin_name, state: 'actual_state_of_world' }, actual] as const;
        }
      },
    );
  }

  observe({ plugin, operation, succeeded, migrated }: EndedOperation, seconds: number): void {
    const status = succeeded ? 'success' : 'fail-unknown';
    this.#operations.observe(seconds, {
      volume_plugin: plugin,
      operation_name: operation,
      status,
      migrated: String(migrated),
    });
    if (succeeded) this.#totals.observe(seconds, { plugin_name: plugin, operation_name: operation });
  }

  reconstructed(): void {
    this.#reconstructed.inc();
  }
}
