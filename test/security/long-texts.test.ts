// No field of a pod costs more than one pass: each text of a pod in turn is a megabyte of what patterns and parsers stumble
// over, and everything that is made of the pod in a sync is timed by the processor time of this thread.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyPodDefaults } from '../../src/core/pod-defaults.ts';
import { goQuote } from '../../src/core/downward.ts';
import { ContainerStartError } from '../../src/core/reasons.ts';
import { containersOf, type Pod, type PodStatus } from '../../src/core/pod.ts';
import { validatePod } from '../../src/core/validation/pod.ts';
import { parseImageName } from '../../src/images/reference.ts';
import { specText } from '../../src/page/spec-text.ts';
import { containerViews, probeViews, volumeViews } from '../../src/page/pod-details.ts';
import { podRow } from '../../src/page/pod-row.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { expandCommand } from '../../src/probes/exec-command.ts';
import { httpProber } from '../../src/probes/http-prober.ts';
import { containerConfig } from '../../src/runtime/container-config.ts';
import { podDns } from '../../src/runtime/dns.ts';
import { containerEnv } from '../../src/runtime/env.ts';
import { podHostname } from '../../src/runtime/hostname.ts';
import { hostsFile } from '../../src/runtime/hosts-file.ts';
import { aggregate } from '../../src/runtime/sync-result.ts';
import { subPathOf } from '../../src/runtime/mounts.ts';
import { newlyTerminated } from '../../src/pods/pod-metrics.ts';
import { phaseOf } from '../../src/status/phase.ts';
import { encodePod } from '../../src/server/pod-wire.ts';
import { payloadPathProblem } from '../../src/volumes/atomic-writer.ts';
import { migratedPodVolume } from '../../src/volumes/in-tree-migration.ts';
import { nestedMountPoints } from '../../src/volumes/nested-mounts.ts';
import { why } from '../../src/why/why.ts';
import { containerIn, eventOf, factsOf } from '../../src/why/why.fixture.ts';
import { facts } from '../golden/fixture.ts';

const BYTES = 1_000_000;
const LIMIT_MS = 100;
const FILLINGS = ['$(', '/', 'a-', 'secret "', 'aws://', '0', '. ', '"', '\u0001'];

const probe = { httpGet: { path: '/', port: 'p', host: 'h', httpHeaders: [{ name: 'N', value: 'v' }] } };
const SAMPLE: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u', labels: { l: 'v' }, annotations: { a: 'v' } },
  spec: {
    enableServiceLinks: false,
    hostname: 'h',
    subdomain: 's',
    nodeName: 'n',
    serviceAccountName: 'sa',
    schedulerName: 's',
    priorityClassName: 'p',
    runtimeClassName: 'r',
    imagePullSecrets: [{ name: 's' }],
    hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }],
    dnsConfig: { nameservers: ['1.2.3.4'], searches: ['x'], options: [{ name: 'ndots', value: '2' }] },
    securityContext: { sysctls: [{ name: 'kernel.shm', value: '1' }], seLinuxOptions: { level: 's0' } },
    tolerations: [{ key: 'k', operator: 'Exists', value: 'v', effect: 'NoSchedule' }],
    readinessGates: [{ conditionType: 'x' }],
    containers: [
      {
        name: 'c',
        image: 'registry.example/image:tag',
        workingDir: '/w',
        command: ['sh'],
        args: ['x'],
        env: [
          { name: 'A', value: '$(B)' },
          { name: 'F', valueFrom: { fieldRef: { fieldPath: 'metadata.annotations' } } },
        ],
        ports: [{ name: 'p', containerPort: 80, hostIP: '1.2.3.4', protocol: 'TCP' }],
        resources: { requests: { cpu: '1m' }, limits: { memory: '1Mi' } },
        terminationMessagePath: '/t',
        livenessProbe: { exec: { command: ['true'] } },
        readinessProbe: probe,
        volumeMounts: [
          { name: 'v', mountPath: '/v', subPathExpr: 'a/$(A)' },
          { name: 'w', mountPath: '/v/w', subPath: 'x' },
        ],
        securityContext: {
          capabilities: { add: ['NET_ADMIN'] },
          seccompProfile: { type: 'Localhost', localhostProfile: 'p' },
        },
      },
    ],
    volumes: [
      { name: 'v', configMap: { name: 'm', items: [{ key: 'k', path: 'p' }] } },
      { name: 'w', hostPath: { path: '/h', type: '' } },
      { name: 'e', awsElasticBlockStore: { volumeID: 'aws://z/vol-1', fsType: 'ext4' } },
      { name: 'f', azureFile: { secretName: 's', shareName: 'x' } },
      { name: 'g', gcePersistentDisk: { pdName: 'd' } },
      { name: 'n', nfs: { server: 's', path: '/p' } },
    ],
  },
} as unknown as Pod;

