// Pods that multiply what they refer to, each as large as etcd takes one. Run as a program, `multiplying-pod.ts <way>`, it
// builds what the agent builds of that pod and prints how it ended as JSON; `multiplying-pods.test.ts` gives it a small heap.
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { containerBudget } from '../../src/core/bounds.ts';
import type { Container, EnvVar, EnvVarSource, Pod, ProjectedSource, Volume, VolumeMount } from '../../src/core/pod.ts';
import { messageOf } from '../../src/lib/errors.ts';
import { expandCommand } from '../../src/probes/exec-command.ts';
import { containerConfig } from '../../src/runtime/container-config.ts';
import { EnvReader } from '../../src/runtime/env-reader.ts';
import { subPathOf } from '../../src/runtime/mounts.ts';
import { FileBudgets } from '../../src/volumes/file-budget.ts';
import { ConfigMapContent } from '../../src/volumes/plugins/config-map.ts';
import { DownwardApiContent } from '../../src/volumes/plugins/downward-api.ts';
import { ProjectedContent } from '../../src/volumes/plugins/projected.ts';
import { SecretContent } from '../../src/volumes/plugins/secret.ts';
import { facts, fakeCluster } from '../golden/fixture.ts';

const POD_BYTES = 1_400_000;
const VALUE_BYTES = 1_000_000;
const ANNOTATION_BYTES = 250_000;

const text = { metadata: { name: 'text' }, data: { k: 'x'.repeat(VALUE_BYTES) } };
const secret = { metadata: { name: 'secret' }, data: { k: Buffer.alloc(750_000, 'x').toString('base64') } };
const binary = { metadata: { name: 'binary' }, data: { k: Buffer.alloc(750_000, 0xff).toString('base64') } };
const tiny = Array.from({ length: 100_000 }, (_, i) => [i.toString(36), ''] as const);
const keys = { metadata: { name: 'keys' }, data: Object.fromEntries(tiny) };
const secrets = new Map([secret, binary].map((some) => [some.metadata.name, some]));
const configMaps = new Map([text, keys].map((some) => [some.metadata.name, some]));

/** As many as a pod has room for. */
function fill<T>(make: (i: number) => T): T[] {
  const each = JSON.stringify(make(9999)).length + 1;
  return Array.from({ length: Math.floor(POD_BYTES / each) }, (_, i) => make(i));
}

const podOf = (container: Omit<Container, 'name'>, volumes: Volume[] = []): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', annotations: { a: 'y'.repeat(ANNOTATION_BYTES) } },
  spec: { enableServiceLinks: false, containers: [{ name: 'c', ...container }], volumes },
});

const signal = new AbortController().signal;

/** What `ContainerStarter` makes of the one container. */
async function start(container: Omit<Container, 'name'>, hostPath = ''): Promise<void> {
  const pod = podOf(container);
  const [own] = pod.spec.containers;
  if (own === undefined) return;
  const budget = containerBudget();
  const cluster = {
    ...fakeCluster(false),
    secret: async (_ns: string, name: string) => secrets.get(name),
    configMap: async (_ns: string, name: string) => configMaps.get(name),
  };
  const volumes = new Map([['v', { hostPath, readOnly: false, selinuxRelabel: false }]]);
  const addresses = { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 as const };
  const env = await new EnvReader(cluster).read(pod, own, volumes, addresses, budget, signal);
  const subPaths = (own.volumeMounts ?? []).map((mount) => subPathOf(mount, (name) => env.get(name), budget));
  const given = { restartCount: 0, imageRef: 'i', imageUser: {}, hostsFile: undefined, terminationLog: undefined };
  const rest = { volumes: new Map(), volumeMounts: [], additions: {}, userns: undefined };
  const config = containerConfig({ pod, container: own, env, ...given, ...rest }, facts('/r'), budget);
  if (subPaths.length + (config.envs?.length ?? 0) < 0) throw new Error('keeps both alive');
}

const fromEach = (valueFrom: EnvVarSource): Promise<void> =>
  start({ env: fill((i) => ({ name: `V${i}`, valueFrom })) });

/** `$(A0)` ten times in A1, that ten times in A2, and so on. */
function powers(levels: number): EnvVar[] {
  const env: EnvVar[] = [{ name: 'A0', value: 'xxxxxxxxxx' }];
  for (let i = 1; i <= levels; i++) env.push({ name: `A${i}`, value: `$(A${i - 1})`.repeat(10) });
  return env;
}

async function fromFiles(pathOf: (i: number) => string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'kts-multiply-'));
  try {
    await writeFile(join(dir, 'f'), `A='${'x'.repeat(VALUE_BYTES)}'\n`);
    for (let i = 0; i < 50; i++) await symlink('f', join(dir, `l${i}`));
    const valueOf = (i: number): EnvVarSource => ({ fileKeyRef: { volumeName: 'v', path: pathOf(i), key: 'A' } });
    await start({ env: fill((i) => ({ name: `V${i}`, valueFrom: valueOf(i) })) }, dir);
  } finally {
    await rm(dir, { recursive: true });
  }
}

