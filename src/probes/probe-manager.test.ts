import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { containerId, podUid } from '../core/ids.ts';
import type { Container, ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { ProbeManager } from './probe-manager.ts';
import { ProbeMetrics } from './probe-metrics.ts';
import type { ProbeType } from './probe-state.ts';
import { BrokenAnswer, type Answer, type ProbeTarget } from './prober.ts';

const UID = podUid('u1');
const OK: Answer = { result: 'success', output: 'fine' };
const BAD: Answer = { result: 'failure', output: 'broken' };

type Script = (target: ProbeTarget, type: ProbeType) => Answer | Error | Promise<Answer>;

/** A manager over a pod whose status the test sets, and a log of everything it did. */
function rig(container: Container, script: Script, options: { random?: number; spec?: Partial<Pod['spec']> } = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1), () => options.random ?? 0);
  const registry = new Registry();
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'ns', uid: UID },
    spec: { containers: [container], ...options.spec },
  };
  const world: { pod: Pod; status: PodStatus | undefined; startedAt?: number } = { pod, status: undefined };
  const log: string[] = [];
  const born = clock.monotonic();
  const at = (): string => `${(clock.monotonic() - born) / 1000}s`;
  const typeOf = ({ probe, container: c }: ProbeTarget): ProbeType =>
    probe === c.startupProbe ? 'startup' : probe === c.readinessProbe ? 'readiness' : 'liveness';
  const manager = new ProbeManager({
    pods: { pod: () => world.pod, status: () => world.status, startedAt: () => world.startedAt },
    prober: async (target) => {
      const type = typeOf(target);
      log.push(`${at()} ${type}?`);
      const answer = await script(target, type);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    onResult: (r) => log.push(`${at()} ${r.type} ${r.containerId}=${r.result}${r.initial ? ' (initial)' : ''}`),
    events: {
      pod: (_, type, reason, message, o) => log.push(`${at()} ${type} ${reason} ${o?.fieldPath} ${message}`),
      node: () => undefined,
    },
    clock,
    log: silentLogger,
    metrics: new ProbeMetrics(registry),
  });
  const stop = new AbortController();
  const done = manager.run(stop.signal);
  const running = (id: string, more: Partial<ContainerStatus> = {}): void => {
    const status: ContainerStatus = {
      name: container.name,
      state: { running: { startedAt: apiTime(clock.now()) } },
      lastState: {},
      ready: false,
      started: true,
      restartCount: 0,
      image: '',
      imageID: '',
      containerID: `containerd://${id}`,
      ...more,
    };
    world.status = { phase: 'Running', podIP: '10.0.0.1', containerStatuses: [status] };
  };
  const take = (): string[] => log.splice(0);
  const close = async (): Promise<void> => {
    stop.abort();
    await done;
    assert.equal(clock.pending, 0, 'no timer is left');
  };
  return { clock, manager, world, registry, pod, running, take, close };
}

test('the beat starts with the pod and goes on across container restarts', async () => {
  const answers = [OK, OK, BAD, BAD, OK];
  const r = rig({ name: 'c', livenessProbe: { periodSeconds: 2, failureThreshold: 2 } }, () => answers.shift() ?? OK);
  await r.clock.advance(10_000);
  r.manager.addPod(r.pod);
  await r.clock.advance(500);
  r.running('one');
  await r.clock.advance(8000);
  assert.deepEqual(r.take(), [
    '12s liveness one=success (initial)',
    '12s liveness?',
    '14s liveness?',
    '16s liveness?',
    '16s Warning Unhealthy spec.containers{c} Liveness probe failed: broken',
    '18s liveness?',
    '18s Warning Unhealthy spec.containers{c} Liveness probe failed: broken',
    '18s liveness one=failure',
  ]);
  await r.clock.advance(2000);
  assert.deepEqual(r.take(), [], 'decided: on hold until the next instance');
  r.running('two');
  await r.clock.advance(2000);
  assert.deepEqual(r.take(), ['22s liveness two=success (initial)', '22s liveness?']);
  assert.equal(r.manager.results.liveness(containerId('one')), undefined);
  assert.equal(r.manager.results.liveness(containerId('two')), 'success');
  assert.match(r.registry.render(), /prober_probe_total\{[^}]*result="failed"\} 2/);
  assert.match(r.registry.render(), /prober_probe_duration_seconds_count\{[^}]*\} 3/, 'of those that succeeded');
  await r.close();
});

