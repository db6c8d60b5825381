// What a credential plugin may print, and what is made of it.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { credentialsFor } from './credentials.ts';
import { runExecPlugin, type ExecAnswer } from './exec-credential.ts';
import type { ClusterAccess, ExecConfig } from './kubeconfig.ts';
import { until } from '../../test/harness/until.ts';

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
  return runExecPlugin({ clock: systemClock }, exec as unknown as ExecConfig, access, new AbortController().signal);
}

describe('credential plugins of the kubeconfig', () => {
  it('give a token and how long it is good', async () => {
    const status = { token: 't', expirationTimestamp: '2026-01-01T00:00:00Z' };
    assert.deepEqual(await ask({ apiVersion: V1, status }), { token: 't', expiresAt: Date.UTC(2026, 0, 1) });
    assert.equal((await ask({ apiVersion: V1, status: { token: 't' } })).expiresAt, Infinity);
    const certificate = { token: '', clientCertificateData: 'c', clientKeyData: 'k' };
    assert.deepEqual(await ask({ apiVersion: V1, status: certificate }), {
      tls: { cert: 'c', key: 'k' },
      expiresAt: Infinity,
    });
  });

  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', 'secret-token', /^KubeletError: exec plugin .*: its answer is not JSON$/],
    ['null', null, /another apiVersion/],
    ['a list', [], /another apiVersion/],
    ['a text', '"secret-token"', /another apiVersion/],
    ['no status', { apiVersion: V1 }, /neither token nor certificate/],
    ['null as status', { apiVersion: V1, status: null }, /neither token nor certificate/],
    ['a text as status', { apiVersion: V1, status: 'secret-token' }, /neither token nor certificate/],
    ['an empty token', { apiVersion: V1, status: { token: '' } }, /neither token nor certificate/],
    [
      'half a certificate',
      { apiVersion: V1, status: { token: 'secret-token', clientCertificateData: 'c' } },
      /returned only certificate or key, not both/,
    ],
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

it('a plugin that wants to know its cluster is told of it', async () => {
  const teller = join(dir, 'teller');
  const told = join(dir, 'told');
  const answer = JSON.stringify({ apiVersion: V1, status: { token: 't' } });
  writeFileSync(teller, `#!/bin/sh\nprintenv KUBERNETES_EXEC_INFO > ${told}\necho '${answer}'\n`);
  chmodSync(teller, 0o755);
  const exec = { apiVersion: V1, command: teller, args: [], env: [], installHint: '', provideClusterInfo: true };
  const access = { server: 'https://h', insecure: false, ca: 'PEM', auth: {} };
  const { signal } = new AbortController();
  await runExecPlugin({ clock: systemClock }, { ...exec, clusterConfig: { audience: 'a' } }, access, signal);
  assert.deepEqual(JSON.parse(readFileSync(told, 'utf8')), {
    kind: 'ExecCredential',
    apiVersion: V1,
    spec: {
      cluster: {
        server: 'https://h',
        'certificate-authority-data': Buffer.from('PEM').toString('base64'),
        config: { audience: 'a' },
      },
      interactive: false,
    },
  });
});

describe('a certificate of a plugin', () => {
  const exec = { apiVersion: V1, command, args: [], env: [], installHint: '', provideClusterInfo: false };
  const { signal } = new AbortController();

  it('is the same one until it is another, however often the plugin gives it', async () => {
    const access = { server: 'https://h', auth: { exec } } as unknown as ClusterAccess;
    const credentials = credentialsFor(access, { clock: systemClock, log: silentLogger });
    const given = async (token: string, cert?: string): Promise<object | undefined> => {
      const tls = cert === undefined ? {} : { clientCertificateData: cert, clientKeyData: 'k' };
      writeFileSync(join(dir, 'answer'), JSON.stringify({ apiVersion: V1, status: { token, ...tls } }));
      credentials.refused();
      const identity = await credentials.current(signal);
      assert.equal(identity.authorization, `Bearer ${token}`);
      return identity.tls;
    };
    const first = await given('t1', 'c1');
    assert.deepEqual(first, { cert: 'c1', key: 'k' });
    assert.equal(await given('t2', 'c1'), first);
    assert.deepEqual(await given('t3', 'c2'), { cert: 'c2', key: 'k' });
    assert.equal(await given('t4'), undefined);
  });
});

describe('a plugin that takes its time', () => {
  const [slow, runs, go] = [join(dir, 'slow'), join(dir, 'runs'), join(dir, 'go')];
  const answer = JSON.stringify({ apiVersion: V1, status: { token: 't' } });
  writeFileSync(slow, `#!/bin/sh\necho run >> ${runs}\nuntil [ -e ${go} ]; do sleep 0.02; done\necho '${answer}'\n`);
  chmodSync(slow, 0o755);
  const open = () => {
    for (const file of [runs, go]) rmSync(file, { force: true });
    const exec = { apiVersion: V1, command: slow, args: [], env: [], installHint: '', provideClusterInfo: false };
    const access = { server: 'https://h', auth: { exec } } as unknown as ClusterAccess;
    return credentialsFor(access, { clock: systemClock, log: silentLogger });
  };
  const started = (count: number): Promise<boolean> =>
    until('the plugin runs', () => existsSync(runs) && readFileSync(runs, 'utf8') === 'run\n'.repeat(count));

  it('goes on for the others when the first who asked gives up', async () => {
    const credentials = open();
    const [first, second] = [new AbortController(), new AbortController()];
    const given = [first, second].map(({ signal }) => credentials.current(signal));
    await started(1);
    first.abort(new Error('gone'));
    await assert.rejects(given[0] as Promise<unknown>, /gone/);
    writeFileSync(go, '');
    assert.deepEqual(await given[1], { authorization: 'Bearer t' });
    assert.equal(readFileSync(runs, 'utf8'), 'run\n');
  });

  it('ends with the last who waits, and runs again for the next', async () => {
    const credentials = open();
    const only = new AbortController();
    const given = credentials.current(only.signal);
    await started(1);
    only.abort(new Error('gone'));
    await assert.rejects(given, /gone/);
    const next = credentials.current(new AbortController().signal);
    await started(2);
    writeFileSync(go, '');
    assert.deepEqual(await next, { authorization: 'Bearer t' });
  });
});