const objects = {
  configMap: async (_ns: string, name: string) => configMaps.get(name) ?? text,
  secret: async (_ns: string, name: string) => secrets.get(name) ?? secret,
};
const nodeFacts = { factsOf: () => ({ podIPs: [], hostIPs: [] }), allocatable: () => ({}) };
const trustBundles = { certificates: async () => 'p'.repeat(VALUE_BYTES) };
const sources = [
  new ConfigMapContent(objects),
  new SecretContent(objects),
  new DownwardApiContent(nodeFacts),
  new ProjectedContent({ objects, facts: nodeFacts, trustBundles }),
];

/** What the volume manager makes of the pod's volumes, side by side. */
async function mount(volumes: Volume[]): Promise<void> {
  const pod = podOf({}, volumes);
  const budgets = new FileBudgets();
  const made = volumes.map(async (volume) => {
    const [kind] = Object.keys(volume).filter((key) => key !== 'name');
    const source = sources[['configMap', 'secret', 'downwardAPI', 'projected'].indexOf(kind ?? '')];
    const request = { pod, volume, progress: () => undefined, budget: budgets.begin('u', volume.name) };
    return source?.collect(request, signal);
  });
  for (const one of await Promise.allSettled(made)) if (one.status === 'rejected') throw one.reason;
}

const project = (source: ProjectedSource): Promise<void> =>
  mount([{ name: 'v', projected: { sources: fill(() => source) } }]);
const items = (): { key: string; path: string }[] => fill((i) => ({ key: 'k', path: `${i}` }));
const annotations = { fieldRef: { fieldPath: 'metadata.annotations' } };

export const WAYS: Readonly<Record<string, () => Promise<void>>> = {
  'references in env': () => start({ env: [...powers(5), ...fill((i) => ({ name: `B${i}`, value: `$(A5)${i}` }))] }),
  'references in env, one variable': () => start({ env: powers(12) }),
  'a variable given again and again': () =>
    start({ env: [...powers(5), ...fill(() => ({ name: 'B', value: '$(A5)' }))] }),
  'references in args': () => start({ env: powers(5), args: fill(() => '$(A5)') }),
  'references in one argument': () => start({ env: powers(5), command: [fill(() => '$(A5)').join('')] }),
  'references in sub paths': () =>
    start({
      env: powers(5),
      volumeMounts: fill((i): VolumeMount => ({ name: 'v', mountPath: `/${i}`, subPathExpr: '$(A5)' })),
    }),
  'sub paths of 4,000 bytes': () =>
    start({
      env: [{ name: 'A', value: 'x'.repeat(4000) }],
      volumeMounts: fill((i): VolumeMount => ({ name: 'v', mountPath: `/${i}`, subPathExpr: '$(A)' })),
    }),
  'references in a probe': async () => {
    const words = [...powers(5), { name: 'A', value: 'x'.repeat(700_000) }];
    const env = words.map(({ name, value = '' }) => ({ name, value }));
    expandCommand(['$(A)'.repeat(150_000)], { name: 'c', env });
  },
  secretKeyRef: () => fromEach({ secretKeyRef: { name: 'secret', key: 'k' } }),
  'secretKeyRef of bytes that are no text': () => fromEach({ secretKeyRef: { name: 'binary', key: 'k' } }),
  configMapKeyRef: () => fromEach({ configMapKeyRef: { name: 'text', key: 'k' } }),
  'fieldRef of all annotations': () => fromEach(annotations),
  'envFrom a Secret': () => start({ envFrom: fill((i) => ({ prefix: `P${i}`, secretRef: { name: 'secret' } })) }),
  'envFrom a ConfigMap of many keys': () => start({ envFrom: fill(() => ({ configMapRef: { name: 'keys' } })) }),
  'a long prefix before many keys': () =>
    start({ envFrom: [{ prefix: 'P'.repeat(POD_BYTES), configMapRef: { name: 'keys' } }] }),
  'fileKeyRef, one file': () => fromFiles(() => 'f'),
  'fileKeyRef, one file by many names': () => fromFiles((i) => `l${i % 50}`),
  'items of a ConfigMap': () => mount([{ name: 'v', configMap: { name: 'text', items: items() } }]),
  'items of a Secret': () => mount([{ name: 'v', secret: { secretName: 'secret', items: items() } }]),
  'items of downwardAPI': () =>
    mount([{ name: 'v', downwardAPI: { items: fill((i) => ({ path: `${i}`, ...annotations })) } }]),
  'volumes of a Secret': () => mount(fill((i) => ({ name: `v${i}`, secret: { secretName: 'secret' } }))),
  'volumes of many keys': () => mount(fill((i) => ({ name: `v${i}`, configMap: { name: 'keys' } }))),
  'projected Secrets': () => project({ secret: { name: 'secret' } }),
  'projected ConfigMaps': () => project({ configMap: { name: 'text' } }),
  'projected trust bundles': () => project({ clusterTrustBundle: { name: 'b', path: 'p' } }),
  'projected annotations': () => project({ downwardAPI: { items: [{ path: 'a', ...annotations }] } }),
};

if (import.meta.main) {
  let ended = 'was built';
  try {
    await WAYS[process.argv[2] ?? '']?.();
  } catch (err) {
    ended = messageOf(err);
  }
  process.stdout.write(JSON.stringify({ ended, rssMiB: Math.round(process.resourceUsage().maxRSS / 1024) }));
}
