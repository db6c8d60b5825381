// In-place resize: order of the steps, rollback, and the memory that is in use.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import { podUid } from '../core/ids.ts';
import type { Container, Pod, ResourceRequirements } from '../core/pod.ts';
import { withPodLimits } from '../core/pod-resources.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { facts, silentLog } from '../../test/golden/fixture.ts';
import { systemClock } from '../lib/clock.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { ActuatedState } from './actuated-state.ts';
import type { ContainerHooks, ResizeRecords } from './needs.ts';
import { planResize } from './resize-plan.ts';
import { Resizer } from './resize.ts';

const FACTS = facts('/r');
const sized = (cpu: string, memory: string): ResourceRequirements => ({
  limits: { cpu, memory },
  requests: { cpu, memory },
});
const podOf = (...containers: Container[]): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers },
});
const limited = (resources: ResourceRequirements, ...containers: Container[]): Pod => {
  const pod = podOf(...containers);
  return { ...pod, spec: { ...pod.spec, resources } };
};
const running = (...names: string[]): PodSnapshot => ({
  uid: podUid('u'),
  name: 'p',
  namespace: 'ns',
  sandboxes: [],
  ips: [],
  version: 1,
  containers: names.map((name) => observedContainer(name, { startedAt: 1n })),
});

const steps = (
  pod: Pod,
  actuated: Record<string, ResourceRequirements>,
  restarting: string[] = [],
  podLevel?: ResourceRequirements,
): string[] =>
  planResize(
    pod,
    running(...[...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.name)),
    { containers: new Map(Object.entries(actuated)), ...(podLevel !== undefined && { pod: podLevel }) },
    FACTS,
    new Set(restarting),
  ).map(shown);
function shown(step: ReturnType<typeof planResize>[number]): string {
  if (step.do === 'pod') return `${step.changed} ${step.previous[step.changed]} → ${step.values[step.changed]}`;
  const text = `${step.name ?? 'pod'} ${step.resources.limits?.['cpu']} ${step.resources.limits?.['memory']}`;
  return step.do === 'record' ? `record ${text}` : text;
}

describe('the order of a resize', () => {
  it('up: the pod first', () =>
    assert.deepEqual(steps(podOf({ name: 'a', resources: sized('2', '2Gi') }), { a: sized('1', '1Gi') }), [
      'memoryLimitBytes 1073741824 → 2147483648',
      'a 1 2Gi',
      'cpuQuota 100000 → 200000',
      'cpuShares 1024 → 2048',
      'a 2 2Gi',
    ]));
  it('down: the pod last', () =>
    assert.deepEqual(steps(podOf({ name: 'a', resources: sized('1', '1Gi') }), { a: sized('2', '2Gi') }), [
      'a 2 1Gi',
      'memoryLimitBytes 2147483648 → 1073741824',
      'a 1 1Gi',
      'cpuShares 2048 → 1024',
      'cpuQuota 200000 → 100000',
    ]));
  it('those who give come before those who take; an unchanged pod is left alone', () =>
    assert.deepEqual(
      steps(podOf({ name: 'a', resources: sized('2', '1Gi') }, { name: 'b', resources: sized('1', '1Gi') }), {
        a: sized('1', '1Gi'),
        b: sized('2', '1Gi'),
      }),
      ['b 1 1Gi', 'a 2 1Gi'],
    ));
  it('a container that restarts gets its values then', () =>
    assert.deepEqual(steps(podOf({ name: 'a', resources: sized('1', '2Gi') }), { a: sized('1', '1Gi') }, ['a']), [
      'memoryLimitBytes 1073741824 → 2147483648',
      'record a 1 2Gi',
    ]));
  it('a container without limits leaves the pod without', () =>
    assert.deepEqual(
      steps(podOf({ name: 'a', resources: sized('2', '1Gi') }, { name: 'b' }), { a: sized('1', '1Gi'), b: {} }),
      ['cpuShares 1024 → 2048', 'a 2 1Gi'],
    ));
  it('limits that go away are raised first, ones that appear are set last', () => {
    const { requests = {} } = sized('1', '1Gi');
    assert.deepEqual(
      steps(podOf({ name: 'a', resources: { requests, limits: { cpu: '1' } } }), { a: sized('1', '1Gi') }),
      ['memoryLimitBytes 1073741824 → 0', 'a 1 undefined'],
    );
    assert.deepEqual(
      steps(podOf({ name: 'a', resources: sized('1', '1Gi') }), { a: { requests, limits: { cpu: '1' } } }),
      ['a 1 1Gi', 'memoryLimitBytes 0 → 1073741824'],
    );
  });
  it('an init container is resized while it runs', () => {
    const pod = podOf({ name: 'a', resources: sized('1', '1Gi') });
    const init: Container = { name: 'i', resources: sized('2', '1Gi') };
    assert.deepEqual(
      steps({ ...pod, spec: { ...pod.spec, initContainers: [init] } }, { a: sized('1', '1Gi'), i: sized('1', '1Gi') }),
      ['cpuQuota 100000 → 200000', 'cpuShares 1024 → 2048', 'i 2 1Gi'],
    );
  });
});

