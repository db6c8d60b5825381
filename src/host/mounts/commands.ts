// System tools that volumes need (mount, blkid, mkfs, iscsiadm and the like), each as a child process with a deadline. An
// interface, so that tests can put a scripted host in its place.
import { formatDurationMs } from '../../core/duration.ts';
import { withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { isFault, KubeletError } from '../../lib/errors.ts';
import { runChild, type ChildResult } from './child.ts';
import { NotAsked } from './hung-children.ts';

export interface HostCommands {
  /**
   * The exit code and the output, whatever the code is. A `deadline` fault: the command did not end in time and was
   * killed. An `unavailable` fault: it could not be run at all.
   */
  run(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult>;
}

/** Runs commands that have no time limit of their own. */
export const patientCommands: HostCommands = { run: runChild };

export class ChildCommands implements HostCommands {
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  constructor(deps: { clock: Clock }, opts: { timeoutMs?: number } = {}) {
    this.#clock = deps.clock;
    this.#timeoutMs = opts.timeoutMs ?? 60_000;
  }

  async run(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    try {
      return await withDeadline(this.#clock, signal, this.#timeoutMs, (own) => runChild(command, args, own));
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline') || err instanceof NotAsked) throw err;
      throw new KubeletError('deadline', `${command} did not end within ${formatDurationMs(this.#timeoutMs)}`, {
        cause: err,
      });
    }
  }
}
