// Texts and objects: manifests, configuration, API objects, credentials, patches, log lines.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tryParseDuration } from '../../src/core/duration.ts';
import type { Pod } from '../../src/core/pod.ts';
import { applyPodDefaults } from '../../src/core/pod-defaults.ts';
import { tryParseQuantity } from '../../src/core/quantity.ts';
import { readPod } from '../../src/core/validation/pod-shape.ts';
import { validatePod } from '../../src/core/validation/pod.ts';
import { legacyDefaults, loadConfigFile, mergeDropIns } from '../../src/config/load.ts';
import { FeatureGates } from '../../src/config/feature-gates.ts';
import { validateConfig } from '../../src/config/validate.ts';
import { jsonPatch, mergePatch } from '../../src/devcluster/api/json-patch.ts';
import { parseDockerConfig } from '../../src/images/docker-config.ts';
import { parseImageName } from '../../src/images/reference.ts';
import { resolveKubeconfig } from '../../src/kube/kubeconfig.ts';
import { strategicMergeDiff, POD_MERGE_KEYS } from '../../src/kube/patch.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { LineSplitter } from '../../src/logs/line-splitter.ts';
import { Rendering } from '../../src/logs/rendering.ts';
import { containerHash } from '../../src/runtime/container-hash.ts';
import { containerSecurityContext } from '../../src/runtime/security-context.ts';
import { Decoder } from '../../src/sources/decoder.ts';
import { readManifest } from '../../src/sources/read-manifest.ts';
import { facts } from '../golden/fixture.ts';
import type { Target } from './engine.ts';
import { mutateBytes, mutateJson, type Random } from './mutate.ts';

const { signal } = new AbortController();
const FACTS = facts('/r');

export const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'ns', uid: 'u', labels: { a: 'b' }, annotations: { 'x/y': 'z' } },
  spec: {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }],
    securityContext: {
      fsGroup: 1,
      sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }],
      seccompProfile: { type: 'RuntimeDefault' },
    },
    tolerations: [{ key: 'k', operator: 'Exists', tolerationSeconds: 3 }],
    initContainers: [{ name: 'i', image: 'busybox', restartPolicy: 'Always' }],
    containers: [
      {
        name: 'c',
        image: 'registry.io:5000/a/b:tag@sha256:0000000000000000000000000000000000000000000000000000000000000000',
        command: ['sh', '-c', 'echo $(A)'],
        env: [
          { name: 'A', value: 'x' },
          { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        ],
        ports: [{ name: 'web', containerPort: 80, hostPort: 8080, protocol: 'TCP' }],
        resources: { limits: { cpu: '100m', memory: '1Gi' }, requests: { cpu: '10m' } },
        livenessProbe: {
          httpGet: { path: '/', port: 'web', httpHeaders: [{ name: 'X', value: 'y' }] },
          periodSeconds: 1,
        },
        lifecycle: { preStop: { exec: { command: ['true'] } }, postStart: { sleep: { seconds: 1 } } },
        volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'a/b' }],
        securityContext: {
          runAsUser: 1,
          capabilities: { add: ['NET_ADMIN'] },
          appArmorProfile: { type: 'RuntimeDefault' },
        },
      },
    ],
    volumes: [
      { name: 'v', emptyDir: { sizeLimit: '1Mi' } },
      { name: 's', secret: { secretName: 's', items: [{ key: 'k', path: 'p' }] } },
      { name: 'p', projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 600 } }] } },
    ],
  },
} as const;

const YAML_POD = Buffer.from(
  'apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: &l {a: b}}\nspec:\n  containers:\n  - name: c\n    image: i\n    env:\n    - {name: A, value: "x"}\n---\n# another\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata: {<<: *l}\n',
);
const CONFIG = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  staticPodPath: '/etc/kubernetes/manifests',
  syncFrequency: '1m0s',
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
  kubeReserved: { cpu: '100m' },
  featureGates: { ContainerCheckpoint: true },
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true, cacheTTL: '2m' } },
  tlsCipherSuites: ['TLS_AES_128_GCM_SHA256'],
  reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
  registerWithTaints: [{ key: 'a', effect: 'NoSchedule' }],
  shutdownGracePeriodByPodPriority: [{ priority: 1, shutdownGracePeriodSeconds: 10 }],
  logging: { format: 'text', verbosity: 2, flushFrequency: '5s' },
};
const KUBECONFIG = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://h:6443', 'certificate-authority-data': 'AAAA' } }],
  users: [
    {
      name: 'u',
      user: { token: 't', exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', args: [], env: [] } },
    },
  ],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
};

