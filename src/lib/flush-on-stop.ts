// What changed just before the end is on disk at the end.
import { aborted } from './abort.ts';
import type { Runnable } from './supervise.ts';

export const flushOnStop = (name: string, records: readonly { flush(): Promise<void> }[]): Runnable => ({
  name,
  run: async (signal) => {
    await aborted(signal);
    await Promise.all(records.map((record) => record.flush()));
  },
});
