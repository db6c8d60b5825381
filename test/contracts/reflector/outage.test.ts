// A thousand nodes lose the API server for a minute: how often they try it meanwhile, and how many requests a second it
// gets when it is back. Clock and server are simulated; when to try and when to wait is the code of every node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../src/core/meta.ts';
import { sleepOn, type Clock, type Timer } from '../../../src/lib/clock.ts';
import { KubeletError } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Reachability } from '../../../src/kube/reachability.ts';
import { Reflector, type ListWatchClient, type ReflectorOptions } from '../../../src/kube/reflector.ts';
import type { WatchEvent } from '../../../src/kube/watch.ts';

/** Besides the pods: node, services, runtime classes; and Secrets and ConfigMaps. */
const [KINDS, OBJECTS] = [3, 2];
// Hundreds of thousands of failures: what they would cost is their stacks.
Error.stackTraceLimit = 0;
const AWAY_MS = 60_000;
const [SPREAD_S, OBJECT_SPREAD_S] = [5, 30];

type Entry = { readonly at: number; readonly seq: number; fn: (() => void) | undefined };

/** A clock for tens of thousands of timers. */
class HeapClock implements Clock {
  readonly #heap: Entry[] = [];
  #now = 0;
  #seq = 0;
  #state = 1;

  now = (): number => this.#now;
  nowNanos = (): bigint => BigInt(Math.trunc(this.#now)) * 1_000_000n;
  monotonic = (): number => this.#now;

  /** The same in every run. */
  random(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }

  after(ms: number, fn: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, ms), seq: this.#seq++, fn };
    this.#heap.push(entry);
    let i = this.#heap.length - 1;
    for (let up = (i - 1) >> 1; i > 0 && this.#before(i, up); up = (i - 1) >> 1) {
      this.#swap(i, up);
      i = up;
    }
    return { cancel: () => (entry.fn = undefined) };
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      // Whatever is due within a few milliseconds happens together.
      const until = Math.min(end, next.at + 5);
      while ((this.#heap[0]?.at ?? Infinity) <= until) {
        const due = this.#pop();
        this.#now = Math.max(this.#now, due?.at ?? 0);
        due?.fn?.();
      }
      await settled();
    }
    this.#now = end;
  }

  #pop(): Entry | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return first;
    this.#heap[0] = last;
    for (let i = 0; ;) {
      const [left, right] = [2 * i + 1, 2 * i + 2];
      let least = i;
      if (left < this.#heap.length && this.#before(left, least)) least = left;
      if (right < this.#heap.length && this.#before(right, least)) least = right;
      if (least === i) return first;
      this.#swap(i, least);
      i = least;
    }
  }

  #before(i: number, j: number): boolean {
    const [a, b] = [this.#heap[i], this.#heap[j]];
    if (a === undefined || b === undefined) return false;
    return a.at < b.at || (a.at === b.at && a.seq < b.seq);
  }

  #swap(i: number, j: number): void {
    const [a, b] = [this.#heap[i], this.#heap[j]];
    if (a !== undefined && b !== undefined) [this.#heap[i], this.#heap[j]] = [b, a];
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Way = 'absent' | 'silent';

class SimulatedServer {
  readonly attempts: number[] = [];
  readonly requests: number[] = [];
  readonly #clock: Clock;
  #away: Way | undefined;
  readonly #connections = new Set<AbortController>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  goAway(how: Way): void {
    this.#away = how;
    for (const connection of this.#connections) connection.abort();
    this.#connections.clear();
  }

  comeBack(): void {
    this.#away = undefined;
  }

  /** A connection: aborted when it breaks. */
  async connect(signal: AbortSignal): Promise<AbortSignal> {
    this.attempts.push(this.#clock.monotonic());
    if (this.#away === 'absent') throw new KubeletError('unavailable', 'refused', { detail: { absent: true } });
    if (this.#away === 'silent') await this.#clock.sleep(5000, signal);
    if (this.#away !== undefined) throw new KubeletError('unavailable', 'no connection in 5000ms');
    const connection = new AbortController();
    this.#connections.add(connection);
    return connection.signal;
  }

  request(): void {
    this.requests.push(this.#clock.monotonic());
  }
}

const END = { annotations: { 'k8s.io/initial-events-end': 'true' } };

/** One node's client: what `Transport` and `KubeClient` do, without the bytes. */
class SimulatedNode implements ListWatchClient {
  readonly #server: SimulatedServer;
  readonly #reach: Reachability;
  readonly #signal: AbortSignal;
  #connection: AbortSignal | undefined;
  #opening: Promise<AbortSignal> | undefined;

  constructor(server: SimulatedServer, clock: Clock, signal: AbortSignal) {
    this.#server = server;
    this.#reach = new Reachability(clock);
    this.#signal = signal;
  }

  get recovery(): Reachability['recovery'] {
    return this.#reach.recovery;
  }

  list(): Promise<never> {
    return Promise.reject(new KubeletError('unimplemented', 'only watches here'));
  }

  async *watch<T>(
    _resource: unknown,
    _where: unknown,
    _idleMs: number,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const connection = await this.#connected().catch((err: unknown) => {
      this.#reach.failed(err);
      throw err;
    });
    this.#server.request();
    this.#reach.answered(200);
    yield { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1', ...END } } as T };
    await new Promise<void>((resolve) => {
      for (const end of [connection, signal]) end.addEventListener('abort', () => resolve(), { once: true });
      if (connection.aborted || signal.aborted) resolve();
    });
    const lost = new KubeletError('unavailable', 'the connection broke');
    this.#reach.failed(lost);
    throw lost;
  }

  async #connected(): Promise<AbortSignal> {
    if (this.#connection?.aborted === false) return this.#connection;
    this.#opening ??= this.#reach
      .connect('main', () => this.#server.connect(this.#signal), this.#signal)
      .finally(() => (this.#opening = undefined));
    this.#connection = await this.#opening;
    return this.#connection;
  }
}

/** Returns what ends them. A signal for each node: thousands of listeners on one would be all the test measures. */
function startNodes(nodes: number, server: SimulatedServer, clock: Clock): () => Promise<unknown> {
  const stops: AbortController[] = [];
  const running: Promise<void>[] = [];
  const resource = { base: '/api/v1', plural: 'things' };
  for (let n = 0; n < nodes; n++) {
    const stop = new AbortController();
    const { signal } = stop;
    stops.push(stop);
    const client = new SimulatedNode(server, clock, signal);
    const follow = (options: Partial<ReflectorOptions<KubeObject>>): void => {
      const reflector = new Reflector<KubeObject>(
        { client, clock, log: silentLogger },
        // Renewed at random in the long run, but not within this test.
        { name: `n${n}`, resource, timeoutSeconds: [1800, 3600], ...options },
      );
      running.push(reflector.run(signal));
    };
    follow({ scout: true });
    for (let i = 0; i < KINDS; i++) follow({});
    for (let i = 0; i < OBJECTS; i++) follow({ spreadMs: OBJECT_SPREAD_S * 1000 });
  }
  return () => {
    for (const stop of stops) stop.abort();
    return Promise.all(running);
  };
}

/** Most moments within any one second. */
function peakOf(moments: readonly number[]): number {
  let [peak, first] = [0, 0];
  for (const [last, at] of moments.entries()) {
    while (at - (moments[first] ?? at) >= 1000) first++;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}

async function outage(nodes: number, how: Way): Promise<{ attempts: number[]; requests: number[] }> {
  const clock = new HeapClock();
  const server = new SimulatedServer(clock);
  const stop = startNodes(nodes, server, clock);
  await clock.advance(5000);
  assert.equal(server.requests.length, nodes * (1 + KINDS + OBJECTS));
  const goneAt = clock.monotonic();
  server.goAway(how);
  await clock.advance(AWAY_MS);
  server.comeBack();
  const backAt = clock.monotonic();
  await clock.advance(75_000);
  await stop();
  return {
    attempts: server.attempts.filter((at) => at >= goneAt && at < backAt).map((at) => at - goneAt),
    requests: server.requests.filter((at) => at >= backAt).map((at) => at - backAt),
  };
}

/** The watch of pods comes back within a second, the others spread over their time. */
const promised = (nodes: number): number => Math.round(nodes * (1 + KINDS / SPREAD_S + OBJECTS / OBJECT_SPREAD_S));

test('1,000 nodes after a minute without anybody listening', async (t) => {
  const nodes = 1000;
  const { attempts, requests } = await outage(nodes, 'absent');
  const trying = peakOf(attempts.filter((at) => at > 5000));
  const peak = peakOf(requests);
  t.diagnostic(
    `attempts to connect: ${trying} a second; requests after: ${peak} a second, ${promised(nodes)} promised`,
  );
  assert.ok(trying <= nodes * 2);
  assert.ok(peak <= promised(nodes));
  assert.equal(requests.length, nodes * (1 + KINDS + OBJECTS), 'everybody is back');
  assert.ok(requests.filter((at) => at <= 1000).length >= nodes, 'every node has its pods within a second');
});

test('200 nodes after a minute of a server that takes no connection to its end', async (t) => {
  const nodes = 200;
  const { attempts, requests } = await outage(nodes, 'silent');
  const trying = peakOf(attempts.filter((at) => at > 30_000));
  t.diagnostic(
    `attempts to connect after half a minute: ${trying} a second; requests after: ${peakOf(requests)} a second`,
  );
  assert.ok(trying <= nodes / 4);
  assert.ok(peakOf(requests) <= promised(nodes));
  assert.ok(requests.length >= nodes * (1 + KINDS + OBJECTS) * 0.99, `${requests.length} are back`);
});
