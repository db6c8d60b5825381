import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blkio, ioStat, keyedNumbers, limitOf, numberOf, pressureOf } from './kernel-formats.ts';
import { statisticsV1 } from './statistics-v1.ts';
import { statisticsV2, usageNsV2 } from './statistics-v2.ts';

// Captured from a container of a pod with a quota (kernel 6.18), shortened to the lines that are read.
const V1: Record<string, string> = {
  'cpuacct/cpuacct.usage': '1470615876\n',
  'cpuacct/cpuacct.stat': 'user 98\nsystem 47\n',
  'cpu/cpu.stat': 'nr_periods 75\nnr_throttled 74\nthrottled_time 6021847731\nnr_bursts 2\nburst_time 1500000\n',
  'cpu/cpu.shares': '204\n',
  'cpu/cpu.cfs_period_us': '100000\n',
  'cpu/cpu.cfs_quota_us': '20000\n',
  'memory/memory.usage_in_bytes': '565248\n',
  'memory/memory.max_usage_in_bytes': '5120000\n',
  'memory/memory.limit_in_bytes': '67108864\n',
  'memory/memory.memsw.limit_in_bytes': '9223372036854771712\n',
  'memory/memory.soft_limit_in_bytes': '9223372036854771712\n',
  'memory/memory.kmem.usage_in_bytes': '180224\n',
  'memory/memory.failcnt': '3\n',
  'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n',
  'memory/memory.stat': [
    'cache 0',
    'rss 12288',
    'pgfault 10',
    'pgmajfault 1',
    'inactive_file 0',
    'total_cache 307200',
    'total_rss 61440',
    'total_mapped_file 4096',
    'total_swap 8192',
    'total_pgfault 892',
    'total_pgmajfault 2',
    'total_inactive_file 307200',
    'total_active_file 16384',
  ].join('\n'),
  'pids/pids.current': '1\n',
  'pids/pids.max': 'max\n',
  'blkio/blkio.bfq.io_service_bytes_recursive': 'Total 0\n',
  'blkio/blkio.bfq.io_serviced_recursive': 'Total 0\n',
  'blkio/blkio.throttle.io_service_bytes_recursive':
    '254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 4096\n254:0 Async 8192\n254:0 Discard 0\n254:0 Total 12288\nTotal 12288\n',
  'blkio/blkio.throttle.io_serviced_recursive': '254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n',
};

// Captured from a throttled cgroup of a machine with nothing but v2 (kernel 6.1), shortened likewise.
const V2: Record<string, string> = {
  'cpu.stat':
    'usage_usec 321261\nuser_usec 254012\nsystem_usec 67249\nnr_periods 34\nnr_throttled 31\nthrottled_usec 2695918\nnr_bursts 0\nburst_usec 0\n',
  'cpu.weight': '20\n',
  'cpu.max': '10000 100000\n',
  'cpu.pressure':
    'some avg10=10.68 avg60=1.93 avg300=0.40 total=2742374\nfull avg10=10.68 avg60=1.93 avg300=0.40 total=2742374\n',
  'memory.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
  'memory.current': '102400\n',
  'memory.peak': '294912\n',
  'memory.max': '67108864\n',
  'memory.min': '0\n',
  'memory.swap.current': '4096\n',
  'memory.swap.max': 'max\n',
  'memory.events': 'low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\noom_group_kill 0\n',
  'memory.stat':
    'anon 57344\nfile 0\nkernel 45056\nfile_mapped 0\ninactive_anon 53248\nactive_anon 4096\ninactive_file 2400\nactive_file 100\npgfault 43\npgmajfault 0\n',
  'pids.current': '1\n',
  'pids.max': '20\n',
  'io.stat': '254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0 cost.usage=1500000 cost.wait=7\n',
};

const v1 = (files: Record<string, string>) => statisticsV1((controller, file) => files[`${controller}/${file}`]);
const v2 = (files: Record<string, string>) => statisticsV2((_, file) => files[file]);

test('v1 files of a container', () => {
  assert.deepEqual(v1(V1), {
    cpu: {
      usageNs: 1470615876,
      userNs: 980_000_000,
      systemNs: 470_000_000,
      throttling: {
        periods: 75,
        throttledPeriods: 74,
        throttledNs: 6021847731,
        burstPeriods: 2,
        burstNs: 1500000,
      },
      shares: 204,
      periodUs: 100000,
      quotaUs: 20000,
    },
    memory: {
      usageBytes: 565248,
      maxUsageBytes: 5120000,
      workingSetBytes: 565248 - 307200,
      cacheBytes: 307200,
      rssBytes: 61440,
      mappedFileBytes: 4096,
      kernelBytes: 180224,
      swapBytes: 8192,
      activeFileBytes: 16384,
      inactiveFileBytes: 307200,
      limitHits: 3,
      pageFaults: 892,
      majorPageFaults: 2,
      ownPageFaults: 10,
      ownMajorPageFaults: 1,
      oomKills: 1,
      ownOomKills: 1,
      limitBytes: 67108864,
    },
    io: [
      {
        major: 254,
        minor: 0,
        bytes: new Map([
          ['Read', 4096],
          ['Write', 8192],
          ['Sync', 4096],
          ['Async', 8192],
          ['Discard', 0],
          ['Total', 12288],
        ]),
        requests: new Map([
          ['Read', 1],
          ['Write', 2],
          ['Total', 3],
        ]),
      },
    ],
    pids: { current: 1 },
  });
});

