// Real, unmodified kubectl on a real node. KUBECTL_BINARIES (colon-separated paths) tries several versions.
import { strict as assert } from 'node:assert';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DevCluster, type Ran } from '../harness/dev-cluster.ts';
import { until } from '../harness/until.ts';

const onPath = (process.env['PATH'] ?? '').split(':').map((d) => join(d, 'kubectl'));
const BINARIES = (process.env['KUBECTL_BINARIES'] ?? onPath.find((p) => existsSync(p)) ?? '')
  .split(':')
  .filter(Boolean);

const MANIFEST = `apiVersion: v1
kind: Pod
metadata: {name: app, labels: {app: app}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: localhost/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo started; trap 'exit 0' TERM; sleep 100000 & wait"]
`;

describe('kubectl', { skip: BINARIES.length === 0 || process.getuid?.() !== 0 }, () => {
  let cluster: DevCluster;
  let work: string;
  before(async () => {
    cluster = await DevCluster.make();
    work = await mkdtemp('/tmp/kts-kubectl-');
    await cluster.up();
  });
  after(async () => {
    await cluster.destroy();
    await rm(work, { recursive: true, force: true });
  });

  for (const binary of BINARIES) describe(binary, () => commands(binary, () => ({ cluster, work })));
});

function commands(binary: string, scene: () => { cluster: DevCluster; work: string }): void {
  const any = (args: string[], input?: string): Promise<Ran> => scene().cluster.kubectl(binary, args, input);
  const ok = async (args: string[], input?: string): Promise<string> => {
    const ran = await any(args, input);
    assert.equal(ran.code, 0, `kubectl ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  };

  it('apply, get, wait', async () => {
    const file = join(scene().work, 'pod.yaml');
    await writeFile(file, MANIFEST);
    assert.match(await ok(['apply', '-f', file]), /pod\/app created/);
    assert.match(await ok(['apply', '-f', file]), /pod\/app (unchanged|configured)/);
    await ok(['wait', '--for=condition=Ready', 'pod/app', '--timeout=30s']);
    assert.match(await ok(['get', 'pods', 'app']), /NAME +READY +STATUS +RESTARTS +AGE\napp +1\/1 +Running +0/);
    assert.match(await ok(['get', 'pods', '-o', 'wide', '-A']), /NOMINATED NODE/);
    assert.match(await ok(['get', 'nodes']), / Ready /);
    assert.match(await ok(['get', 'all']), /service\/kubernetes/);
    assert.match(await ok(['get', 'pod', 'app', '-o', 'jsonpath={.status.phase}']), /^Running$/);
    const bad = await any(
      ['apply', '-f', '-'],
      MANIFEST.replace('image:', 'imagee:').replace('name: app', 'name: bad'),
    );
    assert.notEqual(bad.code, 0);
  });

  it('describe, events, logs', async () => {
    const told = await ok(['describe', 'pod', 'app']);
    assert.match(told, /Successfully assigned default\/app/);
    assert.match(told, /Started +.*kubelet/);
    assert.match(await ok(['describe', 'node']), /Allocated resources:/);
    assert.match(await ok(['get', 'events']), /Scheduled/);
    assert.equal(await ok(['logs', 'app']), 'started\n');
    assert.match(await ok(['logs', 'app', '--timestamps', '--tail=1']), /^\d{4}-.*Z started\n$/);
  });

  it('exec and cp, there and back, with exit codes', async () => {
    assert.equal(await ok(['exec', 'app', '--', 'echo', 'hi there']), 'hi there\n');
    assert.equal(await ok(['exec', '-i', 'app', '--', 'cat'], 'from stdin'), 'from stdin');
    const failed = await any(['exec', 'app', '--', 'sh', '-c', 'exit 7']);
    assert.equal(failed.code, 7);
    const [source, back] = [join(scene().work, 'source'), join(scene().work, 'back')];
    await writeFile(source, 'x'.repeat(300_000));
    await ok(['cp', source, 'app:/tmp/copied']);
    await ok(['cp', 'app:/tmp/copied', back]);
    assert.equal((await readFile(back)).length, 300_000);
  });

  it('label, annotate, edit, patch', async () => {
    await ok(['label', 'pod', 'app', 'tier=front']);
    await ok(['annotate', 'pod', 'app', 'note=hello']);
    assert.match(await ok(['get', 'pods', '-l', 'tier=front', '-o', 'name']), /^pod\/app\n$/);
    const editor = join(scene().work, 'editor.sh');
    await writeFile(editor, '#!/bin/sh\nsed -i "s/note: hello/note: edited/" "$1"\n', { mode: 0o755 });
    process.env['KUBE_EDITOR'] = editor;
    assert.match(await ok(['edit', 'pod', 'app']), /edited/);
    assert.equal(await ok(['get', 'pod', 'app', '-o', 'jsonpath={.metadata.annotations.note}']), 'edited');
    const refused = await any(['patch', 'pod', 'app', '-p', '{"spec":{"restartPolicy":"Never"}}']);
    assert.match(refused.stderr, /spec: Forbidden: pod updates may not change fields other than/);
  });

  it('port-forward', async () => {
    const forward = scene().cluster.spawnKubectl(binary, ['port-forward', 'pod/hello', ':8080']);
    try {
      const port = await new Promise<number>((resolve, reject) => {
        forward.stdout?.on('data', (chunk: Buffer) => {
          const found = /127\.0\.0\.1:(\d+)/.exec(chunk.toString());
          if (found !== null) resolve(Number(found[1]));
        });
        forward.once('exit', (code) => reject(new Error(`port-forward ended with ${code}`)));
      });
      for (let i = 0; i < 3; i++) assert.match(await fetchText(port), /^hello from hello/);
    } finally {
      forward.kill('SIGKILL');
    }
  });

  it('run, attach its output, delete', async () => {
    const image = ['--image=localhost/busybox:latest', '--image-pull-policy=IfNotPresent', '--restart=Never'];
    await ok(['run', 'once', ...image, '--', 'sh', '-c', 'echo done']);
    await until(
      'the pod has succeeded',
      async () => (await ok(['get', 'pod', 'once', '-o', 'jsonpath={.status.phase}'])) === 'Succeeded',
    );
    assert.equal(await ok(['logs', 'once']), 'done\n');
    assert.match(await ok(['delete', 'pod', 'once']), /deleted/);
    assert.notEqual((await any(['get', 'pod', 'once'])).code, 0);
  });

  it('debug with an ephemeral container', async () => {
    const minor = Number(
      /Minor:"(\d+)"|v1\.(\d+)/
        .exec(await ok(['version', '--client']))
        ?.slice(1)
        .find(Boolean),
    );
    if (minor < 25) return;
    await any([
      'debug',
      'app',
      '--image=localhost/busybox:latest',
      '--image-pull-policy=IfNotPresent',
      '-c',
      'dbg',
      '--',
      'sleep',
      '1000',
    ]);
    const state = 'jsonpath={.status.ephemeralContainerStatuses[0].state}';
    await until('the container runs', async () => (await ok(['get', 'pod', 'app', '-o', state])).includes('running'));
  });

  it('auth can-i', async () => {
    assert.equal(await ok(['auth', 'can-i', 'create', 'pods']), 'yes\n');
    const other = await any(['auth', 'can-i', 'create', 'pods', '--as=nobody']);
    assert.equal(other.stdout, 'no\n');
  });

  it('top', async () => {
    await until('kubectl top answers', async () => (await any(['top', 'pod'])).code === 0);
    assert.match(await ok(['top', 'pod']), /NAME +CPU\(cores\) +MEMORY\(bytes\)/);
    assert.match(await ok(['top', 'node']), /CPU\(cores\)/);
  });

  it('create, scale and roll out a deployment', async () => {
    await ok(['create', 'deployment', 'dep', '--image=localhost/busybox:latest', '--dry-run=client', '-o', 'yaml']);
    const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: dep}
spec:
  replicas: 2
  selector: {matchLabels: {app: dep}}
  template:
    metadata: {labels: {app: dep}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: "localhost/busybox:latest", imagePullPolicy: IfNotPresent, command: [sleep, "100000"]}]
`;
    await ok(['apply', '-f', '-'], manifest);
    await ok(['rollout', 'status', 'deployment/dep', '--timeout=60s']);
    await ok(['apply', '-f', '-'], manifest.replace('100000', '100001'));
    await ok(['rollout', 'status', 'deployment/dep', '--timeout=60s']);
    await ok(['scale', 'deployment/dep', '--replicas=1']);
    await until(
      'there are two pods',
      async () => (await ok(['get', 'pods', '-l', 'app=dep', '-o', 'name'])).split('\n').length === 2,
    );
    await ok(['delete', 'deployment', 'dep']);
    await until('there are no pods', async () => (await ok(['get', 'pods', '-l', 'app=dep', '-o', 'name'])) === '');
  });

  it('create and delete a namespace with what is in it', async () => {
    await ok(['create', 'namespace', 'ns']);
    await ok(['create', 'configmap', 'cm', '--from-literal=a=b', '-n', 'ns']);
    await ok(['create', 'secret', 'generic', 's', '--from-literal=p=q', '-n', 'ns']);
    assert.equal(await ok(['get', 'secret', 's', '-n', 'ns', '-o', 'jsonpath={.data.p}']), 'cQ==');
    await ok(['delete', 'namespace', 'ns', '--timeout=30s']);
    assert.notEqual((await any(['get', 'namespace', 'ns'])).code, 0);
  });

  it('delete waits until the containers have stopped', async () => {
    assert.match(await ok(['delete', 'pod', 'app', '--timeout=30s']), /deleted/);
    assert.notEqual((await any(['get', 'pod', 'app'])).code, 0);
  });
}

const fetchText = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1' }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.once('end', () => resolve(text));
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
