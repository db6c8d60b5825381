import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { containerId, podUid, sandboxId } from '../core/ids.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import type { ContainerStats, ImageFsInfoResponse, PodSandboxStats } from '../cri/gen/cri.ts';
import type { CgroupStatistics, Detail } from '../host/cgroups/statistics.ts';
import { statisticsV1 } from '../host/cgroups/statistics-v1.ts';
import type { MachineFacts } from '../host/machine.ts';
import { MountTable, parseMountInfo } from '../host/mounts/mount-table.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { Census, CgroupPlaces } from './census.ts';
import { CgroupReadings } from './cgroup-readings.ts';
import { ContainerReadings } from './container-readings.ts';
import { CpuRates } from './cpu-rates.ts';
import { readLayers, showsLayers, type Layers } from './filesystems.ts';
import { NodeReadings } from './node-readings.ts';
import { PodReadings, shownPods } from './pod-readings.ts';
import { StatsProvider } from './stats-provider.ts';
import { summaryJson } from './summary-types.ts';
import { labelsOf, parseExposition, referenceFamilies } from '../../test/node/stats-exposition.ts';

const REFERENCE = join(import.meta.dirname, '..', '..', 'test', 'node', 'stats-reference');
const never = new AbortController().signal;
const UID = podUid('u1');

const container = (name: string, more: Partial<ObservedContainer> = {}): ObservedContainer =>
  ({
    id: containerId(`id${name}`),
    name,
    sandboxId: sandboxId('sb'),
    state: 'running',
    attempt: 0,
    createdAt: 1_794_720_752_000_000_000n,
    image: 'img',
    ...more,
  }) as ObservedContainer;
const snapshot = (containers: readonly ObservedContainer[], ready = true): PodSnapshot =>
  ({
    uid: UID,
    name: 'p',
    namespace: 'ns',
    sandboxes: [{ id: sandboxId('sb'), attempt: 0, ready, createdAt: 1_794_720_751_000_000_000n }],
    containers,
    ips: [],
    version: 1,
  }) as unknown as PodSnapshot;

const USAGE: CgroupStatistics = statisticsV1(
  (_, file) =>
    ({
      'cpuacct.usage': '1000000\n',
      'cpuacct.stat': 'user 1\nsystem 1\n',
      'cpu.shares': '2\n',
      'cpu.cfs_period_us': '100000\n',
      'memory.usage_in_bytes': '4096\n',
      'memory.limit_in_bytes': '8192\n',
      'memory.stat': 'total_rss 1024\ntotal_inactive_file 96\ntotal_pgfault 3\n',
    })[file],
);
const places: CgroupPlaces = { pods: '/kubepods', tiers: ['/kubepods'], podUidOf: () => UID, system: [] };
const CENSUS: Census = new Map([
  [
    UID,
    {
      path: '/kubepods/podu1',
      members: new Map([
        ['ida', '/kubepods/podu1/ida'],
        ['sb', '/kubepods/podu1/sb'],
      ]),
    },
  ],
]);
const FS = { atMs: 1, capacityBytes: 100, availableBytes: 40, freeBytes: 50, inodes: 10, inodesFree: 5 };
const stamp = 1_794_720_760_000_000_000n;
const layer = { timestamp: stamp, fsId: { mountpoint: '/m' }, usedBytes: { value: 7 }, inodesUsed: { value: 2 } };
const TOLD: ContainerStats = {
  attributes: { id: 'ida', labels: {}, annotations: {} },
  cpu: { timestamp: stamp, usageCoreNanoSeconds: { value: 5 }, usageNanoCores: { value: 1 } },
  memory: {
    timestamp: stamp,
    availableBytes: { value: 0 },
    usageBytes: { value: 10 },
    workingSetBytes: { value: 9 },
    rssBytes: { value: 8 },
    pageFaults: { value: 7 },
    majorPageFaults: { value: 0 },
  },
  writableLayer: layer,
};
const ZEROS = { rxErrors: 0, rxDropped: 0, txErrors: 0, txDropped: 0 };
const counters = (name: string) => ({ name, rxBytes: 1, rxPackets: 1, txBytes: 1, txPackets: 1, ...ZEROS });
const MACHINE: MachineFacts = {
  cpus: 2,
  memoryBytes: 1_000_000,
  hugePages: [],
  swapBytes: 0,
  swapOn: false,
  maxPids: 32768,
  kernelRelease: '6.18',
};

type Trouble = {
  images?: Error;
  containers?: Error;
  disks?: Error;
  hangs?: boolean;
  runtimeName?: string;
  layers?: Layers;
  /** What the runtime says about pods, where it is asked. */
  podStats?: () => Promise<readonly PodSandboxStats[]>;
  /** No process in the cgroup of a sandbox, as with CRI-O. */
  emptySandbox?: true;
  /** Names of pods whose volumes were measured on demand. */
  measured?: string[];
  /** Of the logs of every pod. */
  logs?: Error;
};

