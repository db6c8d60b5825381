import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { configuredFacts, crashBackoffOf, memoryQosOf, pageSizeName, swapFactsOf } from './configured-facts.ts';

test('huge page sizes as runtimes name them', () => {
  const rows: [number, string][] = [
    [2 ** 16, '64KB'],
    [2 ** 21, '2MB'],
    [2 ** 30, '1GB'],
    [1536, '1536B'],
  ];
  for (const [bytes, name] of rows) assert.equal(pageSizeName(bytes), name);
});

test('crash back-off by gate and configuration', () => {
  assert.deepEqual(crashBackoffOf(false, undefined), { initialMs: 10_000, maxMs: 300_000 });
  assert.deepEqual(crashBackoffOf(true, undefined), { initialMs: 1000, maxMs: 60_000 });
  assert.deepEqual(crashBackoffOf(false, 2000), { initialMs: 10_000, maxMs: 2000 });
});

test('swap is limited where the kernel can, whether or not there is any now', () => {
  for (const [swapBehavior, cgroupVersion, limitsSwap] of [
    ['LimitedSwap', 2, true],
    ['NoSwap', 2, false],
    ['', 1, true],
  ] as const)
    assert.deepEqual(swapFactsOf({ swapBehavior, cgroupVersion, limitsSwap }), {
      cgroupVersion,
      swapBehavior: swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
      swapAccounting: limitsSwap,
    });
});

const host = {
  cgroupVersion: 2,
  memoryBytes: 1000,
  swapBytes: 0,
  limitsSwap: false,
  hugePages: [{ sizeBytes: 2 ** 21 }],
  podMemoryBytes: () => 900,
  extraMaskedPaths: ['/sys/hot'],
  selinux: false,
} as const;

test('memory QoS by gate, cgroup version and configuration', () => {
  const on = { MemoryQoS: true };
  const rows: readonly [Parameters<typeof environmentOf>[0], 1 | 2, { factor: number; tiered: boolean } | undefined][] =
    [
      [{ gates: { MemoryQoS: false } }, 2, undefined],
      [{ gates: on }, 1, undefined],
      [{ gates: on, config: { memoryThrottlingFactor: 1 } }, 2, { factor: 1, tiered: false }],
      [
        { gates: on, config: { memoryThrottlingFactor: 0.5, memoryReservationPolicy: 'TieredReservation' } },
        2,
        { factor: 0.5, tiered: true },
      ],
    ];
  for (const [otherwise, cgroupVersion, expected] of rows) {
    const facts = memoryQosOf(environmentOf(otherwise), { ...host, cgroupVersion });
    assert.deepEqual(facts && { factor: facts.throttlingFactor, tiered: facts.tiered }, expected);
    assert.equal(facts?.podMemoryBytes(), expected && 900);
  }
});

test('facts by configuration', () => {
  const rows: readonly [
    Parameters<typeof environmentOf>[0],
    1 | 2,
    (f: ReturnType<typeof configuredFacts>) => unknown,
    unknown,
  ][] = [
    [{}, 1, (f) => f.singleProcessOomKill, true],
    [{}, 2, (f) => f.singleProcessOomKill, false],
    [{ config: { singleProcessOOMKill: true } }, 2, (f) => f.singleProcessOomKill, true],
    [{ config: { seccompDefault: true } }, 2, (f) => f.seccompDefault, true],
    [{ flags: { seccompDefault: true } }, 2, (f) => f.seccompDefault, true],
    [{}, 2, (f) => f.seccompDefault, false],
    [{ flags: { rootDir: '/root' } }, 2, (f) => f.seccompDir, '/root/seccomp'],
    [{ config: { cpuCFSQuotaPeriodMs: 20.5 } }, 2, (f) => f.cpuCfsPeriodUs, 20_500],
    [{}, 2, (f) => f.hugePageSizes, ['2MB']],
    [{ gates: { MemoryQoS: true } }, 1, (f) => 'memoryQos' in f, false],
    [{ gates: { MemoryQoS: true } }, 2, (f) => 'memoryQos' in f, true],
  ];
  for (const [otherwise, cgroupVersion, read, expected] of rows)
    assert.deepEqual(read(configuredFacts(environmentOf(otherwise), { ...host, cgroupVersion })), expected);
});

test('DNS follows the configuration in force', () => {
  const env = environmentOf({ config: { clusterDNS: ['10.0.0.10'], clusterDomain: 'old' } });
  const facts = configuredFacts(env, host);
  assert.deepEqual([facts.clusterDns, facts.clusterDomain], [['10.0.0.10'], 'old']);
  env.updates.offer({ ...env.config, clusterDNS: ['10.0.0.11'], clusterDomain: 'new' });
  assert.deepEqual([facts.clusterDns, facts.clusterDomain], [['10.0.0.11'], 'new']);
});
