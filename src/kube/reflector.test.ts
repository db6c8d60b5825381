// How often a reflector asks, by a clock in the test's hand. What it makes of the answers is in test/contracts/reflector.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeList, KubeObject } from '../core/meta.ts';
import { silentLogger } from '../lib/logger.ts';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { replyError, statusError, tooLargeVersion } from './api-error.ts';
import { Recovery } from './recovery.ts';
import { Renewal } from './renewal.ts';
import type { ListWatchClient } from './reflector.ts';
import { Reflector } from './reflector.ts';
import type { Resource, Where } from './resources.ts';
import type { WatchEvent } from './watch.ts';

const MINUTE = 60_000;
const things: Resource<KubeObject> = { base: '/api/v1', plural: 'things' };
const end = (version: string): KubeObject => ({
  metadata: {
    name: '',
    namespace: '',
    uid: '',
    resourceVersion: version,
    annotations: { 'k8s.io/initial-events-end': 'true' },
  },
});

const endOfList = end('9');

/** A member of a set that is at version 4 while the storage is at 9; a watch from there is refused by `refusal`. */
class Lagging implements ListWatchClient {
  requests = 0;
  readonly #refusal: () => Error;
  /** What the first streaming list is answered with: by a server that is up to date. */
  #first = true;

  constructor(refusal: () => Error) {
    this.#refusal = refusal;
  }

  list<T>(_resource: Resource<T>, { query }: Where): Promise<KubeList<T>> {
    this.requests++;
    if (query?.['resourceVersion'] === '9') return Promise.reject(tooLargeVersion('not there yet'));
    return Promise.resolve({ items: [], metadata: { resourceVersion: '9' } });
  }

