// Feeds one target until its time is over. What counts as broken: an exception that is not one of our own kinds, one of
// ours that hides a programming error, an input that takes seconds, memory that stays, a changed Object.prototype.
import { inspect } from 'node:util';
import { GrpcError } from '../../src/lib/grpc/status.ts';
import { ApiError } from '../../src/devcluster/api/api-error.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { MalformedMessage } from '../../src/lib/proto/reader.ts';
import { SpdyError } from '../../src/server/streaming/spdy-frames.ts';
import { WebSocketError } from '../../src/server/streaming/websocket-frames.ts';
import { seeded, type Random } from './mutate.ts';

export type Target = {
  readonly name: string;
  /** One try. Rejecting with one of our own errors is an answer. */
  readonly once: (random: Random) => void | Promise<void>;
  readonly begin?: () => Promise<void>;
  readonly end?: () => Promise<void>;
};

export type Outcome = { readonly tries: number; readonly broken: readonly string[] };

const SLOW_MS = 5_000;
const MAX_GROWTH_BYTES = 384 * 1024 * 1024;
const MAX_BROKEN = 5;

export async function feed(target: Target, seed: number, ms: number): Promise<Outcome> {
  const broken: string[] = [];
  const until = performance.now() + ms;
  const prototype = Object.keys(Object.prototype).length;
  await target.begin?.();
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let tries = 0;
  for (; performance.now() < until && broken.length < MAX_BROKEN; tries++) {
    const own = (seed + tries * 7919) >>> 0;
    const begun = performance.now();
    const wrong = await attempt(target, own);
    const took = performance.now() - begun;
    if (wrong !== undefined) broken.push(`${target.name}, SEED=${own}: ${wrong}`);
    if (took > SLOW_MS) broken.push(`${target.name}, SEED=${own}: took ${Math.round(took)} ms`);
    if (Object.keys(Object.prototype).length !== prototype) {
      broken.push(`${target.name}, SEED=${own}: changed Object.prototype`);
      break;
    }
    // Lets timers, sockets and the collector have their turn.
    if (tries % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const grown = process.memoryUsage().rss - before;
  if (grown > MAX_GROWTH_BYTES) broken.push(`${target.name}: ${Math.round(grown / 2 ** 20)} MiB more than before`);
  await target.end?.();
  return { tries, broken };
}

async function attempt(target: Target, seed: number): Promise<string | undefined> {
  try {
    await target.once(seeded(seed));
    return undefined;
  } catch (err) {
    return isOurs(err) && !hidesBug(err) ? undefined : inspect(err).slice(0, 2000);
  }
}

const isOurs = (err: unknown): boolean =>
  [KubeletError, GrpcError, SpdyError, WebSocketError, MalformedMessage, ApiError].some((kind) => err instanceof kind);

/** A KubeletError around a TypeError is a mistake with a nice face. */
function hidesBug(err: unknown): boolean {
  for (let at = err; at instanceof Error; at = at.cause)
    if (at instanceof ReferenceError || (at instanceof TypeError && !('code' in at))) return true;
  return false;
}
