// The lives pods lead in a soak: most are plain, some touch every other part that could hold on to something.
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { BUSYBOX_IMAGE } from '../../test/harness/containerd.ts';
import { NAMESPACE, type Life, type PodWatch, type Shape } from '../pods.ts';

const { signal } = new AbortController();
const OBJECTS = 'soak';
const WITHIN_MS = 120_000;

const SERVE = ['/bin/sh', '-c', "trap 'exit 0' TERM; sleep 86400 & wait"];
const probe = { exec: { command: ['/bin/true'] }, periodSeconds: 1 };
const image = { image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent' } as const;

type Kind = { readonly shape: Shape; readonly until: (life: Life) => boolean };

const ready = (life: Life): boolean => life.readyMs !== undefined;
const plain: Kind = { shape: { container: { command: SERVE } }, until: ready };

const KINDS: readonly Kind[] = [
  plain,
  {
    shape: {
      spec: {
        volumes: [
          { name: 'config', configMap: { name: OBJECTS } },
          { name: 'secret', secret: { secretName: OBJECTS } },
          { name: 'scratch', emptyDir: {} },
        ],
      },
      container: {
        command: SERVE,
        volumeMounts: ['config', 'secret', 'scratch'].map((name) => ({ name, mountPath: `/${name}` })),
      },
    },
    until: ready,
  },
  plain,
  {
    shape: { container: { command: SERVE, startupProbe: probe, readinessProbe: probe, livenessProbe: probe } },
    until: ready,
  },
  plain,
  {
    shape: { spec: { restartPolicy: 'Never' }, container: { command: ['/bin/true'] } },
    until: (life) => life.phase === 'Succeeded',
  },
  plain,
  { shape: { container: { command: ['/bin/false'] } }, until: (life) => life.restarts > 0 },
  plain,
  {
    shape: {
      spec: {
        initContainers: [
          { name: 'prepare', ...image, command: ['/bin/true'] },
          { name: 'side', ...image, command: SERVE, restartPolicy: 'Always' },
        ],
      },
      container: { command: SERVE },
    },
    until: ready,
  },
];

/** What some of the pods mount. */
export async function makeObjects(client: KubeClient): Promise<void> {
  const metadata = { name: OBJECTS, namespace: NAMESPACE };
  const data = { key: Buffer.from('value').toString('base64') };
  const where = { namespace: NAMESPACE };
  await client.create(CONFIG_MAPS, where, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, signal);
  await client.create(SECRETS, where, { apiVersion: 'v1', kind: 'Secret', metadata, data }, signal);
}

/** Created, lived, deleted, gone. */
export async function live(pods: PodWatch, index: number, minLifeMs: number): Promise<void> {
  const name = `soak-${index}`;
  const kind = KINDS[index % KINDS.length] ?? plain;
  await pods.create(name, kind.shape);
  if (!(await pods.until([name], kind.until, WITHIN_MS)))
    throw new Error(`${name} did not get where it should: ${JSON.stringify(pods.lifeOf(name))}`);
  if (minLifeMs > 0) await new Promise((resolve) => setTimeout(resolve, minLifeMs));
  await pods.delete(name);
  if (!(await pods.gone([name], WITHIN_MS))) throw new Error(`${name} did not go`);
  pods.forget(name);
}
