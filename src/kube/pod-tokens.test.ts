import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_SEEN, CONFIG_SOURCE, type Pod } from '../core/pod.ts';
import { PodTokens } from './pod-tokens.ts';
import type { TokenAsk } from './tokens.ts';

const never = new AbortController().signal;
const pod = (serviceAccountName?: string, source = 'api'): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', annotations: { [CONFIG_SOURCE]: source } },
  spec: { containers: [], ...(serviceAccountName === undefined ? {} : { serviceAccountName }) },
});

function setup() {
  const asked: TokenAsk[] = [];
  const tokens = new PodTokens({
    tokens: {
      get: async (ask) => {
        asked.push(ask);
        return { token: 't', expirationTimestamp: '', refreshAtMs: 1 };
      },
    },
    accounts: { get: async (_namespace, name) => ({ metadata: { name, uid: 'sa-uid', annotations: { a: 'b' } } }) },
  });
  return { tokens, asked };
}

const bound = { name: 'p', uid: 'u' };
for (const [what, account, audience, wanted] of [
  ['for the API server', 'sa', '', { serviceAccount: 'sa', audiences: [] }],
  ['for somebody else', 'sa', 'vault', { serviceAccount: 'sa', audiences: ['vault'] }],
  ['of the default account', undefined, '', { serviceAccount: 'default', audiences: [] }],
] as const)
  test(`a token ${what}`, async () => {
    const t = setup();
    await t.tokens.token(pod(account), { audience, expirationSeconds: 600 }, never);
    assert.deepEqual(t.asked, [{ namespace: 'n', expirationSeconds: 600, pod: bound, ...wanted }]);
  });

test('a token says since when the pod is known', async () => {
  const t = setup();
  const { metadata, ...rest } = pod('sa');
  const annotations = { ...metadata.annotations, [CONFIG_SEEN]: '2026-01-01T00:00:01.5Z' };
  const seen = { ...rest, metadata: { ...metadata, annotations } };
  await t.tokens.token(seen, { audience: '' }, never);
  await (await t.tokens.identityOf(seen, never))?.token('registry', never);
  const seenMs = Date.UTC(2026, 0, 1) + 1500;
  assert.deepEqual(
    t.asked.map((ask) => ask.seenMs),
    [seenMs, seenMs],
  );
});

test('an identity for credential providers', async () => {
  const t = setup();
  assert.equal(await t.tokens.identityOf(pod(), never), undefined, 'no account');
  assert.equal(await t.tokens.identityOf(pod('sa', 'file'), never), undefined, 'a static pod');
  const identity = await t.tokens.identityOf(pod('sa'), never);
  assert.deepEqual([identity?.uid, identity?.name, identity?.annotations], ['sa-uid', 'sa', { a: 'b' }]);
  assert.equal(await identity?.token('registry', never), 't');
  const account = { serviceAccount: 'sa', serviceAccountUid: 'sa-uid' };
  assert.deepEqual(t.asked, [{ namespace: 'n', ...account, audiences: ['registry'], pod: bound }]);
});