describe('a resize of what the pod has as a whole', () => {
  const own: Container = { name: 'own', resources: sized('500m', '256Mi') };
  const heir: Container = { name: 'heir', resources: { requests: { cpu: '100m' } } };
  const inForce = (podLimits: ResourceRequirements): Record<string, ResourceRequirements> => ({
    own: sized('500m', '256Mi'),
    heir: withPodLimits(heir.resources, podLimits),
  });
  const [small, large] = [sized('1', '1Gi'), sized('2', '2Gi')];

  it('up: the pod, then the container that has no limit of its own', () =>
    assert.deepEqual(steps(limited(large, own, heir), inForce(small), [], small), [
      'memoryLimitBytes 1073741824 → 2147483648',
      'heir 1 2Gi',
      'record pod 1 2Gi',
      'cpuQuota 100000 → 200000',
      'cpuShares 1024 → 2048',
      'heir 2 2Gi',
      'record pod 2 2Gi',
    ]));
  it('down: that container, then the pod', () =>
    assert.deepEqual(steps(limited(small, own, heir), inForce(large), [], large), [
      'heir 2 1Gi',
      'memoryLimitBytes 2147483648 → 1073741824',
      'record pod 2 1Gi',
      'heir 1 1Gi',
      'cpuShares 2048 → 1024',
      'cpuQuota 200000 → 100000',
      'record pod 1 1Gi',
    ]));
  it('requests alone change the weight of the pod and nothing else', () =>
    assert.deepEqual(
      steps(limited({ requests: { cpu: '1500m' } }, own), { own: sized('500m', '256Mi') }, [], {
        requests: { cpu: '1' },
      }),
      ['cpuShares 1024 → 1536', 'record pod undefined undefined'],
    ));
  it('limits for a pod that had none reach the containers first', () =>
    assert.deepEqual(steps(limited({ limits: { memory: '1Gi' } }, heir), { heir: heir.resources ?? {} }), [
      'heir undefined 1Gi',
      'memoryLimitBytes 0 → 1073741824',
      'record pod undefined 1Gi',
    ]));
  it('a container that is not up yet gets its values when it starts', () => {
    const plan = planResize(
      limited(large, heir),
      running(),
      { containers: new Map([['heir', withPodLimits(heir.resources, small)]]), pod: small },
      FACTS,
      new Set(),
    );
    assert.deepEqual(plan.map(shown), [
      'memoryLimitBytes 1073741824 → 2147483648',
      'record pod 1 2Gi',
      'cpuQuota 100000 → 200000',
      'cpuShares 1024 → 2048',
      'record pod 2 2Gi',
      'record heir 2 2Gi',
    ]);
  });
  it('done half, as after a crash: the rest is done', () =>
    assert.deepEqual(
      steps(limited(large, heir), inForce(large), [], { ...large, limits: { cpu: '1', memory: '2Gi' } }),
      ['cpuQuota 100000 → 200000', 'record pod 2 2Gi'],
    ));
  it('once everything is in force there is nothing to do', () =>
    assert.deepEqual(steps(limited(large, own, heir), inForce(large), [], sized('2000m', '2048Mi')), []));
});

