// Statistics of a real cgroup agree with its files, on whichever version the machine (or the guest) has.
// runs: gate
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sharesOfWeight, weightOfShares } from '../../src/host/cgroups/cgroups.ts';
import type { MemoryStatistics } from '../../src/host/cgroups/statistics.ts';
import { CgroupStatisticsReader } from '../../src/host/cgroups/statistics-reader.ts';
import { until } from '../harness/until.ts';
import { openTestCgroup, type TestCgroup } from './resources-cgroup.ts';

const { signal } = new AbortController();
const LIMIT = 64 * 2 ** 20;

let own: TestCgroup;
let reader: CgroupStatisticsReader;
let busy: string;
let pid: number;
let begunMs: number;

before(async () => {
  own = await openTestCgroup('stats');
  reader = new CgroupStatisticsReader(own.layout);
  busy = own.at('busy');
  const settings = { cpuShares: 512, cpuQuotaUs: 10_000, cpuPeriodUs: 100_000, memoryBytes: LIMIT, pidsMax: 20 };
  begunMs = Date.now();
  await own.cgroups.create(busy, settings, signal);
  const child = await own.spawnIn(busy, ['sh', '-c', 'while :; do :; done']);
  pid = child.pid ?? 0;
  await until('the loop was throttled for some periods', async () => {
    const stat = await own.value(busy, 'cpu', 'cpu.stat');
    return Number(/^nr_throttled (\d+)$/m.exec(stat)?.[1]) > 10;
  });
});
after(() => own.close());

const v1 = (): boolean => own.layout.version === 1;
const numberIn = async (controller: string, file: string): Promise<number> =>
  Number(await own.value(busy, controller, file));
const cpuNs = async (): Promise<number> =>
  v1()
    ? numberIn('cpuacct', 'cpuacct.usage')
    : 1000 * Number(/^usage_usec (\d+)$/m.exec(await own.value(busy, 'cpu', 'cpu.stat'))?.[1]);

test('processor time lies between two readings of the file', async () => {
  const from = await cpuNs();
  const found = await reader.read(busy, 'full', signal);
  const to = await cpuNs();
  assert.ok(found?.cpu !== undefined && from > 0);
  assert.ok(found.cpu.usageNs >= from && found.cpu.usageNs <= to, `${from} ≤ ${found.cpu.usageNs} ≤ ${to}`);
  const split = found.cpu.userNs + found.cpu.systemNs;
  assert.ok(Math.abs(split - found.cpu.usageNs) < 0.2 * found.cpu.usageNs + 2e7, `user + system = ${split}`);
  const sampled = await reader.cpuUsageNs(busy, signal);
  assert.ok(sampled !== undefined && sampled >= found.cpu.usageNs);
});

test('the quota and what it did are there', async () => {
  const cpu = (await reader.read(busy, 'full', signal))?.cpu;
  assert.equal(cpu?.quotaUs, 10_000);
  assert.equal(cpu.periodUs, 100_000);
  assert.equal(cpu.shares, v1() ? 512 : sharesOfWeight(weightOfShares(512)));
  assert.ok((cpu.throttling?.periods ?? 0) > 5, 'periods went by');
  assert.ok((cpu.throttling?.throttledPeriods ?? 0) > 0, 'a loop without end is throttled');
  assert.ok((cpu.throttling?.throttledNs ?? 0) > 1e7, 'for a good part of the time');
});

test('memory and its working set', async () => {
  // The kernel gathers counts from its processors every few seconds, and charges memory in batches, of which it takes the rest
  // back at any time: what counts is a reading during which the file stayed as it was.
  const usage = (): Promise<number> => numberIn('memory', v1() ? 'memory.usage_in_bytes' : 'memory.current');
  let memory: MemoryStatistics | undefined;
  let file = 0;
  await until('counts are gathered, and the file reads the same before and after', async () => {
    file = await usage();
    memory = (await reader.read(busy, 'full', signal))?.memory;
    return memory?.rssBytes !== 0 && memory?.pageFaults !== 0 && file === (await usage());
  });
  assert.ok(memory !== undefined);
  assert.equal(memory.usageBytes, file);
  assert.equal(memory.limitBytes, LIMIT);
  assert.equal(memory.workingSetBytes, memory.usageBytes - memory.inactiveFileBytes);
  assert.ok(memory.rssBytes > 0 && memory.rssBytes <= memory.usageBytes, `${memory.rssBytes} of ${memory.usageBytes}`);
  assert.ok(memory.pageFaults > 0, `${memory.pageFaults} faults`);
  assert.equal(memory.oomKills, 0);
});

test('a parent counts what is below it and has no limits of its own', async () => {
  const [parent, child] = await Promise.all([reader.read(own.root, 'full', signal), reader.read(busy, 'full', signal)]);
  assert.equal(parent?.memory?.limitBytes, undefined);
  assert.equal(parent?.cpu?.quotaUs, undefined);
  assert.ok((parent?.memory?.rssBytes ?? 0) >= (child?.memory?.rssBytes ?? 1) * 0.9, 'what is below counts');
  assert.ok((parent?.memory?.pageFaults ?? 0) >= (child?.memory?.ownPageFaults ?? 1));
  assert.deepEqual(await reader.children(own.root), [busy.slice(busy.lastIndexOf('/') + 1)]);
});

test('processes', async () => {
  assert.deepEqual(await reader.procs(busy, signal), [pid]);
  const found = await reader.read(busy, 'full', signal);
  if (found?.pids !== undefined) assert.deepEqual(found.pids, { current: 1, max: 20 });
  assert.deepEqual(await reader.procs(own.root, signal), []);
});

test('pressure where the kernel keeps it for a cgroup', async (t) => {
  const pressure = (await reader.read(busy, 'usage', signal))?.pressure;
  if (v1()) return assert.equal(pressure, undefined);
  if (pressure === undefined) return t.skip('this kernel keeps no pressure');
  assert.ok((pressure.cpu?.some.totalUs ?? 0) > 0, 'being throttled is being stalled');
  assert.ok(pressure.memory !== undefined && pressure.io !== undefined);
});

test('the machine as a whole', async () => {
  const root = await reader.read('/', 'full', signal);
  assert.ok((root?.cpu?.usageNs ?? 0) > 1e9);
  assert.ok((root?.memory?.usageBytes ?? 0) > 2 ** 20);
  assert.ok((root?.memory?.workingSetBytes ?? 0) > 0);
});

test('age, and a cgroup that is gone', async () => {
  const created = await reader.createdMs(busy);
  // The kernel stamps files by a clock of its ticks, a little behind.
  assert.ok(created > begunMs - 1000 && created <= Date.now(), `${begunMs} ${created} ${Date.now()}`);
  assert.equal(await reader.read(`${busy}-gone`, 'full', signal), undefined);
  assert.equal(await reader.cpuUsageNs(`${busy}-gone`, signal), undefined);
  assert.equal(await reader.createdMs(`${busy}-gone`), 0);
  assert.deepEqual(await reader.children(`${busy}-gone`), []);
});
