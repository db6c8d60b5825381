// Waiting for something to become true, for tests of what happens by itself; and the few reasons to wait for time.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/** Fails a hang, below the limit of a test. An honest wait ends long before, with four times the usual load too. */
export const HANG_MS = 120_000;
const STATE_CHARS = 4000;

/** Polls until `check` gives something; the error says what was waited for, and what `check` threw or gave last. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = HANG_MS,
  everyMs = 25,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    // The last look begins after the bound: a machine that stood still until then fails nothing.
    const isLast = performance.now() >= end;
    let state: unknown;
    try {
      const got = await answers(check);
      if (got !== undefined && got !== false) return got;
      state = `${String(got)} of ${check.toString().replace(/\s+/g, ' ')}`;
    } catch (err) {
      state = err instanceof Unwanted ? err.seen : err instanceof Error ? err.message : err;
    }
    if (isLast) throw new Error(`after ${timeoutMs / 1000} s still waiting until ${what}; last: ${shown(state)}`);
    await sleep(everyMs);
  }
}

/** Polls until `isWanted` holds for what `read` gives; the error says what it gave last. */
export async function untilSeen<T>(
  what: string,
  read: () => Promise<T> | T,
  isWanted: (seen: T) => boolean,
  timeoutMs = HANG_MS,
  everyMs = 25,
): Promise<T> {
  const look = async (): Promise<{ readonly seen: T }> => {
    const seen = await read();
    if (isWanted(seen)) return { seen };
    throw new Unwanted(seen);
  };
  return (await until(what, look, timeoutMs, everyMs)).seen;
}

class Unwanted extends Error {
  readonly seen: unknown;

  constructor(seen: unknown) {
    super();
    this.seen = seen;
  }
}

/** A check that hangs is a state, too. */
async function answers<T>(check: () => Promise<T> | T): Promise<T> {
  const asked = check();
  if (!(asked instanceof Promise)) return asked;
  const over = new AbortController();
  const silence = sleep(HANG_MS, undefined, { signal: over.signal }).then(() => {
    throw new Error(`no answer for ${HANG_MS / 1000} s`);
  });
  try {
    return await Promise.race([asked, silence]);
  } finally {
    over.abort();
    silence.catch(() => undefined);
  }
}

/** The end of a long text says most. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : inspect(value, { depth: 8, breakLength: Infinity });
  return text.length > STATE_CHARS ? `… ${text.slice(-STATE_CHARS)}` : text;
}

/**
 * What real time is needed for: to measure over it; to do something at one of many instants; to keep something away or
 * slow for so long; to see that nothing happens meanwhile. Whatever else is waited for is a condition: see `until`.
 */
export type TimeIsFor = 'measuring' | 'another instant' | 'an outage' | 'nothing to happen';

export const timePasses = (ms: number, _for: TimeIsFor): Promise<void> => sleep(ms);