  async *watch<T>(_resource: Resource<T>, { query }: Where): AsyncGenerator<WatchEvent<T>, void, undefined> {
    this.requests++;
    if (query?.['sendInitialEvents'] !== true) throw this.#refusal();
    yield { type: 'BOOKMARK', object: end(this.#first ? '9' : '4') as T };
    this.#first = false;
    throw this.#refusal();
  }
}

const REFUSALS: Readonly<Record<string, () => Error>> = {
  'the version is too large': () => tooLargeVersion('too large resource version'),
  'the version is gone': () => statusError({ code: 410, reason: 'Expired' }),
};

describe('a server that lags behind', () => {
  for (const [name, refusal] of Object.entries(REFUSALS))
    for (const scout of [true, false])
      it(`is asked less and less often (${name}, ${scout ? 'the scout' : 'another watch'})`, async () => {
        const clock = new ManualClock(0, () => 1);
        const client = new Lagging(refusal);
        const reflector = new Reflector(
          { client, clock, log: silentLogger },
          { name: 'things', resource: things, scout },
        );
        const stop = new AbortController();
        const running = reflector.run(stop.signal);
        await clock.advance(MINUTE);
        const before = client.requests;
        await clock.advance(10 * MINUTE);
        stop.abort();
        await running;
        assert.ok(before >= 5, `${before} requests in the first minute`);
        const most = scout ? 500 : 100;
        assert.ok(client.requests - before <= most, `${client.requests - before} requests in the ten minutes after it`);
      });
});

/** Answers every watch the same way; there is always a list. */
class Failing implements ListWatchClient {
  readonly askedAt: number[] = [];
  readonly #clock: ManualClock;
  readonly #watch: () => AsyncGenerator<WatchEvent<KubeObject>, void, undefined>;

  constructor(clock: ManualClock, watch: () => AsyncGenerator<WatchEvent<KubeObject>, void, undefined>) {
    this.#clock = clock;
    this.#watch = watch;
  }

  list<T>(): Promise<KubeList<T>> {
    this.askedAt.push(this.#clock.monotonic());
    return Promise.resolve({ items: [], metadata: { resourceVersion: '9' } });
  }

  watch<T>(): AsyncGenerator<WatchEvent<T>, void, undefined> {
    this.askedAt.push(this.#clock.monotonic());
    return this.#watch() as AsyncGenerator<WatchEvent<T>, void, undefined>;
  }
}

/** When it asks in ten minutes. */
async function asks(
  watch: () => AsyncGenerator<WatchEvent<KubeObject>, void, undefined>,
  scout: boolean,
): Promise<readonly number[]> {
  const clock = new ManualClock(0, () => 1);
  const client = new Failing(clock, watch);
  const reflector = new Reflector({ client, clock, log: silentLogger }, { name: 'things', resource: things, scout });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await clock.advance(10 * MINUTE);
  stop.abort();
  await running;
  return client.askedAt;
}

const busy = (retryAfterSeconds: number) =>
  async function* (): AsyncGenerator<WatchEvent<KubeObject>, void, undefined> {
    yield* [];
    throw replyError('GET /things', 429, '', retryAfterSeconds);
  };

describe('a new client certificate', () => {
  /** Watches are answered by `answer`; the certificate changes when the test says so. */
  const setup = (answer: () => AsyncGenerator<WatchEvent<KubeObject>, void, undefined>, spreadMs?: number) => {
    const clock = new ManualClock(0, () => 1);
    const renewal = new Renewal();
    const client = Object.assign(new Failing(clock, answer), { renewal });
    const options = { name: 'things', resource: things, ...(spreadMs === undefined ? {} : { spreadMs }) };
    const reflector = new Reflector({ client, clock, log: silentLogger }, options);
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    const close = async (): Promise<void> => {
      stop.abort();
      await running;
    };
    return { clock, client, renewal, close };
  };
  const forbidden = async function* (): AsyncGenerator<WatchEvent<KubeObject>, void, undefined> {
    yield* [];
    throw replyError('GET /things', 403, 'things is forbidden: User "system:anonymous" cannot watch');
  };

  it('has what was refused to the old one asked again at once, with a back-off that begins anew', async () => {
    const t = setup(forbidden);
    await t.clock.advance(20_000);
    const before = t.client.askedAt.length;
    t.renewal.renewed();
    await t.clock.advance(0);
    assert.deepEqual(t.client.askedAt.slice(before), [20_000]);
    await t.clock.advance(1000);
    assert.ok(t.client.askedAt.length >= before + 3, t.client.askedAt.join());
    await t.close();
  });

  it('is no reason for a loop when it comes with every request', async () => {
    const t = setup(async function* () {
      t.renewal.renewed();
      yield* [];
      throw new KubeletError('unavailable', 'the client certificate rotated');
    });
    await t.clock.advance(MINUTE);
    assert.ok(t.client.askedAt.length < 30, t.client.askedAt.join());
    await t.close();
  });

  for (const [name, spreadMs, atMs] of [
    ['comes back at once', undefined, 5000],
    ['takes its time in a crowd, because what it knows stays good', 30_000, 35_000],
  ] as const)
    it(`a watch that ended with it ${name}`, async () => {
      let end: () => void = () => undefined;
      const t = setup(async function* () {
        yield { type: 'BOOKMARK', object: endOfList };
        await new Promise<void>((_resolve, reject) => {
          end = () => reject(new KubeletError('unavailable', 'the client certificate rotated'));
        });
      }, spreadMs);
      await t.clock.advance(5000);
      t.renewal.renewed();
      end();
      await t.clock.advance(40_000);
      assert.deepEqual(t.client.askedAt, [0, atMs]);
      const closed = t.close();
      end();
      await closed;
    });
});

describe('a server that names a time to come back', () => {
  for (const scout of [true, false]) {
    const who = scout ? 'the scout' : 'another watch';
    it(`is not asked without pauses because it says at once (${who})`, async () => {
      const { length } = await asks(busy(0), scout);
      assert.ok(length <= 150, `${length} requests`);
    });

    it(`is asked again before long, however far the time is (${who})`, async () => {
      const { length } = await asks(busy(86_400), scout);
      assert.ok(length >= 15, `${length} requests`);
    });

    it(`is given the time it asks for (${who})`, async () => {
      const at = await asks(busy(10), scout);
      for (const [i, ms] of at.entries())
        assert.ok(i === 0 || ms === at[i - 1] || ms - (at[i - 1] ?? 0) >= 10_000, at.join());
    });
  }
});

/** The scout's watch fails in a way of its own while other requests are answered, every `everyMs`. */
async function besideOthers(fail: (stood: () => void) => Error, everyMs: number, minutes: number): Promise<number[]> {
  const clock = new ManualClock(0, () => 1);
  const recovery = new Recovery(clock);
  const at: number[] = [];
  const client: ListWatchClient = {
    recovery,
    list: <T>() => Promise.resolve<KubeList<T>>({ items: [], metadata: { resourceVersion: '9' } }),
    async *watch<T>(_resource: Resource<T>, _where: Where, _idleMs: number, _signal: AbortSignal, stood: () => void) {
      at.push(clock.monotonic());
      yield* [];
      throw fail(stood);
    },
  };
  const reflector = new Reflector(
    { client, clock, log: silentLogger },
    { name: 'pods', resource: things, scout: true },
  );
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  for (let ms = 0; ms < minutes * MINUTE; ms += everyMs) {
    await clock.advance(everyMs);
    recovery.answered('request');
  }
  stop.abort();
  await running;
  return at;
}

describe('a scout whose watches fail while other requests succeed', () => {
  const reset = (): Error => new KubeletError('unavailable', 'read ECONNRESET');
  const FAILURES: Readonly<Record<string, (stood: () => void) => Error>> = {
    'before the answer': reset,
    'before an event': (stood) => {
      stood();
      return reset();
    },
    'with 503': () => replyError('GET /things', 503, ''),
    'with 410': () => statusError({ code: 410, reason: 'Expired' }),
  };
  for (const [name, fail] of Object.entries(FAILURES))
    it(`asks about once a second (${name})`, async () => {
      const at = await besideOthers(fail, 10_000, 10);
      const gaps = at.slice(1).map((ms, i) => ms - (at[i] ?? 0));
      // The first answer to another request comes after ten seconds.
      const late = gaps.filter((gap, i) => (at[i] ?? 0) > 11_000 && gap > 1000);
      assert.deepEqual(late, []);
      assert.ok(at.length <= 10 * 60 + 20, `${at.length} requests in ten minutes`);
    });

  it('comes back with the first answer after a long silence', async () => {
    const at = await besideOthers(reset, 2 * MINUTE, 6);
    for (const answered of [2 * MINUTE, 4 * MINUTE]) assert.ok(at.includes(answered), at.join());
  });

  it('gives the server the time it asks for all the same', async () => {
    const at = await besideOthers(() => replyError('GET /things', 429, '', 10), 1000, 5);
    assert.ok(at.length <= 5 * 6 + 1, `${at.length} requests`);
  });
});

it('a scout asks an absent server as often as the transport opens connections, however long that goes on', async () => {
  const absent = async function* (): AsyncGenerator<WatchEvent<KubeObject>, void, undefined> {
    yield* [];
    throw new KubeletError('unavailable', 'connect ECONNREFUSED', { detail: { absent: true, retryInMs: 1000 } });
  };
  const at = await asks(absent, true);
  assert.ok(at.length >= 600, `${at.length} requests`);
  for (const [i, ms] of at.entries()) assert.ok(i === 0 || ms - (at[i - 1] ?? 0) <= 1000, at.join());
});

describe('a watch that breaks as soon as it stands', () => {
  const added = { metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '10' } };
  async function* breaking(): AsyncGenerator<WatchEvent<KubeObject>, void, undefined> {
    yield await Promise.resolve({ type: 'ADDED', object: added } as const);
    throw new KubeletError('unavailable', 'watch things: a line is broken');
  }
  for (const scout of [true, false])
    it(`is not opened without end (${scout ? 'the scout' : 'another watch'})`, async () => {
      const at = await asks(breaking, scout);
      assert.ok(at.length <= (scout ? 250 : 100), `${at.length} requests`);
      assert.ok((at[1] ?? Infinity) <= 100, 'the first time it comes back at once');
    });
});
