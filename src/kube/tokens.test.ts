import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiTime } from '../core/time.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { RecordingClient, unreachable } from './recording-client.ts';
import type { TokenRequest } from './resources.ts';
import { needsRefresh, TokenManager, type TokenAsk } from './tokens.ts';

const signal = new AbortController().signal;
const ask: TokenAsk = {
  namespace: 'ns',
  serviceAccount: 'default',
  audiences: [],
  expirationSeconds: 3607,
  pod: { name: 'p', uid: 'U' },
};

function open(): { tokens: TokenManager; client: RecordingClient; clock: ManualClock; down: (yes: boolean) => void } {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  let down = false;
  let issued = 0;
  const client = new RecordingClient((call) => {
    if (down) throw unreachable();
    const { spec } = call.body as TokenRequest;
    const expirationTimestamp = apiTime(clock.now() + (spec.expirationSeconds ?? 0) * 1000);
    return { spec, status: { token: `t${++issued}`, expirationTimestamp } };
  });
  const tokens = new TokenManager({ client, clock, log: silentLogger });
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

  it('refreshes in the last fifth, keeps the old one while the server is away, fails after its end', async () => {
    const t = open();
    await t.tokens.get(ask, signal);
    await t.clock.advance(2_880_000);
    assert.equal((await t.tokens.get(ask, signal)).token, 't1');
    t.down(true);
    await t.clock.advance(20_000);
    assert.equal((await t.tokens.get(ask, signal)).token, 't1');
    t.down(false);
    assert.equal((await t.tokens.get(ask, signal)).token, 't2');
    t.down(true);
    await t.clock.advance(3_700_000);
    await assert.rejects(t.tokens.get(ask, signal));
  });

  it('forgets a pod', async () => {
    const t = open();
    await t.tokens.get(ask, signal);
    t.tokens.forgetPod('U');
    assert.equal((await t.tokens.get(ask, signal)).token, 't2');
  });

  it('a token that lives for days is renewed after one', () => {
    const held = { issuedMs: 0, expiresMs: 30 * 86_400_000 };
    assert.equal(needsRefresh(held, 86_400_000 - 10_001, 0.999), false);
    assert.equal(needsRefresh(held, 86_400_000 + 1, 0), true);
  });
});
