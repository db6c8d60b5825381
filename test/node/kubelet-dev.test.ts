// The one-command cluster: from nothing to a running pod, through kills, interruptions and a power cut, and away without
// a trace.
// runs: default ports
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { KERNEL_SETTINGS } from '../../src/host/process/host-checks.ts';
import { ApiClient, dig, type Json } from '../contracts/api-server/client.ts';
import { DevCluster, traces } from '../harness/dev-cluster.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

const COMMAND = join(import.meta.dirname, '..', '..', 'bin', 'kubelet-dev');
const ROOT = process.getuid?.() === 0;
const skip = !ROOT ? 'needs root' : !existsSync('/usr/bin/containerd') ? 'needs containerd' : false;

async function withApi<T>(cluster: DevCluster, use: (api: ApiClient) => Promise<T>): Promise<T> {
  const api = ApiClient.fromKubeconfig(await readFile(cluster.kubeconfig, 'utf8'));
  try {
    return await use(api);
  } finally {
    api.close();
  }
}

const podOf = (cluster: DevCluster, name: string): Promise<Json> =>
  withApi(cluster, async (api) => (await api.get(`/api/v1/namespaces/default/pods/${name}`)).body);

async function assertHealthy(cluster: DevCluster): Promise<void> {
  const status = await cluster.command('status');
  assert.equal(status.code, 0, status.stdout);
}

/** What the node's own command line says, in a pipe and as JSON. */
async function assertNodeCommands(cluster: DevCluster): Promise<void> {
  const bundle = join(cluster.dir, 'bundle.tar.gz');
  const said = await Promise.all(
    [['top'], ['why', 'hello'], ['events', 'hello'], ['pulls'], ['doctor'], ['support-bundle', bundle]].map(
      async ([verb = '', ...words]) => ({ verb, ...(await cluster.command(verb, ...words)) }),
    ),
  );
  const textOf = (verb: string): string => said.find((s) => s.verb === verb)?.stdout ?? '';
  assert.match(textOf('top'), /\nNAMESPACE +POD +STATE [^]*\ndefault +hello +Running +1\/1 /);
  assert.equal(textOf('why'), 'default/hello: The pod is ready.\n');
  assert.match(textOf('events'), /^AGE +TYPE +REASON +OBJECT +MESSAGE\n[^]* Started +pod\/default\/hello /);
  assert.equal(textOf('pulls'), 'No images are being pulled.\n');
  assert.match(textOf('doctor'), /runtime/);
  assert.match(textOf('support-bundle'), /\d+ files, without secrets/);
  assert.ok(existsSync(bundle));
  for (const { verb, stdout } of said)
    assert.ok(!/[^\P{Cc}\n]/u.test(stdout), `${verb} writes control characters in a pipe`);
  const { pods } = JSON.parse((await cluster.command('top', '--output', 'json')).stdout) as {
    pods: { name: string }[];
  };
  assert.ok(pods.some((p) => p.name === 'hello'));
}

async function assertNoTraces(cluster: DevCluster): Promise<void> {
  const { network, cgroupRoot } = await cluster.settings();
  const down = await cluster.command('down');
  assert.equal(down.code, 0, down.stdout + down.stderr);
  assert.deepEqual(await traces(cluster.dir, network, cgroupRoot), []);
}

test('up, up again at once, status, down, up, reset', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  const kernelBefore = kernelSettings();
  const empty = await cluster.command('status');
  assert.equal(empty.code, 1);
  assert.match(empty.stdout, /Nothing here yet/);
  const first = await cluster.up();
  assert.match(first.stdout, /example pod is Running/);
  for (const reported of [
    `kubectl --kubeconfig ${cluster.kubeconfig} get pods`,
    'kubectl run mine --image=localhost/busybox:1',
    `bin/kubelet-dev down --dir=${cluster.dir}`,
  ])
    assert.ok(first.stdout.includes(reported), reported);
  const { healthzPort } = await cluster.settings();
  assert.ok(first.stdout.includes(`http://127.0.0.1:${healthzPort}/healthz`));
  assert.equal((await fetch(`http://127.0.0.1:${healthzPort}/healthz`)).status, 200);
  assert.ok(
    !first.stdout.includes('\r') && !first.stdout.includes('\u001b'),
    'no control characters without a terminal',
  );
  await assertNodeCommands(cluster);
  let again = Infinity;
  // What the machine does beside it can only make it slower.
  for (let i = 0; i < 10 && again >= 3000; i++) {
    const started = performance.now();
    await cluster.up();
    again = performance.now() - started;
  }
  t.diagnostic(`second up: ${Math.round(again)} ms`);
  assert.ok(again < 3000, `second up took ${again} ms`);
  await assertHealthy(cluster);
  await assertNoTraces(cluster);
  assert.equal((await cluster.command('status')).code, 1);
  await assertTakenPortIsNamed(cluster);
  await cluster.up();
  const settings = await cluster.settings();
  await writeFile(join(cluster.dir, 'settings.json'), '{"nodeName":');
  const damaged = await cluster.command('down');
  assert.match(damaged.stderr, /settings.json is damaged; 'kubelet-dev reset' starts over/);
  const reset = await cluster.command('reset');
  assert.equal(reset.code, 0, reset.stdout + reset.stderr);
  assert.deepEqual(await traces(cluster.dir, settings.network, settings.cgroupRoot), []);
  assert.deepEqual(await readdir(cluster.dir), ['bundle.tar.gz'], 'only what is not its own stays');
  assert.match(reset.stdout, /stays with files that are not the cluster's: bundle.tar.gz/);
  assert.deepEqual(kernelSettings(), kernelBefore);
  const occupied = await cluster.command('up', '--no-install');
  assert.match(occupied.stderr, /has files and is no cluster of kubelet-dev: name another place with --dir=PATH/);
  assert.deepEqual(await readdir(cluster.dir), ['bundle.tar.gz']);
});

