import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseState } from '../core/go-json.ts';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { formatPodResourceState } from '../core/pod-resource-state.ts';
import { heldRequests, podRequests } from '../core/pod-resources.ts';
import { quantity, toMilli } from '../core/quantity.ts';
import { abortable } from '../lib/abort.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { AllocationState } from './allocation-state.ts';
import { allocationOf, differs, withAllocation } from './allocation.ts';
import { resizeMetrics } from './resize-metrics.ts';
import { Resizes } from './resizes.ts';

const CAPACITY = 2000;
const CRITICAL = 2_000_000_000;
const milli = (pod: Pod): number => toMilli(podRequests(pod).get('cpu') ?? quantity('0'));

const pod = (name: string, cpu: string, more: Partial<Pod['spec']> = {}, generation = 1): Pod => ({
  metadata: { name, namespace: 'n', uid: name, generation },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu, 'example.com/x': '1' } } }], ...more },
});

test('granted and wanted resources', () => {
  const granted = allocationOf(pod('p', '1'));
  const wanted = pod('p', '2');
  assert.equal(differs(wanted, granted), true);
  assert.equal(differs(pod('p', '1000m'), granted), false);
  assert.equal(differs(wanted, undefined), false);
  assert.deepEqual(withAllocation(wanted, granted).spec.containers[0]?.resources?.requests, {
    'example.com/x': '1',
    cpu: '1',
  });
  const limited = {
    ...wanted,
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } }] },
  };
  assert.equal(differs(limited, granted), true, 'a limit where there was none');
});

test('granted and wanted resources of the pod as a whole', () => {
  const whole = (cpu?: string): Pod =>
    pod('p', '100m', cpu === undefined ? {} : { resources: { requests: { cpu, 'hugepages-2Mi': '2Mi' } } });
  const granted = allocationOf(whole('1'));
  assert.equal(differs(whole('2'), granted), true);
  assert.equal(differs(whole('1000m'), granted), false);
  assert.deepEqual(withAllocation(whole('2'), granted).spec.resources?.requests, { cpu: '1', 'hugepages-2Mi': '2Mi' });
  const nothing = allocationOf(whole());
  assert.equal(differs(whole('2'), nothing), true);
  assert.equal(withAllocation(whole('2'), nothing).spec.resources, undefined, 'not granted yet');
});

test('allocations survive a restart, broken files do not hurt', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'allocations-'));
  const file = join(dir, 'allocated_pods_state');
  const first = new AllocationState({ clock: systemClock, log: silentLogger }, { file });
  await first.load();
  first.grant(pod('a', '1'));
  first.grant(pod('b', '1', { resources: { limits: { cpu: '2' } } }));
  await first.close();
  const second = new AllocationState({ clock: systemClock, log: silentLogger }, { file });
  await second.load();
  assert.equal(milli(second.allocated(pod('a', '2'))), 1000);
  assert.equal(second.isResized(pod('b', '1', { resources: { limits: { cpu: '3' } } })), true);
  second.retain(new Set(['a']));
  await second.close();
  assert.deepEqual(Object.keys(parseState(await readFile(file, 'utf8'))), ['a']);
  await writeFile(file, '{"data":"{}","checksum":1}');
  const third = new AllocationState({ clock: systemClock, log: silentLogger }, { file });
  await third.load();
  assert.equal(third.has(podUid('a')), false);
  await rm(dir, { recursive: true });
});

test('the record has the form others read', () => {
  const text = formatPodResourceState(new Map([['u', allocationOf(pod('u', '1'))]]));
  const { data } = JSON.parse(text) as { data: string };
  assert.equal(
    data,
    '{"entries":{"u":{"ContainerResources":{"c":{"requests":{"cpu":"1","example.com/x":"1"}}},"PodLevelResources":null}}}',
  );
  assert.throws(() => parseState(text.replace('"cpu', '"CPU')), /checksum|JSON/);
});