type Told = { calls: string[]; set: string[] };
type SandboxUpdate = { resources: { cpuPeriod: number; cpuQuota: number; memoryLimitInBytes: number } };
function bench(options: {
  owner?: string;
  usage?: number;
  containerUsage?: number;
  failWrite?: boolean;
  /** What the runtime says of the sandbox, from this call on. */
  sandbox?: Error;
  sandboxFailsAt?: number;
}): Told & { resize: (pod: Pod) => Promise<void> } {
  const reported: Told = { calls: [], set: [] };
  const cri = {
    updatePodSandboxResources: async ({ resources: { cpuPeriod, cpuQuota, memoryLimitInBytes } }: SandboxUpdate) => {
      assert.equal(cpuPeriod, FACTS.cpuCfsPeriodUs);
      reported.calls.push(`sandbox ${cpuQuota}${memoryLimitInBytes === -1 ? ' unlimited memory' : ''}`);
      const told = reported.calls.filter((call) => call.startsWith('sandbox')).length;
      if (options.sandbox !== undefined && told >= (options.sandboxFailsAt ?? 1)) throw options.sandbox;
    },
    updateContainerResources: async (r: { linux: { cpuQuota: number } }) =>
      void reported.calls.push(`container ${r.linux.cpuQuota}`),
    containerStats: async () => ({
      stats: { memory: { usageBytes: { value: BigInt(options.containerUsage ?? options.usage ?? 0) } } },
    }),
  } as unknown as CriRuntime;
  const records: ResizeRecords = {
    actuatedOf: () => ({ containers: new Map([['a', sized('1', '1Gi')]]) }),
    setActuatedPod: (_uid, resources) => void reported.set.push(`pod ${resources.limits?.['cpu']}`),
    setActuated: (_uid, name, resources) => void reported.set.push(`${name} ${resources.limits?.['cpu']}`),
    writePod: async (_pod, key, value) => {
      reported.calls.push(`write ${key} ${value}`);
      if (options.failWrite === true) throw new Error('read-only');
    },
    memoryUsageOf: async () => options.usage,
  };
  const hooks: ContainerHooks = {
    preCreate: () => assert.fail('no container is made'),
    preStart: () => assert.fail('no container is started'),
    hasExclusiveCpus: () => options.owner !== undefined,
    ownsCpus: (_pod, { name }) => name === options.owner,
  };
  const resizer = new Resizer({ cri, resources: { cgroupParentOf: () => '', hooks, resize: records } }, FACTS);
  return {
    ...reported,
    resize: (pod) => resizer.resize(pod, running('a'), 's', new Set(), new AbortController().signal),
  };
}

