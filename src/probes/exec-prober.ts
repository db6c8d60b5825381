// An exec probe runs a command in the container. Costly for the runtime, so only a few begin at a time; waiting for a turn
// does not count against the probe's own timeout. A command that takes long costs the runtime nothing more: it gives its
// turn up, so that no pod's hanging probes keep those of others from running. One that has begun goes on when its pod is being
// stopped: a runtime in which an exec was cut off at its beginning hears of the end of the container half a minute late.
import { formatDurationMs } from '../core/duration.ts';
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Semaphore } from '../lib/semaphore.ts';
import { expandCommand } from './exec-command.ts';
import { MAX_OUTPUT_BYTES, type Answer, type Prober } from './prober.ts';

/** The runtime's ExecSync. Rejects with kind `deadline` when the command took too long. */
export type ExecSync = (
  containerId: string,
  command: readonly string[],
  timeoutSeconds: number,
  signal: AbortSignal,
) => Promise<{ readonly exitCode: number; readonly stdout: Uint8Array; readonly stderr: Uint8Array }>;

/** Longer than a runtime takes to begin a command. */
const TURN_MS = 250;

export const execProber =
  (clock: Clock, execSync: ExecSync, turns: Semaphore): Prober =>
  async (target, signal) => {
    const { answer } = await turns.run(signal, async () => {
      const scope = childScope(signal);
      const running = run(execSync, target, target.life ?? signal);
      // Whatever the answer is, it is awaited below; here only that it came.
      const over = running.then(scope.abort, scope.abort);
      await Promise.race([over, clock.sleep(TURN_MS, scope.signal)]);
      scope.release();
      return { answer: running };
    });
    return answer;
  };

async function run(execSync: ExecSync, target: Parameters<Prober>[0], signal: AbortSignal): Promise<Answer> {
  const { probe, container, containerId, timeoutMs } = target;
  const command = expandCommand(probe.exec?.command ?? [], container);
  try {
    const { exitCode, stdout, stderr } = await execSync(containerId, command, timeoutMs / 1000, signal);
    return { result: exitCode === 0 ? 'success' : 'failure', output: capped(stdout, stderr) };
  } catch (err) {
    if (!isFault(err, 'deadline') || signal.aborted) throw err;
    const output = `command timed out: ${JSON.stringify(command.join(' '))} timed out after ${formatDurationMs(timeoutMs)}`;
    return { result: 'failure', output };
  }
}

const capped = (stdout: Uint8Array, stderr: Uint8Array): string => {
  const first = Buffer.from(stdout.subarray(0, MAX_OUTPUT_BYTES));
  return Buffer.concat([first, stderr.subarray(0, MAX_OUTPUT_BYTES - first.length)]).toString('utf8');
};
