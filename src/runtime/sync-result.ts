// What came of one sync of a pod, and its words where people meet them.
import { goQuote } from '../core/downward.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSandboxStatus } from '../cri/gen/cri.ts';
import type { ContainerStartError, WaitingReason } from '../core/reasons.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';

export type StartFailure = { readonly reason: WaitingReason; readonly message: string };

export type PodSyncResult = {
  /** By container: why it could not be started, or undefined once it was. Containers not in here were not touched. */
  readonly startErrors: ReadonlyMap<string, StartFailure | undefined>;
  /** Something was done in the runtime, so the pod should be read again. */
  readonly acted: boolean;
  /** When that was nothing but a new sandbox and containers in it: what came of them. */
  readonly made?: MadeInRuntime;
  /** The sync as a whole failed, in upstream's words; undefined when nothing did. */
  readonly failure?: KubeletError;
  /** The earliest moment at which a back-off ends, on the monotonic clock. */
  readonly retryAt?: number;
  /** Why a resize could not be done. */
  readonly resizeError?: string;
};

export type MadeInRuntime = { readonly sandbox: PodSandboxStatus; readonly containerIds: readonly string[] };

export type FailedAction = {
  readonly action:
    | 'StartContainer'
    | 'KillContainer'
    | 'KillPodSandbox'
    | 'CreatePodSandbox'
    | 'ConfigPodSandbox'
    | 'ResizePodInPlace'
    | 'RemoveContainer'
    | 'PrepareDynamicResources';
  readonly target: string;
  readonly reason: string;
  readonly message: string;
  readonly cause?: unknown;
};

const line = ({ action, target, reason, message }: FailedAction): string =>
  `failed to ${goQuote(action)} for ${goQuote(target)} with ${reason}: ${goQuote(message)}`;

/** One error for all that failed: alone as it is, several in brackets, repeats once. */
export function aggregate(failures: readonly FailedAction[]): KubeletError | undefined {
  const lines = [...new Set(failures.map(line))];
  if (lines.length === 0) return undefined;
  const cause = failures.find((f) => f.cause !== undefined)?.cause;
  return new KubeletError('internal', lines.length === 1 ? (lines[0] ?? '') : `[${lines.join(', ')}]`, { cause });
}

/** Collects the outcome while steps run. */
export class SyncLedger {
  readonly #containers = new Map<string, StartFailure | undefined>();
  readonly #failures: FailedAction[] = [];
  readonly #containerIds: string[] = [];
  #sandbox: PodSandboxStatus | undefined;
  /** Something else than starting was done. */
  #changed = false;
  #retryAt: number | undefined;
  #resizeError: string | undefined;

  acted(): void {
    this.#changed = true;
  }

  sandboxStarted(status: PodSandboxStatus): void {
    this.#sandbox = status;
  }

  started(container: string, id: string): void {
    this.#containerIds.push(id);
    this.#containers.set(container, undefined);
  }

  notStarted(container: string, fault: ContainerStartError, retryAt: number | undefined): void {
    this.#containers.set(container, { reason: fault.reason, message: fault.message });
    this.failed({
      action: 'StartContainer',
      target: container,
      reason: fault.reason,
      message: fault.message,
      cause: fault,
    });
    if (retryAt !== undefined) this.retryBy(retryAt);
  }

  /** Wall milliseconds. */
  retryBy(at: number): void {
    this.#retryAt = Math.min(this.#retryAt ?? Infinity, at);
  }

  failed(failure: FailedAction): void {
    this.#failures.push(failure);
  }

  resizeFailed(message: string, pod: Pod): void {
    this.#resizeError = message;
    this.failed({ action: 'ResizePodInPlace', target: pod.metadata.name, reason: 'ResizePodInPlaceError', message });
  }

  #made(): { made?: MadeInRuntime } {
    const [sandbox, containerIds] = [this.#sandbox, this.#containerIds];
    const isAll = !this.#changed && this.#failures.length === 0 && containerIds.length > 0;
    return sandbox !== undefined && isAll ? { made: { sandbox, containerIds } } : {};
  }

  /** Back-offs are told in wall time, because ends of containers are; waiting is monotonic. */
  result(clock: Clock): PodSyncResult {
    const failure = aggregate(this.#failures);
    const retryAt = this.#retryAt;
    return {
      startErrors: this.#containers,
      acted: this.#changed || this.#sandbox !== undefined || this.#containerIds.length > 0,
      ...this.#made(),
      ...(failure === undefined ? {} : { failure }),
      ...(retryAt === undefined ? {} : { retryAt: clock.monotonic() + Math.max(0, retryAt - clock.now()) }),
      ...(this.#resizeError === undefined ? {} : { resizeError: this.#resizeError }),
    };
  }
}
