// Waiting for something to become true, for tests of what happens by itself.
import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `check` gives something; the error says what was waited for and what was seen last. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 30_000,
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
    await sleep(25);
  }
  throw new Error(
    `timed out waiting until ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`,
  );
}