test('v2 files of a container', () => {
  const found = v2(V2);
  assert.deepEqual(found.cpu, {
    usageNs: 321_261_000,
    userNs: 254_012_000,
    systemNs: 67_249_000,
    throttling: {
      periods: 34,
      throttledPeriods: 31,
      throttledNs: 2_695_918_000,
      burstPeriods: 0,
      burstNs: 0,
    },
    shares: 500,
    periodUs: 100000,
    quotaUs: 10000,
  });
  assert.deepEqual(found.memory, {
    usageBytes: 102400,
    maxUsageBytes: 294912,
    workingSetBytes: 100000,
    cacheBytes: 0,
    rssBytes: 57344,
    mappedFileBytes: 0,
    kernelBytes: 45056,
    swapBytes: 4096,
    activeFileBytes: 100,
    inactiveFileBytes: 2400,
    limitHits: 5,
    pageFaults: 43,
    majorPageFaults: 0,
    ownPageFaults: 43,
    ownMajorPageFaults: 0,
    oomKills: 1,
    ownOomKills: 1,
    limitBytes: 67108864,
    reservationBytes: 0,
  });
  assert.deepEqual(found.pids, { current: 1, max: 20 });
  assert.equal(found.pressure?.cpu?.full.totalUs, 2742374);
  assert.deepEqual(found.pressure.memory?.some, { totalUs: 0, avg10: 0, avg60: 0, avg300: 0 });
  assert.equal(found.pressure.io, undefined);
  const [disk] = found.io ?? [];
  assert.deepEqual(Object.fromEntries(disk?.bytes ?? []), { Read: 4096, Write: 8192 });
  assert.deepEqual(Object.fromEntries(disk?.requests ?? []), { Read: 1, Write: 2 });
  assert.deepEqual(Object.fromEntries(disk?.costUs ?? []), { usage: 1500000, wait: 7 });
});

test('kills below a cgroup are told from its own', () => {
  const { memory } = v2({ ...V2, 'memory.events.local': 'low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n' });
  assert.deepEqual([memory?.oomKills, memory?.ownOomKills], [1, 0]);
});

test("v2's root has no usage file: anonymous and file pages are its usage", () => {
  const { memory } = v2({
    'cpu.stat': 'usage_usec 18904000\nuser_usec 8420000\nsystem_usec 10484000\n',
    'memory.stat': 'anon 65810432\nfile 179183616\ninactive_file 1000\n',
  });
  assert.equal(memory?.usageBytes, 65810432 + 179183616);
  assert.equal(memory.workingSetBytes, memory.usageBytes - 1000);
  assert.equal(memory.limitBytes, undefined);
});

test('a cgroup that is gone, or has no controllers, has no statistics', () => {
  assert.deepEqual(v1({}), {});
  assert.deepEqual(v2({}), {});
});

test('a working set never goes below zero', () => {
  const files = { ...V1, 'memory/memory.usage_in_bytes': '1000\n' };
  assert.equal(v1(files).memory?.workingSetBytes, 0);
});

test('without a quota there is none', () => {
  assert.equal(v1({ ...V1, 'cpu/cpu.cfs_quota_us': '-1\n' }).cpu?.quotaUs, undefined);
  assert.equal(v2({ ...V2, 'cpu.max': 'max 100000\n' }).cpu?.quotaUs, undefined);
});

for (const [text, limit] of [
  ['67108864\n', 67108864],
  ['9223372036854771712\n', undefined],
  ['18446744073709551615\n', undefined],
  ['max\n', undefined],
  ['-1\n', undefined],
  ['0\n', 0],
  ['', undefined],
  [undefined, undefined],
] as const)
  test(`limit ${JSON.stringify(text)}`, () => assert.equal(limitOf(text), limit));

test('processor time alone is that of all the statistics', () => {
  assert.equal(usageNsV2(V2['cpu.stat']), 321_261_000);
});

test('torn and foreign texts give nothing', () => {
  for (const text of [undefined, '', 'usage_usec', 'usage_usec x', 'core_usage_usec 5', 'usage_usec 1 2'])
    assert.equal(usageNsV2(text), undefined);
  assert.equal(numberOf('12 34'), undefined);
  assert.equal(numberOf('1e5'), undefined);
  assert.deepEqual(keyedNumbers('a 1\nb\nc x\nd 2 3\n\n'), new Map([['a', 1]]));
  assert.deepEqual(keyedNumbers('  a  1 \nb -2'), new Map(Object.entries({ a: 1, b: -2 })));
  assert.deepEqual(blkio('Total 0\n', undefined), []);
  assert.deepEqual(ioStat('254:0 \n'), []);
  assert.equal(pressureOf('some avg10=0.00'), undefined);
});

test('pressure of an older kernel, which has no full line for processors', () => {
  assert.deepEqual(pressureOf('some avg10=1.50 avg60=0.00 avg300=0.00 total=42\n'), {
    some: { totalUs: 42, avg10: 1.5, avg60: 0, avg300: 0 },
    full: { totalUs: 0, avg10: 0, avg60: 0, avg300: 0 },
  });
});
