// A thousand nodes lose the API server for a minute: how often they try it meanwhile, and how many requests a second it
// gets when it is back. Clock and server are simulated; when to try and when to wait is the code of every node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../src/core/meta.ts';
import { sleepOn, type Clock, type Timer } from '../../../src/lib/clock.ts';
import { KubeletError } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Reachability, type Lane } from '../../../src/kube/reachability.ts';
import { Reflector, type ListWatchClient, type ReflectorOptions } from '../../../src/kube/reflector.ts';
import type { Resource, Where } from '../../../src/kube/resources.ts';
import type { WatchEvent } from '../../../src/kube/watch.ts';

/** Besides the pods: node, services, runtime classes; and Secrets and ConfigMaps. */
const [KINDS, OBJECTS] = [3, 2];
// Hundreds of thousands of failures: what they would cost is their stacks.
Error.stackTraceLimit = 0;
const PODS = 'pods';
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
  async connect(signal: AbortSignal): Promise<AbortController> {
    this.attempts.push(this.#clock.monotonic());
    if (this.#away === 'absent') throw new KubeletError('unavailable', 'refused', { detail: { absent: true } });
    if (this.#away === 'silent') await this.#clock.sleep(5000, signal);
    if (this.#away !== undefined) throw new KubeletError('unavailable', 'no connection in 5000ms');
    const connection = new AbortController();
    this.#connections.add(connection);
    return connection;
  }

  /** Any one connection of some. */
  breakOne(connections: readonly AbortController[]): void {
    const open = connections.filter((one) => !one.signal.aborted);
    open[Math.floor(this.#clock.random() * open.length)]?.abort();
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
  /** Whatever stands: the server may break it. */
  readonly connections: AbortController[] = [];
  /** How long the pods were not watched at most, and since when they are not. */
  longestBlindMs = 0;
  #blindSince: number | undefined = 0;
  readonly #clock: Clock;
  readonly #lanes = new Map<Lane, Promise<AbortController>>();

  constructor(server: SimulatedServer, clock: Clock, signal: AbortSignal) {
    this.#server = server;
    this.#clock = clock;
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
    { plural }: Resource<T>,
    { query }: Where,
    _idleMs: number,
    signal: AbortSignal,
    stood: () => void,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const connection = await this.#exchange('main');
    this.#reach.answered(200, 'watch');
    stood();
    if (plural === PODS) this.#see();
    if (query?.['sendInitialEvents'] === true)
      yield { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1', ...END } } as T };
    await new Promise<void>((resolve) => {
      for (const end of [connection, signal]) end.addEventListener('abort', () => resolve(), { once: true });
      if (connection.aborted || signal.aborted) resolve();
    });
    if (plural === PODS) this.#blindSince = this.#clock.monotonic();
    const lost = new KubeletError('unavailable', 'the connection broke');
    this.#reach.failed(lost);
    throw lost;
  }

  get isBlind(): boolean {
    return this.#blindSince !== undefined;
  }

  #see(): void {
    const now = this.#clock.monotonic();
    this.longestBlindMs = Math.max(this.longestBlindMs, now - (this.#blindSince ?? now));
    this.#blindSince = undefined;
  }

  /** As the lease is renewed. */
  async heartbeat(): Promise<void> {
    await this.#exchange('heartbeat');
    this.#reach.answered(200, 'request');
  }

  async #exchange(lane: Lane): Promise<AbortSignal> {
    try {
      const { signal } = await this.#connected(lane);
      this.#server.request();
      return signal;
    } catch (err) {
      this.#reach.failed(err);
      throw err;
    }
  }

  async #connected(lane: Lane): Promise<AbortController> {
    const known = this.#lanes.get(lane);
    if (known !== undefined) return await known;
    const opening = this.#reach.connect(lane, () => this.#server.connect(this.#signal), this.#signal);
    this.#lanes.set(lane, opening);
    const gone = (): void => void this.#lanes.delete(lane);
    const connection = await opening.catch((err: unknown) => {
      gone();
      throw err;
    });
    connection.signal.addEventListener('abort', gone, { once: true });
    this.connections.push(connection);
    return connection;
  }
}

type Nodes = { readonly nodes: readonly SimulatedNode[]; stop(): Promise<unknown> };

/** A signal for each node: thousands of listeners on one would be all the test measures. */
function startNodes(count: number, server: SimulatedServer, clock: Clock): Nodes {
  const nodes: SimulatedNode[] = [];
  const stops: AbortController[] = [];
  const running: Promise<void>[] = [];
  for (let n = 0; n < count; n++) {
    const stop = new AbortController();
    const { signal } = stop;
    stops.push(stop);
    const client = new SimulatedNode(server, clock, signal);
    nodes.push(client);
    const follow = (options: Partial<ReflectorOptions<KubeObject>>): void => {
      const reflector = new Reflector<KubeObject>(
        { client, clock, log: silentLogger },
        // Renewed at random in the long run, but not within this test.
        {
          name: `n${n}`,
          resource: { base: '/api/v1', plural: options.scout === true ? PODS : 'things' },
          timeoutSeconds: [1800, 3600],
          ...options,
        },
      );
      running.push(reflector.run(signal));
    };
    follow({ scout: true });
    for (let i = 0; i < KINDS; i++) follow({});
    for (let i = 0; i < OBJECTS; i++) follow({ spreadMs: OBJECT_SPREAD_S * 1000 });
  }
  const stop = (): Promise<unknown> => {
    for (const one of stops) one.abort();
    return Promise.all(running);
  };
  return { nodes, stop };
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
  const { stop } = startNodes(nodes, server, clock);
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

test('1,000 nodes of which a connection is reset every 50 to 450 ms', async (t) => {
  const [count, resetsMs, leaseMs] = [1000, 20_000, 10_000];
  const clock = new HeapClock();
  const server = new SimulatedServer(clock);
  const { nodes, stop } = startNodes(count, server, clock);
  await clock.advance(5000);
  const endAt = clock.monotonic() + leaseMs + resetsMs;
  for (const node of nodes) {
    const renew = (): void => {
      node.heartbeat().catch(() => undefined);
      clock.after(leaseMs, renew);
    };
    const reset = (): void => {
      if (clock.monotonic() >= endAt) return;
      server.breakOne(node.connections);
      clock.after(50 + clock.random() * 400, reset);
    };
    clock.after(clock.random() * leaseMs, renew);
    clock.after(leaseMs + clock.random() * 400, reset);
  }
  // A little over the first resets, which meet every node within half a second.
  await clock.advance(leaseMs + 5000);
  const watches = server.requests.length;
  await clock.advance(resetsMs - 5000);
  const during = server.requests.length - watches;
  await clock.advance(1100);
  const blind = nodes.filter((node) => node.isBlind).length;
  await stop();
  const perMinute = (during / count / (resetsMs - 5000)) * 60_000;
  const peak = peakOf(server.requests.slice(watches));
  const longestMs = Math.max(...nodes.map((node) => node.longestBlindMs));
  t.diagnostic(
    `requests of a node: ${perMinute.toFixed(0)} a minute; of all: at most ${peak} a second; pods not watched for ${longestMs.toFixed(0)} ms at most`,
  );
  assert.equal(blind, 0, 'every node watches its pods a second after the last reset');
  assert.ok(longestMs <= 1100);
  assert.ok(perMinute <= 150);
  assert.ok(peak <= count * 4);
});
