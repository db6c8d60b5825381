// In-place resize: order of the steps, rollback, and the memory that is in use.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import { podUid } from '../core/ids.ts';
import type { Container, Pod, ResourceRequirements } from '../core/pod.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { facts, silentLog } from '../../test/golden/fixture.ts';
import { ActuatedState } from './actuated-state.ts';
import type { ResizeRecords } from './needs.ts';
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
const running = (...names: string[]): PodSnapshot => ({
  uid: podUid('u'),
  name: 'p',
  namespace: 'ns',
  sandboxes: [],
  ips: [],
  version: 1,
  containers: names.map((name) => observedContainer(name, { startedAt: 1n })),
});

const steps = (pod: Pod, actuated: Record<string, ResourceRequirements>, restarting: string[] = []): string[] =>
  planResize(
    pod,
    running(...pod.spec.containers.map((c) => c.name)),
    new Map(Object.entries(actuated)),
    FACTS,
    new Set(restarting),
  ).map((step) =>
    step.do === 'pod'
      ? `${step.changed} ${step.previous[step.changed]} → ${step.values[step.changed]}`
      : `${step.name} ${step.resources.limits?.['cpu']} ${step.resources.limits?.['memory']}`,
  );

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
});

type Told = { calls: string[]; set: string[] };
function bench(options: { usage?: number; failWrite?: boolean }): Told & { resize: (pod: Pod) => Promise<void> } {
  const told: Told = { calls: [], set: [] };
  const cri = {
    updatePodSandboxResources: async (r: { resources: { cpuQuota: number } }) =>
      void told.calls.push(`sandbox ${r.resources.cpuQuota}`),
    updateContainerResources: async (r: { linux: { cpuQuota: number } }) =>
      void told.calls.push(`container ${r.linux.cpuQuota}`),
  } as unknown as CriRuntime;
  const records: ResizeRecords = {
    actuatedOf: () => new Map([['a', sized('1', '1Gi')]]),
    setActuated: (_uid, name, resources) => void told.set.push(`${name} ${resources.limits?.['cpu']}`),
    writePod: async (_pod, key, value) => {
      told.calls.push(`write ${key} ${value}`);
      if (options.failWrite === true) throw new Error('read-only');
    },
    memoryUsageOf: async () => options.usage,
  };
  const resizer = new Resizer({ cri, resources: { cgroupParentOf: () => '', resize: records } }, FACTS);
  return { ...told, resize: (pod) => resizer.resize(pod, running('a'), 's', new Set(), new AbortController().signal) };
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
  it('takes the sandbox back when the cgroup refuses', async () => {
    const { calls, set, resize } = bench({ failWrite: true });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('2', '1Gi') })), /read-only/);
    assert.deepEqual(calls, ['sandbox 200000', 'write cpuQuota 200000', 'sandbox 100000']);
    assert.deepEqual(set, []);
  });
  it('refuses a limit below what is in use, before anything is changed', async () => {
    const { calls, resize } = bench({ usage: 600 * 2 ** 20 });
    await assert.rejects(resize(podOf({ name: 'a', resources: sized('1', '512Mi') })), {
      message: `cannot decrease memory limits: attempting to set pod memory limit (${512 * 2 ** 20}) below current usage (${600 * 2 ** 20})`,
    });
    assert.deepEqual(calls, []);
  });
});

describe('the record of resources in force', () => {
  it('survives a restart, and a broken file', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-actuated-'));
    const file = join(dir, 'actuated_pods_state');
    const uid = podUid('u');
    const state = new ActuatedState({ log: silentLog }, { file });
    await state.load();
    state.set(uid, 'a', sized('1', '1Gi'));
    state.set(podUid('gone'), 'a', {});
    state.retain(new Set(['u']));
    await state.flush();
    const again = new ActuatedState({ log: silentLog }, { file });
    await again.load();
    assert.deepEqual(again.of(uid).get('a'), sized('1', '1Gi'));
    assert.equal(again.of(podUid('gone')).size, 0);
    await writeFile(file, (await readFile(file, 'utf8')).replace('1Gi', '9Gi'));
    const broken = new ActuatedState({ log: silentLog }, { file });
    await broken.load();
    assert.equal(broken.of(uid).size, 0);
    await rm(dir, { recursive: true });
  });
});