type Path = readonly (string | number)[];

function* leaves(value: unknown, path: Path = []): Iterable<Path> {
  if (typeof value === 'string') yield path;
  else if (typeof value === 'object' && value !== null)
    for (const [key, inner] of Object.entries(value))
      yield* leaves(inner, [...path, Array.isArray(value) ? Number(key) : key]);
}

/** The same pod with one text replaced. */
function filled<T>(value: T, [first, ...rest]: Path, text: string): T {
  if (first === undefined) return text as T;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string | number, unknown>;
  copy[first] = filled(copy[first], rest, text);
  return copy as T;
}

const message = (pod: Pod): string => pod.spec.containers[0]?.command?.[0] ?? '';
const failing = (pod: Pod, reason: string): PodStatus => ({
  phase: 'Pending',
  message: message(pod),
  containerStatuses: [containerIn({ waiting: { reason, message: message(pod) } })],
});
/** What errors quote. */
const textOf = (pod: Pod): string => pod.spec.containers[0]?.volumeMounts?.[0]?.name ?? '';
const REASONS = [
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'ErrImagePull',
  'CrashLoopBackOff',
];

/** Each is one turn of the event loop. */
const STEPS: Readonly<Record<string, (pod: Pod) => unknown>> = {
  validation: (pod) => validatePod(applyPodDefaults(pod)),
  environment: (pod) =>
    [...containersOf(pod)].map(({ container }) =>
      containerEnv(
        pod,
        container,
        { configMaps: new Map(), secrets: new Map(), files: new Map(), services: [] },
        { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 },
      ),
    ),
  'container config': (pod) =>
    [...containersOf(pod)].map(({ container }) =>
      containerConfig(
        {
          pod,
          container,
          env: new Map([['A', 'x']]),
          restartCount: 0,
          imageRef: 'i',
          imageUser: {},
          hostsFile: undefined,
          terminationLog: '/t',
          volumes: new Map(),
          volumeMounts: [],
          additions: {},
          userns: undefined,
        },
        facts('/r'),
      ),
    ),
  'sub paths': (pod) => pod.spec.containers[0]?.volumeMounts?.map((mount) => subPathOf(mount, () => pod.metadata.name)),
  'probe command': (pod) =>
    [...containersOf(pod)].map(({ container }) =>
      expandCommand(container.livenessProbe?.exec?.command ?? [], container),
    ),
  'probe request': (pod) => {
    // What is done before the connection; that is not made any more.
    const { readinessProbe, ...container } = pod.spec.containers[0] ?? { name: 'c' };
    const target = { probe: readinessProbe ?? {}, container, containerId: 'i', podIp: '127.0.0.1', timeoutMs: 1000 };
    void httpProber(
      new ManualClock(),
      { lookup: () => Promise.reject(new Error('none')) } as never,
      'test',
    )(target, AbortSignal.abort()).catch(() => undefined);
  },
  image: (pod) => parseImageName(pod.spec.containers[0]?.image ?? ''),
  'migrated volumes': (pod) =>
    pod.spec.volumes?.map((volume) => migratedPodVolume(volume, pod.metadata.namespace ?? '')),
  'nested mounts': (pod) => nestedMountPoints(pod, 'v'),
  'paths of files': (pod) => pod.spec.volumes?.[0]?.configMap?.items?.map(({ path }) => payloadPathProblem(path)),
  dns: (pod) => podDns(pod, { clusterDns: ['10.0.0.1'], clusterDomain: 'c', hostResolvConf: undefined, nodeIps: [] }),
  'names and hosts': (pod) => [podHostname(pod, 'cluster.local'), hostsFile(pod, ['1.2.3.4'], 'cluster.local')],
  'wire form': (pod) => encodePod(pod),
  why: (pod) =>
    REASONS.map((reason) =>
      why(
        factsOf({
          pod,
          status: failing(pod, reason),
          events: [eventOf('FailedMount', message(pod))],
          volumes: [`volume "v": ${message(pod)}`],
        }),
      ),
    ),
  'quoted in an error': (pod) => {
    const { message } = new ContainerStartError('CreateContainerConfigError', textOf(pod));
    goQuote(textOf(pod));
    return aggregate([{ action: 'StartContainer', target: textOf(pod), reason: 'x', message }]);
  },
  'spec on the page': (pod) => specText(pod),
  'pod on the page': (pod) => [
    podRow({ ...pod, status: failing(pod, 'ErrImagePull') }, undefined),
    containerViews(pod, () => undefined),
    probeViews(pod, () => []),
    volumeViews(pod, { mounted: new Set(), waiting: new Map(), use: new Map() }),
  ],
};

