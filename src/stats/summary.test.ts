import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerStats } from '../cri/gen/cri.ts';
import { statisticsV1 } from '../host/cgroups/statistics-v1.ts';
import { statisticsV2 } from '../host/cgroups/statistics-v2.ts';
import {
  containerFigures,
  cpuFigures,
  cpuSum,
  ephemeralStorage,
  ioFigures,
  memoryFigures,
  memorySum,
  networkFigures,
  swapFigures,
  usedOf,
  wholeFs,
  type FsCapacity,
  type Reading,
} from './summary.ts';
import { Moment, summaryJson } from './summary-types.ts';

const AT = Date.parse('2026-11-15T03:09:17.500Z');
const reading = (files: Record<string, string>, version: 1 | 2 = 1): Reading => ({
  atMs: AT,
  nanoCores: 5,
  stats:
    version === 1
      ? statisticsV1((controller, file) => files[`${controller}/${file}`])
      : statisticsV2((_, file) => files[file]),
});
const BASE = {
  'cpuacct/cpuacct.usage': '1000\n',
  'memory/memory.usage_in_bytes': '500\n',
  'memory/memory.stat': 'total_inactive_file 100\ntotal_swap 10\n',
};
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const ZERO = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

test('available memory is what the limit leaves, and absent without a limit', () => {
  const limited = reading({ ...BASE, 'memory/memory.limit_in_bytes': '1000\n' });
  assert.equal(memoryFigures(limited, true).availableBytes, 600);
  const unlimited = memoryFigures(reading({ ...BASE, 'memory/memory.limit_in_bytes': '9223372036854771712\n' }), true);
  assert.ok(!Object.hasOwn(json(unlimited) as object, 'availableBytes'));
  const beyond = reading({ ...BASE, 'memory/memory.limit_in_bytes': '100\n' });
  assert.equal(memoryFigures(beyond, true).availableBytes, 0, 'never below zero');
});

test('swap without a limit carries only its use', () => {
  assert.deepEqual(json(swapFigures(reading(BASE))), { time: '2026-11-15T03:09:17Z', swapUsageBytes: 10 });
  const limited = swapFigures(reading({ ...BASE, 'memory/memory.memsw.limit_in_bytes': '100\n' }));
  assert.equal(limited?.swapAvailableBytes, 90);
  assert.equal(swapFigures(reading({})), undefined);
});

test('rows made from cgroups always show pressure, measured or zero', () => {
  assert.deepEqual(json(cpuFigures(reading(BASE), true)), {
    time: '2026-11-15T03:09:17Z',
    usageNanoCores: 5,
    usageCoreNanoSeconds: 1000,
    psi: { full: ZERO, some: ZERO },
  });
  const measured = reading(
    { 'cpu.stat': 'usage_usec 1\n', 'io.pressure': 'some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n' },
    2,
  );
  assert.deepEqual(json(ioFigures(measured, true)), {
    time: '2026-11-15T03:09:17Z',
    psi: { full: ZERO, some: { total: 4, avg10: 1, avg60: 2, avg300: 3 } },
  });
  assert.equal(ioFigures(measured, false), undefined, 'with the feature off');
  assert.equal(cpuFigures(measured, false).psi, undefined);
});

const nanos = BigInt(AT) * 1_000_000n;
const reported = (more: Partial<ContainerStats>): ContainerStats => ({
  cpu: { timestamp: nanos, usageCoreNanoSeconds: { value: 18281290 }, usageNanoCores: { value: 7 } },
  memory: { timestamp: nanos, availableBytes: { value: 0 }, workingSetBytes: { value: 524288 } },
  ...more,
});

test('the kernel knows better than the runtime what a container uses', () => {
  const crio = reported({
    memory: { timestamp: nanos, availableBytes: { value: 9.2e18 }, workingSetBytes: { value: 1 } },
    swap: { timestamp: nanos, swapAvailableBytes: { value: 9.2e18 }, swapUsageBytes: { value: 500 } },
  });
  const { cpu, memory, swap } = json(containerFigures(crio, reading(BASE), AT, false)) as Record<string, object>;
  assert.deepEqual(cpu, { time: '2026-11-15T03:09:17Z', usageNanoCores: 5, usageCoreNanoSeconds: 1000 });
  assert.deepEqual(memory, {
    time: '2026-11-15T03:09:17Z',
    usageBytes: 500,
    workingSetBytes: 400,
    rssBytes: 0,
    pageFaults: 0,
    majorPageFaults: 0,
  });
  assert.deepEqual(swap, { time: '2026-11-15T03:09:17Z', swapUsageBytes: 10 });
  assert.equal(containerFigures(crio, undefined, AT, false).memory.availableBytes, undefined, 'no limit is no number');
});

