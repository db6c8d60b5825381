// Waits for the machine to go down, and then ends the pods in order while logind waits for us.
import type { EventRecorder } from '../core/events.ts';
import { podKey, type Pod } from '../core/pod.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { Backoff } from '../lib/backoff.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { graceSeconds, shutdownSteps, totalSeconds, type ShutdownGroup, type ShutdownStep } from './groups.ts';
import type { Inhibitor } from './logind.ts';

/** What of logind is needed. */
export interface ShutdownSource {
  allowDelay(seconds: number, signal: AbortSignal): Promise<void>;
  inhibit(signal: AbortSignal): Promise<Inhibitor>;
  watch(onPrepare: (down: boolean) => void, signal: AbortSignal): Promise<void>;
}

export interface EndingPods {
  /** Whether every source has said which pods there are. */
  known(): boolean;
  running(): readonly Pod[];
  /** Resolves when it has stopped and its volumes are unmounted. */
  end(pod: Pod, graceSeconds: number, signal: AbortSignal): Promise<void>;
}

/** Keeps the times of the last shutdown over the restart. */
export interface KeptTimes {
  load(): Promise<void>;
  started(nowMs: number): Promise<void>;
  ended(nowMs: number): Promise<void>;
}

export type ShutdownDeps = {
  readonly source: ShutdownSource;
  readonly pods: EndingPods;
  readonly events: EventRecorder;
  /** Readiness changed. */
  readonly onChange: () => void;
  readonly times: KeptTimes;
  readonly infra: { readonly clock: Clock; readonly log: Logger };
};

/** A bus that was restarted is back soon; one that is not there at all need not be asked often. */
const RETRY = { baseMs: 1000, maxMs: 60_000 };
/** A machine may go down right after the agent has started: its pods run, but nobody has told of them yet. */
const POD_SOURCES_MS = 5000;
const SOURCES_LOOK_MS = 100;
/** From the word of a source until its pods are admitted. */
const ADMISSION_MS = 1000;

export class ShutdownManager implements Runnable {
  readonly name = 'shutdown';
  readonly #deps: ShutdownDeps;
  readonly #groups: readonly ShutdownGroup[];
  #down = false;
  #inhibitor: Inhibitor | undefined;
  #ending: Promise<void> = Promise.resolve();

  constructor(deps: ShutdownDeps, groups: readonly ShutdownGroup[]) {
    this.#deps = deps;
    this.#groups = groups;
  }

  get shuttingDown(): boolean {
    return this.#down;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps.infra;
    const backoff = new Backoff(RETRY);
    await this.#keep('load');
    while (!signal.aborted) {
      try {
        await this.#watch(signal, () => backoff.succeeded());
      } catch (err) {
        if (!signal.aborted) log.warn('shutdowns of this machine are not noticed', { err });
      } finally {
        // Also without the bus: the machine waits until the pods have ended.
        await this.#ending;
        this.#release();
      }
      await clock.sleep(backoff.failed(clock.monotonic()), signal);
    }
  }

  async #watch(signal: AbortSignal, onStart: () => void): Promise<void> {
    const { source } = this.#deps;
    await source.allowDelay(totalSeconds(this.#groups), signal);
    this.#inhibitor = await source.inhibit(signal);
    onStart();
    await source.watch((down) => {
      // One after the other, in the order they were announced.
      this.#ending = this.#ending.then(() => this.#announced(down, signal));
    }, signal);
  }

  async #announced(down: boolean, signal: AbortSignal): Promise<void> {
    const { events, onChange, source, infra } = this.#deps;
    const what = down ? 'event' : 'cancellation';
    events.node('Normal', 'Shutdown', `Shutdown manager detected shutdown ${what}`);
    // Before anybody is turned away: pods that run are admitted first and then ended in order.
    if (down) await this.#untilPodsAreKnown(signal);
    this.#down = down;
    onChange();
    try {
      if (down) await this.#endPods(signal);
      else this.#inhibitor ??= await source.inhibit(signal);
    } catch (err) {
      if (!signal.aborted) infra.log.error('the shutdown was not handled in full', { err });
    } finally {
      if (down) this.#release();
    }
  }

  async #untilPodsAreKnown(signal: AbortSignal): Promise<void> {
    const { pods, infra } = this.#deps;
    if (pods.known()) return;
    const end = infra.clock.monotonic() + POD_SOURCES_MS;
    while (!pods.known() && infra.clock.monotonic() < end && !signal.aborted)
      await infra.clock.sleep(SOURCES_LOOK_MS, signal);
    await infra.clock.sleep(ADMISSION_MS, signal);
  }

  async #endPods(signal: AbortSignal): Promise<void> {
    await this.#keep('started');
    try {
      for (const step of shutdownSteps(this.#deps.pods.running(), this.#groups)) await this.#endStep(step, signal);
    } finally {
      await this.#keep('ended');
    }
  }

  /** A disk that cannot be written must not keep pods from ending in order. */
  async #keep(what: keyof KeptTimes): Promise<void> {
    const { times, infra } = this.#deps;
    try {
      await times[what](infra.clock.now());
    } catch (err) {
      infra.log.warn('the times of the shutdown are not kept', { err });
    }
  }

  /** Ends when all of them have, or the group's time is over. */
  async #endStep(step: ShutdownStep, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps.infra;
    const end = async (pod: Pod, own: AbortSignal): Promise<void> => {
      try {
        await this.#deps.pods.end(pod, graceSeconds(pod, step), own);
        log.info('pod ended for the shutdown', { pod: podKey(pod) });
      } catch (err) {
        if (!own.aborted) log.error('pod could not be ended for the shutdown', { pod: podKey(pod), err });
        own.throwIfAborted();
      }
    };
    try {
      await withDeadline(clock, signal, step.seconds * 1000, (own) =>
        Promise.all(step.pods.map((pod) => end(pod, own))).then(() => undefined),
      );
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline')) throw err;
      log.warn('pods did not end in the time of their group', { seconds: step.seconds });
    }
  }

  #release(): void {
    this.#inhibitor?.release();
    this.#inhibitor = undefined;
  }
}
