// Certificates from request to file, with a signer in memory.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { lstat, mkdtemp, readFile, readdir, readlink, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadKubeconfig } from '../kube/kubeconfig.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair } from '../lib/x509/keys.ts';
import { certificateMetrics } from './certificate-metrics.ts';
import { CertificateStore } from './certificate-store.ts';
import { bootstrapClient, clientTemplate } from './client-bootstrap.ts';
import { CertificateCredentials, SigningCredentials } from './client-identity.ts';
import { newSelfSigned } from './self-signed-serving.ts';
import { ServingFiles, servingTemplate } from './serving-certificate.ts';
import { HOUR, openManager, Signer, START, steps } from './signer.fixture.ts';
import type { CertificateTemplate } from './signing-request.ts';

const log = silentLogger;
const signal = new AbortController().signal;
let root = '';
before(async () => void (root = await mkdtemp(join(tmpdir(), 'certificates-'))));
after(() => rm(root, { recursive: true }));
const fresh = (): Promise<string> => mkdtemp(join(root, 'd-'));

describe('CertificateManager', () => {
  it('asks for the first certificate, stores it as upstream does, and rotates it in time', async () => {
    const dir = await fresh();
    const clock = new ManualClock(START, () => 0.5);
    const t = openManager(dir, () => clientTemplate('n1'), clock);
    await t.manager.load();
    t.run();
    const current = join(dir, 'kubelet-client-current.pem');
    await steps(clock, 10, () => t.manager.current !== undefined && existsSync(current));
    assert.deepEqual(t.signer.posted[0]?.usages, ['digital signature', 'client auth']);
    assert.equal(t.signer.posted[0]?.signerName, 'kubernetes.io/kube-apiserver-client-kubelet');
    assert.equal(t.signer.posted[0]?.subject, 'system:node:n1 system:nodes ');
    assert.ok((await lstat(current)).isSymbolicLink());
    const target = await readlink(current);
    assert.match(target, /^\/.*\/kubelet-client-2026-06-01-00-00-00\.pem$/);
    assert.equal((await stat(target)).mode & 0o777, 0o600);
    const text = await readFile(current, 'utf8');
    assert.ok(text.indexOf('CERTIFICATE') < text.indexOf('PRIVATE KEY'));
    const first = t.manager.current;
    await clock.advance(7 * HOUR);
    assert.equal(t.manager.current, first, '70 % of its life: too early at this roll of the dice');
    const registry = new Registry();
    certificateMetrics(registry, { clock, server: t.manager });
    await steps(clock, 10 * 60_000, () => t.manager.current !== first);
    assert.match(registry.render(), /^kubelet_certificate_manager_server_rotation_seconds_bucket\{le="86400"\} 1$/m);
    assert.match(registry.render(), /^kubelet_certificate_manager_server_rotation_seconds_bucket\{le="14400"\} 0$/m);
    assert.ok(clock.now() >= START + 8 * HOUR && clock.now() < START + 9.2 * HOUR);
    await t.stop();
    assert.equal((await readdir(dir)).length, 3);
    const again = openManager(dir, () => clientTemplate('n1'), clock);
    await again.manager.load();
    assert.ok(again.manager.valid !== undefined, 'found again after a restart');
  });

  it('waits for a template and asks again when it no longer fits', async () => {
    const clock = new ManualClock(START);
    let ips: string[] = [];
    const template = (): CertificateTemplate | undefined =>
      servingTemplate(
        'n1',
        ips.map((address) => ({ type: 'InternalIP', address })),
      );
    const t = openManager(await fresh(), template, clock);
    t.run();
    await clock.advance(5000);
    assert.equal(t.signer.posted.length, 0);
    ips = ['10.0.0.1'];
    await steps(clock, 1000, () => t.manager.current !== undefined);
    ips = ['10.0.0.1', '10.0.0.2'];
    await steps(clock, 1000, () => t.signer.posted.length === 2);
    assert.equal(t.signer.posted[1]?.subject, 'system:node:n1 system:nodes 10.0.0.1,10.0.0.2');
    await t.stop();
  });

  it('gives up a request that nobody has approved when the node has other addresses by then', async () => {
    const clock = new ManualClock(START);
    let ips = ['10.0.0.1'];
    const template = (): CertificateTemplate | undefined =>
      servingTemplate(
        'n1',
        ips.map((address) => ({ type: 'InternalIP', address })),
      );
    const t = openManager(await fresh(), template, clock);
    t.signer.conditions = [];
    t.run();
    await clock.advance(60_000);
    assert.equal(t.signer.posted.length, 1);
    ips = ['10.0.0.2'];
    t.signer.conditions = undefined;
    await steps(clock, 1000, () => t.manager.current !== undefined);
    assert.ok(clock.now() < START + 5 * 60_000, 'long before the time for an approval is over');
    assert.equal(t.signer.posted[1]?.subject, 'system:node:n1 system:nodes 10.0.0.2');
    await t.stop();
  });

  it('a refusal is repeated more and more slowly, for ever', async () => {
    const clock = new ManualClock(START);
    const t = openManager(await fresh(), () => clientTemplate('n1'), clock);
    t.signer.conditions = [{ type: 'Denied', reason: 'R', message: 'M' }];
    t.run();
    await clock.advance(2000 + 4000 + 8000 + 16_000 + 32_000 + 100);
    assert.equal(t.signer.posted.length, 6);
    assert.equal(t.manager.renewErrors, 6);
    t.signer.conditions = undefined;
    await steps(clock, 4000, () => t.manager.current !== undefined);
    await t.stop();
  });

  it('a node that slept past its certificate gets a new one, with the bootstrap credentials', async () => {
    const dir = await fresh();
    const clock = new ManualClock(START);
    const t = openManager(dir, () => clientTemplate('n1'), clock);
    t.run();
    await steps(clock, 10, () => t.manager.current !== undefined);
    await t.stop();
    clock.jumpWall(11 * HOUR);
    const awake = openManager(dir, () => clientTemplate('n1'), clock);
    await awake.manager.load();
    assert.ok(awake.manager.current !== undefined && awake.manager.valid === undefined);
    const bootstrap = { current: () => Promise.resolve({ authorization: 'Bearer b' }), refused: () => true };
    const credentials = new SigningCredentials(awake.manager, bootstrap);
    assert.deepEqual(await credentials.current(signal), { authorization: 'Bearer b' });
    awake.run();
    await steps(clock, 10, () => awake.manager.valid !== undefined);
    assert.ok('tls' in (await credentials.current(signal)));
    await awake.stop();
  });

  it('the metrics call a certificate that ran out none at all', async () => {
    const clock = new ManualClock(START);
    const t = openManager(await fresh(), () => clientTemplate('n1'), clock);
    t.run();
    await steps(clock, 10, () => t.manager.current !== undefined);
    await t.stop();
    const registry = new Registry();
    certificateMetrics(registry, { clock, client: t.manager });
    assert.match(registry.render(), /client_ttl_seconds \d/);
    clock.jumpWall(11 * HOUR);
    assert.match(registry.render(), /client_ttl_seconds \+Inf/);
  });

  const refusals: readonly [string, unknown, boolean][] = [
    ['who is not known', new KubeletError('denied', 'Unauthorized'), true],
    ['who may not ask', new KubeletError('denied', 'forbidden'), true],
    ['a server without the API', new KubeletError('notFound', 'no such resource'), true],
    ['a proxy in trouble', new KubeletError('unavailable', 'bad gateway'), false],
    ['nobody', new Error('connection refused'), false],
  ];
  for (const [name, err, answers] of refusals)
    it(`the server ${answers ? 'answers' : 'does not answer'}: ${name}`, async () => {
      const clock = new ManualClock(START);
      const t = openManager(await fresh(), () => clientTemplate('n1'), clock);
      const refuse = t.signer.client;
      refuse.create = () => Promise.reject(err as Error);
      t.run();
      await steps(clock, 10, () => t.manager.renewErrors > 0);
      assert.equal(t.manager.serverAnswers, answers);
      await t.stop();
    });

  it('uses what was signed although it cannot be stored, asks for nothing more, and stores it in the end', async () => {
    const dir = await fresh();
    const clock = new ManualClock(START, () => 0.5);
    const t = openManager(dir, () => clientTemplate('n1'), clock);
    const save = t.store.save.bind(t.store);
    let attempts = 0;
    t.store.save = () => {
      attempts++;
      return Promise.reject(new Error('ENOSPC: no space left on device, write'));
    };
    t.run();
    await steps(clock, 10, () => t.manager.valid !== undefined);
    await steps(clock, 60_000, () => clock.now() > START + 7 * HOUR);
    assert.equal(t.signer.posted.length, 1, 'what was signed is not asked for again');
    assert.equal(t.manager.renewErrors, 0);
    assert.ok(attempts > 7 * 12 && attempts < 7 * 12 + 10, `every five minutes in the end: ${attempts}`);
    assert.equal(await t.store.load(), undefined);
    const names: number[] = [];
    t.store.save = (cert, key, atMs) => {
      names.push(atMs);
      return save(cert, key, atMs);
    };
    await steps(clock, 60_000, () => names.length > 0);
    await t.stop();
    assert.equal((await t.store.load())?.cert, t.manager.current?.cert);
    assert.ok((names[0] ?? 0) < START + HOUR, 'under the name of the first attempt');
    assert.equal((await readdir(dir)).length, 2);
  });

  it('a damaged file leads to a new certificate', async () => {
    const dir = await fresh();
    await writeFile(join(dir, 'kubelet-client-current.pem'), 'garbage');
    const clock = new ManualClock(START);
    const t = openManager(dir, () => clientTemplate('n1'), clock);
    await t.manager.load();
    assert.equal(t.manager.current, undefined);
    t.run();
    await steps(clock, 10, () => t.manager.current !== undefined);
    await t.stop();
  });
});

