// The one-command cluster: from nothing to a running pod, through kills and interruptions, and away without a trace.
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiClient, dig } from '../contracts/api-server/client.ts';
import { DevCluster, traces } from '../harness/dev-cluster.ts';

const COMMAND = join(import.meta.dirname, '..', '..', 'bin', 'kubelet-dev');
const skip = process.getuid?.() !== 0 || !existsSync('/usr/bin/containerd');
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('up, up again at once, status, down, up, reset', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  const empty = await cluster.command('status');
  assert.equal(empty.code, 1);
  assert.match(empty.stdout, /Nothing here yet/);
  const first = await cluster.up();
  assert.match(first.stdout, /example pod is Running/);
  assert.match(first.stdout, new RegExp(`kubectl --kubeconfig ${cluster.kubeconfig} get pods`));
  const started = performance.now();
  await cluster.up();
  const again = performance.now() - started;
  t.diagnostic(`second up: ${Math.round(again)} ms`);
  assert.ok(again < 3000, `second up took ${again} ms`);
  assert.equal((await cluster.command('status')).code, 0);
  const settings = await cluster.settings();
  const down = await cluster.command('down');
  assert.equal(down.code, 0, down.stdout + down.stderr);
  assert.deepEqual(await traces(cluster.dir, settings.network, settings.cgroupRoot), []);
  assert.equal((await cluster.command('status')).code, 1);
  await cluster.up();
  const reset = await cluster.command('reset');
  assert.equal(reset.code, 0, reset.stdout + reset.stderr);
  assert.deepEqual(await traces(cluster.dir, settings.network, settings.cgroupRoot), []);
  assert.ok(!existsSync(cluster.dir));
});

test('20 kills of any of its processes, then up: healthy, and the pod never stopped', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  await cluster.up();
  const containerId = async (): Promise<unknown> => {
    const api = ApiClient.fromKubeconfig(await readFile(cluster.kubeconfig, 'utf8'));
    const pod = await api.get('/api/v1/namespaces/default/pods/hello');
    api.close();
    return dig(pod.body, 'status', 'containerStatuses', 0, 'containerID');
  };
  const before = await containerId();
  for (let i = 0; i < 20; i++) {
    const { pid, children } = await cluster.supervisor();
    const pids = [children['kubelet']?.pid, children['api-server']?.pid, children['containerd']?.pid, pid];
    const victim = pids[i % pids.length];
    if (victim !== undefined) process.kill(victim, 'SIGKILL');
    await sleep(300);
    if (i % 4 === 3) await cluster.up();
  }
  await cluster.up();
  const status = await cluster.command('status');
  assert.equal(status.code, 0, status.stdout);
  assert.equal(await containerId(), before);
  await cluster.command('down');
  const settings = await cluster.settings();
  assert.deepEqual(await traces(cluster.dir, settings.network, settings.cgroupRoot), []);
});

test('an interrupted up goes on in the background; a killed one is completed by the next', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const child = spawn(COMMAND, ['up', '--no-install', `--dir=${cluster.dir}`], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await sleep(700);
    child.kill(signal);
    await ended;
    await cluster.up();
    assert.equal((await cluster.command('status')).code, 0);
    await cluster.command('down');
  }
});

test('down cleans up when everything was killed before', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  await cluster.up();
  const { pid, children } = await cluster.supervisor();
  process.kill(pid, 'SIGKILL');
  for (const child of Object.values(children)) if (child.pid !== undefined) process.kill(child.pid, 'SIGKILL');
  const settings = await cluster.settings();
  const down = await cluster.command('down');
  assert.equal(down.code, 0, down.stdout + down.stderr);
  assert.deepEqual(await traces(cluster.dir, settings.network, settings.cgroupRoot), []);
  await cluster.up();
});

test('says what it does not understand', async () => {
  const cluster = new DevCluster('/tmp/kts-dev-never');
  const unknown = await cluster.command('up', '--nonsense');
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /unknown option --nonsense/);
  assert.match((await cluster.command('help')).stdout, /Usage: kubelet-dev/);
  assert.equal(await readFile(COMMAND, 'utf8').then((text) => text.startsWith('#!/bin/sh')), true);
});