/** Pods on a node of two processors. */
function rig(initial: Pod[], usedBy = milli) {
  const clock = new ManualClock();
  const registry = new Registry();
  const pods = new Map(initial.map((p) => [p.metadata.name, p]));
  const granted = new Map(initial.map((p) => [p.metadata.name, allocationOf(p)]));
  const log: string[] = [];
  let asked = 0;
  const sources = { ready: true };
  const evicting = Promise.withResolvers<void>();
  const allocations = {
    allocated: (p: Pod) => withAllocation(p, granted.get(p.metadata.name)),
    isResized: (p: Pod) => differs(p, granted.get(p.metadata.name)),
    grant: (p: Pod) => void granted.set(p.metadata.name, allocationOf(p)),
  };
  const resizes = new Resizes({
    allocations,
    active: () => [...pods.values()],
    sourcesReady: () => sources.ready,
    check: (p, others) => {
      asked++;
      if (milli(p) > CAPACITY) return { ok: false, reason: 'Infeasible', message: 'never' };
      const used = others.reduce((sum, o) => sum + usedBy(o), 0);
      const later = { ok: false, reason: 'Deferred', message: `later, ${used} used`, cause: 'OutOfcpu' } as const;
      if (milli(p) + used <= CAPACITY) return { ok: true, victims: [] };
      return p.spec.priority === CRITICAL ? { ok: true, victims: others, scarce: 'cpu' } : later;
    },
    makeRoom: async ({ victims, scarce }, signal) => {
      log.push(`evict ${victims.map((v) => v.metadata.name).join()} for ${scarce}`);
      await abortable(signal, evicting.promise);
    },
    wake: (uid) => log.push(`wake ${uid}`),
    events: {
      pod: (p, type, reason, message) => log.push(`${p.metadata.name} ${type} ${reason} ${message}`),
      node: () => undefined,
    },
    metrics: resizeMetrics(registry),
    clock,
    log: silentLogger,
  });
  const set = (p: Pod): void => {
    const before = pods.get(p.metadata.name);
    pods.set(p.metadata.name, p);
    resizes.offer(p, before);
  };
  const allocated = (name: string): number => milli(allocations.allocated(pods.get(name)!));
  return {
    clock,
    registry,
    resizes,
    pods,
    sources,
    set,
    allocated,
    take: () => log.splice(0),
    asked: () => asked,
    evicting,
  };
}

test('a pod whose resources make no sense costs nobody else a resize', () => {
  const r = rig([pod('a', '100m'), pod('bad', '100m')]);
  r.pods.set('bad', pod('bad', 'nonsense'));
  r.set(pod('a', '200m'));
  assert.equal(r.allocated('a'), 200);
});

test('a resize that fits is granted at once, then carried out', () => {
  const r = rig([pod('a', '1')]);
  r.set(pod('a', '1500m', {}, 3));
  const text =
    '{"containers":[{"name":"c","resources":{"requests":{"cpu":"1500m","example.com/x":"1"}}}],"generation":3}';
  assert.deepEqual(r.take(), [`a Normal ResizeStarted Pod resize started: ${text}`, 'wake a']);
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.type, 'PodResizeInProgress');
  r.resizes.progress(r.pods.get('a')!, true);
  assert.deepEqual(r.take(), []);
  r.resizes.progress(r.pods.get('a')!, false);
  assert.deepEqual(r.take(), [`a Normal ResizeCompleted Pod resize completed: ${text}`]);
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), []);
});

test('a sync that began before a resize was granted does not end it, though the pod asked for it already', () => {
  const r = rig([pod('a', '1')]);
  r.set(pod('a', '1500m', {}, 3));
  r.take();
  r.resizes.progress(pod('a', '1', {}, 3), false);
  assert.deepEqual(r.take(), []);
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.type, 'PodResizeInProgress');
});

test('one that does not fit waits until something is freed', () => {
  const r = rig([pod('a', '1'), pod('b', '1')]);
  r.set(pod('a', '1500m', {}, 2));
  assert.match(
    r.take().join(),
    /ResizeDeferred Pod resize OutOfcpu: .*"generation":2,"error":"later, 1000 used"\},wake a/,
  );
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), [
    {
      type: 'PodResizePending',
      observedGeneration: 2,
      status: 'True',
      lastProbeTime: null,
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'Deferred',
      message: 'later, 1000 used',
    },
  ]);
  r.resizes.retry('pods_removed');
  assert.deepEqual(r.take(), [], 'told once');
  r.pods.set('c', pod('c', '100m'));
  r.resizes.retry('periodic_retry');
  assert.deepEqual(r.take(), ['wake a'], 'another figure is shown, and no other event sent');
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.message, 'later, 1100 used');
  r.pods.delete('c');
  assert.equal(r.allocated('a'), 1000);
  r.pods.delete('b');
  r.resizes.retry('pods_removed');
  assert.equal(r.allocated('a'), 1500);
});

