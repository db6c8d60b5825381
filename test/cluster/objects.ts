// What pods use of other objects: config maps, secrets, service account tokens, services, runtime classes.
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { CONFIG_MAPS, PODS, RUNTIME_CLASSES, SECRETS, SERVICES, TOKEN_REVIEWS } from '../../src/kube/resources.ts';
import { NODE_NAME } from '../harness/node.ts';
import { timePasses, until } from '../harness/until.ts';
import { AT_ONCE, container, never, Scene, shell, statusOf } from './scene.ts';

/** How long a change takes to reach a mounted volume: the best of some, the node is busy with other things. */
const CHANGE_WITHIN_MS = 1500;
const CHANGES = 20;
const ISSUER = 'https://kubernetes.default.svc.cluster.local';

async function comesToSay(path: string, wanted: string): Promise<number> {
  const from = performance.now();
  const read = async (): Promise<boolean> => (await readFile(path, 'utf8')) === wanted;
  await until(`${path} says ${wanted}`, read);
  return performance.now() - from;
}

/** Changes the object until a change is in the file quickly, some times at most; ends with the value that the file has. */
async function quickestChange(
  path: string,
  change: (value: string) => Promise<unknown>,
): Promise<{ readonly ms: number; readonly value: string }> {
  let ms = Infinity;
  let value = '';
  for (let i = 1; i <= CHANGES && ms >= CHANGE_WITHIN_MS; i++) {
    value = `value ${i}`;
    await change(value);
    ms = Math.min(ms, Math.round(await comesToSay(path, value)));
  }
  return { ms, value };
}

export function objectsSuite(scene: () => Scene): void {
  describe('objects of pods', { concurrency: AT_ONCE }, () => {
    changes(scene);
    missing(scene);
    tokens(scene);
    services(scene);
    runtimeClasses(scene);
  });
}

function changes(scene: () => Scene): void {
  it('a changed config map reaches the volume at once, the environment never', async (t) => {
    const s = scene();
    await s.configMap('settings', { color: 'blue' });
    const env = [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }];
    const command = shell('echo "$COLOR"; trap "exit 0" TERM; sleep 1000 & wait');
    const volumeMounts = [
      { name: 'conf', mountPath: '/conf' },
      { name: 'conf', mountPath: '/one', subPath: 'color' },
    ];
    await s.pod('configured', {
      volumes: [{ name: 'conf', configMap: { name: 'settings' } }],
      containers: [container('main', { command, env, volumeMounts })],
    });
    const pod = await s.ready('configured');
    const file = s.volumeFile(pod, 'configmap', 'conf/color');
    assert.equal(await readFile(file, 'utf8'), 'blue');
    const { ms, value } = await quickestChange(file, (color) =>
      s.patch(CONFIG_MAPS, 'settings', { data: { color, size: 'L' } }),
    );
    t.diagnostic(`a change was in the volume after ${ms} ms`);
    assert.ok(ms < CHANGE_WITHIN_MS, `${ms} ms`);
    assert.equal(await s.exec(pod, 'cat /conf/color /conf/size /one'), `${value}Lblue`, 'a subPath stays as it was');
    assert.equal(await s.exec(pod, 'tr "\\0" "\\n" < /proc/1/environ | grep ^COLOR'), 'COLOR=blue\n');
    assert.equal(await s.output(pod), 'blue\n');
    assert.equal(statusOf(await s.read('configured'), 'main')?.restartCount, 0);
  });

  it('a changed secret reaches its volume at once, with the modes asked for', async (t) => {
    const s = scene();
    await s.secret('keys', { key: 'old' });
    await s.pod('with-keys', {
      volumes: [{ name: 'keys', secret: { secretName: 'keys', defaultMode: 0o400 } }],
      containers: [container('main', { volumeMounts: [{ name: 'keys', mountPath: '/keys', readOnly: true }] })],
    });
    const pod = await s.ready('with-keys');
    const file = s.volumeFile(pod, 'secret', 'keys/key');
    assert.equal(await readFile(file, 'utf8'), 'old');
    assert.equal((await stat(file)).mode & 0o777, 0o400);
    const { ms } = await quickestChange(file, (key) => s.patch(SECRETS, 'keys', { data: { key: btoa(key) } }));
    t.diagnostic(`a change was in the volume after ${ms} ms`);
    assert.ok(ms < CHANGE_WITHIN_MS, `${ms} ms`);
  });

  it('an immutable secret is kept as it was, whatever comes after it', async () => {
    const s = scene();
    await s.secret('fixed', { key: 'first' }, { immutable: true });
    await s.pod('with-fixed', {
      volumes: [{ name: 'fixed', secret: { secretName: 'fixed' } }],
      containers: [container('main', { volumeMounts: [{ name: 'fixed', mountPath: '/fixed' }] })],
    });
    const pod = await s.ready('with-fixed');
    await assert.rejects(s.patch(SECRETS, 'fixed', { data: { key: 'eA==' } }), /immutable/);
    await s.node.client.delete(SECRETS, { namespace: s.namespace, name: 'fixed' }, {}, never);
    await s.secret('fixed', { key: 'second' }, { immutable: true });
    await timePasses(1500, 'nothing to happen');
    assert.equal(await readFile(s.volumeFile(pod, 'secret', 'fixed/key'), 'utf8'), 'first');
  });

  it('an optional config map that comes later is mounted then', async () => {
    const s = scene();
    await s.pod('optional', {
      volumes: [{ name: 'conf', configMap: { name: 'maybe', optional: true } }],
      containers: [container('main', { volumeMounts: [{ name: 'conf', mountPath: '/conf' }] })],
    });
    const pod = await s.ready('optional');
    await s.configMap('maybe', { here: 'yes' });
    await comesToSay(s.volumeFile(pod, 'configmap', 'conf/here'), 'yes');
  });
}

