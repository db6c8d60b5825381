import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubeletError, type Fault } from '../../lib/errors.ts';
import type { Cgroups, CgroupSettings } from './cgroups.ts';
import type { UnitProperty } from '../systemd/unit-manager.ts';
import { SystemdSlices, type Units } from './systemd-slices.ts';

const { signal } = new AbortController();
const PATH = '/kubepods.slice/kubepods-burstable.slice';

type Plain = Readonly<Record<string, unknown>>;
const plain = (properties: readonly UnitProperty[]): Plain =>
  Object.fromEntries(
    properties.map(([name, { signature, value }]) => [name, signature === 't' ? value : [signature, value]]),
  );
const INFINITY = 18446744073709551615n;

/** Cgroup files as a set of paths, and a systemd that makes what it is asked for. */
function world(
  version: 1 | 2,
  options: {
    there?: string[];
    complete?: boolean;
    fail?: Record<string, Fault>;
    systemd?: number | 'silent' | 'broken';
  } = {},
) {
  const there = new Set(options.there);
  let complete = options.complete ?? true;
  const calls: (string | Plain)[][] = [];
  const written: [string, CgroupSettings][] = [];
  const files: Cgroups = {
    version,
    create: (path, settings) => {
      there.add(path);
      complete = true;
      written.push([path, settings]);
      return Promise.resolve();
    },
    update: (path, settings) => Promise.resolve(void written.push([path, settings])),
    exists: (path) => Promise.resolve(there.has(path) && complete),
    read: (path) => (there.has(path) ? Promise.resolve({}) : Promise.reject(new KubeletError('notFound', path))),
    children: () => Promise.resolve([]),
    pids: () => Promise.resolve([]),
    destroy: (path) => Promise.resolve(void there.delete(path)),
  };
  const asked = async (method: string, unit: string, properties?: readonly UnitProperty[]): Promise<void> => {
    calls.push(properties === undefined ? [method, unit] : [method, unit, plain(properties)]);
    const failure = options.fail?.[method];
    if (failure !== undefined) throw new KubeletError(failure, `${method} fails`);
    if (method.startsWith('start')) there.add(PATH);
  };
  const { systemd = 252 } = options;
  const units: Units = {
    version: () =>
      systemd === 'broken'
        ? Promise.reject(new Error('no'))
        : Promise.resolve(systemd === 'silent' ? undefined : systemd),
    startTransient: (unit, properties) => asked('startTransient', unit, properties),
    start: (unit) => asked('start', unit),
    setProperties: (unit, properties) => asked('setProperties', unit, properties),
    stop: (unit) => asked('stop', unit),
  };
  return { slices: new SystemdSlices({ files, units }), calls, written, there };
}

const SETTINGS: CgroupSettings = {
  cpuShares: 1024,
  cpuQuotaUs: 20_000,
  cpuPeriodUs: 100_000,
  memoryBytes: 4096,
  pidsMax: -1,
};
const PROPERTIES_V2 = {
  CPUWeight: 39n,
  CPUQuotaPeriodUSec: 100000n,
  CPUQuotaPerSecUSec: 200000n,
  MemoryMax: 4096n,
  TasksMax: INFINITY,
};

test('memory that is kept from reclaim is known to systemd', async () => {
  const w = world(2, { there: [PATH] });
  await w.slices.update(PATH, { unified: { 'memory.min': '4096', 'memory.low': '0', 'other.file': 'x' } }, signal);
  assert.deepEqual(w.calls, [['setProperties', 'kubepods-burstable.slice', { MemoryMin: 4096n, MemoryLow: 0n }]]);
});