let folder = '';
const config: Target = {
  name: 'configuration',
  begin: async () => void (folder = mkdtempSync('/tmp/kts-fuzz-')),
  end: async () => rmSync(folder, { recursive: true, force: true }),
  once: async (random) => {
    const file = join(folder, 'config.conf');
    const asJson = random() < 0.7;
    const samples = [Buffer.from(JSON.stringify(CONFIG))];
    writeFileSync(file, asJson ? JSON.stringify(mutateJson(random, CONFIG)) : mutateBytes(random, samples));
    const drop = random() < 0.3;
    const loaded = drop ? await mergeDropIns(legacyDefaults(), folder) : await loadConfigFile(file);
    validateConfig(loaded.config, FeatureGates.fromKnown({}), { cgroupVersion: 2, swap: false } as never);
  },
};

/** What the agent does with a pod of the API server: read at the edge, then used. */
function usePod(raw: unknown): void {
  const { object } = readPod(raw);
  if (object === undefined) return;
  if (validatePod(object).length > 0) return;
  const pod: Pod = applyPodDefaults(object);
  for (const container of pod.spec.containers) {
    containerHash(container);
    containerSecurityContext(pod, container, { image: {}, extraGroups: [], userns: undefined }, FACTS);
    parseImageName(container.image ?? '');
  }
  strategicMergeDiff(POD, pod, POD_MERGE_KEYS);
}

const manifest = (text: string): Promise<unknown> =>
  readManifest(
    text,
    { where: '/m/p.yaml', local: true },
    { nodeName: 'n', localObjects: true, lists: true },
    new Decoder(systemClock),
    signal,
  );

const patchOf = (random: Random): unknown => {
  const steps = [
    { op: 'replace', path: '/spec/containers/0/image', value: 'x' },
    { op: 'add', path: '/metadata/labels/__proto__', value: 1 },
    { op: 'test', path: '/spec/restartPolicy', value: 'Always' },
    { op: 'move', from: '/metadata/labels', path: '/metadata/annotations' },
    { op: 'copy', from: '/spec/containers/-', path: '/constructor/prototype/x' },
    { op: 'remove', path: '' },
  ];
  return mutateJson(random, steps);
};

export const TEXT_TARGETS: readonly Target[] = [
  {
    name: 'manifests, bytes',
    once: async (r) => void (await manifest(mutateBytes(r, [YAML_POD, Buffer.from(JSON.stringify(POD))]).toString())),
  },
  { name: 'manifests, values', once: async (r) => void (await manifest(JSON.stringify(mutateJson(r, POD)) ?? 'null')) },
  config,
  { name: 'API objects', once: (r) => usePod(mutateJson(r, POD)) },
  {
    name: 'JSON patches',
    once: (r) => {
      const target = structuredClone(POD);
      if (r() < 0.5) jsonPatch(target, patchOf(r));
      else mergePatch(target, mutateJson(r, POD));
    },
  },
  {
    name: 'kubeconfig',
    once: async (r) => void (await resolveKubeconfig(JSON.stringify(mutateJson(r, KUBECONFIG)) ?? '', '/k')),
  },
  {
    name: 'registry credentials',
    once: (r) => {
      const sample = { auths: { 'https://r.io/v1/': { auth: 'dTpw', username: 'u', password: 'p' } } };
      const text = JSON.stringify(mutateJson(r, sample)) ?? 'null';
      parseDockerConfig(r() < 0.5 ? text : mutateBytes(r, [Buffer.from(text)]).toString(), r() < 0.5 ? 'json' : 'cfg');
    },
  },
  {
    name: 'log lines',
    once: (r) => {
      const lines = [
        Buffer.from('2026-11-15T03:13:01.5Z stdout F hello\n2026-11-15T03:13:02.5Z stderr P part\n'),
        Buffer.from('{"log":"hi\\n","stream":"stdout","time":"2026-11-15T03:13:01.5Z"}\n'),
      ];
      const splitter = new LineSplitter();
      new Rendering({ timestamps: true, sinceNanos: 1n }).render(splitter.push(mutateBytes(r, lines)));
    },
  },
  {
    name: 'quantities, durations, images',
    once: (r) => {
      const samples = ['1.5Gi', '100m', '1e3', '-1h2m3.5s', 'r.io:5000/a/b:t@sha256:ab'].map((s) => Buffer.from(s));
      const text = mutateBytes(r, samples).toString();
      tryParseQuantity(text);
      tryParseDuration(text);
      parseImageName(text);
    },
  },
];
