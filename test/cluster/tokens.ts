// Service account tokens in running pods are replaced well before they expire, without anybody asking.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { apiServerKind } from '../harness/api-server.ts';
import type { TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { container, Scene } from './scene.ts';

export const TOKEN_SECONDS = 10;
const SOURCES = [
  { serviceAccountToken: { path: 'own', expirationSeconds: 600 } },
  { serviceAccountToken: { path: 'vault', audience: 'vault', expirationSeconds: 600 } },
];

type Claims = { readonly aud: readonly string[]; readonly iat: number; readonly exp: number };
const claimsOf = (token: string): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims;

export function tokenSuite(node: () => TestNode): void {
  const isReal = apiServerKind() === 'real';
  describe('tokens', { skip: isReal && 'a real API server issues none that live for seconds' }, () => {
    it('are renewed with a fifth of their life left, in the running container', async () => {
      const s = await Scene.open(node(), 'tokens');
      await s.pod('p', {
        volumes: [{ name: 'tokens', projected: { sources: SOURCES } }],
        containers: [container('main', { volumeMounts: [{ name: 'tokens', mountPath: '/tokens' }] })],
      });
      const pod = await s.ready('p');
      const read = async (): Promise<string[]> =>
        (await s.exec(pod, 'cat /tokens/own; echo; cat /tokens/vault')).split('\n');
      const first = await read();
      assert.deepEqual(claimsOf(first[1] ?? '').aud, ['vault']);
      const second = await until('both tokens are new', async () => {
        const now = await read();
        const expires = Math.min(...now.map((token) => claimsOf(token).exp));
        assert.ok(Date.now() / 1000 < expires, 'no token in the pod has expired');
        return now.every((token, i) => token !== first[i]) && now;
      });
      for (const [i, token] of second.entries()) {
        const age = claimsOf(token).iat - claimsOf(first[i] ?? '').iat;
        assert.ok(age >= TOKEN_SECONDS * 0.6 && age < TOKEN_SECONDS, `renewed after ${age} s`);
        assert.deepEqual(claimsOf(token).aud, claimsOf(first[i] ?? '').aud);
      }
    });
  });
}
