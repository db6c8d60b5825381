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
import type { ClusterAccess, ExecConfig, TlsIdentity } from './kubeconfig.ts';
import { selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { until } from '../../test/harness/until.ts';

const V1 = 'client.authentication.k8s.io/v1';
const HEAD = { kind: 'ExecCredential', apiVersion: V1 };
const dir = mkdtempSync(join(tmpdir(), 'kts-exec-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const command = join(dir, 'plugin');
writeFileSync(command, `#!/bin/sh\ncat ${dir}/answer\n`);
chmodSync(command, 0o755);

function newPair(): TlsIdentity {
  const keys = newKeyPair('ec');
  const cert = selfSignedAuthority({ commonName: 'n' }, keys, { notBeforeMs: 0, notAfterMs: Date.UTC(2100, 0, 1) });
  return { cert, key: privateKeyPem(keys.privateKey) };
}
const [ONE, TWO] = [newPair(), newPair()];

function ask(answer: unknown): Promise<ExecAnswer> {
  writeFileSync(join(dir, 'answer'), typeof answer === 'string' ? answer : JSON.stringify(answer));
  const exec = { apiVersion: V1, command, args: [], env: [], installHint: '', provideClusterInfo: false };
  const access = { server: 'https://h' } as ClusterAccess;
  return runExecPlugin({ clock: systemClock }, exec as unknown as ExecConfig, access, new AbortController().signal);
}

describe('credential plugins of the kubeconfig', () => {
  it('give a token and how long it is good', async () => {
    const status = { token: 't', expirationTimestamp: '2026-01-01T00:00:00Z' };
    assert.deepEqual(await ask({ ...HEAD, status }), { token: 't', expiresAt: Date.UTC(2026, 0, 1) });
    assert.equal((await ask({ ...HEAD, status: { token: 't' } })).expiresAt, Infinity);
    assert.equal((await ask({ ...HEAD, status: { token: 't', expirationTimestamp: null } })).expiresAt, Infinity);
    const certificate = { token: '', clientCertificateData: ONE.cert, clientKeyData: ONE.key };
    assert.deepEqual(await ask({ ...HEAD, status: certificate }), { tls: ONE, expiresAt: Infinity });
  });

  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', 'secret-token', /^KubeletError: exec plugin .*: its answer is not JSON$/],
    ['null', null, /no ExecCredential/],
    ['a list', [], /no ExecCredential/],
    ['a text', '"secret-token"', /no ExecCredential/],
    ['another kind', { ...HEAD, kind: 'TokenReview', status: { token: 'secret-token' } }, /no ExecCredential/],
    ['no kind', { apiVersion: V1, status: { token: 'secret-token' } }, /no ExecCredential/],
    ['another version', { ...HEAD, apiVersion: `${V1}beta1`, status: { token: 'secret-token' } }, /another apiVersion/],
    ['no status', HEAD, /neither token nor certificate/],
    ['null as status', { ...HEAD, status: null }, /neither token nor certificate/],
    ['a text as status', { ...HEAD, status: 'secret-token' }, /neither token nor certificate/],
    ['an empty token', { ...HEAD, status: { token: '' } }, /neither token nor certificate/],
    [
      'half a certificate',
      { ...HEAD, status: { token: 'secret-token', clientCertificateData: 'c' } },
      /returned only certificate or key, not both/,
    ],
    ['a number as token', { ...HEAD, status: { token: 4711 } }, /a token that is no text/],
    [
      'a key of another certificate',
      { ...HEAD, status: { token: 'secret-token', clientCertificateData: ONE.cert, clientKeyData: TWO.key } },
      /a certificate and key that are no pair/,
    ],
    [
      'a text as certificate',
      { ...HEAD, status: { clientCertificateData: 'secret-token', clientKeyData: 'secret-token' } },
      /a certificate and key that are no pair/,
    ],
    ...['', 'tomorrow', '2026-01-01', '2026-13-01T00:00:00Z', 1_790_000_000, {}].map(
      (expirationTimestamp) =>
        [
          `${JSON.stringify(expirationTimestamp)} as expiry`,
          { ...HEAD, status: { token: 'secret-token', expirationTimestamp } },
          /an expirationTimestamp that is no time/,
        ] as const,
    ),
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
  const answer = JSON.stringify({ ...HEAD, status: { token: 't' } });
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

it('a plugin that reads its input finds its end', { timeout: 30_000 }, async () => {
  const reader = join(dir, 'reader');
  writeFileSync(reader, `#!/bin/sh\ncat >/dev/null\necho '${JSON.stringify({ ...HEAD, status: { token: 't' } })}'\n`);
  chmodSync(reader, 0o755);
  const exec = { apiVersion: V1, command: reader, args: [], env: [], installHint: '', provideClusterInfo: false };
  const { signal } = new AbortController();
  const access = { server: 'https://h' } as ClusterAccess;
  assert.equal((await runExecPlugin({ clock: systemClock }, exec, access, signal)).token, 't');
});

describe('a certificate of a plugin', () => {
  const exec = { apiVersion: V1, command, args: [], env: [], installHint: '', provideClusterInfo: false };
  const { signal } = new AbortController();

  it('is the same one until it is another, however often the plugin gives it', async () => {
    const access = { server: 'https://h', auth: { exec } } as unknown as ClusterAccess;
    const credentials = credentialsFor(access, { clock: systemClock, log: silentLogger });
    const given = async (token: string, pair?: TlsIdentity): Promise<object | undefined> => {
      const tls = pair === undefined ? {} : { clientCertificateData: pair.cert, clientKeyData: pair.key };
      writeFileSync(join(dir, 'answer'), JSON.stringify({ ...HEAD, status: { token, ...tls } }));
      credentials.refused();
      const identity = await credentials.current(signal);
      assert.equal(identity.authorization, `Bearer ${token}`);
      return identity.tls;
    };
    const first = await given('t1', ONE);
    assert.deepEqual(first, ONE);
    assert.equal(await given('t2', ONE), first);
    assert.deepEqual(await given('t3', TWO), TWO);
    assert.equal(await given('t4'), undefined);
  });
});

describe('a plugin that takes its time', () => {
  const [slow, runs, go] = [join(dir, 'slow'), join(dir, 'runs'), join(dir, 'go')];
  const answer = JSON.stringify({ ...HEAD, status: { token: 't' } });
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
