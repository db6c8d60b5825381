// Waiting for something to become true, for tests of what happens by itself; and the few reasons to wait for time.
import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `check` gives something; the error says what was waited for and what was seen last. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 30_000,
  everyMs = 25,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < end) {
    try {
      const got = await check();
      if (got !== undefined && got !== false) return got;
      last = got;
    } catch (err) {
      last = err;
    }
    await sleep(everyMs);
  }
  throw new Error(
    `timed out waiting until ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`,
  );
}

/**
 * What real time is needed for: to measure over it; to do something at one of many instants; to keep something away or
 * slow for so long; to see that nothing happens meanwhile. Whatever else is waited for is a condition: see `until`.
 */
export type TimeIsFor = 'measuring' | 'another instant' | 'an outage' | 'nothing to happen';

export const timePasses = (ms: number, _for: TimeIsFor): Promise<void> => sleep(ms);
