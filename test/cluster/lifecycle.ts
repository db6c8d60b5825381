// A pod's life as the cluster sees it: phases, conditions, restarts, endings.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { until, untilSeen } from '../harness/until.ts';
import { AT_ONCE, conditionOf, container, isTrue, Scene, shell, statusOf } from './scene.ts';

const KUBELET_CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];

export function lifecycleSuite(scene: () => Scene): void {
  describe('pod lifecycle', { concurrency: AT_ONCE }, () => {
    startsAndEnds(scene);
    restarts(scene);
    finishedPods(scene);
    others(scene);
    deletions(scene);
  });
}

function startsAndEnds(scene: () => Scene): void {
  it('becomes ready with every condition, address and generation filled in', async () => {
    const s = scene();
    await s.pod('plain', {});
    const pod = await s.ready('plain');
    const { status } = pod;
    assert.equal(status?.phase, 'Running');
    assert.equal(status.observedGeneration, pod.metadata.generation);
    for (const type of KUBELET_CONDITIONS) {
      const condition = conditionOf(pod, type);
      assert.equal(condition?.status, 'True', type);
      assert.equal(condition.observedGeneration, pod.metadata.generation, type);
      assert.equal(condition.reason, undefined, type);
    }
    assert.match(status.podIP ?? '', /^\d+\.\d+\.\d+\.\d+$/);
    assert.deepEqual(status.podIPs, [{ ip: status.podIP }]);
    assert.match(status.hostIP ?? '', /^\d+\.\d+\.\d+\.\d+$/);
    assert.equal(status.qosClass, 'BestEffort');
    assert.equal(statusOf(pod, 'main')?.started, true);
    assert.match(statusOf(pod, 'main')?.containerID ?? '', /^(containerd|cri-o):\/\/[0-9a-f]{64}$/);
    await s.delete('plain');
    await s.gone('plain');
  });

  it('reports a new generation after a spec change', async () => {
    const s = scene();
    await s.pod('changes', {});
    const before = await s.ready('changes');
    const tolerations = [...(before.spec.tolerations ?? []), { key: 'x', operator: 'Exists' }];
    await s.patch(PODS, 'changes', { spec: { tolerations } });
    const pod = await s.until(
      'changes',
      'is seen in its new generation',
      ({ metadata, status }) =>
        metadata.generation !== before.metadata.generation && status?.observedGeneration === metadata.generation,
    );
    await s.until('changes', 'has it in its conditions', (p) =>
      KUBELET_CONDITIONS.every((type) => conditionOf(p, type)?.observedGeneration === p.metadata.generation),
    );
    assert.equal(statusOf(pod, 'main')?.restartCount, 0);
  });

  it('runs init containers in order before the others, and says so', async () => {
    const s = scene();
    const volumeMounts = [{ name: 'work', mountPath: '/job' }];
    const step = (name: string, script: string) => container(name, { command: shell(script), volumeMounts });
    await s.pod('inits', {
      volumes: [{ name: 'work', emptyDir: {} }],
      initContainers: [
        step('one', 'until [ -e /job/go ]; do sleep 0.1; done; echo one >> /job/order'),
        step('two', 'echo two >> /job/order'),
      ],
      containers: [container('main', { volumeMounts })],
    });
    const early = await s.until('inits', 'is initialising', (p) => statusOf(p, 'one')?.state.running !== undefined);
    assert.equal(conditionOf(early, 'Initialized')?.reason, 'ContainersNotInitialized');
    assert.equal(
      conditionOf(early, 'Initialized')?.message,
      'containers with incomplete status: [one two]',
      'what is missing is named',
    );
    assert.equal(statusOf(early, 'main')?.state.waiting?.reason, 'PodInitializing');
    await writeFile(s.volumeFile(early, 'empty-dir', 'work/go'), '');
    const pod = await s.ready('inits');
    assert.equal(await s.exec(pod, 'cat /job/order'), 'one\ntwo\n');
  });

  it('does not start containers after a failed init container of a pod that never restarts', async () => {
    const s = scene();
    await s.pod('init-fails', {
      restartPolicy: 'Never',
      initContainers: [container('one', { command: shell('exit 4') })],
    });
    const pod = await s.phase('init-fails', 'Failed');
    assert.equal(statusOf(pod, 'one')?.state.terminated?.exitCode, 4);
    assert.equal(statusOf(pod, 'main')?.state.waiting?.reason, 'PodInitializing');
    assert.equal(isTrue(pod, 'Initialized'), false);
  });
}

