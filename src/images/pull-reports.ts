// Tells of a pull that takes long: in the waiting message of its container and in the log, and by events at quarters.
import type { EventRecorder } from '../core/events.ts';
import { humanProgress, humanSpan } from '../core/human.ts';
import { podKey, type Pod } from '../core/pod.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { PullView } from './pull-progress.ts';
import { containerOfFieldPath } from '../core/pod.ts';

export type PullReportDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventRecorder;
  /** Shown while the container waits; absent where nothing is to be told. */
  readonly onWaiting?: ((pod: Pod, container: string, message: string) => void) | undefined;
};

export type PullSubject = { readonly pod: Pod; readonly fieldPath: string };

export type PullReportOptions = {
  /** Every change of a status is a request to the API server. */
  readonly everyMs: number;
  /** Shorter pulls are over before anybody has read of them. */
  readonly longMs: number;
};

const USUAL: PullReportOptions = { everyMs: 10_000, longMs: 30_000 };
const QUARTERS = [75, 50, 25];

/** Begins to tell, first after ten seconds. Returns the way to stop. */
export function reportPull(
  deps: PullReportDeps,
  subject: PullSubject,
  view: () => PullView,
  { everyMs, longMs } = USUAL,
): () => void {
  const { clock, log, events, onWaiting } = deps;
  const { pod, fieldPath } = subject;
  const container = containerOfFieldPath(fieldPath);
  let ticks = 0;
  let toldPercent = 0;
  const tick = (): void => {
    const pull = view();
    const message = inWords(pull, clock.now());
    ticks++;
    // Ever more rarely: after 10, 20, 40, 80 … seconds.
    if ((ticks & (ticks - 1)) === 0)
      log.warn('a pod waits long for an image', { pod: podKey(pod), fieldPath, why: message });
    if (onWaiting !== undefined) {
      if (container !== undefined) onWaiting(pod, container, message);
      const quarter = dueQuarter(pull, clock.now(), toldPercent, longMs);
      if (quarter !== undefined) {
        toldPercent = quarter;
        events.pod(pod, 'Normal', 'PullProgress', message, fieldPath === '' ? {} : { fieldPath });
      }
    }
    timer = clock.after(everyMs, tick);
  };
  let timer: Timer = clock.after(everyMs, tick);
  return () => timer.cancel();
}

/** The quarter that a long pull has passed since the last one told of. */
export function dueQuarter(
  pull: PullView,
  nowMs: number,
  toldPercent: number,
  longMs = USUAL.longMs,
): number | undefined {
  const { progress, pullingSinceMs } = pull;
  if (pullingSinceMs === undefined || nowMs - pullingSinceMs < longMs) return undefined;
  if (progress?.totalBytes === undefined || progress.totalBytes === 0) return undefined;
  const percent = (progress.doneBytes / progress.totalBytes) * 100;
  // What is all here has nothing more to tell: `Pulled` follows.
  return percent >= 100 ? undefined : QUARTERS.find((quarter) => percent >= quarter && quarter > toldPercent);
}

function inWords(pull: PullView, nowMs: number): string {
  const image = JSON.stringify(pull.image);
  if (pull.phase === 'pulling')
    return `Pulling image ${image}: ${humanProgress(pull.progress, nowMs - (pull.pullingSinceMs ?? pull.sinceMs))}`;
  return `Image ${image} waits behind ${pull.ahead ?? 0} other pulls, ${humanSpan(nowMs - pull.sinceMs)} so far`;
}