const hang = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('no answer'))));

function setup(trouble: Trouble = {}) {
  const clock = new ManualClock(Number(stamp / 1_000_000n));
  let reads = 0;
  const cgroups = new CgroupReadings(
    { read: (_path: string, _detail: Detail) => Promise.resolve((reads++, USAGE)) },
    new CpuRates(),
    clock,
  );
  const host = {
    filesystem: () => Promise.resolve(FS),
    filesIn: () =>
      trouble.logs === undefined ? Promise.resolve({ bytes: 3, inodes: 1 }) : Promise.reject(trouble.logs),
    file: () => Promise.resolve({ bytes: 4, inodes: 1 }),
    interfaces: () => Promise.resolve([counters('eth0')]),
    machine: () => Promise.resolve(MACHINE),
    bootMs: () => Promise.resolve(1000),
    swapUsed: () => Promise.resolve(0),
    tasks: () => Promise.resolve(811),
  };
  const source = {
    createdMs: () => Promise.resolve(2000),
    // As with crun: processes of a container are in a cgroup below its own.
    procs: () => Promise.resolve([]),
    procsOfContainer: (path: string) =>
      Promise.resolve(trouble.emptySandbox === true && path.endsWith('/sb') ? [] : [process.pid]),
  };
  const images: ImageFsInfoResponse = { imageFilesystems: [layer], containerFilesystems: [] };
  const node = new NodeReadings(
    {
      cgroups,
      births: source,
      host,
      imageFs: (signal) => {
        if (trouble.hangs === true) return hang(signal);
        return trouble.images === undefined ? Promise.resolve(images) : Promise.reject(trouble.images);
      },
      clock,
    },
    { nodeName: 'n1', rootDir: '/', places, psi: true, startedMs: 0 },
  );
  const provider = new StatsProvider({
    node,
    pods: new PodReadings(
      { cgroups, processes: source, disk: host, volumesOf: () => undefined, clock },
      { rootDir: '/r', podLogsDir: '/l', psi: true },
    ),
    containers: new ContainerReadings(
      {
        cgroups,
        source,
        root: (signal) => node.root('full', signal),
        bootMs: () => Promise.resolve(1000),
        interfaces: () => Promise.resolve([counters('eth0')]),
        sandboxImage: () => Promise.resolve('pause'),
      },
      { places, runtimeName: trouble.runtimeName ?? 'containerd' },
    ),
    volumes: {
      measureNow: async (pods) => {
        for (const { metadata } of pods) trouble.measured?.push(metadata.name);
      },
      isMeasured: ({ metadata }) => metadata.name !== 'unknown',
    },
    sources: {
      snapshots: () => [snapshot([container('a')])],
      census: () => Promise.resolve(CENSUS),
      containerStats: (signal) => {
        if (trouble.hangs === true) return hang(signal);
        return trouble.containers === undefined ? Promise.resolve([TOLD]) : Promise.reject(trouble.containers);
      },
      ...(trouble.podStats !== undefined && { podStats: trouble.podStats }),
      disks: () =>
        trouble.disks === undefined
          ? Promise.resolve({
              filesystems: [{ device: '/dev/vda', capacity: FS, disk: undefined }],
              names: new Map(),
              ...(trouble.layers === undefined ? {} : { layers: trouble.layers }),
            })
          : Promise.reject(trouble.disks),
      machine: () =>
        Promise.resolve({
          facts: MACHINE,
          topology: { cores: 1, sockets: 1 },
          machineId: 'm',
          systemUuid: 'u',
          bootId: 'b',
          osImage: 'os',
        }),
    },
    clock,
    log: silentLogger,
  });
  return { provider, clock, reads: () => reads };
}

function fieldsOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => fieldsOf(item, `${at}[]`)))];
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([key, item]) => fieldsOf(item, `${at}.${key}`));
}

test('the summary has every field of the reference in its order', async () => {
  const shown = fieldsOf(JSON.parse(summaryJson(await setup().provider.summary({}, never))));
  const reference = fieldsOf(JSON.parse(readFileSync(join(REFERENCE, 'summary.json'), 'utf8')));
  const wanted = new Set(reference);
  assert.deepEqual(
    shown.filter((field) => wanted.has(field)),
    reference,
  );
});

