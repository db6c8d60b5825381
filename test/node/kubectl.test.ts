// Real, unmodified kubectl on a real node: the versions of test/harness/kubectl-binaries.ts.
import { strict as assert } from 'node:assert';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DevCluster, type Ran } from '../harness/dev-cluster.ts';
import { kubectls, type Kubectl } from '../harness/kubectl-binaries.ts';
import { untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const MANIFEST = `apiVersion: v1
kind: Pod
metadata: {name: app, labels: {app: app}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: localhost/busybox:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo started; trap 'exit 0' TERM; sleep 100000 & wait"]
`;

const STATEFUL = `apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "localhost/busybox:1", imagePullPolicy: IfNotPresent, command: [sh, -c, COMMAND]}]
`;

type Scene = { readonly cluster: DevCluster; readonly work: string };

describe('kubectl', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let cluster: DevCluster;
  let work: string;
  before(async () => {
    cluster = await DevCluster.make();
    work = temporaryFolder('kts-kubectl-');
    const editor = join(work, 'editor.sh');
    await writeFile(editor, '#!/bin/sh\nsed -i "s/note: hello/note: edited/" "$1"\n', { mode: 0o755 });
    process.env['KUBE_EDITOR'] = editor;
    await cluster.up();
  });
  after(async () => {
    await cluster?.destroy();
  });

  // Most of the time goes by in waiting: each version has a namespace, and they take no notice of each other.
  describe('commands', { concurrency: true }, () => {
    for (const [i, kubectl] of kubectls().entries())
      describe(kubectl.version, { concurrency: 1 }, () => commands(kubectl, `v${i}`, () => ({ cluster, work })));
  });
  for (const kubectl of kubectls())
    describe(`${kubectl.version} and the whole node`, () => nodeCommands(kubectl, () => ({ cluster, work })));
});

type Calls = {
  readonly any: (args: readonly string[], input?: string) => Promise<Ran>;
  readonly ok: (args: readonly string[], input?: string) => Promise<string>;
};