function restarts(scene: () => Scene): void {
  const failing = (code: number) => [container('main', { command: shell(`sleep 0.2; exit ${code}`) })];

  it('Always: restarts what ended well, and backs off', async () => {
    const s = scene();
    await s.pod('always', { restartPolicy: 'Always', containers: failing(0) });
    const pod = await s.until('always', 'was restarted', (p) => (statusOf(p, 'main')?.restartCount ?? 0) >= 1);
    assert.equal(statusOf(pod, 'main')?.lastState.terminated?.exitCode, 0);
    const waiting = await s.until(
      'always',
      'backs off',
      (p) => statusOf(p, 'main')?.state.waiting?.reason === 'CrashLoopBackOff',
    );
    assert.match(
      statusOf(waiting, 'main')?.state.waiting?.message ?? '',
      /^back-off \d+s restarting failed container=main pod=always_/,
    );
    assert.equal(waiting.status?.phase, 'Running');
    await s.delete('always', { gracePeriodSeconds: 0 });
  });

  it('OnFailure: restarts what failed until it ends well', async () => {
    const s = scene();
    const volumeMounts = [{ name: 'work', mountPath: '/job' }];
    const command = shell('if [ -e /job/again ]; then exit 0; fi; touch /job/again; exit 1');
    await s.pod('on-failure', {
      restartPolicy: 'OnFailure',
      volumes: [{ name: 'work', emptyDir: {} }],
      containers: [container('main', { command, volumeMounts })],
    });
    const pod = await s.phase('on-failure', 'Succeeded');
    assert.equal(statusOf(pod, 'main')?.restartCount, 1);
    assert.equal(statusOf(pod, 'main')?.state.terminated?.exitCode, 0);
  });

  it('Never: leaves what failed alone', async () => {
    const s = scene();
    await s.pod('never', { restartPolicy: 'Never', containers: failing(7) });
    const pod = await s.phase('never', 'Failed');
    assert.equal(statusOf(pod, 'main')?.restartCount, 0);
    assert.equal(statusOf(pod, 'main')?.state.terminated?.exitCode, 7);
  });

  it('restarts a container whose liveness probe fails', async () => {
    const s = scene();
    const command = shell('trap "exit 0" TERM; sleep 1.5; touch /sick; sleep 1000 & wait');
    const livenessProbe = { exec: { command: shell('! [ -e /sick ]') }, periodSeconds: 1, failureThreshold: 1 };
    const made = await s.pod('sick', { containers: [container('main', { command, livenessProbe })] });
    await s.until('sick', 'was restarted', (p) => (statusOf(p, 'main')?.restartCount ?? 0) >= 1);
    await s.event(made, 'Unhealthy');
    await s.event(made, 'Killing', ({ message }) =>
      /^Container main failed liveness probe, will be restarted$/.test(message ?? ''),
    );
    await s.delete('sick', { gracePeriodSeconds: 0 });
  });
}

/** Every phase the API server shows, and whether everything had ended by then. */
function watchPhases(s: Scene, name: string, signal: AbortSignal): { phase: string; ended: boolean; ready: boolean }[] {
  const seen: { phase: string; ended: boolean; ready: boolean }[] = [];
  const reflector = new Reflector<Pod>(
    { client: s.node.client, clock: systemClock, log: silentLogger },
    { name: 'phases', resource: PODS, namespace: s.namespace, fieldSelector: `metadata.name=${name}` },
  );
  reflector.subscribe((changes) => {
    for (const { after } of changes)
      if (after !== undefined)
        seen.push({
          phase: after.status?.phase ?? '',
          ended: statusOf(after, 'main')?.state.terminated !== undefined,
          ready: isTrue(after, 'PodReadyToStartContainers'),
        });
  });
  void reflector.run(signal);
  return seen;
}

function finishedPods(scene: () => Scene): void {
  for (const [name, code, phase, reason] of [
    ['job-well', 0, 'Succeeded', 'PodCompleted'],
    ['job-badly', 3, 'Failed', 'PodFailed'],
  ] as const)
    it(`a job that exits with ${code} is ${phase} only when its sandbox is down`, async () => {
      const s = scene();
      const stop = new AbortController();
      const seen = watchPhases(s, name, stop.signal);
      const containers = [container('main', { command: shell(`sleep 0.5; echo done; exit ${code}`) })];
      const made = await s.pod(name, { restartPolicy: 'Never', containers });
      const pod = await s.phase(name, phase);
      await untilSeen(
        'the watch has seen it',
        () => seen,
        (got) => got.some((one) => one.phase === phase),
      );
      stop.abort();
      const final = seen.filter((one) => one.phase === phase);
      assert.ok(
        final.every((one) => one.ended && !one.ready),
        JSON.stringify(seen),
      );
      assert.ok(
        seen.some((one) => one.ended && one.phase !== phase),
        `the phase is withheld first: ${JSON.stringify(seen)}`,
      );
      for (const type of ['Ready', 'ContainersReady']) {
        assert.equal(conditionOf(pod, type)?.status, 'False');
        assert.equal(conditionOf(pod, type)?.reason, reason);
      }
      assert.equal(await s.output(made), 'done\n');
      assert.equal(await s.isGone(name), false, 'finished pods stay');
      await s.delete(name);
      await s.gone(name);
    });

  it('activeDeadlineSeconds ends a pod for good', async () => {
    const s = scene();
    const made = await s.pod('deadline', { activeDeadlineSeconds: 2 });
    const pod = await s.phase('deadline', 'Failed');
    assert.equal(pod.status?.reason, 'DeadlineExceeded');
    assert.equal(pod.status?.message, 'Pod was active on the node longer than the specified deadline');
    await s.event(made, 'DeadlineExceeded');
  });
}

