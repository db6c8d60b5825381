import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod, ResourceRequirements } from '../core/pod.ts';
import { resourcesOf } from '../core/pod-resources.ts';
import { burstableShares, podCgroupSettings, settingsOfResources } from './pod-config.ts';

const OPTIONS = { enforceCpuLimits: true, cpuPeriodUs: 100_000, podPidsLimit: -1, hugePageSizes: [] };

const container = (resources: ResourceRequirements, more: Partial<Container> = {}): Container => ({
  name: 'c',
  resources,
  ...more,
});
const pod = (containers: readonly Container[], spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name: 'p', uid: 'u' },
  spec: { containers, ...spec },
});
const both = (list: Record<string, string>): ResourceRequirements => ({ requests: list, limits: list });

const shown = (p: Pod, options: Partial<typeof OPTIONS> = {}): unknown => {
  const { hugePages: _, ...rest } = podCgroupSettings(p, { ...OPTIONS, ...options });
  return rest;
};

test('best effort gets the least', () => {
  assert.deepEqual(shown(pod([container({})])), { cpuShares: 2 });
});

test('guaranteed: shares, quota and memory of all containers', () => {
  const p = pod([
    container(both({ cpu: '150m', memory: '64Mi' })),
    container(both({ cpu: '1', memory: '32Mi' }), { name: 'd' }),
  ]);
  assert.deepEqual(shown(p), { cpuShares: 1177, cpuQuotaUs: 115_000, cpuPeriodUs: 100_000, memoryBytes: 100_663_296 });
});

test('burstable: a limit counts only when every container has it', () => {
  const full = container({ requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '200m', memory: '64Mi' } });
  assert.deepEqual(shown(pod([full])), {
    cpuShares: 102,
    cpuQuotaUs: 20_000,
    cpuPeriodUs: 100_000,
    memoryBytes: 67_108_864,
  });
  const noMemory = container({ requests: { cpu: '100m' }, limits: { cpu: '200m' } }, { name: 'd' });
  assert.deepEqual(shown(pod([full, noMemory])), {
    cpuShares: 204,
    cpuQuotaUs: 40_000,
    cpuPeriodUs: 100_000,
    memoryBytes: -1,
  });
  assert.deepEqual(shown(pod([full], { initContainers: [container({}, { name: 'i' })] })), {
    cpuShares: 102,
    cpuQuotaUs: -1,
    cpuPeriodUs: 100_000,
    memoryBytes: -1,
  });
});

test('burstable: the limit of a sidecar counts for the init containers after it, and for no other', () => {
  const full = container({ requests: { cpu: '100m' }, limits: { cpu: '200m' } });
  const free = container({}, { name: 'i' });
  const sidecar = container({ limits: { cpu: '300m' } }, { name: 's', restartPolicy: 'Always' });
  const unlimited = container({}, { name: 'u', restartPolicy: 'Always' });
  for (const [what, containers, initContainers, quota] of [
    ['after it', [full], [sidecar, free, unlimited], 50_000],
    ['before it', [full], [free, sidecar], -1],
    ['a main container', [full, free], [sidecar], -1],
    ['of an init container that ends', [full], [container(full.resources ?? {}, { name: 'e' }), free], -1],
  ] as const)
    assert.equal(podCgroupSettings(pod(containers, { initContainers }), OPTIONS).cpuQuotaUs, quota, what);
});

test('limits of the pod as a whole bind without any container limit', () => {
  const p = pod([container({})], { resources: { requests: { cpu: '500m' }, limits: { cpu: '1', memory: '1Gi' } } });
  assert.deepEqual(shown(p), {
    cpuShares: 512,
    cpuQuotaUs: 100_000,
    cpuPeriodUs: 100_000,
    memoryBytes: 2 ** 30,
  });
});

test('sidecars, init containers and overhead count', () => {
  const p = pod([container(both({ cpu: '100m', memory: '10Mi' }))], {
    initContainers: [
      container(both({ cpu: '50m', memory: '10Mi' }), { name: 's', restartPolicy: 'Always' }),
      container(both({ cpu: '400m', memory: '5Mi' }), { name: 'i' }),
    ],
    overhead: { cpu: '50m', memory: '1Mi' },
  });
  assert.deepEqual(shown(p), {
    cpuShares: 512,
    cpuQuotaUs: 50_000,
    cpuPeriodUs: 100_000,
    memoryBytes: 21 * 2 ** 20,
  });
});

test('no quota when limits are not enforced', () => {
  const p = pod([container(both({ cpu: '1', memory: '32Mi' }))]);
  assert.deepEqual(shown(p, { enforceCpuLimits: false }), {
    cpuShares: 1024,
    cpuQuotaUs: -1,
    cpuPeriodUs: 100_000,
    memoryBytes: 33_554_432,
  });
});

test('process and huge page limits', () => {
  const p = pod([container(both({ 'hugepages-2Mi': '4Mi', cpu: '1', memory: '1Gi' }))]);
  const settings = podCgroupSettings(p, { ...OPTIONS, podPidsLimit: 100, hugePageSizes: [2 ** 21, 2 ** 30] });
  assert.equal(settings.pidsMax, 100);
  assert.deepEqual(
    [...(settings.hugePages ?? [])],
    [
      [2 ** 21, 2 ** 22],
      [2 ** 30, 0],
    ],
  );
});

test('the burstable tier weighs what its pods ask for', () => {
  const burstable = pod([container({ requests: { cpu: '300m' } })]);
  const guaranteed = pod([container(both({ cpu: '4', memory: '1Gi' }))]);
  assert.equal(burstableShares([]), 2);
  assert.equal(burstableShares([burstable, guaranteed, burstable]), 614);
});

test('reserved cgroups', () => {
  const reserved = resourcesOf({ cpu: '500m', memory: '1Gi', pid: '1000', 'ephemeral-storage': '1Gi' });
  assert.deepEqual(settingsOfResources(reserved), { cpuShares: 512, memoryBytes: 2 ** 30, pidsMax: 1000 });
  assert.deepEqual(settingsOfResources(reserved, true), { cpuShares: 512 });
});

test('requested memory is kept from reclaim, hard for Guaranteed pods', () => {
  const reserving = { ...OPTIONS, reserveMemory: true };
  const unified = (resources: ResourceRequirements) =>
    podCgroupSettings(pod([container(resources)]), reserving).unified;
  assert.deepEqual(unified(both({ cpu: '1', memory: '1Ki' })), { 'memory.min': '1024' });
  assert.deepEqual(unified({ requests: { memory: '1Ki' } }), { 'memory.low': '1024' });
  assert.equal(unified({ requests: { cpu: '1' } }), undefined);
});

test('a limit of the pod itself binds it; a container without one leaves the pod without', () => {
  const free = container({ requests: { cpu: '1' } });
  const limited = pod([free]);
  const settings = podCgroupSettings(
    { ...limited, spec: { ...limited.spec, resources: { limits: { cpu: '2' } } } },
    OPTIONS,
  );
  assert.equal(settings.cpuQuotaUs, 200_000);
  assert.equal(podCgroupSettings(limited, OPTIONS).cpuQuotaUs, -1);
});

test('reserved huge pages, and nothing reserved', () => {
  assert.deepEqual(settingsOfResources(resourcesOf({ 'hugepages-2Mi': '4Mi' })), {
    hugePages: new Map([[2 ** 21, 2 ** 22]]),
  });
  assert.deepEqual(settingsOfResources(resourcesOf({})), {});
  assert.deepEqual(settingsOfResources(resourcesOf({ memory: '1' }), true), {});
});
