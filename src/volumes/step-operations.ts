// What one step of a volume is counted as: upstream's operations, each with its own time. A step that mounts is an attach
// and a mount; one that unmounts is an unmount and, for the last pod of a shared volume, the release of its device.
import type { Clock } from '../lib/clock.ts';
import { deviceOperationOf, operationOf, type Operation, type VolumeMetrics } from './metrics.ts';
import type { ResolvedVolume } from './plugin.ts';
import type { Step, VolumeEntry } from './volume-entry.ts';

export type StepMetrics = Pick<VolumeMetrics, 'observe' | 'forceCleaned'>;
type StepOperationsDeps = { readonly clock: Clock; readonly metrics?: StepMetrics };

export class StepOperations {
  readonly #clock: Clock;
  readonly #metrics: StepMetrics | undefined;
  readonly #entry: VolumeEntry;
  readonly #step: Step;
  /** Where it was before: an unmounted volume is nowhere. */
  readonly #before: ResolvedVolume | undefined;
  #fromMs: number | undefined;
  #isDone = false;
  /** Set where a mounted volume was only looked at: whether it was made larger. */
  resized: boolean | undefined;

  constructor({ clock, metrics }: StepOperationsDeps, entry: VolumeEntry, step: Step) {
    this.#clock = clock;
    this.#metrics = metrics;
    this.#entry = entry;
    this.#step = step;
    this.#before = entry.resolved;
    if (step === 'unmount') this.begin();
  }

  /** The operation itself: whatever came before was reading and waiting, and no failure of it. */
  begin(): void {
    this.#fromMs = this.#clock.monotonic();
    if (this.#step !== 'unmount') this.#entry.isReleased = false;
  }

  /** Once, until the volume is unmounted: by a controller that is waited for, or by this node. */
  async attach<T>(byController: boolean, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#entry.isAttached) return work();
    const operation = byController ? 'verify_controller_attached_volume' : 'volume_attach';
    const from = this.#clock.monotonic();
    try {
      const answer = await work();
      this.#entry.isAttached = true;
      this.#observe(operation, true, from);
      return answer;
    } catch (err) {
      if (!signal.aborted) this.#observe(operation, false, from);
      throw err;
    }
  }

  /** What is done for the last pod that had the volume; the pod's own part is over by then. */
  readonly releaseDevice = async (work: () => Promise<void>): Promise<void> => {
    const isBlock = this.#before?.volumeMode === 'Block';
    if (!this.#entry.isReleased) this.#observe(operationOf('unmount', isBlock), true, this.#fromMs);
    this.#entry.isReleased = true;
    this.#isDone = true;
    const from = this.#clock.monotonic();
    let succeeded = false;
    try {
      await work();
      succeeded = true;
    } finally {
      this.#observe(deviceOperationOf(isBlock), succeeded, from);
    }
  };

  /** Files were given to the group of the pod, or could not be. */
  readonly ownershipChanged = (succeeded: boolean, seconds: number): void => {
    const plugin = this.#plugin();
    const operation = 'volume_apply_access_control';
    if (plugin !== undefined) this.#metrics?.observe({ plugin, operation, succeeded, migrated: false }, seconds);
  };

  ended(succeeded: boolean): void {
    const entry = this.#entry;
    if (this.#step === 'unmount' && entry.isBroken) {
      this.#metrics?.forceCleaned(succeeded);
      entry.isBroken = false;
    }
    if (this.#step !== 'unmount' && succeeded) entry.isBroken = false;
    if (entry.sameAs !== undefined || this.#isDone || (this.resized === false && succeeded)) return;
    const usual = operationOf(this.#step, (entry.resolved ?? this.#before)?.volumeMode === 'Block');
    this.#observe(this.resized === undefined ? usual : 'volume_fs_resize', succeeded, this.#fromMs);
  }

  #plugin(): string | undefined {
    return this.#entry.metricName ?? (this.#entry.resolved ?? this.#before)?.plugin.name;
  }

  /** Nothing of what never began, nor of a volume of which only binds of sub paths are left. */
  #observe(operation: Operation, succeeded: boolean, fromMs: number | undefined): void {
    const plugin = this.#plugin();
    if (plugin === undefined || fromMs === undefined) return;
    const now = this.#clock.monotonic();
    const isMounted = operation === 'volume_mount' && succeeded;
    const sinceMs = this.#step === 'mount' ? this.#entry.wantedAt : fromMs;
    const migrated = (this.#entry.resolved ?? this.#before)?.persistent?.migrated === true;
    const overall = isMounted ? { overallSeconds: (now - sinceMs) / 1000 } : {};
    this.#metrics?.observe({ plugin, operation, succeeded, migrated, ...overall }, (now - fromMs) / 1000);
  }
}
