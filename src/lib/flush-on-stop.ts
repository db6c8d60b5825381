// Writes state files one last time when the agent stops.
import { aborted } from './abort.ts';
import type { Runnable } from './supervise.ts';

export const flushOnStop = (name: string, records: readonly { close(): Promise<void> }[]): Runnable => ({
  name,
  run: async (signal) => {
    await aborted(signal);
    await Promise.all(records.map((record) => record.close()));
  },
});