function missing(scene: () => Scene): void {
  it('a pod whose volume needs a missing secret says so, and starts when it comes', async () => {
    const s = scene();
    const made = await s.pod('waits', {
      volumes: [{ name: 'v', secret: { secretName: 'late' } }],
      containers: [container('main', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
    });
    const event = await s.event(made, 'FailedMount');
    assert.equal(event.message, 'MountVolume.SetUp failed for volume "v" : secret "late" not found');
    // Its status comes by another way than the event.
    await s.until(
      'waits',
      'is being created',
      (p) => statusOf(p, 'main')?.state.waiting?.reason === 'ContainerCreating',
    );
    await s.secret('late', { a: 'b' });
    const pod = await s.ready('waits');
    assert.equal(await s.exec(pod, 'cat /v/a'), 'b');
  });

  it('a pod that waits for a secret that never comes is deleted at once', async () => {
    const s = scene();
    const made = await s.pod('in-vain', {
      volumes: [{ name: 'v', secret: { secretName: 'never' } }],
      containers: [container('main', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
    });
    await s.event(made, 'FailedMount');
    await s.delete('in-vain');
    await s.gone('in-vain', 60_000); // its wait for the volume would go on for two minutes
  });

  it('a container whose environment needs a missing secret says so, and starts when it comes', async () => {
    const s = scene();
    const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'late-env', key: 'a' } } }];
    const made = await s.pod('waits-env', { containers: [container('main', { env })] });
    const waiting = await s.until(
      'waits-env',
      'waits for the secret',
      (p) => statusOf(p, 'main')?.state.waiting?.reason === 'CreateContainerConfigError',
    );
    assert.equal(statusOf(waiting, 'main')?.state.waiting?.message, 'secret "late-env" not found');
    const event = await s.event(made, 'Failed');
    assert.equal(event.message, 'Error: secret "late-env" not found');
    await s.secret('late-env', { a: 'b' });
    const pod = await s.ready('waits-env');
    assert.equal(statusOf(pod, 'main')?.restartCount, 0);
  });
}

type Claims = {
  readonly aud: readonly string[];
  readonly exp: number;
  readonly iat: number;
  readonly 'kubernetes.io': {
    readonly namespace: string;
    readonly pod: { readonly name: string; readonly uid: string };
    readonly serviceaccount: { readonly name: string };
    readonly node?: { readonly name: string };
  };
};
const claimsOf = (token: string): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims;

function tokens(scene: () => Scene): void {
  it('every pod gets a token bound to it, the CA and its namespace', async () => {
    const s = scene();
    await s.pod('identified', { automountServiceAccountToken: true });
    const pod = await s.ready('identified');
    const mount = '/var/run/secrets/kubernetes.io/serviceaccount';
    const token = await s.exec(pod, `cat ${mount}/token`);
    const claims = claimsOf(token);
    assert.deepEqual(claims.aud, [ISSUER]);
    const bound = claims['kubernetes.io'];
    assert.deepEqual(bound.pod, { name: 'identified', uid: pod.metadata.uid });
    assert.equal(bound.serviceaccount.name, 'default');
    assert.equal(bound.node?.name, NODE_NAME);
    assert.equal(await s.exec(pod, `cat ${mount}/namespace`), s.namespace);
    assert.equal(await s.exec(pod, `cat ${mount}/ca.crt`), s.node.api.caPem);
    const review = async (): Promise<boolean> => {
      const { status } = await s.node.client.create(TOKEN_REVIEWS, {}, { spec: { token } }, never);
      return status?.authenticated === true;
    };
    assert.equal(await review(), true);
    await s.delete('identified', { gracePeriodSeconds: 0 });
    await until('the token dies with its pod', async () => !(await review()));
  });

  it('a projected token has the audience and the life asked for', async () => {
    const s = scene();
    const source = { serviceAccountToken: { path: 'vault', audience: 'vault', expirationSeconds: 600 } };
    await s.pod('to-vault', {
      volumes: [{ name: 'token', projected: { sources: [source], defaultMode: 0o440 } }],
      containers: [container('main', { volumeMounts: [{ name: 'token', mountPath: '/token' }] })],
    });
    const pod = await s.ready('to-vault');
    const claims = claimsOf(await s.exec(pod, 'cat /token/vault'));
    assert.deepEqual(claims.aud, ['vault']);
    assert.equal(claims.exp - claims.iat, 600);
    const { mode } = await stat(s.volumeFile(pod, 'projected', 'token/vault'));
    assert.equal(mode & 0o777, 0o440);
  });
}