/** What is refused is refused quickly, too. */
function attempt(step: () => unknown): void {
  try {
    step();
  } catch {}
}

function cpuMs(step: () => unknown): number {
  const before = process.threadCpuUsage();
  attempt(step);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

describe('a megabyte in one field of a pod', () => {
  it('the pod itself passes every step', () => {
    for (const step of Object.values(STEPS)) step(SAMPLE);
  });
  for (const filling of FILLINGS)
    it(JSON.stringify(filling), () => {
      const text = filling.repeat(BYTES / filling.length);
      const slow: string[] = [];
      for (const path of leaves(SAMPLE)) {
        const pod = filled(SAMPLE, path, text);
        for (const [name, step] of Object.entries(STEPS)) {
          let took = cpuMs(() => step(pod));
          // A collection of garbage or a compilation is not the step's.
          for (let again = 0; took > LIMIT_MS && again < 2; again++)
            took = Math.min(
              took,
              cpuMs(() => step(pod)),
            );
          if (took > LIMIT_MS) slow.push(`${name}, ${path.join('.')}: ${Math.round(took)} ms`);
        }
      }
      assert.deepEqual(slow, []);
    });
});

describe('ten thousand of what a pod may have many of', () => {
  const MANY = 10_000;
  const rows: readonly (readonly [string, () => unknown])[] = [
    [
      'mounts beneath mounts of the same volume',
      () => {
        const deep = Array.from({ length: 20 }, (_, i) => ({ name: 'v', mountPath: '/a'.repeat(i + 1) }));
        const many = Array.from({ length: MANY }, (_, i) => ({
          name: 'w',
          mountPath: `${'/a'.repeat(20)}/b${i}`,
          subPath: 'x',
        }));
        const pod = {
          metadata: { name: 'p' },
          spec: { containers: [{ name: 'c', volumeMounts: [...deep, ...many] }] },
        };
        assert.equal(nestedMountPoints(pod, 'v').length, MANY + 1);
      },
    ],
    [
      'containers, each looked up in the statuses of all',
      () => {
        const containers = Array.from({ length: MANY }, (_, i) => ({ name: `c${i}` }));
        const main = containers.map(({ name }) => ({ ...containerIn({ running: { startedAt: null } }), name }));
        const pod = { metadata: { name: 'p' }, spec: { containers } };
        assert.equal(phaseOf(pod, { init: [], main }, { terminal: false, initialised: true }), 'Running');
        assert.deepEqual([...newlyTerminated(main, main)], []);
      },
    ],
    [
      'variables for as many containers',
      () => {
        const env = Array.from({ length: MANY }, (_, i) => ({
          name: `V${i}`,
          valueFrom: { resourceFieldRef: { containerName: `c${MANY - 1}`, resource: 'limits.cpu' } },
        }));
        const containers = Array.from({ length: MANY }, (_, i) => ({ name: `c${i}`, ...(i === 0 ? { env } : {}) }));
        STEPS['environment']?.({ metadata: { name: 'p' }, spec: { enableServiceLinks: false, containers } });
      },
    ],
  ];
  for (const [what, step] of rows)
    it(what, () => {
      step();
      const took = Math.min(cpuMs(step), cpuMs(step), cpuMs(step));
      assert.ok(took < LIMIT_MS, `${took} ms`);
    });
});