describe('identity', () => {
  it('is the certificate; only signing requests fall back to the bootstrap credentials', async () => {
    const bootstrap = { current: () => Promise.resolve({ authorization: 'Bearer b' }), refused: () => true };
    const holder = { current: undefined, valid: undefined };
    assert.deepEqual(await new CertificateCredentials(holder).current(signal), {});
    assert.deepEqual(await new SigningCredentials(holder, bootstrap).current(signal), { authorization: 'Bearer b' });
    const kept = { cert: 'c', key: 'k' } as never;
    const both = new SigningCredentials({ current: kept, valid: kept }, bootstrap);
    const identity = await both.current(signal);
    assert.deepEqual(identity, { tls: { cert: 'c', key: 'k' } });
    assert.equal(await both.current(signal), identity, 'the same object until it changes');
  });
});

describe('bootstrap', () => {
  const config = (extra: string): string =>
    `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"clusters":[{"name":"k","cluster":{"server":"https://h:1"}}],"users":[{"name":"u","user":{${extra}}}]}`;
  const openBootstrap = async (): Promise<{
    dir: string;
    signer: Signer;
    client: { text: () => Promise<string> };
    go: (rotate: boolean, clock?: Clock) => Promise<void>;
  }> => {
    const dir = await fresh();
    const signer = new Signer(systemClock);
    const store = new CertificateStore(dir, 'kubelet-client');
    await writeFile(join(dir, 'bootstrap'), config('"token":"t"'));
    const client = Object.assign(signer.client, { text: () => Promise.resolve('ok') });
    const go = (rotate: boolean, clock: Clock = systemClock): Promise<void> =>
      bootstrapClient(
        { connect: () => client, store, clock, log },
        {
          kubeconfig: join(dir, 'kubeconfig'),
          bootstrapKubeconfig: join(dir, 'bootstrap'),
          certDir: dir,
          nodeName: 'n1',
          rotate,
        },
        signal,
      );
    return { dir, signer, client, go };
  };

  it('with rotation: writes the kubeconfig at once', async () => {
    const t = await openBootstrap();
    await t.go(true);
    assert.equal(t.signer.posted.length, 0);
    const { auth, server } = await loadKubeconfig(join(t.dir, 'kubeconfig'));
    const pem = join(t.dir, 'kubelet-client-current.pem');
    assert.deepEqual([server, auth], ['https://h:1', { certFile: pem, keyFile: pem }]);
    assert.equal((await stat(join(t.dir, 'kubeconfig'))).mode & 0o777, 0o600);
  });

  it('without rotation: waits for the certificate; a second start needs none', async () => {
    const t = await openBootstrap();
    await t.go(false);
    assert.match(t.signer.client.log[0] ?? '', /^POST .*certificatesigningrequests$/);
    const posted = t.signer.client.body<{ metadata: { name: string } }>(0);
    assert.match(posted.metadata.name, /^node-csr-[\w-]{43}$/);
    assert.deepEqual(
      (await readdir(t.dir)).filter((f) => f.includes('tmp')),
      [],
    );
    await t.go(false);
    assert.equal(t.signer.posted.length, 1);
  });

  it('without rotation: a server that does not say how it is is asked all the same, after a minute', async () => {
    const t = await openBootstrap();
    t.client.text = () => Promise.reject(new Error('forbidden'));
    const clock = new ManualClock(START);
    const done = t.go(false, clock);
    await steps(clock, 1000, () => t.signer.posted.length === 1);
    await done;
    assert.ok(clock.now() - START >= 60_000);
  });

  it('an authority in a file of its own stays there', async () => {
    const t = await openBootstrap();
    const ca = selfSignedAuthority({ commonName: 'ca' }, newKeyPair(), {
      notBeforeMs: START,
      notAfterMs: START + HOUR,
    });
    await writeFile(join(t.dir, 'ca.crt'), ca);
    const inFile = config('"token":"t"').replace('"https://h:1"', '"https://h:1","certificate-authority":"ca.crt"');
    await writeFile(join(t.dir, 'bootstrap'), inFile);
    await t.go(true);
    const { ca: read, caFile } = await loadKubeconfig(join(t.dir, 'kubeconfig'));
    assert.deepEqual([read, caFile], [ca, join(t.dir, 'ca.crt')]);
  });

  it('an own kubeconfig with a token is used as it is', async () => {
    const t = await openBootstrap();
    await writeFile(join(t.dir, 'kubeconfig'), config('"token":"mine"'));
    await t.go(true);
    assert.equal((await loadKubeconfig(join(t.dir, 'kubeconfig'))).auth.token, 'mine');
  });
});