describe('doing a resize', () => {
  it('keeps a record of what is in force', async () => {
    const { calls, set, resize } = bench({});
    await resize(podOf({ name: 'a', resources: sized('2', '1Gi') }));
    assert.deepEqual(calls, [
      'sandbox 200000',
      'write cpuQuota 200000',
      'sandbox 200000',
      'write cpuShares 2048',
      'container 200000',
    ]);
    assert.deepEqual(set, ['a 2']);
  });
  it('does not throttle a container that owns its CPUs, nor prepare its devices again', async () => {
    const { calls, resize } = bench({ owner: 'a' });
    await resize(podOf({ name: 'a', resources: sized('1', '2Gi') }));
    assert.deepEqual(
      calls.filter((call) => call.startsWith('container')),
      ['container -1'],
    );
  });
  it('nor the pod: its quota is neither written nor told', async () => {
    const { calls, resize } = bench({ owner: 'a' });
    await resize(podOf({ name: 'a', resources: sized('2', '2Gi') }));
    assert.deepEqual(calls, [
      'sandbox -1',
      `write memoryLimitBytes ${2 ** 31}`,
      'container -1',
      'sandbox -1',
      'write cpuShares 2048',
      'container -1',
    ]);
  });
  it('tells why the cgroup refused, also where the sandbox cannot be taken back', async () => {
    const sandbox = new GrpcError(GrpcCode.Unavailable, 'gone');
    const { calls, resize } = bench({ failWrite: true, sandbox, sandboxFailsAt: 2 });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('2', '1Gi') })), /read-only/);
    assert.deepEqual(calls, ['sandbox 200000', 'write cpuQuota 200000', 'sandbox 100000']);
  });
  it('takes the sandbox back when the cgroup refuses', async () => {
    const { calls, set, resize } = bench({ failWrite: true });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('2', '1Gi') })), /read-only/);
    assert.deepEqual(calls, ['sandbox 200000', 'write cpuQuota 200000', 'sandbox 100000']);
    assert.deepEqual(set, []);
  });
  it('does without a runtime that does not care about the sandbox, but not against one that refuses', async () => {
    const pod = podOf({ name: 'a', resources: sized('2', '1Gi') });
    for (const error of [
      new GrpcError(GrpcCode.Unimplemented, 'unknown method'),
      new GrpcError(GrpcCode.Unknown, 'not implemented yet'),
    ]) {
      const { set, resize } = bench({ sandbox: error });
      await resize(pod);
      assert.deepEqual(set, ['a 2']);
    }
    const { calls, resize } = bench({ sandbox: new GrpcError(GrpcCode.Unknown, 'busy') });
    await assert.rejects(resize(pod), {
      message:
        'failed to notify runtime for UpdatePodSandboxResources (resource=cpu); resize rejected: rpc error: code = Unknown desc = busy',
    });
    assert.deepEqual(calls, ['sandbox 200000']);
  });
  it('refuses a limit below what is in use, before anything is changed', async () => {
    const { calls, resize } = bench({ usage: 600 * 2 ** 20, containerUsage: 500 * 2 ** 20 });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('1', '512Mi') })), {
      message: `cannot decrease memory limits: attempting to set pod memory limit (${512 * 2 ** 20}) below current usage (${600 * 2 ** 20})`,
    });
    assert.deepEqual(calls, []);
  });
  it('and tells of every limit that is', async () => {
    const { calls, resize } = bench({ usage: 600 * 2 ** 20 });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('1', '512Mi') })), {
      message: `cannot decrease memory limits: [attempting to set pod memory limit (${512 * 2 ** 20}) below current usage (${600 * 2 ** 20}), attempting to set container "a" memory limit (${512 * 2 ** 20}) below current usage (${600 * 2 ** 20})]`,
    });
    assert.deepEqual(calls, []);
  });
  it('tells the runtime what has no limit', async () => {
    const { calls, resize } = bench({});
    await resize(podOf({ name: 'a', resources: { ...sized('1', '1Gi'), requests: { cpu: '2' } } }, { name: 'b' }));
    const told = calls.filter((call) => call.startsWith('sandbox'));
    assert.deepEqual([told.length > 0, ...new Set(told)], [true, 'sandbox -1 unlimited memory']);
  });
  it('leaves the overhead out of what it tells the runtime', async () => {
    const { calls, resize } = bench({});
    const pod = podOf({ name: 'a', resources: sized('2', '1Gi') });
    await resize({ ...pod, spec: { ...pod.spec, overhead: { cpu: '500m' } } });
    assert.deepEqual(calls.slice(0, 2), ['sandbox 200000', 'write cpuQuota 250000']);
  });
});

describe('the record of resources in force', () => {
  it('survives a restart, and a broken file', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-actuated-'));
    const file = join(dir, 'actuated_pods_state');
    const uid = podUid('u');
    const state = new ActuatedState({ clock: systemClock, log: silentLog }, { file });
    await state.load();
    state.set(uid, 'a', sized('1', '1Gi'));
    state.setPod(uid, sized('2', '2Gi'));
    state.set(podUid('gone'), 'a', {});
    state.retain(new Set(['u']));
    await state.close();
    const again = new ActuatedState({ clock: systemClock, log: silentLog }, { file });
    await again.load();
    assert.deepEqual(again.of(uid), { containers: new Map([['a', sized('1', '1Gi')]]), pod: sized('2', '2Gi') });
    assert.equal(again.has(podUid('gone')), false);
    await writeFile(file, (await readFile(file, 'utf8')).replace('1Gi', '9Gi'));
    const broken = new ActuatedState({ clock: systemClock, log: silentLog }, { file });
    await broken.load();
    assert.equal(broken.has(uid), false);
    await rm(dir, { recursive: true });
  });
});