test('figures of a pod', async () => {
  const { pods, node } = await setup().provider.summary({}, never);
  const [pod] = pods;
  assert.equal(pod?.cpu?.usageCoreNanoSeconds, 1_000_000, "the pod's own cgroup");
  assert.equal(pod.containers[0]?.cpu?.usageCoreNanoSeconds, 1_000_000, "the kernel's word, not the runtime's");
  assert.equal(
    pod['ephemeral-storage']?.usedBytes,
    7 + 3 + 3 + 4 + 3,
    'layer, logs, pod logs, hosts file, termination messages',
  );
  assert.equal(pod.memory?.availableBytes, 8192 - 4000);
  assert.equal(node.memory?.availableBytes, 1_000_000 - 4000, 'the machine is the limit of the root');
  assert.deepEqual([node.rlimit?.maxpid, node.rlimit?.curproc], [32768, 811]);
  assert.deepEqual(node.runtime?.imageFs, node.runtime?.containerFs);
});

test('a pod whose logs cannot be read is shown without its disk usage', async () => {
  const { provider } = setup({ logs: new Error('EIO: i/o error, lstat') });
  for (const pods of [(await provider.summary({}, never)).pods, await provider.pods(never)]) {
    assert.equal(pods[0]?.cpu?.usageCoreNanoSeconds, 1_000_000);
    assert.equal(pods[0].containers[0]?.memory?.workingSetBytes, 4000);
    assert.equal(pods[0]['ephemeral-storage'], undefined);
  }
});

test('a sandbox without a process shows the network of its containers', async () => {
  const { provider } = setup({ emptySandbox: true, runtimeName: 'cri-o' });
  const { pods } = await provider.summary({}, never);
  assert.equal(pods[0]?.network?.name, 'eth0');
  const families = parseExposition(await provider.cadvisorMetrics(never));
  const network = families.get('container_network_receive_bytes_total')?.series.find((s) => s.labels['pod'] === 'p');
  assert.deepEqual([network?.labels['container'], network?.labels['interface']], ['POD', 'eth0']);
});

for (const [runtimeName, container, sandbox] of [
  ['containerd', 'ida', 'sb'],
  ['cri-o', 'k8s_a_p_ns_u1_0', 'k8s_POD_p_ns_u1_0'],
] as const)
  test(`containers of ${runtimeName} have the names that cAdvisor gives them`, async () => {
    const families = parseExposition(await setup({ runtimeName }).provider.cadvisorMetrics(never));
    const names = families.get('container_memory_usage_bytes')?.series.map((s) => s.labels['name']) ?? [];
    assert.deepEqual(
      names.filter((name) => name !== ''),
      [container, sandbox],
    );
  });

test('while the runtime does not answer, the node is still known', async () => {
  const { provider } = setup({ images: new Error('down') });
  await assert.rejects(provider.summary({}, never), /^KubeletError: failed to get imageFs stats: down$/);
  const node = await provider.node(never);
  assert.equal(node.runtime, undefined);
  assert.equal(node.memory?.workingSetBytes, 4000);
  assert.equal(node.fs?.availableBytes, 40);
  assert.match(await provider.resourceMetrics(never), /^resource_scrape_error 0$/m, 'which needs no images');
});

test('while the runtime hangs, memory of node and pods is known in five seconds', async () => {
  const { provider, clock } = setup({ hangs: true });
  const [node, pods, fresh] = [provider.node(never), provider.pods(never), provider.refresh(never)];
  await clock.advance(5000);
  await fresh;
  assert.equal((await node).memory?.workingSetBytes, 4000);
  assert.equal((await pods)[0]?.memory?.workingSetBytes, 4000, "the pod's own cgroup");
});

test('resource metrics say that they failed', async () => {
  const { provider } = setup({ containers: new Error('down') });
  const text = await provider.resourceMetrics(never);
  assert.deepEqual([...parseExposition(text).keys()], ['resource_scrape_error']);
  assert.match(text, /^resource_scrape_error 1$/m);
});

for (const [page, reference] of [
  ['cadvisorMetrics', 'cadvisor.tsv'],
  ['resourceMetrics', 'resource.tsv'],
] as const)
  test(`${page} parses and has every family of the reference`, async () => {
    const families = parseExposition(await setup().provider[page](never));
    for (const { name, type, labels } of referenceFamilies(readFileSync(join(REFERENCE, reference), 'utf8'))) {
      const family = families.get(name);
      assert.ok(family !== undefined, `${name} is missing`);
      assert.deepEqual([family.type, labelsOf(family)], [type, labels], name);
    }
  });

test('container metrics without disks lack only those', async () => {
  const families = parseExposition(await setup({ disks: new Error('no') }).provider.cadvisorMetrics(never));
  assert.ok(!families.has('container_fs_limit_bytes'));
  assert.equal(families.get('container_scrape_error')?.series[0]?.value, 0);
});

test('answers are shared for a second', async () => {
  const { provider, clock, reads } = setup();
  await Promise.all([provider.summary({}, never), provider.summary({}, never)]);
  const once = reads();
  await provider.summary({}, never);
  assert.equal(reads(), once);
  await clock.advance(1001);
  await provider.summary({}, never);
  assert.equal(reads(), 2 * once);
});