test('what a pod gave back is given on when its status shows it', () => {
  const showing = (cpu: string): Pod => ({
    ...pod('b', '500m', {}, 2),
    status: { containerStatuses: [{ name: 'c', resources: { requests: { cpu } } }] } as unknown as Pod['status'] &
      object,
  });
  const r = rig([pod('a', '1'), pod('b', '1')], (p) => toMilli(heldRequests(p).get('cpu') ?? quantity('0')));
  r.set(pod('a', '1500m', {}, 2));
  r.set(showing('1'));
  assert.deepEqual([r.allocated('a'), r.allocated('b')], [1000, 500], 'granted, but not in force');
  r.resizes.shown(showing('1'), showing('1'));
  assert.equal(r.allocated('a'), 1000);
  r.pods.set('b', showing('500m'));
  r.resizes.shown(showing('500m'), showing('1'));
  assert.equal(r.allocated('a'), 1500);
  assert.match(r.registry.render(), /pod_deferred_accepted_resizes_total\{retry_trigger="pod_resized"\} 1/);
  const asked = r.asked();
  r.resizes.shown(showing('100m'), showing('500m'));
  assert.equal(r.asked(), asked, 'nobody waits');
});

test('one that an earlier process kept waiting goes on waiting, and is not told again', () => {
  const shown = (reason: string, message: string): NonNullable<Pod['status']> => ({
    conditions: [
      {
        type: 'PodResizePending',
        status: 'True',
        reason,
        message,
        observedGeneration: 2,
        lastTransitionTime: '2025-12-31T00:00:00Z',
      },
    ],
  });
  const r = rig([pod('a', '1'), pod('b', '1')]);
  r.set({ ...pod('a', '1500m', {}, 2), status: shown('Deferred', 'later, 1000 used') });
  assert.deepEqual(r.take(), []);
  const [condition] = r.resizes.conditionsOf(podUid('a'));
  assert.deepEqual([condition?.reason, condition?.lastTransitionTime], ['Deferred', '2025-12-31T00:00:00Z']);
  // Another generation is another resize.
  r.set({ ...pod('a', '1600m', {}, 3), status: shown('Deferred', 'later, 1000 used') });
  assert.match(r.take().join(), /ResizeDeferred/);
  const never = rig([pod('a', '1')]);
  never.set({ ...pod('a', '64', {}, 2), status: shown('Infeasible', 'never') });
  assert.equal(never.asked(), 1, 'the node may have been configured anew');
  assert.deepEqual(never.take(), []);
  assert.equal(never.resizes.conditionsOf(podUid('a'))[0]?.reason, 'Infeasible');
});

test('before all pods are known nothing is granted, and what waited shows that it does', async () => {
  const waiting = { type: 'PodResizePending', status: 'True', reason: 'Infeasible', observedGeneration: 2 } as const;
  const r = rig([pod('a', '1')]);
  r.sources.ready = false;
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  const found: Pod = { ...pod('a', '1500m', {}, 2), status: { conditions: [{ ...waiting, message: 'never' }] } };
  r.resizes.resume(found);
  r.set(found);
  await r.clock.advance(30_000);
  assert.deepEqual([r.asked(), r.allocated('a'), r.take()], [0, 1000, []]);
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.message, 'never');
  r.resizes.retryPostponed();
  assert.equal(r.asked(), 0);
  r.sources.ready = true;
  r.resizes.retryPostponed();
  assert.deepEqual([r.asked(), r.allocated('a')], [1, 1500], 'judged anew');
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.type, 'PodResizeInProgress');
  r.set(pod('a', '64', {}, 3));
  const asked = r.asked();
  r.resizes.retryPostponed();
  assert.equal(r.asked(), asked, 'nothing is postponed any more');
  stop.abort();
  await done;
});