function others(scene: () => Scene): void {
  it('is ready only when somebody else opens the readiness gate, and keeps what they wrote', async () => {
    const s = scene();
    const type = 'example.com/in-service';
    await s.pod('gated', { readinessGates: [{ conditionType: type }] });
    const closed = await s.until('gated', 'has ready containers', (p) => isTrue(p, 'ContainersReady'));
    const { status, reason, message } = conditionOf(closed, 'Ready') ?? {};
    assert.deepEqual(
      { status, reason, message },
      {
        status: 'False',
        reason: 'ReadinessGatesNotReady',
        message: `corresponding condition of pod readiness gate "${type}" does not exist.`,
      },
    );
    const set = (value: string): Promise<Pod> =>
      s.patch(PODS, 'gated', { status: { conditions: [{ type, status: value, reason: 'Mine' }] } }, 'status');
    await set('True');
    const open = await s.ready('gated');
    assert.equal(conditionOf(open, type)?.reason, 'Mine');
    await set('False');
    await s.until('gated', 'is unready again', (p) => !isTrue(p, 'Ready'));
    await s.delete('gated');
    await s.gone('gated');
  });

  it('tells a pod that cannot run here so', async () => {
    const s = scene();
    const made = await s.pod('elsewhere', { nodeSelector: { 'example.com/no': 'node' } });
    const pod = await s.phase('elsewhere', 'Failed');
    assert.equal(pod.status?.reason, 'NodeAffinity');
    await s.event(made, 'NodeAffinity');
  });
}

function deletions(scene: () => Scene): void {
  it('gives a pod its grace period and shows how it ended', async () => {
    const s = scene();
    const command = shell('trap "sleep 1.5; echo bye; exit 5" TERM; sleep 1000 & wait');
    const made = await s.pod('graceful', { containers: [container('main', { command })] });
    await s.ready('graceful');
    const stop = new AbortController();
    const seen = watchPhases(s, 'graceful', stop.signal);
    await s.delete('graceful');
    const leaving = await s.read('graceful');
    assert.equal(leaving.metadata.deletionGracePeriodSeconds, 5);
    await s.event(made, 'Killing');
    await s.gone('graceful');
    stop.abort();
    assert.ok(
      seen.some((one) => one.phase === 'Failed' && one.ended),
      JSON.stringify(seen),
    );
  });

  it('kills what does not listen when the grace period is over', async () => {
    const s = scene();
    const command = shell('trap "" TERM; while :; do sleep 1; done');
    await s.pod('deaf', { terminationGracePeriodSeconds: 2, containers: [container('main', { command })] });
    const pod = await s.ready('deaf');
    const stopped = s.stopsOf(pod);
    const from = performance.now();
    await s.delete('deaf');
    await s.gone('deaf');
    const took = performance.now() - from;
    assert.ok(took >= 1900, `${took} ms`);
    assert.deepEqual(stopped, [2]);
  });

  it('a forced deletion takes the object at once and the containers soon', async () => {
    const s = scene();
    const made = await s.pod('forced', { terminationGracePeriodSeconds: 3600 });
    await s.ready('forced');
    await s.delete('forced', { gracePeriodSeconds: 0 });
    await s.gone('forced');
    const uid = made.metadata.uid ?? '';
    await until('its containers are gone', async () => {
      const { containers } = await s.node.containerd.runtime.listContainers(
        { filter: { labelSelector: { 'io.kubernetes.pod.uid': uid }, state: { state: 1 } } },
        new AbortController().signal,
      );
      return containers.length === 0;
    });
  });

  it('a pod may come back under its name while the old one is ending', async () => {
    const s = scene();
    const first = await s.pod('again', {});
    await s.ready('again');
    await s.delete('again', { gracePeriodSeconds: 0 });
    const second = await s.pod('again', {});
    assert.notEqual(second.metadata.uid, first.metadata.uid);
    const pod = await s.ready('again');
    assert.equal(pod.metadata.uid, second.metadata.uid);
  });

  it('runs the pre-stop hook before it stops', async () => {
    const s = scene();
    const preStop = { exec: { command: shell('echo hook > /proc/1/fd/1') } };
    const command = shell('trap "echo term; exit 0" TERM; while :; do sleep 1000 & wait $!; done');
    const made = await s.pod('hooked', { containers: [container('main', { command, lifecycle: { preStop } })] });
    await s.ready('hooked');
    const output = s.output.bind(s, made);
    const finalizers = ['example.com/keep'];
    await s.patch(PODS, 'hooked', { metadata: { finalizers } });
    await s.delete('hooked');
    await s.phase('hooked', 'Succeeded');
    assert.equal(await output(), 'hook\nterm\n');
    await s.patch(PODS, 'hooked', { metadata: { '$deleteFromPrimitiveList/finalizers': finalizers } });
    await s.gone('hooked');
  });
}