/** Runs it in a namespace, unless the arguments name another. */
function callsOf(binary: () => string, cluster: () => DevCluster, namespace: string): Calls {
  const any = (args: readonly string[], input?: string): Promise<Ran> =>
    cluster().kubectl(binary(), [`--namespace=${namespace}`, ...args], input);
  const ok = async (args: readonly string[], input?: string): Promise<string> => {
    const ran = await any(args, input);
    assert.equal(ran.code, 0, `kubectl ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  };
  return { any, ok };
}

function nodeCommands(kubectl: Kubectl, scene: () => Scene): void {
  it('cordon, drain, uncordon', async () => {
    const binary = await kubectl.path();
    const { ok } = callsOf(
      () => binary,
      () => scene().cluster,
      'default',
    );
    const { nodeName } = await scene().cluster.settings();
    await ok(['create', 'deployment', 'gone', '--image=localhost/busybox:1', '--', 'sleep', '100000']);
    await ok(['rollout', 'status', 'deployment/gone', '--timeout=60s']);
    const only = ['--pod-selector=app=gone', '--grace-period=1', '--timeout=30s'];
    assert.match(await ok(['drain', nodeName, '--ignore-daemonsets', ...only]), /evicted/);
    assert.match(await ok(['get', 'node', nodeName]), /SchedulingDisabled/);
    await ok(['uncordon', nodeName]);
    await ok(['delete', 'deployment', 'gone']);
  });
}

function commands(kubectl: Kubectl, namespace: string, scene: () => Scene): void {
  let binary: string;
  let work: string;
  const { any, ok } = callsOf(
    () => binary,
    () => scene().cluster,
    namespace,
  );
  before(async () => {
    binary = await kubectl.path();
    work = join(scene().work, namespace);
    await mkdir(work);
    await ok(['create', 'namespace', namespace]);
    await untilSeen(
      'pods may be made',
      async () => (await any(['get', 'serviceaccount', 'default'])).code,
      (seen) => seen === 0,
    );
  });

  /** For commands and flags that the oldest kubectl does not have. */
  const inNewer = (what: string, does: () => Promise<void>): void => {
    if (!kubectl.old) it(what, does);
  };

  /** For what takes long and is the same for all. */
  const inNewest = (what: string, does: () => Promise<void>): void => {
    if (kubectl.version === kubectls().at(-1)?.version) it(what, does);
  };

  it('apply, get, wait', async () => {
    const file = join(work, 'pod.yaml');
    await writeFile(file, MANIFEST);
    assert.match(await ok(['apply', '-f', file]), /pod\/app created/);
    assert.match(await ok(['apply', '-f', file]), /pod\/app (unchanged|configured)/);
    await ok(['wait', '--for=condition=Ready', 'pod/app', '--timeout=30s']);
    const changed = await any(['diff', '-f', '-'], MANIFEST.replace('app: app', 'app: other'));
    assert.equal(changed.code, 1);
    assert.match(changed.stdout, /^\+ +app: other$/m);
    assert.match(await ok(['get', 'pods', 'app']), /NAME +READY +STATUS +RESTARTS +AGE\napp +1\/1 +Running +0/);
    assert.match(await ok(['get', 'pods', '-o', 'wide', '-A']), /NOMINATED NODE/);
    assert.match(await ok(['get', 'nodes']), / Ready /);
    assert.match(await ok(['get', 'all', '--namespace=default']), /service\/kubernetes/);
    assert.match(await ok(['get', 'pod', 'app', '-o', 'jsonpath={.status.phase}']), /^Running$/);
    const bad = await any(
      ['apply', '-f', '-'],
      MANIFEST.replace('image:', 'imagee:').replace('name: app', 'name: bad'),
    );
    assert.notEqual(bad.code, 0);
  });

  inNewest('create a pod that cannot start, to look at later', async () => {
    const manifest = MANIFEST.replace('name: app,', 'name: stuck,').replace(
      'command:',
      'envFrom: [{secretRef: {name: absent}}]\n    command:',
    );
    assert.match(await ok(['apply', '-f', '-'], manifest), /pod\/stuck created/);
  });

  it('describe, events, logs', async () => {
    const reported = await ok(['describe', 'pod', 'app']);
    assert.match(reported, new RegExp(`Successfully assigned ${namespace}/app`));
    assert.match(reported, /Started +.*kubelet/);
    assert.match(await ok(['describe', 'node']), /Allocated resources:/);
    assert.match(await ok(['get', 'events']), /Scheduled/);
    assert.equal(await ok(['logs', 'app']), 'started\n');
    assert.match(await ok(['logs', 'app', '--timestamps', '--tail=1']), /^\d{4}-.*Z started\n$/);
  });

  inNewer('events, wait for a value or for a start', async () => {
    assert.match(await ok(['events', '--for', 'pod/app']), /Normal +Started +Pod\/app/);
    assert.doesNotMatch(await ok(['events', '--for', 'pod/app', '--types=Warning']), /Normal/);
    await ok(['wait', '--for=jsonpath={.status.phase}=Running', 'pod/app', '--timeout=30s']);
    await ok(['wait', '--for=create', 'pod/app', '--timeout=30s']);
  });

  it('exec and cp, there and back, with exit codes', async () => {
    assert.equal(await ok(['exec', 'app', '--', 'echo', 'hi there']), 'hi there\n');
    assert.equal(await ok(['exec', '-i', 'app', '--', 'cat'], 'from stdin'), 'from stdin');
    const failed = await any(['exec', 'app', '--', 'sh', '-c', 'exit 7']);
    assert.equal(failed.code, 7);
    const [source, back] = [join(work, 'source'), join(work, 'back')];
    await writeFile(source, 'x'.repeat(300_000));
    await ok(['cp', source, 'app:/tmp/copied']);
    await ok(['cp', 'app:/tmp/copied', back]);
    assert.equal((await readFile(back)).length, 300_000);
  });

  it('label, annotate, edit, patch', async () => {
    await ok(['label', 'pod', 'app', 'tier=front']);
    await ok(['annotate', 'pod', 'app', 'note=hello']);
    assert.match(await ok(['get', 'pods', '-l', 'tier=front', '-o', 'name']), /^pod\/app\n$/);
    assert.match(await ok(['edit', 'pod', 'app']), /edited/);
    assert.equal(await ok(['get', 'pod', 'app', '-o', 'jsonpath={.metadata.annotations.note}']), 'edited');
    const refused = await any(['patch', 'pod', 'app', '-p', '{"spec":{"restartPolicy":"Never"}}']);
    assert.match(refused.stderr, /spec: Forbidden: pod updates may not change fields other than/);
  });

  it('port-forward', async () => {
    const forward = scene().cluster.spawnKubectl(binary, ['port-forward', '--namespace=default', 'pod/hello', ':8080']);
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
    const image = ['--image=localhost/busybox:1', '--image-pull-policy=IfNotPresent', '--restart=Never'];
    await ok(['run', 'once', ...image, '--', 'sh', '-c', 'echo done']);
    await untilSeen(
      'the pod has succeeded',
      () => ok(['get', 'pod', 'once', '-o', 'jsonpath={.status.phase}']),
      (seen) => seen === 'Succeeded',
    );
    assert.equal(await ok(['logs', 'once']), 'done\n');
    assert.match(await ok(['delete', 'pod', 'once']), /deleted/);
    assert.notEqual((await any(['get', 'pod', 'once'])).code, 0);
  });

  inNewer('debug with an ephemeral container', async () => {
    const image = ['--image=localhost/busybox:1', '--image-pull-policy=IfNotPresent'];
    await ok(['debug', 'app', ...image, '-c', 'dbg', '--target=web', '--profile=general', '--', 'sleep', '1000']);
    const state = 'jsonpath={.status.ephemeralContainerStatuses[0].state}';
    await untilSeen(
      'the container runs',
      () => ok(['get', 'pod', 'app', '-o', state]),
      (seen) => seen.includes('running'),
    );
    assert.match(
      await ok(['exec', 'app', '-c', 'dbg', '--', 'ps']),
      /sleep 100000/,
      'shares the processes of its target',
    );
  });

  inNewest('services by name, address and node port; a stateful set behind one', async () => {
    const serve = 'mkdir -p /tmp/w; hostname > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w';
    await ok(['apply', '-f', '-'], STATEFUL.replace('COMMAND', JSON.stringify(serve)));
    await ok(['rollout', 'status', 'statefulset/db', '--timeout=90s']);
    await ok(['expose', 'pod', 'db-1', '--name=one', '--port=80', '--target-port=8080', '--type=NodePort']);
    const fetched = (url: string): Promise<Ran> => any(['exec', 'db-0', '--', 'wget', '-qO-', url]);
    await untilSeen(
      'the service leads to its pod',
      async () => (await fetched('http://one')).stdout,
      (seen) => seen === 'db-1\n',
    );
    assert.equal((await fetched('http://db-1.db:8080')).stdout, 'db-1\n');
    const value = async (path: string): Promise<string> => ok(['get', 'service', 'one', '-o', `jsonpath={${path}}`]);
    assert.equal((await fetched(`http://${await value('.spec.clusterIP')}`)).stdout, 'db-1\n');
    assert.match(await ok(['describe', 'service', 'one']), /Endpoints: +[\d.]+:8080/);
    const host = await ok(['get', 'pod', 'db-0', '-o', 'jsonpath={.status.hostIP}']);
    assert.equal(await (await fetch(`http://${host}:${await value('.spec.ports[0].nodePort')}/`)).text(), 'db-1\n');
    await ok(['exec', 'db-0', '--', 'nc', '-w', '5', 'kubernetes.default', '443']);
    assert.equal(await ok(['--server=https://10.96.0.1', 'get', '--raw', '/readyz']), 'ok');
    await ok(['scale', 'statefulset/db', '--replicas=1']);
    await untilSeen(
      'nobody is behind it',
      async () => (await fetched('http://one')).stderr,
      (text) => /refused/.test(text),
    );
    assert.match(await ok(['rollout', 'history', 'statefulset/db']), /^1 /m);
    await ok(['delete', 'statefulset/db', 'service/db', 'service/one']);
  });

  it('auth can-i', async () => {
    assert.equal(await ok(['auth', 'can-i', 'create', 'pods']), 'yes\n');
    const other = await any(['auth', 'can-i', 'create', 'pods', '--as=nobody']);
    assert.equal(other.stdout, 'no\n');
    assert.match(await ok(['auth', 'can-i', '--list']), /^\*\.\* +\[\] +\[\] +\[\*\]$/m);
    const list = await ok(['auth', 'can-i', '--list', '--as=system:serviceaccount:default:default']);
    assert.match(list, /^selfsubjectreviews\.authentication\.k8s\.io +\[\] +\[\] +\[create\]$/m);
    assert.doesNotMatch(list, /^\*/m);
  });

  inNewer('auth whoami', async () => {
    assert.match(await ok(['auth', 'whoami']), /Username +kubernetes-admin/);
  });

  inNewer('explain, api-resources, version', async () => {
    assert.match(await ok(['explain', 'pod.spec.containers']), /FIELD: containers <\[\]Container>/);
    assert.match(await ok(['explain', 'deployment.spec', '--recursive']), /^ +maxSurge\t<IntOrString>$/m);
    assert.notEqual((await any(['explain', 'pod.spec.nonsense'])).code, 0);
    const names = (await ok(['api-resources', '-o', 'name'])).trim().split('\n');
    assert.ok(names.includes('deployments.apps') && names.includes('pods.metrics.k8s.io'), names.join(' '));
    assert.match(await ok(['version']), /Server Version: v1\.36/);
  });

  inNewer('apply on the server side', async () => {
    const apply = (manager: string, data: Record<string, string>, ...more: string[]): Promise<Ran> =>
      any(
        ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-', ...more],
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ssa' }, data }),
      );
    const data = async (): Promise<unknown> => JSON.parse(await ok(['get', 'cm', 'ssa', '-o', 'jsonpath={.data}']));
    assert.equal((await apply('one', { a: '1', b: '1' })).code, 0);
    assert.equal((await apply('two', { c: '2' })).code, 0);
    assert.deepEqual(await data(), { a: '1', b: '1', c: '2' });
    assert.equal((await apply('one', { a: '1' })).code, 0);
    assert.deepEqual(await data(), { a: '1', c: '2' }, 'what its manager no longer applies is gone');
    const conflict = await apply('two', { a: '2', c: '2' });
    assert.notEqual(conflict.code, 0);
    assert.match(conflict.stderr, /conflict with "one": \.data\.a/);
    assert.equal((await apply('two', { a: '2', c: '2' }, '--force-conflicts')).code, 0);
    assert.deepEqual(await data(), { a: '2', c: '2' });
    assert.match(await ok(['get', 'cm', 'ssa', '-o', 'yaml', '--show-managed-fields']), /manager: two/);
    await ok(['delete', 'cm', 'ssa']);
  });

  it("the kubelet's own pages through the API", async () => {
    const { nodeName } = await scene().cluster.settings();
    const raw = (path: string): Promise<string> => ok(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy${path}`]);
    for (const path of ['/pods', '/runningpods/']) {
      const list = JSON.parse(await raw(path)) as { kind: string; items: { metadata: { name: string } }[] };
      assert.equal(list.kind, 'PodList');
      assert.ok(
        list.items.some((pod) => pod.metadata.name === 'hello'),
        path,
      );
    }
    assert.equal(await raw('/healthz'), 'ok');
    const pod = '/api/v1/namespaces/default/pods/hello:8080/proxy';
    assert.match(await ok(['get', '--raw', `${pod}/`]), /^hello from hello/);
    assert.match(await ok(['get', '--raw', pod]), /^hello from hello/, 'follows to the path with a slash');
  });

  it('top', async () => {
    await untilSeen(
      'kubectl top answers',
      async () => (await any(['top', 'pod'])).code,
      (seen) => seen === 0,
    );
    assert.match(await ok(['top', 'pod']), /NAME +CPU\(cores\) +MEMORY\(bytes\)/);
    assert.match(await ok(['top', 'node']), /CPU\(cores\)/);
  });

  it('create, scale and roll out a deployment', async () => {
    await ok(['create', 'deployment', 'dep', '--image=localhost/busybox:1', '--dry-run=client', '-o', 'yaml']);
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
      containers: [{name: c, image: "localhost/busybox:1", imagePullPolicy: IfNotPresent, command: [sleep, "100000"]}]
`;
    await ok(['apply', '-f', '-'], manifest);
    await ok(['rollout', 'status', 'deployment/dep', '--timeout=60s']);
    await ok(['apply', '-f', '-'], manifest.replace('100000', '100001'));
    await ok(['rollout', 'status', 'deployment/dep', '--timeout=60s']);
    await ok(['rollout', 'undo', 'deployment/dep']);
    await ok(['rollout', 'status', 'deployment/dep', '--timeout=60s']);
    assert.match(await ok(['get', 'deployment', 'dep', '-o', 'yaml']), /100000/);
    await ok(['scale', 'deployment/dep', '--replicas=1']);
    await untilSeen(
      'there are two pods',
      async () => (await ok(['get', 'pods', '-l', 'app=dep', '-o', 'name'])).split('\n'),
      (seen) => seen.length === 2,
    );
    await ok(['delete', 'deployment', 'dep']);
    await untilSeen(
      'there are no pods',
      () => ok(['get', 'pods', '-l', 'app=dep', '-o', 'name']),
      (seen) => seen === '',
    );
  });

  it('create and delete a namespace with what is in it', async () => {
    const other = `other-${namespace}`;
    await ok(['create', 'namespace', other]);
    await ok(['create', 'configmap', 'cm', '--from-literal=a=b', '-n', other]);
    await ok(['create', 'secret', 'generic', 's', '--from-literal=p=q', '-n', other]);
    assert.equal(await ok(['get', 'secret', 's', '-n', other, '-o', 'jsonpath={.data.p}']), 'cQ==');
    await ok(['delete', 'namespace', other, '--timeout=30s']);
    assert.notEqual((await any(['get', 'namespace', other])).code, 0);
  });

  inNewest('why a pod is not ready is on the pod, until it is', async () => {
    const why = (part: string): string => `jsonpath={.status.conditions[?(@.type=="kubelet-ts/WhyNotReady")].${part}}`;
    await untilSeen(
      'its condition says why',
      () => ok(['get', 'pod', 'stuck', '-o', why('status')]),
      (seen) => seen === 'True',
      120_000,
    );
    assert.equal(await ok(['get', 'pod', 'stuck', '-o', why('reason')]), 'SecretMissing');
    const sentence =
      'Container "web" cannot start because a secret that its environment refers to is not there (secret "absent" not found). Create the secret (or the key in it), or mark the reference optional.';
    assert.equal(await ok(['get', 'pod', 'stuck', '-o', why('message')]), sentence);
    const columns =
      'custom-columns=NAME:.metadata.name,WHY:.status.conditions[?(@.type=="kubelet-ts/WhyNotReady")].message';
    const table = await ok(['get', 'pods', '-o', columns]);
    assert.ok(table.includes(sentence), table);
    assert.match(table, /^app +<none>$/m);
    assert.match(await ok(['describe', 'pod', 'stuck']), /^ +kubelet-ts\/WhyNotReady +True *$/m);
    const messages = 'jsonpath={.status.conditions[?(@.type=="ContainersReady")].message}';
    assert.equal(await ok(['get', 'pod', 'stuck', '-o', messages]), 'containers with unready status: [web]');
    await ok(['create', 'secret', 'generic', 'absent', '--from-literal=p=q']);
    await ok(['wait', '--for=condition=Ready', 'pod/stuck', '--timeout=60s']);
    assert.equal(await ok(['get', 'pod', 'stuck', '-o', why('type')]), '');
    await ok(['delete', 'secret', 'absent']);
    await ok(['delete', 'pod', 'stuck', '--timeout=30s']);
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
