// The life of the process around the kubelet: start, signals, reload, failure, lock file.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { aborted } from './lib/abort.ts';
import type { KubeletOptions } from './kubelet.ts';
import { main, type LoadKubelet, type Signals } from './main.ts';
import { newSelfSigned } from './security/self-signed-serving.ts';
import { removeNodeFolder } from '../test/harness/node-folder.ts';
import { freePort } from '../test/harness/ports.ts';
import { until } from '../test/harness/until.ts';

const dir = mkdtempSync(join(tmpdir(), 'kubelet-life-'));
after(() => removeNodeFolder(dir));
const config = join(dir, 'config.yaml');

/** Leaves the machine alone: no kernel settings, no health port, all directories of its own. */
const writeConfig = (more: string): void =>
  writeFileSync(
    config,
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\nfailSwapOn: false\nhealthzPort: 0\noomScoreAdj: 0\npodLogsDir: ${dir}/pod-logs\nfeatureGates: {KubeletInUserNamespace: true}\n${more}`,
  );

type Life = {
  stop: (name: string) => void;
  reload: () => void;
  crash: (err: unknown) => void;
  exits: number[];
  options: Promise<KubeletOptions>;
  code: Promise<number>;
};

function start(argv: readonly string[], work: (options: KubeletOptions, signal: AbortSignal) => Promise<void>): Life {
  const exits: number[] = [];
  const life: Partial<Life> = { exits };
  const signals: Signals = {
    onStop: (fn) => (life.stop = fn),
    onReload: (fn) => (life.reload = fn),
    onCrash: (fn) => (life.crash = fn),
    exitNow: (code) => void exits.push(code),
  };
  life.options = new Promise((resolve) => {
    const load: LoadKubelet = () =>
      Promise.resolve({
        runKubelet: (options, signal) => {
          resolve(options);
          return work(options, signal);
        },
      });
    const io = { out: () => undefined, err: (text: string) => assert.fail(text), columns: 80 };
    life.code = main([`--config=${config}`, `--root-dir=${join(dir, 'root')}`, ...argv], io, signals, load);
  });
  return life as Life;
}

const untilStopped = (_: KubeletOptions, signal: AbortSignal): Promise<void> => aborted(signal);

test('the first signal stops in order', async () => {
  writeConfig('');
  const life = start([], untilStopped);
  await life.options;
  life.stop('SIGTERM');
  assert.equal(await life.code, 0);
  assert.deepEqual(life.exits, []);
});

test('the second signal exits at once', async () => {
  writeConfig('');
  let finish: () => void = () => undefined;
  const life = start([], () => new Promise((resolve) => (finish = resolve)));
  await life.options;
  life.stop('SIGTERM');
  assert.deepEqual(life.exits, []);
  life.stop('SIGINT');
  assert.deepEqual(life.exits, [1]);
  finish();
  await life.code;
});

test('a kubelet that fails gives exit code 1, one that is done gives 0', async () => {
  writeConfig('');
  assert.equal(await start([], () => Promise.reject(new Error('the runtime is gone'))).code, 1);
  assert.equal(await start(['--runonce'], () => Promise.resolve()).code, 0);
});

test('a cgroup root that is missing is refused before the health port opens', async () => {
  writeConfig('cgroupRoot: /no-such-cgroup-root\n');
  assert.equal(await start([], () => assert.fail('the port is open by now')).code, 1);
});

test('an embedded client certificate is stored before the health port answers', { timeout: 60_000 }, async () => {
  const { cert, key } = await newSelfSigned('n1', Date.now());
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const kubeconfig = join(dir, 'kubelet.conf');
  writeFileSync(
    kubeconfig,
    `current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: u, user: { client-certificate-data: ${base64(cert)}, client-key-data: ${base64(key)} } }]