function services(scene: () => Scene): void {
  it('a pod finds the services of its namespace and the API server in its environment', async () => {
    const s = scene();
    const service = await s.create(SERVICES, 'db', { spec: { ports: [{ name: 'sql', port: 5432 }] } });
    const containers = [
      container('main', { command: shell('env; echo end of env; trap "exit 0" TERM; sleep 1000 & wait') }),
    ];
    const variables = async (name: string, enableServiceLinks: boolean): Promise<readonly string[]> => {
      await s.pod(name, { enableServiceLinks, containers });
      const pod = await s.ready(name);
      const printed = await until('all is printed', async () => {
        const text = await s.output(pod);
        return text.includes('end of env') && text;
      });
      return printed.split('\n');
    };
    const [linked, alone] = await Promise.all([variables('linked', true), variables('unlinked', false)]);
    const { clusterIP } = service.spec ?? {};
    assert.ok(linked.includes(`DB_SERVICE_HOST=${clusterIP}`), linked.join('\n'));
    assert.ok(linked.includes('DB_SERVICE_PORT_SQL=5432'));
    assert.ok(linked.includes(`DB_PORT_5432_TCP=tcp://${clusterIP}:5432`));
    assert.ok(!alone.some((v) => v.startsWith('DB_')), alone.join('\n'));
    for (const env of [linked, alone]) assert.ok(env.includes('KUBERNETES_SERVICE_HOST=10.96.0.1'), env.join('\n'));
  });
}

function runtimeClasses(scene: () => Scene): void {
  it('runs a pod with the handler of its runtime class', async () => {
    const s = scene();
    await s.node.client.create(RUNTIME_CLASSES, {}, { metadata: { name: 'plain' }, handler: 'other' }, never);
    await s.pod('classy', { runtimeClassName: 'plain' });
    const pod = await s.ready('classy');
    const uid = pod.metadata.uid ?? '';
    const { runtime } = s.node.containerd;
    const filter = { labelSelector: { 'io.kubernetes.pod.uid': uid } };
    const { items } = await runtime.listPodSandbox({ filter }, never);
    const told = items.map(({ id }) => runtime.podSandboxStatus({ podSandboxId: id }, never));
    assert.deepEqual(
      (await Promise.all(told)).map(({ status }) => status?.runtimeHandler),
      ['other'],
    );
  });

  it('says that there is no such runtime class', async () => {
    const s = scene();
    const name = 'classless';
    await s.node.client.create(RUNTIME_CLASSES, {}, { metadata: { name: 'brief' }, handler: 'runc' }, never);
    // Bound by hand once the class is gone: the API server takes no pod of a class it does not know.
    const { spec } = await s.pod(name, { runtimeClassName: 'brief', schedulerName: 'by-hand' }, {}, false);
    assert.equal(spec.nodeName, undefined);
    await s.node.client.delete(RUNTIME_CLASSES, { name: 'brief' }, {}, never);
    const target = { apiVersion: 'v1', kind: 'Node', name: NODE_NAME };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace: s.namespace }, target };
    await s.node.client.create(PODS, { namespace: s.namespace, name, subresource: 'binding' }, binding, never);
    const { message } = await s.event(await s.read(name), 'FailedCreatePodSandBox');
    assert.equal(message, 'Failed to create pod sandbox: runtimeclass.node.k8s.io "brief" not found');
    await s.delete(name, { gracePeriodSeconds: 0 });
  });

  it('says that the runtime has no such handler', async () => {
    const s = scene();
    await s.node.client.create(RUNTIME_CLASSES, {}, { metadata: { name: 'odd' }, handler: 'no-such' }, never);
    const made = await s.pod('unhandled', { runtimeClassName: 'odd' });
    const { message } = await s.event(made, 'FailedCreatePodSandBox');
    assert.match(
      message ?? '',
      /^Failed to create pod sandbox: .*(no runtime for "no-such" is configured|find runtime handler no-such)/,
    );
    await s.delete('unhandled', { gracePeriodSeconds: 0 });
  });
}