test("without a cgroup a container's own figures are the runtime's", () => {
  assert.deepEqual(json(containerFigures(reported({}), undefined, AT, true)), {
    cpu: { time: '2026-11-15T03:09:17Z', usageNanoCores: 7, usageCoreNanoSeconds: 18281290 },
    memory: { time: '2026-11-15T03:09:17Z', availableBytes: 0, workingSetBytes: 524288 },
    io: { time: '2026-11-15T03:09:17Z' },
    swap: { time: '2026-11-15T03:09:17Z', swapAvailableBytes: 0, swapUsageBytes: 0 },
  });
});

test('a rate the runtime does not have yet comes from our samples', () => {
  const cpu = { timestamp: nanos, usageCoreNanoSeconds: { value: 1 }, usageNanoCores: { value: 0 } };
  assert.equal(containerFigures(reported({ cpu }), reading(BASE), AT, true).cpu.usageNanoCores, 5);
  assert.equal(containerFigures(reported({ cpu }), undefined, AT, true).cpu.usageNanoCores, 0);
});

test('a container the runtime says nothing about shows zeros', () => {
  const { cpu, memory } = containerFigures(undefined, undefined, AT, true);
  assert.deepEqual(
    [cpu.usageNanoCores, cpu.usageCoreNanoSeconds, memory.workingSetBytes, memory.rssBytes],
    [0, 0, 0, 0],
  );
});

test('pressure of a container: told, else measured, else none', () => {
  const psi = { Full: { Total: 1, Avg10: 2, Avg60: 3, Avg300: 4 }, Some: undefined };
  const cpu = { timestamp: nanos, psi };
  assert.deepEqual(containerFigures(reported({ cpu }), undefined, AT, true).cpu.psi?.full, {
    total: 1,
    avg10: 2,
    avg60: 3,
    avg300: 4,
  });
  const own = reading(
    { 'cpu.stat': 'usage_usec 1\n', 'cpu.pressure': 'some avg10=1.00 avg60=2.00 avg300=3.00 total=9\n' },
    2,
  );
  assert.equal(containerFigures(reported({}), own, AT, true).cpu.psi?.some.total, 9);
  assert.equal(containerFigures(reported({}), own, AT, false).cpu.psi, undefined);
});

test('a pod without a cgroup is the sum of its containers', () => {
  const one = containerFigures(reported({}), undefined, AT, true);
  assert.equal(cpuSum([one.cpu, one.cpu], AT).usageCoreNanoSeconds, 2 * 18281290);
  assert.equal(memorySum([one.memory, one.memory], AT).workingSetBytes, 2 * 524288);
  assert.equal(memorySum([one.memory], AT).rssBytes, undefined);
  assert.equal(cpuSum([], AT).time.ms, AT);
});

test('the default interface stands for the whole; without one there is no name', () => {
  const counters = (name: string) => ({
    name,
    rxBytes: 1,
    rxPackets: 2,
    rxErrors: 3,
    rxDropped: 4,
    txBytes: 5,
    txPackets: 6,
    txErrors: 7,
    txDropped: 8,
  });
  const row = { rxBytes: 1, rxErrors: 3, txBytes: 5, txErrors: 7 };
  assert.deepEqual(json(networkFigures(AT, [counters('cni0'), counters('eth0')])), {
    time: '2026-11-15T03:09:17Z',
    name: 'eth0',
    ...row,
    interfaces: [
      { name: 'cni0', ...row },
      { name: 'eth0', ...row },
    ],
  });
  assert.deepEqual(json(networkFigures(AT, [])), { time: '2026-11-15T03:09:17Z', name: '', interfaces: [] });
});

// The figures of the recorded node.
const FS: FsCapacity = {
  atMs: AT,
  capacityBytes: 270553174016,
  availableBytes: 73762611200,
  freeBytes: 270553174016 - 35181682688,
  inodes: 16777216,
  inodesFree: 16270568,
};

