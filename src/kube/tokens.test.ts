import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiTime } from '../core/time.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { replyError } from './api-error.ts';
import { RecordingClient, unreachable } from './recording-client.ts';
import type { TokenRequest } from './resources.ts';
import { refreshAt, TokenManager, type IssuedToken, type TokenAsk } from './tokens.ts';

const signal = new AbortController().signal;
const ask: TokenAsk = {
  namespace: 'ns',
  serviceAccount: 'default',
  audiences: [],
  expirationSeconds: 3607,
  pod: { name: 'p', uid: 'U' },
};

type Opened = { tokens: TokenManager; client: RecordingClient; clock: ManualClock; down: (yes: boolean) => void };

function open(issued?: Map<string, IssuedToken>, random = 0): Opened {
  const clock = new ManualClock(Date.UTC(2026, 0, 1), () => random);
  let down = false;
  let count = 0;
  const client = new RecordingClient((call) => {
    if (down) throw unreachable();
    const { spec } = call.body as TokenRequest;
    const expirationTimestamp = apiTime(clock.now() + (spec.expirationSeconds ?? 0) * 1000);
    return { spec, status: { token: `t${++count}`, expirationTimestamp } };
  });
  const tokens = new TokenManager({ client, clock, log: silentLogger, ...(issued === undefined ? {} : { issued }) });
  return { tokens, client, clock, down: (yes) => (down = yes) };
}

