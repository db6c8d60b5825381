// The reflector's contract against a server that misbehaves in every way we know: it ends up with the server's state, says
// so, and holds at most one watch.
// runs: gate
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import type { KubeObject } from '../../../src/core/meta.ts';
import { KubeClient } from '../../../src/kube/client.ts';
import { credentialsFor } from '../../../src/kube/credentials.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kube/reflector.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { systemClock, type Clock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { ManualClock } from '../../../src/lib/manual-clock.ts';
import { timePasses, until, untilSeen } from '../../harness/until.ts';
import { TokenBucket } from '../../../src/lib/token-bucket.ts';
import {
  bookmark,
  expired,
  failure,
  line,
  list,
  ScriptedServer,
  stream,
  streamThenEnd,
  streamThenReset,
  thing,
  tooLarge,
  type Step,
} from './scripted-server.ts';

type Harness = { server: ScriptedServer; client: KubeClient; reflector: Reflector<KubeObject>; heard: string[] };
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function open(
  steps: Step[],
  options: Partial<ReflectorOptions<KubeObject>> = {},
  clock: Clock = systemClock,
): Promise<Harness> {
  const server = await new ScriptedServer(...steps).start();
  const access = { server: server.url, insecure: false, auth: {} };
  const credentials = credentialsFor(access, { clock, log: silentLogger });
  const transport = new Transport({ clock, credentials }, access, { userAgent: 'test' });
  const client = new KubeClient({ clock, transport, limiter: new TokenBucket(clock, 0, 0) });
  const resource = { base: '/api/v1', plural: 'things' };
  const reflector = new Reflector({ client, clock, log: silentLogger }, { name: 'things', resource, ...options });
  const heard: string[] = [];
  reflector.subscribe((changes) => {
    for (const { uid, before, after } of changes) {
      heard.push(`${after === undefined ? '-' : before === undefined ? '+' : '~'}${uid}`);
    }
  });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  cleanups.push(async () => {
    stop.abort();
    await running;
    transport.resetConnections();
    await server.stop();
  });
  return { server, client, reflector, heard };
}

/** Another reflector on the same connections. */
function follower({ client }: Harness): Reflector<KubeObject> {
  const resource = { base: '/api/v1', plural: 'others' };
  const reflector = new Reflector<KubeObject>(
    { client, clock: systemClock, log: silentLogger },
    { name: 'others', resource, spreadMs: 300 },
  );
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  cleanups.unshift(async () => {
    stop.abort();
    await running;
  });
  return reflector;
}

const uids = ({ reflector }: Harness): string =>
  [...reflector.store.values()]
    .map((o) => `${o.metadata.uid}@${o.metadata.resourceVersion}`)
    .sort()
    .join(' ');

async function settles(h: Harness, wanted: string): Promise<void> {
  await untilSeen(
    wanted,
    () => uids(h),
    (seen) => seen === wanted,
  );
  assert.ok(h.server.mostOpen <= 1, `${h.server.mostOpen} watches at once`);
}

const A1 = thing('a', 'A', 1);
const A5 = thing('a', 'A', 5);
const B2 = thing('b', 'B', 2);
const C9 = thing('c', 'C', 9);
const start = [line('ADDED', A1), line('ADDED', B2), bookmark(3, true)];