describe('serving certificate', () => {
  it('files are re-read when they change, a bad pair is not taken', async () => {
    const dir = await fresh();
    const paths = { cert: join(dir, 'c'), key: join(dir, 'k') };
    const write = async (pair: { cert: string; key: string }): Promise<void> => {
      await writeFile(paths.cert, pair.cert);
      await writeFile(paths.key, pair.key);
    };
    const clock = new ManualClock(START);
    const changes: string[] = [];
    const files = new ServingFiles({ clock, log, onChange: (pair) => changes.push(pair.cert) }, paths);
    await assert.rejects(files.load());
    await write({ cert: '', key: 'x' });
    await assert.rejects(files.load(), /certificate .*\/c with the key .*\/k cannot be used: no certificate and key/);
    const [one, two] = await Promise.all([newSelfSigned('a', START), newSelfSigned('b', START)]);
    await write(one);
    const first = await files.load();
    const end = new AbortController();
    const running = files.run(end.signal);
    await write({ cert: two.cert, key: one.key });
    await clock.advance(10_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(files.current, first);
    await write(two);
    await steps(clock, 10_000, () => changes.length === 1);
    assert.equal(changes[0], two.cert);
    end.abort();
    await running;
  });

  it('files are told apart by what they hold, not by their time', async () => {
    const dir = await fresh();
    const paths = { cert: join(dir, 'c'), key: join(dir, 'k') };
    const write = async (pair: { cert: string; key: string }): Promise<void> => {
      for (const name of ['cert', 'key'] as const) {
        await writeFile(paths[name], pair[name].padEnd(8192, '\n'));
        await utimes(paths[name], 1, 1);
      }
    };
    const clock = new ManualClock(START);
    const changes: string[] = [];
    const files = new ServingFiles({ clock, log, onChange: (pair) => changes.push(pair.cert) }, paths);
    const [one, two] = await Promise.all([newSelfSigned('a', START), newSelfSigned('b', START)]);
    await write(one);
    await files.load();
    await write(two);
    const end = new AbortController();
    const running = files.run(end.signal);
    await steps(clock, 10_000, () => changes.length === 1);
    assert.deepEqual(changes, [two.cert]);
    end.abort();
    await running;
  });

  it('asks for sorted names and addresses, and waits for an address', () => {
    const addresses = [
      { type: 'Hostname', address: 'n1' },
      { type: 'InternalIP', address: '10.0.0.2' },
      { type: 'ExternalIP', address: '1.1.1.1' },
      { type: 'InternalDNS', address: 'a.internal' },
    ];
    assert.deepEqual(servingTemplate('n1', addresses), {
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      dnsNames: ['a.internal', 'n1'],
      ipAddresses: ['1.1.1.1', '10.0.0.2'],
    });
    assert.equal(servingTemplate('n1', addresses.slice(0, 1)), undefined);
    assert.deepEqual(servingTemplate('n1', addresses.slice(0, 1), true)?.dnsNames, ['n1']);
  });
});