test('a pod that goes just when all are known does not leave out what was postponed', () => {
  const r = rig([pod('a', '1')]);
  r.sources.ready = false;
  r.set(pod('a', '1500m', {}, 2));
  r.sources.ready = true;
  r.resizes.retry('pods_removed');
  assert.equal(r.allocated('a'), 1500);
});

test('whoever never hears that the sources are known finds out half a minute later', async () => {
  const r = rig([pod('a', '1')]);
  r.sources.ready = false;
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  r.set(pod('a', '1500m', {}, 2));
  await r.clock.advance(30_000);
  r.sources.ready = true;
  await r.clock.advance(30_000);
  assert.equal(r.allocated('a'), 1500);
  stop.abort();
  await done;
});

test('a pod that was granted all it asks for waits for nothing, whatever its status says', () => {
  const r = rig([pod('a', '1')]);
  const conditions = [{ type: 'PodResizePending', status: 'True', reason: 'Deferred' } as const];
  r.resizes.resume({ ...pod('a', '1'), status: { conditions } });
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), []);
});

test('one that never fits says so, and is forgotten when taken back', () => {
  const r = rig([pod('a', '1')]);
  r.set(pod('a', '64', {}, 2));
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.reason, 'Infeasible');
  assert.equal(r.asked(), 1);
  r.resizes.retry('periodic_retry');
  assert.equal(r.asked(), 1, 'asked once');
  r.set(pod('a', '1', {}, 3));
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), []);
});

test('those that free something come first, then the important ones', () => {
  const r = rig([pod('low', '500m'), pod('high', '500m', { priority: 10 }), pod('shrinks', '1')]);
  r.pods.set('low', pod('low', '1', {}, 2));
  r.pods.set('high', pod('high', '1', { priority: 10 }, 2));
  r.pods.set('shrinks', pod('shrinks', '500m', {}, 2));
  r.resizes.retry('pods_removed');
  assert.deepEqual(r.take(), [], 'nobody was offered anything, so nobody waits for room');
  r.resizes.retry('periodic_retry');
  assert.deepEqual(
    r.take().filter((line) => line.startsWith('wake')),
    ['wake shrinks', 'wake high', 'wake low'],
  );
  assert.equal(r.allocated('high'), 1000);
  assert.equal(r.allocated('low'), 500);
});

test('an error is told once and the resize goes on', () => {
  const r = rig([pod('a', '1')]);
  r.set(pod('a', '1500m', {}, 2));
  r.take();
  r.resizes.failed(r.pods.get('a')!, 'no');
  r.resizes.failed(r.pods.get('a')!, 'no');
  assert.equal(r.take().filter((line) => line.includes('ResizeError')).length, 1);
  assert.equal(r.resizes.conditionsOf(podUid('a'))[0]?.reason, 'Error');
});

test('what is told of a resize under way is about its own generation, whatever the pod asks for meanwhile', async () => {
  const r = rig([pod('a', '1'), pod('b', '500m')]);
  r.set(pod('a', '1500m', {}, 2));
  await r.clock.advance(5000);
  r.set(pod('a', '1800m', {}, 3));
  r.take();
  r.resizes.failed(r.pods.get('a')!, 'no');
  const [, running] = r.resizes.conditionsOf(podUid('a'));
  assert.deepEqual([running?.observedGeneration, running?.lastTransitionTime], [2, '2026-01-01T00:00:05Z']);
  r.resizes.progress(pod('a', '1500m', {}, 3), false);
  const [failed, completed] = r.take();
  assert.match(failed ?? '', /ResizeError .*"generation":2,"error":"no"/);
  assert.match(completed ?? '', /ResizeCompleted .*"generation":2\}/);
});

test('a resize that an earlier agent began goes on as it was shown, and is not told again', () => {
  const r = rig([pod('a', '1', {}, 4)]);
  const shown = { type: 'PodResizeInProgress', status: 'True', observedGeneration: 3, reason: 'Error', message: 'no' };
  const found: Pod = {
    ...pod('a', '1', {}, 4),
    status: { conditions: [{ ...shown, lastTransitionTime: '2025-12-31T00:00:00Z' }] } as Pod['status'] & object,
  };
  r.resizes.progress(found, true);
  assert.deepEqual(r.take(), []);
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), [
    { ...shown, lastProbeTime: null, lastTransitionTime: '2025-12-31T00:00:00Z' },
  ]);
});

