// The end of a log, for a container that failed and left no message of its own.
import type { Clock } from '../lib/clock.ts';
import { readLogs } from './read-logs.ts';

const MAX_LINES = 80;
const MAX_BYTES = 2048;
/** Lines of a runtime have 16 KiB at most; a file of a terabyte without a newline is none of its making. */
const MAX_LOOK_BACK = 4 * 1024 * 1024;

/** At most the last 80 lines and 2,048 bytes; lines that are cut are cut at their beginning. */
export async function lastLines(clock: Clock, path: string, signal: AbortSignal): Promise<string> {
  let kept: Buffer = Buffer.alloc(0);
  const options = { tailLines: MAX_LINES, tailBytes: MAX_LOOK_BACK, clock };
  for await (const chunk of readLogs(path, options, () => false, signal)) {
    const all = Buffer.concat([kept, chunk]);
    kept = all.subarray(Math.max(0, all.length - MAX_BYTES));
  }
  return kept.toString('utf8');
}