describe('TokenManager', () => {
  it('asks as upstream does, once for many', async () => {
    const t = open();
    const [a, b] = await Promise.all([t.tokens.get(ask, signal), t.tokens.get(ask, signal)]);
    assert.equal(a.token, 't1');
    assert.equal(b.token, 't1');
    assert.deepEqual(t.client.calls, [
      {
        verb: 'POST',
        target: '/api/v1/namespaces/ns/serviceaccounts/default/token',
        body: {
          kind: 'TokenRequest',
          apiVersion: 'authentication.k8s.io/v1',
          spec: {
            audiences: null,
            expirationSeconds: 3607,
            boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'U' },
          },
        },
      },
    ]);
    assert.equal((await t.tokens.get({ ...ask, audiences: ['x'] }, signal)).token, 't2');
  });

  it('asks again soon while the server does not know of a new pod, and then no more', async () => {
    const podGone = { kind: 'Status', code: 404, reason: 'NotFound', details: { name: 'p', kind: 'pods' } };
    const noAccount = { ...podGone, details: { name: 'default', kind: 'serviceaccounts' } };
    const forbidden = (message: string) => ({ kind: 'Status', code: 403, reason: 'Forbidden', message });
    const behind = forbidden('node requested token bound to a pod scheduled on a different node');
    const rows: readonly [string, { readonly code: number }, number | undefined, readonly number[]][] = [
      ['NodeRestriction', behind, 0, [0, 50, 150, 350, 750, 1550]],
      [
        'the authorizer',
        forbidden("no relationship found between node 'n1' and this object"),
        0,
        [0, 50, 150, 350, 750, 1550],
      ],
      ['no such pod', podGone, 0, [0, 50, 150, 350, 750, 1550]],
      ['a pod of a second ago', behind, 1000, [0, 50, 150, 350, 750, 1550]],
      ['a pod of two seconds ago', behind, 2000, [0, 50, 150, 350, 750]],
      ['a pod that was seen long ago', behind, 3000, [0]],
      ['a clock that was set back', behind, -1000, [0]],
      ['nobody says when the pod was seen', behind, undefined, [0]],
      ['another refusal', forbidden('audience "x" not found'), 0, [0]],
      ['no such account', noAccount, 0, [0]],
    ];
    for (const [name, status, ageMs, want] of rows) {
      const clock = new ManualClock(Date.UTC(2026, 0, 1));
      const askedAt: number[] = [];
      const client = new RecordingClient(() => {
        askedAt.push(clock.monotonic());
        throw replyError('POST token', status.code, JSON.stringify(status));
      });
      const tokens = new TokenManager({ client, clock, log: silentLogger });
      const seen = ageMs === undefined ? {} : { seenMs: clock.now() - ageMs };
      const refused = assert.rejects(tokens.get({ ...ask, ...seen }, signal), /failed to fetch token/, name);
      await clock.advance(5000);
      await refused;
      assert.deepEqual(askedAt, want, name);
    }
  });

  it('has the token of a new pod as soon as the server knows of the pod, once for many', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    let count = 0;
    const client = new RecordingClient((call) => {
      if (++count < 3)
        throw replyError(
          'POST token',
          403,
          JSON.stringify({ kind: 'Status', message: 'no relationship found between node x' }),
        );
      const { spec } = call.body as TokenRequest;
      return { spec, status: { token: 't', expirationTimestamp: apiTime(clock.now() + 3_600_000) } };
    });
    const tokens = new TokenManager({ client, clock, log: silentLogger });
    const one = { ...ask, seenMs: clock.now() };
    const got = Promise.all([tokens.get(one, signal), tokens.get({ ...one, seenMs: one.seenMs - 1 }, signal)]);
    await clock.advance(150);
    assert.deepEqual(
      (await got).map(({ token }) => token),
      ['t', 't'],
    );
    assert.equal(count, 3);
  });

  it('asks no more for a pod that is being stopped', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const client = new RecordingClient(() => {
      throw replyError('POST token', 404, JSON.stringify({ kind: 'Status', details: { kind: 'pods' } }));
    });
    const tokens = new TokenManager({ client, clock, log: silentLogger });
    const stop = new AbortController();
    const refused = assert.rejects(tokens.get({ ...ask, seenMs: clock.now() }, stop.signal), /being stopped/);
    await clock.advance(60);
    stop.abort(new Error('the pod is being stopped'));
    await refused;
    await clock.advance(5000);
    assert.equal(client.calls.length, 2);
  });

  it('asks for one account and no other of its name, and keeps their tokens apart', async () => {
    const t = open();
    const of = async (uid: string): Promise<string> =>
      (await t.tokens.get({ ...ask, serviceAccountUid: uid }, signal)).token;
    assert.deepEqual([await of('one'), await of('two'), await of('one')], ['t1', 't2', 't1']);
    const bodies = t.client.calls.map(({ body }) => (body as { metadata?: unknown }).metadata);
    assert.deepEqual(bodies, [{ uid: 'one' }, { uid: 'two' }]);
  });

  it('refreshes with a fifth left, keeps the old one while the server is away, fails after its end', async () => {
    const t = open();
    const first = await t.tokens.get({ ...ask, expirationSeconds: 3600 }, signal);
    assert.equal(first.refreshAtMs, t.clock.now() + 2_880_000);
    const again = { ...ask, expirationSeconds: 3600 };
    await t.clock.advance(2_879_999);
    assert.equal((await t.tokens.get(again, signal)).token, 't1');
    t.down(true);
    await t.clock.advance(1);
    const old = await t.tokens.get(again, signal);
    assert.equal(old.token, 't1');
    assert.equal(old.refreshAtMs, t.clock.now() + 30_000, 'tried again soon');
    t.down(false);
    const second = await t.tokens.get(again, signal);
    assert.equal(second.token, 't2');
    assert.equal(second.refreshAtMs, t.clock.now() + 2_880_000);
    t.down(true);
    await t.clock.advance(3_600_000);
    await assert.rejects(t.tokens.get(again, signal), {
      kind: 'unavailable',
      message:
        'the last token of service account "default" expired at 2026-01-01T01:48:00Z, and there is no new one: connection refused',
    });
  });

  it('forgets a pod', async () => {
    const t = open();
    await t.tokens.get(ask, signal);
    t.tokens.forgetPod('U');
    assert.equal((await t.tokens.get(ask, signal)).token, 't2');
  });

  for (const [what, lifeMs, random, wanted] of [
    ['an hour, no jitter', 3_600_000, 0, 2_880_000],
    ['an hour, most of the jitter', 3_600_000, 0.999, 2_870_010],
    ['the shortest there is', 600_000, 0.5, 475_000],
    ['days', 30 * 86_400_000, 0, 86_400_000],
    ['days, jitter', 30 * 86_400_000, 0.5, 86_395_000],
  ] as const)
    it(`a token that lives for ${what} is renewed in time`, () => {
      assert.equal(refreshAt({ issuedMs: 0, expiresMs: lifeMs }, random), wanted);
    });

  it('goes on with a token of an earlier run while the server is away and the token valid', async () => {
    const issued = new Map<string, IssuedToken>();
    await open(issued).tokens.get(ask, signal);
    assert.deepEqual(
      [...issued.values()].map(({ token, podUid }) => [token, podUid]),
      [['t1', 'U']],
    );
    const t = open(issued);
    t.down(true);
    const old = await t.tokens.get(ask, signal);
    assert.equal(old.token, 't1');
    assert.equal(old.refreshAtMs, t.clock.now() + 30_000);
    await assert.rejects(t.tokens.get({ ...ask, audiences: ['x'] }, signal), {
      message: 'failed to fetch token: connection refused',
    });
    await t.clock.advance(3_607_000);
    await assert.rejects(t.tokens.get(ask, signal), /the last token of service account "default" expired at/);
    t.down(false);
    assert.equal((await t.tokens.get(ask, signal)).expirationTimestamp, apiTime(t.clock.now() + 3_607_000));
  });

  it('asks anew when the server is there, and believes it when it refuses', async () => {
    const issued = new Map<string, IssuedToken>();
    await open(issued).tokens.get(ask, signal);
    const t = open(issued);
    t.client.answer = () => undefined;
    await assert.rejects(t.tokens.get(ask, signal), { kind: 'notFound' });
  });

  it('does not wait long for a server that says nothing', async () => {
    const issued = new Map<string, IssuedToken>();
    await open(issued).tokens.get(ask, signal);
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const client = {
      create: <T>(_r: unknown, _w: unknown, _b: unknown, stop: AbortSignal) =>
        new Promise<T>((_resolve, reject) => stop.addEventListener('abort', () => reject(stop.reason as Error))),
    };
    const tokens = new TokenManager({ client, clock, log: silentLogger, issued });
    const got = tokens.get(ask, signal);
    await clock.advance(5000);
    assert.equal((await got).token, 't1');
  });
});