test('the slow beat tries again', async () => {
  const r = rig([pod('a', '1'), pod('b', '1')]);
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  r.set(pod('a', '1500m', {}, 2));
  r.pods.delete('b');
  await r.clock.advance(30_000);
  assert.equal(r.allocated('a'), 1500);
  stop.abort();
  await done;
  assert.equal(r.clock.pending, 0);
});

test('for a critical pod others are evicted first, once, and a victim that has not stopped yet counts no more', async () => {
  const boss = (cpu: string, generation = 1): Pod => pod('boss', cpu, { priority: CRITICAL }, generation);
  const r = rig([boss('1'), pod('a', '500m'), pod('b', '500m')]);
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  r.set(boss('1500m', 2));
  r.resizes.retry('pod_updated');
  assert.deepEqual(r.take(), ['evict a,b for cpu']);
  assert.deepEqual([r.allocated('boss'), r.resizes.conditionsOf(podUid('boss'))], [1000, []]);
  r.pods.delete('a');
  r.evicting.resolve();
  await r.clock.advance(0);
  assert.match(r.take().join(), /^boss Normal ResizeStarted .*,wake boss$/);
  assert.equal(r.allocated('boss'), 1500);
  stop.abort();
  await done;
});

test('a critical pod has its resize as soon as the victims are gone, before anybody is told that they are', async () => {
  const boss = (cpu: string, generation = 1): Pod => pod('boss', cpu, { priority: CRITICAL }, generation);
  const r = rig([boss('1'), pod('a', '1')]);
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  r.set(boss('1500m', 2));
  r.pods.delete('a');
  r.resizes.retry('pod_terminated');
  assert.equal(r.allocated('boss'), 1500);
  r.take();
  r.evicting.resolve();
  await r.clock.advance(0);
  assert.deepEqual(r.take(), [], 'nothing is left to do then');
  stop.abort();
  await done;
});

test('nobody is evicted by an agent that stops, and it waits for nobody', async () => {
  const boss = (cpu: string, generation = 1): Pod => pod('boss', cpu, { priority: CRITICAL }, generation);
  const r = rig([boss('1'), pod('a', '1')]);
  const stop = new AbortController();
  const done = r.resizes.run(stop.signal);
  r.set(boss('1500m', 2));
  stop.abort();
  await done;
  r.set(boss('1600m', 3));
  assert.deepEqual([r.take(), r.allocated('boss')], [['evict a for cpu'], 1000]);
});

test('resizes are counted: what was asked for, and what had to wait', () => {
  const r = rig([pod('a', '1'), pod('b', '1')]);
  r.set(pod('a', '1500m', {}, 2));
  r.pods.delete('b');
  r.resizes.retry('pods_removed');
  r.set(pod('a', '1', {}, 3));
  const limited: Partial<Pod['spec']> = { containers: [{ name: 'c', resources: { limits: { cpu: '2' } } }] };
  r.set(pod('a', '', limited, 4));
  const lines = r.registry
    .render()
    .split('\n')
    .filter((line) => line.startsWith('kubelet_'));
  const requested = (requirement: string, operation: string): string =>
    `kubelet_container_requested_resizes_total{operation="${operation}",requirement="${requirement}",resource="cpu"} 1`;
  assert.deepEqual(lines.sort(), [
    requested('limits', 'add'),
    requested('requests', 'decrease'),
    requested('requests', 'increase'),
    requested('requests', 'remove'),
    'kubelet_pod_deferred_accepted_resizes_total{retry_trigger="pods_removed"} 1',
  ]);
});

test('what is over is forgotten', () => {
  const r = rig([pod('a', '1'), pod('b', '1')]);
  r.set(pod('a', '1500m', {}, 2));
  r.set(pod('b', '500m', {}, 2));
  assert.deepEqual(
    ['a', 'b'].map((name) => r.resizes.conditionsOf(podUid(name)).map((c) => c.type)),
    [['PodResizeInProgress'], ['PodResizeInProgress']],
  );
  r.resizes.retain(new Set(['a']));
  assert.deepEqual(r.resizes.conditionsOf(podUid('b')), []);
  r.resizes.forget(podUid('a'));
  assert.deepEqual(r.resizes.conditionsOf(podUid('a')), []);
});