test('right after the kubelet started, the first beat is spread', async () => {
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 4 } }, () => OK, { random: 0.5 });
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(1999);
  assert.deepEqual(r.take(), []);
  await r.clock.advance(4001);
  assert.deepEqual(
    r.take().filter((line) => line.endsWith('?')),
    ['2s readiness?', '6s readiness?'],
  );
  await r.close();
});

test('startup goes first, then the others', async () => {
  const r = rig({ name: 'c', startupProbe: { periodSeconds: 1 }, readinessProbe: { periodSeconds: 1 } }, (_, type) =>
    type === 'startup' ? OK : BAD,
  );
  await r.clock.advance(5000);
  r.running('one', { started: false });
  r.manager.addPod(r.pod);
  await r.clock.advance(500);
  assert.deepEqual(r.take(), [
    '5s startup one=unknown (initial)',
    '5s startup?',
    '5s readiness one=failure (initial)',
    '5s startup one=success',
  ]);
  r.running('one', { started: true });
  await r.clock.advance(1000);
  assert.deepEqual(r.take(), [
    '6s readiness?',
    '6s Warning Unhealthy spec.containers{c} Readiness probe failed: broken',
  ]);
  await r.close();
});

test('a server that does not listen yet is asked again soon, and nobody hears of it', async () => {
  let listens = false;
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 10 } }, () => (listens ? OK : BAD));
  await r.clock.advance(20_000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(250);
  assert.deepEqual(r.take(), [
    '20s readiness one=failure (initial)',
    '20s readiness?',
    '20.1s readiness?',
    '20.2s readiness?',
  ]);
  listens = true;
  await r.clock.advance(9000);
  assert.deepEqual(r.take(), ['20.4s readiness?', '20.4s readiness one=success']);
  await r.clock.advance(2000);
  assert.deepEqual(r.take(), ['30.4s readiness?'], 'the beat goes on from there');
  await r.close();
});

for (const [what, error, told] of [
  ['a question that cannot be asked', new KubeletError('unavailable', 'gone'), 'unknown state: gone'],
  ['an answer that breaks off', new BrokenAnswer('unavailable', 'unexpected EOF'), 'failure state: unexpected EOF'],
] as const)
  test(`${what} changes nothing but is told`, async () => {
    const r = rig({ name: 'c', livenessProbe: { periodSeconds: 1, failureThreshold: 1 } }, () => error);
    await r.clock.advance(5000);
    r.running('one');
    r.manager.addPod(r.pod);
    await r.clock.advance(0);
    assert.deepEqual(r.take(), [
      '5s liveness one=success (initial)',
      '5s liveness?',
      `5s Warning Unhealthy spec.containers{c} Liveness probe errored and resulted in ${told}`,
    ]);
    assert.equal(r.manager.history(UID)[0]?.runs[0]?.result, 'unknown');
    await r.close();
  });

test('readiness that cannot be asked yet, right after the start, is asked again soon and not told', async () => {
  const answers = [new KubeletError('notFound', 'container not created'), OK];
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 10 } }, () => answers.shift() ?? OK);
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(1000);
  assert.deepEqual(r.take(), [
    '5s readiness one=failure (initial)',
    '5s readiness?',
    '5.1s readiness?',
    '5.1s readiness one=success',
  ]);
  await r.close();
});

test('containers from before the kubelet keep their standing until asked', async () => {
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 5 } }, () => OK, { random: 0.9 });
  const startedAt = apiTime(r.clock.now() - 60_000);
  r.running('one', { state: { running: { startedAt } } });
  r.manager.addPod(r.pod);
  const [seen] = r.world.status?.containerStatuses ?? [];
  assert.ok(seen !== undefined);
  assert.deepEqual(r.manager.readinessOf(r.pod)(seen, { ...seen, ready: true, started: true }), {
    started: true,
    ready: true,
  });
  await r.clock.advance(4500);
  assert.deepEqual(r.take(), ['4.5s readiness?', '4.5s readiness one=success']);
  await r.close();
});

test('a container with probes in its spec is not called ready before they are added', async () => {
  const probe = { periodSeconds: 5 };
  const r = rig({ name: 'c', readinessProbe: probe, startupProbe: probe }, () => OK);
  const startedAt = apiTime(r.clock.now() - 60_000);
  r.running('one', { state: { running: { startedAt } } });
  const [seen] = r.world.status?.containerStatuses ?? [];
  assert.ok(seen !== undefined);
  const readiness = r.manager.readinessOf(r.pod);
  assert.deepEqual(readiness(seen, undefined), { started: false, ready: false });
  assert.deepEqual(readiness(seen, { ...seen, started: true }), { started: true, ready: false });
  await r.close();
});

