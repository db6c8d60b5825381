// One volume of one pod: what is wanted, what is there, and the step under way.
import type { Volume } from '../core/pod.ts';
import type { Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Timer } from '../lib/clock.ts';
import type { Actual, VolumeStep } from './plan.ts';
import type { ObjectReference, ResolvedVolume } from './plugin.ts';
import type { StepOperations } from './step-operations.ts';

export type Step = Exclude<VolumeStep['do'], 'wait' | 'nothing' | 'forget'>;
export type Failure = { readonly message: string; readonly sinceMs: number; readonly unresolved: boolean };
export type Running = {
  readonly step: Step;
  readonly scope: Scope;
  readonly sinceMs: number;
  doing: string;
  /** The name it waits for a controller to attach. */
  awaitsAttach?: string;
  readonly operations: StepOperations;
};

export class VolumeEntry {
  /** The name in the pod; for a volume only found on disk, the name of its directory. */
  readonly name: string;
  wanted: Volume | undefined;
  /** Since when, on the monotonic clock. */
  wantedAt = 0;
  resolved: ResolvedVolume | undefined;
  /** Another volume of the pod is the same claim: this one is mounted when that one is. */
  sameAs: VolumeEntry | undefined;
  /** The name a controller attaches it under; kept until nothing of it is left, whether or not it is wanted. */
  attachedName: string | undefined;
  /** What metrics call its kind. */
  metricName: string | undefined;
  /** It was seen attached since it was last unmounted. */
  isAttached = false;
  /** The pod has nothing of it any more, but its device could not be released yet. */
  isReleased = false;
  /** Found on disk by an earlier run's leavings that make no sense. */
  isBroken = false;
  /** The same for every pod that shares the volume. */
  uniqueName: string | undefined;
  /** Another volume that its claim names although this one is mounted; told once. */
  other = '';
  /** How large it is on this node, as far as is known. */
  size: string | undefined;
  actual: Actual = { is: 'unmounted' };
  stale = false;
  failure: Failure | undefined;
  notBefore = 0;
  running: Running | undefined;
  timer: Timer | undefined;
  readonly backoff = new Backoff({ baseMs: 500, maxMs: 122_000 });

  constructor(name: string) {
    this.name = name;
  }

  want(volume: Volume, now: number): void {
    if (this.wanted === undefined) this.wantedAt = now;
    this.wanted = volume;
  }

  unwant(): void {
    if (this.wanted === undefined) return;
    this.wanted = undefined;
    this.sameAs = undefined;
    this.stale = false;
    this.notBefore = 0;
    this.failure = undefined;
    this.backoff.succeeded();
    if (this.running?.step !== 'unmount') this.running?.scope.abort();
  }

  /** The name people know it by: the persistent volume's for a claim. */
  get specName(): string {
    return this.resolved?.specName ?? this.name;
  }

  get isReconstructed(): boolean {
    return this.actual.is === 'uncertain' && this.actual.reconstructed;
  }

  /** On disk is another shared volume than the pod wants now: containers may use it until the pod is over. */
  get isFoundOnly(): boolean {
    return this.wanted === undefined && this.isReconstructed && this.resolved?.plugin.uniqueName !== undefined;
  }

  /** It is mounted, and its claim may come to say that it is larger. */
  get mayGrow(): boolean {
    const { wanted, actual, resolved } = this;
    const isGrowable = resolved?.persistent?.claim !== undefined && resolved.plugin.expand !== undefined;
    return wanted !== undefined && actual.is === 'mounted' && isGrowable;
  }

  /** Its driver asked for it to be published again and again. */
  get wantsEverySync(): boolean {
    const { wanted, resolved } = this;
    return wanted !== undefined && resolved?.plugin.wantsEverySync?.({ ...resolved, volume: wanted }) === true;
  }

  refersTo(of: ObjectReference): boolean {
    return (
      this.wanted !== undefined &&
      (this.resolved?.plugin.references?.(this.wanted) ?? []).some((r) => r.kind === of.kind && r.name === of.name)
    );
  }
}

/** Where a volume is on disk, whatever it is called in a pod. */
export type VolumePlace = Pick<ResolvedVolume, 'plugin' | 'specName' | 'volumeMode'>;

export const isSamePlace = (a: VolumePlace | undefined, b: VolumePlace): boolean =>
  a !== undefined && a.plugin.name === b.plugin.name && a.specName === b.specName && a.volumeMode === b.volumeMode;
