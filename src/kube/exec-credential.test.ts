// What a credential plugin may print, and what is made of it.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { runExecPlugin, type ExecAnswer } from './exec-credential.ts';
import type { ClusterAccess, ExecConfig } from './kubeconfig.ts';

const V1 = 'client.authentication.k8s.io/v1';
const dir = mkdtempSync(join(tmpdir(), 'kts-exec-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const command = join(dir, 'plugin');
writeFileSync(command, `#!/bin/sh\ncat ${dir}/answer\n`);
chmodSync(command, 0o755);

function ask(answer: unknown): Promise<ExecAnswer> {
  writeFileSync(join(dir, 'answer'), typeof answer === 'string' ? answer : JSON.stringify(answer));
  const exec = { apiVersion: V1, command, args: [], env: [], installHint: '', provideClusterInfo: false };
  const access = { server: 'https://h' } as ClusterAccess;
  return runExecPlugin(systemClock, exec as unknown as ExecConfig, access, new AbortController().signal);
}

describe('credential plugins of the kubeconfig', () => {
  it('give a token and how long it is good', async () => {
    const status = { token: 't', expirationTimestamp: '2026-01-01T00:00:00Z' };
    assert.deepEqual(await ask({ apiVersion: V1, status }), { token: 't', expiresAt: Date.UTC(2026, 0, 1) });
    assert.equal((await ask({ apiVersion: V1, status: { token: 't' } })).expiresAt, Infinity);
  });

  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', 'secret-token', /^KubeletError: exec plugin .*: its answer is not JSON$/],
    ['null', null, /another apiVersion/],
    ['a list', [], /another apiVersion/],
    ['a text', '"secret-token"', /another apiVersion/],
    ['no status', { apiVersion: V1 }, /neither token nor certificate/],
    ['null as status', { apiVersion: V1, status: null }, /neither token nor certificate/],
    ['a text as status', { apiVersion: V1, status: 'secret-token' }, /neither token nor certificate/],
    ['a number as token', { apiVersion: V1, status: { token: 4711 } }, /neither token nor certificate/],
  ];
  for (const [what, answer, said] of rows)
    it(`${what} is refused, and not quoted`, async () => {
      await assert.rejects(ask(answer), (err: Error) => {
        assert.match(String(err), said);
        assert.doesNotMatch(String(err), /secret-token/);
        return true;
      });
    });
});