test('that the last instance had started says nothing of the next one', async () => {
  const r = rig({ name: 'c', startupProbe: { periodSeconds: 10 }, livenessProbe: { periodSeconds: 1 } }, () => BAD);
  await r.clock.advance(5000);
  r.running('one');
  const [before] = r.world.status?.containerStatuses ?? [];
  assert.ok(before !== undefined);
  const readiness = r.manager.readinessOf(r.pod);
  assert.deepEqual(readiness(before, before), { started: true, ready: true });
  // Killed and started again within one sync: nobody saw it end.
  const next = { ...before, containerID: 'containerd://two' };
  assert.deepEqual(readiness(next, before), { started: false, ready: false });
  await r.close();
});

test('readiness can be asked for at once, and the beat follows', async () => {
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 10 } }, () => OK);
  await r.clock.advance(20_000);
  r.manager.addPod(r.pod);
  await r.clock.advance(3000);
  r.running('one');
  r.manager.trigger(UID, 'c');
  await r.clock.advance(10_000);
  assert.deepEqual(
    r.take().filter((line) => line.endsWith('?')),
    ['23s readiness?', '33s readiness?'],
  );
  r.manager.trigger(UID, 'other');
  await r.close();
});

test('a worker never runs twice at a time; missed beats are not piled up', async () => {
  let running = 0;
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 1 } }, async () => {
    assert.equal(++running, 1);
    await r.clock.sleep(2500, new AbortController().signal);
    running--;
    return OK;
  });
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(7000);
  assert.deepEqual(
    r.take().filter((line) => line.endsWith('?')),
    ['5s readiness?', '7.5s readiness?', '10s readiness?'],
  );
  r.manager.removePod(UID);
  await r.clock.advance(3000);
  await r.close();
});

test('stopping a pod: liveness and startup end, readiness goes on, then all is forgotten', async () => {
  const probe = { periodSeconds: 1 };
  const r = rig({ name: 'c', livenessProbe: probe, readinessProbe: probe, startupProbe: probe }, () => OK);
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  r.manager.addPod(r.pod);
  assert.equal(r.manager.workerCount, 3);
  await r.clock.advance(100);
  r.manager.stopLivenessAndStartup(UID);
  assert.equal(r.manager.workerCount, 1);
  assert.equal(r.manager.results.liveness(containerId('one')), undefined);
  assert.equal(r.manager.results.readiness(containerId('one')), 'success');
  assert.match(r.registry.render(), /prober_probe_total\{[^}]*probe_type="Readiness",result="successful"\} 1/);
  r.manager.keepOnly(new Set());
  assert.equal(r.manager.workerCount, 0);
  assert.doesNotMatch(r.registry.render(), /prober_probe/);
  await r.close();
});

test('a probe that runs while its pod is removed leaves no trace', async () => {
  let finish: (answer: Answer) => void = () => undefined;
  let life: AbortSignal | undefined;
  const r = rig({ name: 'c', livenessProbe: { periodSeconds: 1, failureThreshold: 1 } }, (target) => {
    life = target.life;
    return new Promise((resolve) => (finish = resolve));
  });
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(10);
  r.manager.removePod(UID);
  assert.equal(life?.aborted, false, 'what has begun may finish');
  finish(BAD);
  await r.clock.advance(5000);
  assert.deepEqual(r.take(), ['5s liveness one=success (initial)', '5s liveness?']);
  assert.equal(r.manager.results.liveness(containerId('one')), undefined);
  await r.close();
});

test('deletion and the end of the pod end the workers', async () => {
  const r = rig({ name: 'c', livenessProbe: { periodSeconds: 1 }, readinessProbe: { periodSeconds: 1 } }, () => OK);
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(100);
  r.world.pod = { ...r.pod, metadata: { ...r.pod.metadata, deletionTimestamp: apiTime(r.clock.now()) } };
  await r.clock.advance(1000);
  assert.equal(r.manager.workerCount, 1);
  r.world.status = { ...r.world.status, phase: 'Succeeded' };
  await r.clock.advance(1000);
  assert.equal(r.manager.workerCount, 0);
  await r.close();
});

test('sidecars are probed, other init containers are not', async () => {
  const probe = { periodSeconds: 1 };
  const r = rig({ name: 'main' }, () => OK, {
    spec: {
      initContainers: [
        { name: 'side', restartPolicy: 'Always', startupProbe: probe },
        { name: 'init', startupProbe: probe },
      ],
    },
  });
  r.manager.addPod(r.pod);
  assert.equal(r.manager.workerCount, 1);
  await r.close();
});

