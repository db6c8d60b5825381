import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubeletError } from '../../lib/errors.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import type { Cgroups, CgroupSettings } from './cgroups.ts';
import { SystemdSlices } from './systemd-slices.ts';

const { signal } = new AbortController();
const PATH = '/kubepods.slice/kubepods-burstable.slice';

/** Cgroup files as a set of paths, and a systemd that makes what it is asked for. */
function world(version: 1 | 2, options: { there?: string[]; complete?: boolean; fail?: Record<string, string> } = {}) {
  const there = new Set(options.there);
  let complete = options.complete ?? true;
  const calls: string[][] = [];
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
  const bus = (args: readonly string[]): Promise<string> => {
    const method = args[5] ?? '';
    calls.push(args.slice(5));
    const failure = options.fail?.[method];
    if (failure !== undefined) return Promise.reject(new KubeletError('unavailable', failure));
    if (method.startsWith('Start')) there.add(PATH);
    return Promise.resolve('');
  };
  return { slices: new SystemdSlices({ files, bus, clock: new ManualClock() }), calls, written, there };
}

const SETTINGS: CgroupSettings = {
  cpuShares: 1024,
  cpuQuotaUs: 20_000,
  cpuPeriodUs: 100_000,
  memoryBytes: 4096,
  pidsMax: -1,
};
const PROPERTIES_V2 = [
  ['CPUWeight', 't', '39'],
  ['CPUQuotaPeriodUSec', 't', '100000'],
  ['CPUQuotaPerSecUSec', 't', '200000'],
  ['MemoryMax', 't', '4096'],
  ['TasksMax', 't', '18446744073709551615'],
].flat();

test('a new slice is started with its values, then the files are completed', async () => {
  const w = world(2);
  await w.slices.create(PATH, SETTINGS, signal);
  assert.equal(w.calls.length, 1);
  const [method, signature, unit, mode, count, ...rest] = w.calls[0] ?? [];
  assert.deepEqual(
    [method, signature, unit, mode],
    ['StartTransientUnit', 'ssa(sv)a(sa(sv))', 'kubepods-burstable.slice', 'replace'],
  );
  assert.equal(rest.length, Number(count) * 3 + 1);
  assert.deepEqual(rest.slice(-PROPERTIES_V2.length - 1), [...PROPERTIES_V2, '0']);
  assert.deepEqual(w.written, [[PATH, SETTINGS]]);
});

test('an existing slice is changed', async () => {
  const w = world(2, { there: [PATH] });
  await w.slices.create(PATH, SETTINGS, signal);
  assert.deepEqual(w.calls, [
    ['SetUnitProperties', 'sba(sv)', 'kubepods-burstable.slice', 'true', '5', ...PROPERTIES_V2],
  ]);
});

test('cgroup v1 has its own property names', async () => {
  const w = world(1, { there: [PATH] });
  await w.slices.update(PATH, { cpuShares: 1024, cpuQuotaUs: -1, memoryBytes: -1 }, signal);
  const wanted = [
    ['CPUShares', 't', '1024'],
    ['CPUQuotaPeriodUSec', 't', '100000'],
    ['CPUQuotaPerSecUSec', 't', '18446744073709551615'],
    ['MemoryLimit', 't', '18446744073709551615'],
  ];
  assert.deepEqual(w.calls[0]?.slice(5), wanted.flat());
});

test('a quota is rounded up to what systemd can express', async () => {
  const w = world(2, { there: [PATH] });
  await w.slices.update(PATH, { cpuQuotaUs: 1100, cpuPeriodUs: 100_000 }, signal);
  assert.equal(w.calls[0]?.at(-1), '20000');
  assert.deepEqual(w.written, [[PATH, { cpuQuotaUs: 1100, cpuPeriodUs: 100_000 }]], 'the file gets the exact value');
});

test('a slice systemd remembers is started again', async () => {
  const w = world(2, {
    fail: { StartTransientUnit: 'Unit kubepods-burstable.slice was already loaded or has a fragment file.' },
  });
  await w.slices.create(PATH, { cpuShares: 2 }, signal);
  assert.deepEqual(
    w.calls.map((c) => c[0]),
    ['StartTransientUnit', 'StartUnit', 'SetUnitProperties'],
  );
});

test('controllers that systemd took away are given back', async () => {
  const w = world(2, { there: [PATH], complete: false });
  assert.equal(await w.slices.exists(PATH, signal), true);
  assert.deepEqual(w.written, [[PATH, {}]]);
  assert.equal(await w.slices.exists('/other.slice', signal), false);
});

test('stopping an unknown unit is fine, other failures are not', async () => {
  const gone = world(2, { there: [PATH], fail: { StopUnit: 'Unit kubepods-burstable.slice not loaded.' } });
  await gone.slices.destroy(PATH, signal);
  assert.equal(gone.there.has(PATH), false);
  const broken = world(2, { there: [PATH], fail: { StopUnit: 'Connection refused' } });
  await assert.rejects(broken.slices.destroy(PATH, signal), /Connection refused/);
});