test('a filesystem as a whole', () => {
  assert.deepEqual(json(wholeFs(FS)), {
    time: '2026-11-15T03:09:17Z',
    availableBytes: 73762611200,
    capacityBytes: 270553174016,
    usedBytes: 35181682688,
    inodesFree: 16270568,
    inodes: 16777216,
    inodesUsed: 506648,
  });
});

test('ephemeral storage adds up layers, logs, volumes and the hosts file', () => {
  const used = (bytes: number, inodes: number) => usedOf(AT, { bytes, inodes }, FS);
  const parts = {
    rootFs: FS,
    containers: [
      { rootfs: used(36864, 12), logs: used(0, 1) },
      { rootfs: used(28672, 10), logs: used(0, 1) },
    ],
    volumes: [],
    podLogs: undefined,
    etcHosts: used(4096, 1),
  };
  const recorded = ephemeralStorage(parts);
  assert.deepEqual([recorded.usedBytes, recorded.inodesUsed], [69632, 25]);
  const more = ephemeralStorage({ ...parts, volumes: [used(1000, 3)], podLogs: used(500, 1) });
  assert.deepEqual([more.usedBytes, more.inodesUsed], [69632 + 1500, 29]);
  const without = ephemeralStorage({ ...parts, containers: [{ rootfs: undefined, logs: used(999, 9) }] });
  assert.equal(without.usedBytes, 4096, 'logs count only together with a layer');
  const written = ephemeralStorage({ ...parts, terminationLogs: used(1_000_000, 0) });
  assert.equal(written.usedBytes, 69632 + 1_000_000, 'and what a container writes to its termination message');
});

test('bytes of the answer', () => {
  const node = {
    nodeName: 'n1',
    systemContainers: [],
    startTime: new Moment(AT),
    cpu: undefined,
    memory: undefined,
    swap: undefined,
  };
  assert.equal(
    summaryJson({ node, pods: [] }),
    '{\n "node": {\n  "nodeName": "n1",\n  "systemContainers": [],\n  "startTime": "2026-11-15T03:09:17Z"\n },\n "pods": []\n}',
  );
});

test('what a cgroup does not tell: rates and working sets are 0, the rest is absent', () => {
  const rows: readonly [string, Record<string, string>, unknown][] = [
    ['no processor time', { ...BASE, 'cpuacct/cpuacct.usage': '' }, [0, 0, 400]],
    ['no memory', { 'cpuacct/cpuacct.usage': '1000\n' }, [5, 1000, 0]],
    ['nothing', {}, [0, 0, 0]],
  ];
  for (const [what, files, expected] of rows) {
    const [cpu, memory] = [cpuFigures(reading(files), true), memoryFigures(reading(files), true)];
    assert.deepEqual([cpu.usageNanoCores, cpu.usageCoreNanoSeconds, memory.workingSetBytes], expected, what);
  }
  assert.equal(memoryFigures(reading({}), true).psi, undefined, 'no pressure of memory that nobody counts');
});

test('a container whose cgroup counts memory only has the processor time of the runtime', () => {
  const { 'cpuacct/cpuacct.usage': _, ...memoryOnly } = BASE;
  const { cpu, memory } = containerFigures(reported({}), reading(memoryOnly), AT, false);
  assert.deepEqual([cpu.usageNanoCores, cpu.usageCoreNanoSeconds, memory.usageBytes], [7, 18281290, 500]);
});

test('pressure of input and output: the moment and the words of whoever tells it', () => {
  const line = { Total: 3, Avg10: 0, Avg60: 0, Avg300: 0 };
  const told = reported({ io: { timestamp: nanos - 1_000_000n, psi: { Full: line, Some: line } } });
  const { io } = containerFigures(told, undefined, AT + 5, true);
  assert.deepEqual([io?.time.ms, io?.psi?.some.total], [AT - 1, 3]);
  const silent = containerFigures(reported({}), undefined, AT + 5, true).io;
  assert.deepEqual([silent?.time.ms, silent?.psi], [AT + 5, undefined]);
});

test('a pod without containers uses nothing as of now', () => {
  assert.deepEqual([memorySum([], AT).time.ms, memorySum([], AT).usageBytes], [AT, undefined]);
  assert.deepEqual([cpuSum([], AT).time.ms, cpuSum([], AT).usageNanoCores], [AT, undefined]);
});
