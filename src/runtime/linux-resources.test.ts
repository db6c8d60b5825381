// Requests and limits as the runtime gets them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod, PodSpec } from '../core/pod.ts';
import {
  containerResources,
  milliToShares,
  oomScoreAdj,
  pageSizeOf,
  sandboxOverhead,
  sandboxResources,
} from './linux-resources.ts';
import { facts } from '../../test/golden/fixture.ts';

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'a' }], enableServiceLinks: true, ...spec },
});
const FACTS = facts('/r');
const V2 = { ...FACTS, cgroupVersion: 2 as const };

describe('linux resources', () => {
  for (const [milli, shares] of [
    [0, 2],
    [1, 2],
    [100, 102],
    [1150, 1177],
    [1e9, 262_144],
  ] as const)
    it(`${milli}m is ${shares} shares`, () => assert.equal(milliToShares(milli), shares));

  const of = (
    resources: Container['resources'],
    more: Partial<PodSpec> = {},
    f = FACTS,
  ): ReturnType<typeof containerResources> => {
    const container = { name: 'a', ...(resources === undefined ? {} : { resources }) };
    return containerResources(podOf({ containers: [container], ...more }), container, f);
  };
  it('a limit without a request is a request', () => assert.equal(of({ limits: { cpu: '250m' } }).cpuShares, 256));
  it('a request of zero stays one', () =>
    assert.equal(of({ limits: { cpu: '1' }, requests: { cpu: '0' } }).cpuShares, 2));
  it('the smallest quota', () => assert.equal(of({ limits: { cpu: '1m' } }).cpuQuota, 1000));
  it('no quota at all', () =>
    assert.deepEqual(
      Object.keys(of({ limits: { cpu: '1' } }, {}, { ...FACTS, cpuCfsQuota: false })).filter((k) =>
        k.startsWith('cpu'),
      ),
      ['cpuShares'],
    ));
  it('pinned: not throttled', () => {
    const c = { name: 'a', resources: { limits: { cpu: '1' } } };
    assert.equal(
      containerResources(podOf({ containers: [c] }), c, FACTS, { exclusiveCpus: true, cpusetCpus: '1-2' }).cpuQuota,
      -1,
    );
  });
  it('pod-level limits fill in', () => {
    const got = of({}, { resources: { limits: { cpu: '1', memory: '1Gi' } } });
    assert.deepEqual([got.cpuQuota, got.memoryLimitInBytes], [100_000, 2 ** 30]);
  });
  it('huge pages: all sizes, those asked for with a limit', () =>
    assert.deepEqual(
      of({ limits: { 'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '1Gi', 'hugepages-64Ki': '1Mi' } }).hugepageLimits,
      [
        { pageSize: '2MB', limit: 4 * 2 ** 20 },
        { pageSize: '1GB', limit: 2 ** 30 },
      ],
    ));
  it('huge pages of the pod: for containers that have no limit of that size', () =>
    assert.deepEqual(
      of(
        { limits: { 'hugepages-2Mi': '4Mi' } },
        { resources: { limits: { 'hugepages-2Mi': '8Mi', 'hugepages-1Gi': '2Gi' } } },
      ).hugepageLimits,
      [
        { pageSize: '2MB', limit: 4 * 2 ** 20 },
        { pageSize: '1GB', limit: 2 * 2 ** 30 },
      ],
    ));
  it('page sizes', () =>
    assert.deepEqual(['hugepages-2Mi', 'hugepages-1Gi', 'hugepages-64Ki', 'hugepages-x'].map(pageSizeOf), [
      '2MB',
      '1GB',
      '64KB',
      undefined,
    ]));
  it('cgroup v1: swap limit is the memory limit', () =>
    assert.deepEqual(
      [of({ limits: { memory: '1Mi' } }).memorySwapLimitInBytes, of({}).memorySwapLimitInBytes],
      [2 ** 20, undefined],
    ));
  it('cgroup v1: no swap limit where the kernel has none', () =>
    assert.equal(
      of({ limits: { memory: '1Mi' } }, {}, { ...FACTS, swapAccounting: false }).memorySwapLimitInBytes,
      undefined,
    ));
  it('cgroup v2: killed together, no swap', () =>
    assert.deepEqual(of({}, {}, V2).unified, { 'memory.oom.group': '1', 'memory.swap.max': '0' }));
  it('cgroup v2: killed one by one, no swap controller', () =>
    assert.deepEqual(of({}, {}, { ...V2, singleProcessOomKill: true, swapAccounting: false }).unified, {}));
  it('limited swap in proportion', () => {
    const swap = { ...V2, swapBehavior: 'LimitedSwap' as const, memoryCapacityBytes: 1000, swapCapacityBytes: 500 };
    const max = (resources: Container['resources'], more: Partial<PodSpec> = {}): string | undefined =>
      of(resources, more, swap).unified?.['memory.swap.max'];
    assert.equal(max({ requests: { memory: '100' } }), '50');
    assert.equal(max({ requests: { memory: '100' }, limits: { memory: '100' } }), '0');
    assert.equal(max({ requests: { memory: '100' } }, { priority: 2_000_000_000 }), '0');
    assert.equal(max({ requests: { memory: '1001' } }), '0', 'more than the machine has');
    assert.equal(max({}), '0');
    const container = { name: 'a', resources: { requests: { memory: '100' } } };
    const isStatic = { annotations: { 'kubernetes.io/config.source': 'file' } };
    const given = containerResources(podOf({ containers: [container] }, isStatic), container, swap);
    assert.equal(given.unified?.['memory.swap.max'], '0', 'of a static pod');
  });

  const GIB = 2 ** 30;
  const burst = (request: string, more: Partial<PodSpec> = {}): number => {
    const container = { name: 'a', resources: { requests: { memory: request } } };
    return oomScoreAdj(podOf({ containers: [container], ...more }), container, 10 * GIB);
  };
  for (const [what, got, want] of [
    ['a tenth of the node', burst('1Gi'), 900],
    ['next to nothing', burst('1'), 999],
    ['more than the node', burst('20Gi'), 3],
    ['node critical', burst('1Gi', { priority: 2_000_001_000, priorityClassName: 'system-node-critical' }), -997],
    ['priority of its own', burst('1Gi', { priority: 2_000_001_000 }), 900],
    ['best effort', oomScoreAdj(podOf(), { name: 'a' }, GIB), 1000],
    ['pod-level request is shared out', burst('1Gi', { resources: { requests: { memory: '3Gi' } } }), 700],
    [
      'pod-level request is shared out among init containers too',
      burst('1Gi', { resources: { requests: { memory: '3Gi' } }, initContainers: [{ name: 'i' }] }),
      800,
    ],
  ] as const)
    it(`out-of-memory score: ${what}`, () => assert.equal(got, want));
  it('out-of-memory score: a sidecar is no easier prey than main containers', () => {
    const side = { name: 's', restartPolicy: 'Always' as const };
    const pod = podOf({
      initContainers: [side],
      containers: [{ name: 'a', resources: { requests: { memory: '2Gi' } } }],
    });
    assert.equal(oomScoreAdj(pod, side, 10 * GIB), 800);
  });

  it('the sandbox: what is declared, without overhead', () => {
    const pod = podOf({
      containers: [
        { name: 'a', resources: { limits: { cpu: '1', memory: '1Mi' }, requests: { cpu: '500m' } } },
        { name: 'b' },
      ],
      overhead: { cpu: '250m', memory: '1Mi' },
    });
    assert.deepEqual(sandboxResources(pod, FACTS), {
      cpuShares: 512,
      cpuPeriod: 100_000,
      cpuQuota: 100_000,
      memoryLimitInBytes: 2 ** 20,
    });
    assert.deepEqual(sandboxOverhead(pod, FACTS), {
      cpuShares: 256,
      cpuPeriod: 100_000,
      cpuQuota: 25_000,
      memoryLimitInBytes: 2 ** 20,
    });
    assert.deepEqual(sandboxOverhead(podOf(), FACTS), {});
    assert.deepEqual(sandboxOverhead(pod, V2).unified, { 'memory.oom.group': '1' });
  });
});