test('a warning counts as success and is told', async () => {
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 1 } }, () => ({ result: 'warning', output: 'w' }));
  await r.clock.advance(5000);
  r.running('one');
  r.manager.addPod(r.pod);
  await r.clock.advance(0);
  assert.deepEqual(r.take().slice(2), [
    '5s Warning ProbeWarning spec.containers{c} Readiness probe warning: w',
    '5s readiness one=success',
  ]);
  await r.close();
});

test('a sidecar from before the kubelet that had started counts as started, also after an update of the pod', async () => {
  const side = { name: 'side', restartPolicy: 'Always' as const, startupProbe: { periodSeconds: 1 } };
  const r = rig(side, () => OK, { spec: { initContainers: [side], containers: [{ name: 'main' }] } });
  r.running('one', { state: { running: { startedAt: apiTime(r.clock.now() - 60_000) } } });
  r.world.status = { phase: 'Running', initContainerStatuses: r.world.status?.containerStatuses ?? [] };
  r.manager.addPod(r.pod);
  r.world.pod = structuredClone(r.pod);
  await r.clock.advance(100);
  assert.deepEqual(r.take(), ['0s startup one=success (initial)']);
  await r.close();
});

test('the initial delay is counted from the exact start where it is known', async () => {
  const r = rig({ name: 'c', livenessProbe: { periodSeconds: 1, initialDelaySeconds: 2 } }, () => OK);
  await r.clock.advance(5000);
  r.running('one', { state: { running: { startedAt: apiTime(r.clock.now()) } } });
  r.world.startedAt = r.clock.now() + 900;
  r.manager.addPod(r.pod);
  await r.clock.advance(4000);
  assert.equal(
    r.take().find((line) => line.endsWith('?')),
    '8s liveness?',
  );
  await r.close();
});

test('a pod whose probe makes no sense keeps no other probe from its beat', async () => {
  for (const periodSeconds of [Number.NaN, -5, '2', {}, Infinity] as unknown as number[]) {
    const r = rig({ name: 'c', livenessProbe: { periodSeconds: 2 } }, () => OK);
    await r.clock.advance(10_000);
    const odd = { name: 'c', livenessProbe: { periodSeconds } };
    for (const uid of ['odd-1', 'odd-2', 'odd-3'])
      r.manager.addPod({ ...r.pod, metadata: { ...r.pod.metadata, uid }, spec: { containers: [odd] } });
    r.manager.addPod(r.pod);
    r.running('one');
    await r.clock.advance(6500);
    const asked = r.take().filter((line) => line.endsWith('liveness?'));
    assert.ok(asked.length >= 3 && asked.length < 20, `${String(periodSeconds)}: ${asked.length} probes`);
    await r.close();
  }
});

test('a pod whose status makes no sense keeps no other probe from its beat', async () => {
  const r = rig({ name: 'c', readinessProbe: { periodSeconds: 1 } }, () => OK);
  r.manager.addPod(r.pod);
  r.world.status = { phase: 'Running', containerStatuses: 7 } as unknown as PodStatus;
  await r.clock.advance(3000);
  assert.deepEqual(r.take(), []);
  r.running('one');
  await r.clock.advance(1000);
  assert.ok(
    r.take().some((line) => line.endsWith('readiness?')),
    'it goes on when it makes sense again',
  );
  await r.close();
});

/** Lets the collector run: a WeakRef read in this turn holds its target. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise((resolve) => setImmediate(resolve));
  collect();
}

for (const periodSeconds of [10, 3600, 2 ** 31 - 1])
  test(`nothing is held of pods that came and went with a period of ${periodSeconds} s`, async () => {
    const t = rig({ name: 'c' }, () => BAD);
    // Of an old manager: the first beat is due at once, the next a period later.
    const gone = Array.from({ length: 50 }, (_, i) => {
      const probe = { exec: { command: ['x'] }, periodSeconds };
      const pod: Pod = {
        metadata: { name: `p${i}`, namespace: 'ns', uid: `gone-${i}` },
        spec: { containers: [{ name: 'c', readinessProbe: probe, livenessProbe: probe }] },
      };
      t.manager.addPod(pod);
      return new WeakRef(pod);
    });
    await t.clock.advance(1);
    for (let i = 0; i < 50; i++) {
      for (let n = 0; n < 20; n++) t.manager.trigger(podUid(`gone-${i}`), 'c');
      t.manager.removePod(podUid(`gone-${i}`));
    }
    assert.equal(t.clock.pending, 0, 'no timer is left');
    await collectGarbage();
    assert.equal(gone.filter((ref) => ref.deref() !== undefined).length, 0);
    await t.close();
  });