`,
  );
  const port = await freePort();
  const certDir = join(dir, 'pki');
  const current = join(certDir, 'kubelet-client-current.pem');
  writeConfig('rotateCertificates: true\n');
  // The flag goes before the file's field.
  const argv = [`--kubeconfig=${kubeconfig}`, `--cert-dir=${certDir}`, `--healthz-port=${port}`];
  const life = start(argv, untilStopped);
  await until('the health port answers', () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      () => true,
      () => false,
    ),
  );
  const stored = existsSync(current) && readFileSync(current, 'utf8');
  life.stop('SIGTERM');
  assert.equal(await life.code, 0);
  assert.equal(stored, `${cert.trimEnd()}\n${key.trimEnd()}\n`);
});

test('an unexpected failure exits at once', async () => {
  writeConfig('');
  const life = start([], untilStopped);
  await life.options;
  life.crash(new Error('a bug'));
  assert.deepEqual(life.exits, [1]);
  life.stop('SIGTERM');
  await life.code;
});

test('SIGHUP applies what can change and keeps the old configuration when the new one is broken', async () => {
  writeConfig('maxPods: 5\n');
  const life = start([], untilStopped);
  const { updates, logLevels } = await life.options;
  const heard: number[] = [];
  updates.subscribe(['syncFrequency'], (now) => heard.push(now.syncFrequencyMs));
  assert.throws(() => updates.subscribe(['maxPods'], () => undefined), /maxPods cannot change/);
  writeConfig('maxPods: 6\nsyncFrequency: 30s\nfileCheckFrequency: 30s\nlogging: {verbosity: 3}\n');
  life.reload();
  while (heard.length === 0) await new Promise(setImmediate);
  assert.deepEqual(heard, [30_000]);
  assert.equal(updates.current.fileCheckFrequencyMs, 20_000, 'nobody follows it');
  assert.equal(updates.current.syncFrequencyMs, 30_000);
  assert.equal(updates.current.maxPods, 5);
  assert.equal(logLevels.of('x'), 3);
  heard.length = 0;
  writeConfig('maxPods: many\n');
  life.reload();
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  assert.deepEqual(heard, []);
  assert.equal(updates.current.syncFrequencyMs, 30_000);
  life.stop('SIGTERM');
  assert.equal(await life.code, 0);
});

test('the lock file is held while the kubelet runs, and contention ends it', { timeout: 60_000 }, async () => {
  writeConfig('');
  const lock = join(dir, 'lock');
  const taken = (): boolean => spawnSync('flock', ['--nonblock', lock, 'true']).status === 1;
  const quiet = start([`--lock-file=${lock}`], untilStopped);
  await quiet.options;
  assert.equal(taken(), true);
  quiet.stop('SIGTERM');
  assert.equal(await quiet.code, 0);
  assert.equal(taken(), false);
  const polite = start([`--lock-file=${lock}`, '--exit-on-lock-contention'], untilStopped);
  await polite.options;
  closeSync(openSync(lock, 'r'));
  assert.equal(await polite.code, 0);
});

test('a Node.js without foreign function calls is refused at the start, with the way out', () => {
  const root = join(dir, 'checkout');
  const bin = join(dir, 'bin');
  mkdirSync(join(root, 'bin'), { recursive: true });
  mkdirSync(bin);
  copyFileSync(join(import.meta.dirname, '..', 'bin', 'kubelet'), join(root, 'bin', 'kubelet'));
  const old = '#!/bin/sh\ncase "$*" in *node:ffi*) exit 1;; -p*) echo "Node.js v24.0.0 at /usr/bin/node";; esac\n';
  writeFileSync(join(bin, 'node'), old, { mode: 0o755 });
  const env = { PATH: `${bin}:/usr/bin:/bin` };
  const { status, stderr } = spawnSync(join(root, 'bin', 'kubelet'), ['--version'], { env, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.equal(
    stderr,
    `kubelet: needs Node.js 26.1 or newer with node:ffi, found Node.js v24.0.0 at /usr/bin/node; run 'npm ci' in ${root} to install the pinned one\n`,
  );
});
