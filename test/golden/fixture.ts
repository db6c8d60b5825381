// Test doubles for this folder's needs: a small cluster, volumes where the spec says, events kept in a list.
import { join } from 'node:path';
import type { EventRecorder, EventType } from '../../src/core/events.ts';
import type { Service } from '../../src/core/node.ts';
import type { Pod, ResourceRequirements, Volume } from '../../src/core/pod.ts';
import type { CriRuntime } from '../../src/cri/services.ts';
import { ContainerRemover } from '../../src/garbage/container-remover.ts';
import { criGarbage } from '../../src/garbage/cri-garbage.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Logger } from '../../src/lib/logger.ts';
import { removeContainerLogs } from '../../src/logs/rotation.ts';
import type { RuntimeFacts } from '../../src/runtime/facts.ts';
import type { MountedVolume } from '../../src/runtime/mounts.ts';
import type { ClusterView, Infra, ResizeRecords, VolumeProvider } from '../../src/runtime/needs.ts';
import { UserNamespaces } from '../../src/runtime/user-namespaces.ts';

export type SeenEvent = {
  readonly pod: Pod | undefined;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly fieldPath?: string;
};

export const recordingEvents = (into: SeenEvent[]): EventRecorder => ({
  pod: (pod, type, reason, message, options) =>
    void into.push({
      pod,
      type,
      reason,
      message,
      ...(options?.fieldPath === undefined ? {} : { fieldPath: options.fieldPath }),
    }),
  node: (type, reason, message) => void into.push({ pod: undefined, type, reason, message }),
});

export const removerOn = (cri: CriRuntime, root: string): ContainerRemover =>
  new ContainerRemover(
    { runtime: criGarbage(cri, { whileRemoving: (_id, removal) => removal }), removeLogs: removeContainerLogs, postStop: () => undefined },
    { containerLogs: join(root, 'container-logs') },
  );

export const silentLog: Logger = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  enabled: () => false,
  child: () => silentLog,
};

export const fakeInfra = (clock: Clock, root: string): Infra & { userns: UserNamespaces } => ({
  clock,
  log: silentLog,
  http: { get: async () => '' },
  metrics: {
    podStarting: () => undefined,
    podFailed: () => undefined,
    imageVolumes: () => undefined,
    resized: () => undefined,
    hookFellBackToHttp: () => undefined,
    hookSleepCutShort: () => undefined,
    sandboxRan: () => undefined,
    sandboxFailed: () => undefined,
    containerStarting: () => undefined,
    containerFailed: () => undefined,
  },
  userns: new UserNamespaces({
    rootDir: root,
    idsPerPod: 65_536,
    maxPods: 110,
    range: { first: 65_536, length: 65_536 * 200 },
  }),
});

const SERVICES: readonly Service[] = [
  {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
  },
  {
    metadata: { name: 'my-svc', namespace: 'golden' },
    spec: {
      clusterIP: '10.96.11.22',
      ports: [
        { name: 'http', port: 80, protocol: 'TCP' },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    },
  },
];

export const fakeCluster = (withService = true): ClusterView => ({
  configMap: async (_namespace, name) =>
    name === 'conf' ? { metadata: { name }, data: { color: 'blue', SIZE: 'large', 'bad-name': 'x' } } : undefined,
  secret: async (_namespace, name) =>
    name === 'sec' ? { metadata: { name }, data: { password: Buffer.from('s3cret').toString('base64') } } : undefined,
  servicesRead: async () => undefined,
  services: () => (withService ? SERVICES : SERVICES.slice(0, 1)),
  nodeIps: () => ['10.89.0.1'],
  allocatable: () => ({ cpu: '2', memory: '24580016Ki' }),
  runtimeHandler: async (name) => name,
  handlerFeatures: () => ({ userNamespaces: true, recursiveReadOnlyMounts: true }),
});

const PLUGIN: Readonly<Record<string, { readonly name: string; readonly readOnly: boolean }>> = {
  emptyDir: { name: 'empty-dir', readOnly: false },
  configMap: { name: 'configmap', readOnly: true },
  secret: { name: 'secret', readOnly: true },
  downwardAPI: { name: 'downward-api', readOnly: true },
  projected: { name: 'projected', readOnly: true },
};

function mounted(root: string, uid: string, volume: Volume): MountedVolume {
  if (volume.hostPath !== undefined) return { hostPath: volume.hostPath.path, readOnly: false, selinuxRelabel: false };
  const kind = Object.keys(PLUGIN).find((key) => volume[key] !== undefined) ?? 'emptyDir';
  const plugin = PLUGIN[kind];
  return {
    hostPath: join(root, 'pods', uid, 'volumes', `kubernetes.io~${plugin?.name ?? kind}`, volume.name),
    readOnly: plugin?.readOnly ?? false,
    selinuxRelabel: true,
  };
}

/** Every volume of the pod is ready where the volume code would put it. */
export const mountsFromSpec = (root: string, pod: Pod): VolumeProvider => {
  const uid = pod.metadata.uid ?? '';
  return {
    mountsOf: () => new Map((pod.spec.volumes ?? []).map((v) => [v.name, mounted(root, uid, v)])),
    prepareSubPath: async (_pod, container, index) =>
      join(
        root,
        'pods',
        uid,
        'volume-subpaths',
        container.volumeMounts?.[index]?.name ?? '',
        container.name,
        `${index}`,
      ),
  };
};

/** The node of the recordings. */
export const facts = (root: string): RuntimeFacts => ({
  rootDir: root,
  podLogsDir: join(root, 'logs'),
  containerLogsDir: join(root, 'container-logs'),
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: join(root, 'resolv.conf'),
  nodeHostsFile: join(root, 'hosts'),
  selinux: false,
  crashBackoff: { initialMs: 10_000, maxMs: 300_000 },
  ipFamily: 4,
  kubernetesVersion: '1.36',
  cgroupVersion: 1,
  cpuCfsQuota: true,
  cpuCfsPeriodUs: 100_000,
  memoryCapacityBytes: 24_682_416 * 1024,
  swapCapacityBytes: 0,
  swapBehavior: 'NoSwap',
  swapAccounting: true,
  singleProcessOomKill: false,
  hugePageSizes: ['2MB', '1GB'],
  seccompDefault: false,
  seccompDir: join(root, 'seccomp'),
  extraMaskedPaths: [],
  stopSignals: false,
});

/** Records of what is in force, in memory only; the pod's cgroup is a list of what was written to it. */
export function fakeResizeRecords(writes: [string, number][]): ResizeRecords {
  const containers = new Map<string, ResourceRequirements>();
  let podLevel: ResourceRequirements | undefined;
  return {
    actuatedOf: () => ({ containers, ...(podLevel !== undefined && { pod: podLevel }) }),
    setActuated: (_uid, container, resources) => void containers.set(container, resources),
    setActuatedPod: (_uid, resources) => {
      podLevel = resources;
    },
    writePod: async (_pod, key, value) => void writes.push([key, value]),
    memoryUsageOf: async () => undefined,
  };
}
