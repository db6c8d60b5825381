// A node with pods in every state worth looking at, for the tests of the node page.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../../src/core/meta.ts';
import { PODS, type Resource } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { freePort } from '../harness/ports.ts';
import { TestRegistry } from '../harness/registry.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const SECRETS = { base: '/api/v1', plural: 'secrets' } as Resource<KubeObject>;
const NAMESPACES = { base: '/api/v1', plural: 'namespaces' } as Resource<KubeObject>;

/** Must not be in any answer. */
export const PLANTED = ['planted-in-secret-7Qx', 'planted-in-variable-9Zk', 'planted-in-url-4Lm'];
export const NAMESPACE = 'shop';

const CHATTER = (words: string): string =>
  `trap 'exit 0' TERM; i=0; while :; do echo "${words} $i"; i=$((i+1)); sleep 1; done`;
const shell = (name: string, script: string, more: object = {}): object => ({
  name,
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', script],
  ...more,
});

/** Pulled for as long as anybody looks. */
const LARGE_IMAGE_BYTES = 24e6;
const BYTES_PER_SECOND = 100_000;

const podsShown = (largeImage: string): readonly (readonly [string, object])[] => [
  ['trainer', { containers: [{ name: 'main', image: largeImage }] }],
  [
    'web',
    {
      initContainers: [shell('migrate', 'echo migrated')],
      containers: [
        shell('web', `mkdir -p /tmp/www; echo ok > /tmp/www/ok; httpd -p 8080 -h /tmp/www; ${CHATTER('GET /ok 200')}`, {
          resources: { requests: { cpu: '20m', memory: '32Mi' }, limits: { cpu: '200m', memory: '64Mi' } },
          readinessProbe: { httpGet: { path: '/ok', port: 8080 }, periodSeconds: 1 },
          livenessProbe: { exec: { command: ['true'] }, periodSeconds: 2 },
          env: [
            { name: 'DB_PASSWORD', value: PLANTED[1] },
            { name: 'DATABASE', value: `postgres://shop:${PLANTED[2]}@db/shop` },
            { name: 'API', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
          ],
          volumeMounts: [
            { name: 'cache', mountPath: '/cache' },
            { name: 'login', mountPath: '/login' },
          ],
        }),
        shell('metrics', CHATTER('scraped')),
      ],
      volumes: [
        { name: 'cache', emptyDir: {} },
        { name: 'login', secret: { secretName: 'login' } },
      ],
    },
  ],
  ['crashing', { containers: [shell('main', 'echo cannot reach the database; exit 3')] }],
  ['no-image', { containers: [{ name: 'main', image: 'localhost:1/team/missing:2', imagePullPolicy: 'Always' }] }],
  [
    'waits-for-config',
    {
      containers: [shell('main', 'sleep 1000', { volumeMounts: [{ name: 'config', mountPath: '/config' }] })],
      volumes: [{ name: 'config', configMap: { name: 'not-there' } }],
    },
  ],
  ['done', { restartPolicy: 'Never', containers: [shell('main', 'echo all done')] }],
  [
    'not-ready',
    {
      containers: [
        shell('main', "trap 'exit 0' TERM; sleep 1000 & wait", {
          readinessProbe: { exec: { command: ['false'] }, periodSeconds: 1 },
        }),
      ],
    },
  ],
];

const STATIC = `apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: system}
spec:
  terminationGracePeriodSeconds: 1
  hostNetwork: true
  containers:
  - {name: main, image: ${BUSYBOX_IMAGE}, imagePullPolicy: IfNotPresent, command: [sh, -c, "trap 'exit 0' TERM; sleep 1000 & wait"]}
`;
const BROKEN = `apiVersion: v1
kind: Pod
metadata: {name: broken}
spec:
  containers:
  - name: Main_Container
    image: ${BUSYBOX_IMAGE}
`;

export type PageScene = {
  readonly registry: TestRegistry;
  readonly node: TestNode;
  readonly port: number;
  readonly origin: string;
  readonly token: string;
  stop(): Promise<void>;
};

export async function startScene(flags: readonly string[] = ['--node-page-write']): Promise<PageScene> {
  const port = await freePort();
  const registry = new TestRegistry();
  await registry.start();
  registry.bytesPerSecond = BYTES_PER_SECOND;
  const largeImage = registry.add('team/training', '2.4', { extraBytes: LARGE_IMAGE_BYTES });
  const node = await startNode({
    flags: [`--node-page-port=${port}`, ...flags],
    direct: true,
    config: 'serializeImagePulls: false',
    prepare: async ({ containerd }) => {
      // Of no use to anybody: what image collection would take.
      for (const tag of ['1.0', '1.1']) await containerd.importImage({ ref: `localhost/old:${tag}`, extraBytes: 1e6 });
    },
  });
  try {
    for (const name of [NAMESPACE, 'system'])
      await node.client.create(NAMESPACES, {}, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, never);
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace: NAMESPACE } };
    const data = { password: Buffer.from(PLANTED[0] ?? '').toString('base64') };
    await node.client.create(SECRETS, { namespace: NAMESPACE }, { ...secret, data }, never);
    for (const [name, spec] of podsShown(largeImage))
      await node.client.create(
        PODS,
        { namespace: NAMESPACE },
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, namespace: NAMESPACE },
          spec: {
            nodeName: NODE_NAME,
            terminationGracePeriodSeconds: 1,
            automountServiceAccountToken: false,
            ...spec,
          },
        },
        never,
      );
    await writeFile(join(node.manifests, 'agent.yaml'), STATIC);
    await writeFile(join(node.manifests, 'broken.yaml'), BROKEN);
    const token = await until('there is a token', async () =>
      (await readFile(join(node.dir, 'kubelet', 'node-page', 'token'), 'utf8')).trim(),
    );
    const origin = `http://127.0.0.1:${port}`;
    await untilSeen(
      'the page answers',
      async () => (await fetch(`${origin}/page/`)).status,
      (seen) => seen === 401,
    );
    return { registry, node, port, origin, token, stop: () => stopScene(node, registry) };
  } catch (err) {
    await registry.stop();
    await node.stop();
    throw err;
  }
}

async function stopScene(node: TestNode, registry: TestRegistry): Promise<void> {
  await registry.stop();
  const { items } = await node.client.list(PODS, {}, never);
  for (const { metadata } of items)
    await node.client
      .delete(PODS, { namespace: metadata.namespace ?? '', name: metadata.name }, {}, never)
      .catch(() => undefined);
  await untilSeen(
    'the pods of the API are gone',
    async () => (await node.client.list(PODS, { namespace: NAMESPACE }, never)).items,
    (seen) => seen.length === 0,
  );
  await node.stop();
}