test('a new slice is started with its values, then the files are completed', async () => {
  const w = world(2);
  await w.slices.create(PATH, SETTINGS, signal);
  const always = {
    Description: ['s', 'kubernetes slice kubepods-burstable.slice'],
    DefaultDependencies: ['b', false],
    CPUAccounting: ['b', true],
    MemoryAccounting: ['b', true],
    TasksAccounting: ['b', true],
    IOAccounting: ['b', true],
  };
  assert.deepEqual(w.calls, [['startTransient', 'kubepods-burstable.slice', { ...always, ...PROPERTIES_V2 }]]);
  assert.deepEqual(w.written, [[PATH, SETTINGS]]);
});

test('an existing slice is changed', async () => {
  const w = world(2, { there: [PATH] });
  await w.slices.create(PATH, SETTINGS, signal);
  assert.deepEqual(w.calls, [['setProperties', 'kubepods-burstable.slice', PROPERTIES_V2]]);
});

test('cgroup v1 has its own property names', async () => {
  const w = world(1, { there: [PATH] });
  await w.slices.update(PATH, { cpuShares: 1024, cpuQuotaUs: -1, memoryBytes: -1 }, signal);
  const wanted = {
    CPUShares: 1024n,
    CPUQuotaPeriodUSec: 100000n,
    CPUQuotaPerSecUSec: INFINITY,
    MemoryLimit: INFINITY,
  };
  assert.deepEqual(w.calls[0]?.[2], wanted);
});

test('a quota is rounded up to what systemd can express', async () => {
  const w = world(2, { there: [PATH] });
  await w.slices.update(PATH, { cpuQuotaUs: 1100, cpuPeriodUs: 100_000 }, signal);
  assert.deepEqual(w.calls[0]?.[2], { CPUQuotaPeriodUSec: 100000n, CPUQuotaPerSecUSec: 20000n });
  assert.deepEqual(w.written, [[PATH, { cpuQuotaUs: 2000, cpuPeriodUs: 100_000 }]], 'and so is the file');
  for (const [cpuQuotaUs, cpuPeriodUs, written] of [
    [20_000, 100_000, 20_000],
    [10_500, 100_000, 11_000],
    [1000, 10_000, 1000],
    [1001, 10_000, 1100],
    [-1, 100_000, -1],
  ] as const) {
    await w.slices.create(PATH, { cpuQuotaUs, cpuPeriodUs }, signal);
    assert.deepEqual(w.written.at(-1)?.[1], { cpuQuotaUs: written, cpuPeriodUs });
  }
});

test('systemd before 242 is told of no period', async () => {
  for (const systemd of [239, 'silent', 'broken'] as const) {
    const w = world(2, { there: [PATH], systemd });
    await w.slices.update(PATH, { cpuQuotaUs: 2000, cpuPeriodUs: 10_000 }, signal);
    assert.deepEqual(w.calls[0]?.[2], { CPUQuotaPerSecUSec: 200000n });
    assert.deepEqual(w.written, [[PATH, { cpuQuotaUs: 2000, cpuPeriodUs: 10_000 }]]);
  }
});

test('a slice systemd remembers is started again', async () => {
  const w = world(2, { fail: { startTransient: 'exists' } });
  await w.slices.create(PATH, { cpuShares: 2 }, signal);
  assert.deepEqual(
    w.calls.map((c) => c[0]),
    ['startTransient', 'start', 'setProperties'],
  );
});

test('controllers that systemd took away are given back', async () => {
  const w = world(2, { there: [PATH], complete: false });
  assert.equal(await w.slices.exists(PATH, signal), true);
  assert.deepEqual(w.written, [[PATH, {}]]);
  assert.equal(await w.slices.exists('/other.slice', signal), false);
});

test('stopping an unknown unit is fine, other failures are not', async () => {
  const gone = world(2, { there: [PATH], fail: { stop: 'notFound' } });
  await gone.slices.destroy(PATH, signal);
  assert.equal(gone.there.has(PATH), false);
  const broken = world(2, { there: [PATH], fail: { stop: 'unavailable' } });
  await assert.rejects(broken.slices.destroy(PATH, signal), /stop fails/);
});
