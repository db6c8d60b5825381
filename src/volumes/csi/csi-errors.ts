// What a failed call to a driver means for the volume.
import { isFault, KubeletError } from '../../lib/errors.ts';
import { fullErrorText, GrpcCode, GrpcError } from '../../lib/grpc/status.ts';

/** After these the driver may still be at work, or have finished. */
const UNCERTAIN: ReadonlySet<number> = new Set([
  GrpcCode.Canceled,
  GrpcCode.DeadlineExceeded,
  GrpcCode.Unavailable,
  GrpcCode.ResourceExhausted,
  GrpcCode.Aborted,
]);

/** Whether nothing of the call can have taken effect, or will. */
export const isFinal = (err: unknown): boolean => err instanceof GrpcError && !UNCERTAIN.has(err.code);

/** The error as people see it, with the stage it happened in. */
export function stageError(stage: string, err: unknown, prefix = ''): KubeletError {
  const kind = isFault(err) ? err.kind : 'internal';
  return new KubeletError(kind, `${prefix}${fullErrorText(err)}`, {
    cause: err,
    detail: { ...(isFault(err) ? err.detail : {}), stage },
  });
}

/** Runs a part of a mount; what fails in it is told as that stage, unless it names its own. */
export async function inStage<T>(stage: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    if (isFault(err) && typeof err.detail['stage'] === 'string') throw err;
    throw stageError(stage, err);
  }
}

/** Reads first: what is returned acts on it, or fails as the reading did. */
export async function afterReading<T>(
  reading: Promise<T>,
  act: (data: T) => Promise<void>,
): Promise<() => Promise<void>> {
  await reading.catch(() => undefined);
  return async () => act(await reading);
}

/** Does all of it side by side; the first failure is told when each has had its turn. */
export async function forEach(work: readonly (() => Promise<void>)[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const ends = await Promise.allSettled(work.map((piece) => piece()));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