/** Another program has come to use a port of a cluster that is down. */
async function assertTakenPortIsNamed(cluster: DevCluster): Promise<void> {
  const { healthzPort } = await cluster.settings();
  const other = createServer().listen(healthzPort, '127.0.0.1');
  await once(other, 'listening');
  try {
    const refused = await cluster.command('up');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`port ${healthzPort} of the kubelet's health is taken by another program`));
    assert.ok(refused.stderr.includes(`bin/kubelet-dev reset --dir=${cluster.dir}`), refused.stderr);
  } finally {
    other.close();
  }
}

const kernelSettings = (): readonly string[] =>
  Object.keys(KERNEL_SETTINGS).map((name) => `${name} ${readFileSync(`/proc/sys/${name}`, 'utf8').trim()}`);

async function listening(port: number): Promise<Server> {
  const server = createServer();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server;
}

/** An `up` that found the supervisor alive does not wait in vain when that ends. */
async function assertSupervisorIsReplaced(cluster: DevCluster): Promise<void> {
  const { pid, children } = await cluster.supervisor();
  const { 'api-server': apiServer, kubelet } = children;
  assert.ok(apiServer?.pid !== undefined && kubelet?.pid !== undefined);
  const { apiPort } = await cluster.settings();
  process.kill(pid, 'SIGSTOP');
  for (const child of [kubelet.pid, apiServer.pid]) process.kill(child, 'SIGKILL');
  const inItsPlace = await until('the port of the API server is free', () => listening(apiPort));
  const up = cluster.up();
  // It asks the API server when it has found the supervisor alive; nothing else asks now.
  const [asked] = (await once(inItsPlace, 'connection')) as [Socket];
  process.kill(pid, 'SIGKILL');
  inItsPlace.close();
  asked.destroy();
  assert.match((await up).stdout, /the supervisor has ended, starting it again/);
  await assertHealthy(cluster);
}

test('20 kills of any of its processes and a power cut; each time up is healthy again', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  await cluster.up();
  const container = async (): Promise<unknown> =>
    dig(await podOf(cluster, 'hello'), 'status', 'containerStatuses', 0, 'containerID');
  const before = await container();
  for (let i = 0; i < 20; i++) {
    const { pid, children } = await cluster.supervisor();
    const pids = [...['kubelet', 'api-server', 'containerd', 'csi-driver'].map((c) => children[c]?.pid), pid];
    const victim = pids[i % pids.length];
    if (victim !== undefined) process.kill(victim, 'SIGKILL');
    await timePasses(150, 'another instant');
    if (victim === pid && i < 19) await cluster.up();
  }
  const status = await cluster.command('status');
  assert.equal(status.code, 1);
  assert.match(status.stdout, /DOWN +supervisor[^]*Left from an earlier run: processes \d+/);
  await cluster.up();
  await assertHealthy(cluster);
  assert.equal(await container(), before, 'the pod ran on all the time');

  await assertSupervisorIsReplaced(cluster);
  assert.equal(await container(), before, 'and during an up whose supervisor was killed');

  await withApi(cluster, async (api) => {
    const made = await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'kept' } });
    assert.equal(made.status, 201);
  });
  await cluster.powerCut();
  await cluster.up();
  await assertHealthy(cluster);
  assert.notEqual(await container(), before, 'the pod is back in a new container');
  const kept = await withApi(cluster, (api) => api.get('/api/v1/namespaces/default/configmaps/kept'));
  assert.equal(kept.status, 200, 'what was stored is there');
  await cluster.kill();
  await assertNoTraces(cluster);
});

/** Files that show how far a first `up` has come. */
const STAGES = ['settings.json', 'api/cluster.db', 'containerd/c.sock', 'logs/kubelet.log'];

test('a first up that is cut short at any stage is completed by the next', { skip }, async (t) => {
  for (const stage of [...STAGES, 'interrupted']) {
    const cluster = await DevCluster.make();
    t.after(() => cluster.destroy());
    const child = spawn(COMMAND, ['up', '--no-install', `--dir=${cluster.dir}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    if (stage === 'interrupted') {
      await untilSeen(
        'it says what it does',
        () => said,
        (seen) => seen !== '',
      );
      child.kill('SIGINT');
      await ended;
      // Its last words may come after its end.
      await untilSeen(
        'it says that it stops',
        () => said,
        (seen) => seen.includes('what was started goes on'),
      );
    } else {
      await until(`there is ${stage}`, () => existsSync(join(cluster.dir, stage)), undefined, 3);
      child.kill('SIGKILL');
      await cluster.kill();
      await ended;
    }
    await cluster.up();
    await cluster.command('reset');
  }
});

test('removes and takes over nothing of others', async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => rm(cluster.dir, { recursive: true }));
  const thesis = join(cluster.dir, 'thesis.txt');
  await writeFile(thesis, 'precious');
  for (const verb of ['reset', 'down', 'status']) {
    const ran = await cluster.command(verb);
    assert.equal(ran.code, verb === 'down' ? 0 : 1, ran.stdout + ran.stderr);
    if (verb === 'reset') assert.match(ran.stderr, /is no cluster of kubelet-dev: nothing was removed/);
  }
  assert.equal(await readFile(thesis, 'utf8'), 'precious');
});

test('says what it does not understand', async () => {
  const cluster = new DevCluster('/tmp/kts-dev-never');
  const unknown = await cluster.command('up', '--nonsense');
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /unknown option --nonsense/);
  assert.match((await cluster.command('help')).stdout, /Usage: kubelet-dev/);
});