describe('reflector', () => {
  test('a streaming list replaces the store in one go, then events apply', async () => {
    const h = await open([stream(...start, line('MODIFIED', A5), line('DELETED', thing('b', 'B', 6)))]);
    await settles(h, 'A@5');
    assert.deepEqual(h.heard, ['+A', '+B', '~A', '-B']);
    const [first] = h.server.requests;
    assert.equal(first?.query.get('sendInitialEvents'), 'true');
    assert.equal(first?.query.get('resourceVersionMatch'), 'NotOlderThan');
    assert.equal(first?.query.get('resourceVersion'), null);
    const seconds = Number(first?.query.get('timeoutSeconds'));
    assert.ok(seconds >= 300 && seconds < 600);
  });

  test('a server without streaming lists gets LIST in pages, then WATCH', async () => {
    const refused = failure(422, 'Invalid');
    const h = await open([refused, list(7, [A1], 'next'), list(7, [B2]), stream(line('ADDED', C9))]);
    await settles(h, 'A@1 B@2 C@9');
    assert.deepEqual(
      h.server.requests.slice(1).map((r) => `${r.query.get('resourceVersion')} ${r.query.get('continue')}`),
      ['null null', 'null next', '7 null'],
    );
  });

  test('a page that is too old leads to one list of everything', async () => {
    const refused = failure(422, 'Invalid');
    const h = await open([refused, list(7, [B2], 'next'), failure(410, 'Expired'), list(7, [A1]), stream()]);
    await settles(h, 'A@1');
    assert.equal(h.server.requests[3]?.query.get('limit'), null);
  });

  test('the usual end of a watch continues from the last version, bookmarks included', async () => {
    const h = await open([streamThenEnd(...start, bookmark(8)), stream(line('ADDED', C9))]);
    await settles(h, 'A@1 B@2 C@9');
    assert.equal(h.server.requests[1]?.query.get('resourceVersion'), '8');
  });

  test('410 as an ERROR event starts over at once and drops what is gone', async () => {
    // The clock stands still: a pause before the next request would never end.
    const clock = new ManualClock();
    const h = await open([stream(...start, expired), stream(line('ADDED', A5), bookmark(6, true))], {}, clock);
    await untilSeen(
      'it has started over',
      () => clock.advance(0).then(() => uids(h)),
      (seen) => seen === 'A@5',
    );
    assert.deepEqual(h.heard, ['+A', '+B', '-B', '~A']);
  });

  test('410 as the answer to a watch starts over', async () => {
    const again = stream(line('ADDED', C9), bookmark(9, true));
    const h = await open([streamThenReset(...start), failure(410, 'Gone'), again]);
    await settles(h, 'C@9');
  });

  test('another ERROR event leads to a new watch, and to a new list when it goes on', async () => {
    const error = line('ERROR', { kind: 'Status', code: 500, reason: 'InternalError', message: 'x' });
    const h = await open([stream(...start, error), stream(error), stream(error), list(9, [C9]), stream()]);
    await settles(h, 'C@9');
  });

  test('a broken line is not applied and not fatal', async () => {
    const broken = '{"type":"MODIFIED","object":{"metadata":{"uid":"A"\n';
    const h = await open([stream(...start, broken), stream(line('MODIFIED', A5))]);
    await settles(h, 'A@5 B@2');
  });

  test('a line cut off by the end of the connection is asked for again', async () => {
    const h = await open([streamThenReset(...start, line('ADDED', C9).slice(0, 30)), stream(line('ADDED', C9))]);
    await settles(h, 'A@1 B@2 C@9');
    assert.equal(h.server.requests[1]?.query.get('resourceVersion'), '3');
  });

  test('an event in many small, slow pieces is one event', async () => {
    const text = Buffer.from(line('ADDED', { ...C9, data: 'ä€😀'.repeat(20) }));
    const h = await open([
      (res) => {
        stream(...start)(res, undefined as never);
        const writeSlowly = async (): Promise<void> => {
          for (let i = 0; i < text.length; i += 7) {
            await timePasses(7, 'another instant');
            res.write(text.subarray(i, i + 7));
          }
        };
        void writeSlowly();
      },
    ]);
    await settles(h, 'A@1 B@2 C@9');
    assert.equal((h.reflector.store.get('C') as { data?: string } | undefined)?.data, 'ä€😀'.repeat(20));
  });

  test('duplicate and reordered events never move the store backwards', async () => {
    const late = [line('MODIFIED', A1), line('MODIFIED', A5), line('ADDED', A5), line('MODIFIED', thing('a', 'A', 4))];
    const gone = [line('DELETED', thing('b', 'B', 6)), line('MODIFIED', thing('b', 'B', 5)), line('DELETED', B2)];
    const h = await open([stream(...start, ...late, ...gone, line('ADDED', C9))]);
    await settles(h, 'A@5 C@9');
    assert.deepEqual(h.heard, ['+A', '+B', '~A', '-B', '+C']);
  });

  test('the same name with a new UID is a delete and an add, also when the DELETED got lost', async () => {
    const h = await open([stream(...start, line('ADDED', thing('a', 'A2', 7)), line('MODIFIED', A5))]);
    await settles(h, 'A2@7 B@2');
    assert.deepEqual(h.heard, ['+A', '+B', '-A', '+A2']);
  });

  test('a lost ADDED is made good by the next MODIFIED', async () => {
    const h = await open([stream(...start, line('MODIFIED', C9))]);
    await settles(h, 'A@1 B@2 C@9');
  });

  test('a half-open connection is given up after the idle time', async () => {
    const h = await open([stream(...start), stream(line('ADDED', C9))], { idleMs: 200 });
    await settles(h, 'A@1 B@2 C@9');
  });

  test('429 and 503 wait as long as Retry-After says, 500 backs off', async () => {
    const after = (code: number, reason: string): Step => failure(code, reason, { 'Retry-After': '1' });
    const from = Date.now();
    const h = await open([after(429, 'TooManyRequests'), failure(500, 'InternalError'), stream(...start)]);
    await settles(h, 'A@1 B@2');
    assert.ok(Date.now() - from >= 1000);
  });

  test('a server that ends every watch at once is not hammered', async () => {
    const h = await open([stream(...start, expired), streamThenEnd(...start)]);
    await timePasses(1500, 'measuring');
    assert.ok(h.server.requests.length < 12, `${h.server.requests.length} requests in 1.5 s`);
    assert.equal(uids(h), 'A@1 B@2');
  });

  /** Version 9 was seen, the watch is over, and the next answers come from a server that is behind. */
  const ahead = [...start, line('ADDED', C9), expired];
  const versions = ({ server }: Harness, from: number, to: number): string[] =>
    server.requests
      .slice(from, to)
      .map(({ query }) => `${query.get('resourceVersion')} ${query.get('resourceVersionMatch')} ${query.get('watch')}`);

  test('a streaming list that is older than what was seen changes nothing and is asked for again', async () => {
    const lagging = stream(line('ADDED', A1), bookmark(4, true));
    const h = await open([stream(...ahead), lagging, list(9, [A1, C9]), stream()]);
    await settles(h, 'A@1 C@9');
    assert.deepEqual(h.heard, ['+A', '+B', '+C', '-B'], 'C was never lost');
    await untilSeen(
      'the watch after the list',
      () => h.server.requests,
      (seen) => seen.length >= 4,
    );
    assert.deepEqual(versions(h, 2, 4), ['9 NotOlderThan null', '9 null true']);
  });

  test('a server that cannot catch up gives a consistent list at once', async () => {
    const lagging = stream(line('ADDED', A1), bookmark(4, true));
    // It names an hour to come back in.
    const h = await open([stream(...ahead), lagging, tooLarge, list(10, [A1, C9]), stream()]);
    await settles(h, 'A@1 C@9');
    assert.deepEqual(versions(h, 2, 4), ['9 NotOlderThan null', 'null null null']);
  });

  test('a list that is older in spite of being asked not to be is not believed', async () => {
    const refused = failure(422, 'Invalid');
    const first = list(9, [A1, C9]);
    const h = await open([refused, first, stream(expired), list(4, [A1]), list(12, [A1, C9]), stream()]);
    await settles(h, 'A@1 C@9');
    await untilSeen(
      'the watch after the second list',
      () => h.server.requests,
      (seen) => seen.length >= 6,
    );
    assert.deepEqual(h.heard, ['+A', '+C']);
    assert.deepEqual(versions(h, 3, 6), ['9 NotOlderThan null', 'null null null', '12 null true']);
  });

  test('storage that was restored from a backup is believed, deleted objects included', async () => {
    const refused = failure(422, 'Invalid');
    const gone = line('DELETED', thing('c', 'C', 12));
    const restored = list(4, [A1, C9]);
    const h = await open([refused, list(9, [A1, C9]), stream(gone, expired), tooLarge, restored, stream()]);
    await untilSeen(
      'C to be back',
      () => h.heard,
      (seen) => seen.length >= 4,
    );
    assert.deepEqual(h.heard, ['+A', '+C', '-C', '+C']);
    await untilSeen(
      'the watch',
      () => h.server.requests,
      (seen) => seen.length >= 6,
    );
    assert.deepEqual(versions(h, 5, 6), ['4 null true']);
  });

  test('what a list lacks comes back by an event', async () => {
    const again = stream(line('ADDED', A1), bookmark(9, true), line('ADDED', thing('c', 'C', 10)));
    const h = await open([stream(...ahead), again]);
    await settles(h, 'A@1 C@10');
  });

  test('a scout is back after an outage, and the others follow it', async () => {
    const answer: Step = (res, req) =>
      (req.url?.includes('resourceVersion=3') === true ? stream(line('ADDED', C9)) : stream(...start))(res, req);
    const scout = await open([answer], { scout: true });
    const other = follower(scout);
    await until('both', () => other.connected && uids(scout) === 'A@1 B@2');
    await scout.server.stop();
    await timePasses(3000, 'an outage');
    assert.equal(uids(scout), 'A@1 B@2', 'an outage changes nothing');
    assert.equal(scout.reflector.connected, false);
    await scout.server.start();
    await untilSeen(
      'the scout',
      () => uids(scout),
      (seen) => seen === 'A@1 B@2 C@9',
    );
    await until('the follower', () => other.connected);
  });
});
