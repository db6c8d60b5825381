import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordingClient, unreachable } from '../kube/recording-client.ts';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { AccessReviewer, TokenReviewer } from './reviews.ts';
import { TokenCacheMetrics } from './token-cache-metrics.ts';

const signal = new AbortController().signal;
/** Without comments, buckets and the counts that go with sums. */
const samples = (registry: Registry): string[] =>
  registry
    .render()
    .split('\n')
    .filter((line) => line !== '' && !/^#|_bucket|_count\{.*status="(hit|miss)"/.test(line));

describe('TokenReviewer', () => {
  it('asks once per token and time to live, for good and bad tokens', async () => {
    const clock = new ManualClock();
    const user = { username: 'u', groups: ['g'] };
    const client = new RecordingClient((call) =>
      (call.body as { spec: { token: string } }).spec.token === 'good'
        ? { status: { authenticated: true, user } }
        : { status: {} },
    );
    const reviewer = new TokenReviewer({ client, clock }, { cacheTtlMs: 120_000 });
    const both = await Promise.all([reviewer.authenticate('good', signal), reviewer.authenticate('good', signal)]);
    assert.deepEqual(both, [user, user]);
    assert.equal(await reviewer.authenticate('bad', signal), undefined);
    assert.equal(await reviewer.authenticate('bad', signal), undefined);
    assert.equal(client.calls.length, 2);
    assert.deepEqual(client.body<{ spec: object }>(0).spec, { token: 'good' });
    await clock.advance(120_001);
    await reviewer.authenticate('good', signal);
    assert.equal(client.calls.length, 3);
  });

  it('insists five times when there is no answer, and keeps no failure', async () => {
    const clock = new ManualClock();
    const client = new RecordingClient(() => {
      throw unreachable();
    });
    const reviewer = new TokenReviewer({ client, clock }, { cacheTtlMs: 120_000 });
    const failed = assert.rejects(reviewer.authenticate('t', signal));
    await clock.advance(10_000);
    await failed;
    assert.equal(client.calls.length, 5);
    client.answer = () => ({ status: { authenticated: true, user: {} } });
    assert.deepEqual(await reviewer.authenticate('t', signal), {});
  });

  it('asks about a hundred tokens at a time, and answers what it knows meanwhile', async () => {
    const answers: (() => void)[] = [];
    const client = new RecordingClient((call) => {
      const { token } = (call.body as { spec: { token: string } }).spec;
      if (token === 'known') return { status: { authenticated: true, user: {} } };
      return new Promise((resolve) => answers.push(() => resolve({ status: {} })));
    });
    const reviewer = new TokenReviewer({ client, clock: new ManualClock() }, { cacheTtlMs: 120_000 });
    await reviewer.authenticate('known', signal);
    const flood = Array.from({ length: 100 }, (_, i) => reviewer.authenticate(`made-up-${i}`, signal));
    await assert.rejects(reviewer.authenticate('made-up-100', signal), { kind: 'exhausted' });
    assert.deepEqual(await reviewer.authenticate('known', signal), {});
    const joined = reviewer.authenticate('made-up-0', signal);
    for (const answer of answers) answer();
    assert.deepEqual(
      await Promise.all([...flood, joined]),
      Array.from({ length: 101 }, () => undefined),
    );
    assert.equal(client.calls.length, 101);
    client.answer = () => ({ status: {} });
    assert.equal(await reviewer.authenticate('made-up-100', signal), undefined);
  });

  it('counts tokens that were known, those waited for, and the questions about them', async () => {
    const clock = new ManualClock();
    const registry = new Registry();
    const answers: ((user: object | undefined) => void)[] = [];
    const client = new RecordingClient(
      () =>
        new Promise((resolve, reject) => {
          answers.push((user) => (user === undefined ? reject(new KubeletError('denied', 'no')) : resolve(user)));
        }),
    );
    const cached = new TokenCacheMetrics(clock, registry);
    const reviewer = new TokenReviewer({ client, clock, cached }, { cacheTtlMs: 120_000 });
    const waiting = ['good', 'good', 'bad'].map((token) => reviewer.authenticate(token, signal).catch(() => undefined));
    const active = (status: string): string => `authentication_token_cache_active_fetch_count{status="${status}"}`;
    assert.deepEqual(samples(registry), [`${active('blocked')} 3`, `${active('in_flight')} 2`]);
    await clock.advance(250);
    answers[0]?.({ status: { authenticated: true, user: {} } });
    answers[1]?.(undefined);
    await Promise.all(waiting);
    await reviewer.authenticate('good', signal);
    const name = 'authentication_token_cache';
    assert.deepEqual(samples(registry), [
      `${active('blocked')} 0`,
      `${active('in_flight')} 0`,
      `${name}_fetch_total{status="ok"} 1`,
      `${name}_fetch_total{status="error"} 1`,
      `${name}_request_duration_seconds_sum{status="miss"} 0.75`,
      `${name}_request_duration_seconds_sum{status="hit"} 0`,
      `${name}_request_total{status="miss"} 3`,
      `${name}_request_total{status="hit"} 1`,
    ]);
  });

  it('a refusal by the server is not repeated', async () => {
    const client = new RecordingClient(() => {
      throw new KubeletError('denied', 'no');
    });
    const reviewer = new TokenReviewer({ client, clock: new ManualClock() }, { cacheTtlMs: 1 });
    await assert.rejects(reviewer.authenticate('t', signal), /no/);
    assert.equal(client.calls.length, 1);
  });
});

describe('AccessReviewer', () => {
  it('asks about the node and keeps yes longer than no', async () => {
    const clock = new ManualClock();
    const client = new RecordingClient((call) => ({
      status: { allowed: JSON.stringify(call.body).includes('"metrics"'), reason: 'r' },
    }));
    const reviewer = new AccessReviewer({ client, clock }, { allowedTtlMs: 300_000, deniedTtlMs: 30_000 });
    const user = { username: 'u', groups: ['g'], extra: { k: ['v'] } };
    const ask = (subresource: string): Promise<{ allowed: boolean }> =>
      reviewer.authorize({ user, verb: 'get', nodeName: 'n1', subresource }, signal);
    assert.equal((await ask('metrics')).allowed, true);
    assert.equal((await ask('proxy')).allowed, false);
    assert.deepEqual(client.body<{ spec: object }>(0).spec, {
      user: 'u',
      groups: ['g'],
      extra: { k: ['v'] },
      resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'metrics', name: 'n1' },
    });
    await clock.advance(31_000);
    await ask('metrics');
    await ask('proxy');
    assert.equal(client.calls.length, 3);
  });

  it('tells how each question to the API server went', async () => {
    const clock = new ManualClock();
    const seen: string[] = [];
    const client = new RecordingClient(() => {
      throw unreachable();
    });
    const observe = (_kind: string, code: string, seconds: number): void => void seen.push(`${code} ${seconds}`);
    const reviewer = new AccessReviewer({ client, clock, observe }, { allowedTtlMs: 1, deniedTtlMs: 1 });
    const ask = (): Promise<unknown> =>
      reviewer.authorize({ user: {}, verb: 'get', nodeName: 'n1', subresource: 'proxy' }, signal);
    const failed = assert.rejects(ask());
    await clock.advance(10_000);
    await failed;
    client.answer = () => ({ status: { allowed: true } });
    await ask();
    assert.deepEqual(seen, [...Array.from({ length: 5 }, () => '<error> 0'), '201 0']);
  });
});

describe('questions in figures', () => {
  const denied = new KubeletError('denied', 'no', { detail: { status: 403 } });
  for (const [answer, codes] of [
    [{ status: {} }, ['201', '201']],
    [denied, ['403', '403']],
    [new KubeletError('invalid', 'a socket broke'), ['<error>', '<error>']],
  ] as const)
    it(`${codes[0]}`, async () => {
      const seen: string[] = [];
      const client = new RecordingClient(() => {
        if (answer instanceof KubeletError) throw answer;
        return answer;
      });
      const deps = {
        client,
        clock: new ManualClock(),
        observe: (kind: string, code: string, seconds: number) => void seen.push(`${kind} ${code} ${seconds}`),
      };
      const question = { user: { username: 'u' }, verb: 'get', nodeName: 'n', subresource: 'proxy' };
      await new TokenReviewer(deps, { cacheTtlMs: 0 }).authenticate('t', signal).catch(() => undefined);
      const access = new AccessReviewer(deps, { allowedTtlMs: 0, deniedTtlMs: 0 });
      await access.authorize(question, signal).catch(() => undefined);
      assert.deepEqual(seen, [`authn ${codes[0]} 0`, `authz ${codes[1]} 0`]);
    });
});
