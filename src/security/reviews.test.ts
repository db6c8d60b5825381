import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordingClient, unreachable } from '../kube/recording-client.ts';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { AccessReviewer, TokenReviewer } from './reviews.ts';

const signal = new AbortController().signal;

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
    const observe = (code: string, seconds: number): void => void seen.push(`${code} ${seconds}`);
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
