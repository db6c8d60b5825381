// An exec probe runs a command in the container. Costly for the runtime, so only a few run at a time; waiting for a turn
// does not count against the probe's own timeout.
import { formatDurationMs } from '../core/duration.ts';
import { isFault } from '../lib/errors.ts';
import type { Semaphore } from '../lib/semaphore.ts';
import { expandCommand } from './exec-command.ts';
import { MAX_OUTPUT_BYTES, type Prober } from './prober.ts';

/** The runtime's ExecSync. Rejects with kind `deadline` when the command took too long. */
export type ExecSync = (
  containerId: string,
  command: readonly string[],
  timeoutSeconds: number,
  signal: AbortSignal,
) => Promise<{ readonly exitCode: number; readonly stdout: Uint8Array; readonly stderr: Uint8Array }>;

export const execProber =
  (execSync: ExecSync, turns: Semaphore): Prober =>
  ({ probe, container, containerId, timeoutMs }, signal) =>
    turns.run(signal, async () => {
      const command = expandCommand(probe.exec?.command ?? [], container);
      try {
        const { exitCode, stdout, stderr } = await execSync(containerId, command, timeoutMs / 1000, signal);
        return { result: exitCode === 0 ? 'success' : 'failure', output: capped(stdout, stderr) };
      } catch (err) {
        if (!isFault(err, 'deadline') || signal.aborted) throw err;
        const output = `command timed out: ${JSON.stringify(command.join(' '))} timed out after ${formatDurationMs(timeoutMs)}`;
        return { result: 'failure', output };
      }
    });

const capped = (stdout: Uint8Array, stderr: Uint8Array): string => {
  const first = Buffer.from(stdout.subarray(0, MAX_OUTPUT_BYTES));
  return Buffer.concat([first, stderr.subarray(0, MAX_OUTPUT_BYTES - first.length)]).toString('utf8');
};