for (const [what, pods, shown] of [
  ['a running container', [snapshot([container('a')])], ['a']],
  ['one that ended', [snapshot([container('a', { state: 'exited' })])], []],
  ['a sandbox that is not ready', [snapshot([container('a')], false)], []],
  ['a container of an older sandbox', [snapshot([container('a', { sandboxId: sandboxId('old') })])], []],
  [
    'two, the older first',
    [snapshot([container('b', { createdAt: 2n }), container('a', { createdAt: 1n })])],
    ['a', 'b'],
  ],
] as const)
  test(`shown: ${what}`, () =>
    assert.deepEqual(
      shownPods(pods).flatMap((p) => p.containers.map((c) => c.name)),
      shown,
    ));

test('with CRI-O a container shows the filesystem of its writable layer', async () => {
  const [mount] = parseMountInfo('1 0 254:1 / / rw - ext4 /dev/vda rw\n');
  assert.ok(mount !== undefined && showsLayers('cri-o') && !showsLayers('containerd'));
  const strangers = { ...TOLD, attributes: { id: 'other', labels: {}, annotations: {} }, writableLayer: undefined };
  const layers = await readLayers([TOLD, strangers], () => Promise.resolve(FS), new MountTable([mount]));
  const { provider } = setup({ runtimeName: 'cri-o', layers });
  const families = parseExposition(await provider.cadvisorMetrics(never));
  for (const [family, value] of [
    ['container_fs_usage_bytes', 7],
    ['container_fs_limit_bytes', 100],
    ['container_fs_inodes_free', 5],
    ['container_fs_writes_total', 0],
  ] as const) {
    const series = families.get(family)?.series.filter((s) => s.labels['container'] === 'a');
    assert.deepEqual(
      series?.map((s) => [s.labels['device'], Number(s.value)]),
      [['/dev/vda', value]],
      family,
    );
  }
  const gone = await readLayers([TOLD], () => Promise.reject(new Error('gone')), new MountTable([mount]));
  assert.equal(gone.size, 0);
});

test('figures of pods come from the runtime where it is to tell them, and from cgroups where it cannot', async () => {
  const attributes = { id: 'sb', labels: {}, annotations: {} };
  const metadata = { name: 'p', namespace: 'ns', uid: UID, attempt: 0 };
  const inContainer: ContainerStats = {
    ...TOLD,
    attributes: { id: 'ida', labels: {}, annotations: {}, metadata: { name: 'a', attempt: 0 } },
    cpu: { timestamp: stamp, usageCoreNanoSeconds: { value: 55 }, usageNanoCores: { value: 11 } },
  };
  const inPod: PodSandboxStats = {
    attributes: { ...attributes, metadata },
    linux: {
      cpu: { timestamp: stamp, usageCoreNanoSeconds: { value: 77 }, usageNanoCores: { value: 7 } },
      memory: { timestamp: stamp, workingSetBytes: { value: 99 } },
      network: { timestamp: stamp, defaultInterface: { name: 'eth9', rxBytes: { value: 3 } }, interfaces: [] },
      process: { timestamp: stamp, processCount: { value: 5 } },
      containers: [inContainer],
    },
  };
  const old: PodSandboxStats = { attributes: { ...attributes, metadata: { ...metadata, attempt: -1 } } };
  const told = setup({ podStats: async () => [inPod, old] }).provider;
  const byCgroups = (await setup().provider.summary({}, never)).pods[0];
  const [pod] = (await told.summary({}, never)).pods;
  assert.equal(pod?.cpu?.usageCoreNanoSeconds, 77);
  assert.equal(pod.memory?.workingSetBytes, 99);
  assert.deepEqual([pod.network?.name, pod.network?.rxBytes, pod.network?.txBytes], ['eth9', 3, undefined]);
  assert.equal(pod.process_stats?.process_count, 5);
  assert.equal(pod.containers[0]?.cpu?.usageNanoCores, 11);
  assert.deepEqual(pod.containers[0]?.rootfs, byCgroups?.containers[0]?.rootfs, 'disks are measured as ever');
  assert.equal((await told.summary({ onlyCpuAndMemory: true }, never)).pods[0]?.cpu?.usageCoreNanoSeconds, 77);
  assert.equal((await told.pods(never))[0]?.memory?.workingSetBytes, 99, 'for eviction, too');
  const without = setup({ podStats: () => Promise.reject(new KubeletError('unimplemented', 'unknown method')) });
  assert.deepEqual((await without.provider.summary({}, never)).pods[0], byCgroups);
  const broken = setup({ podStats: () => Promise.reject(new KubeletError('unavailable', 'gone')) }).provider;
  await assert.rejects(broken.summary({}, never), /gone/);
  assert.equal((await broken.pods(never)).length, 1, 'eviction does without');
});
