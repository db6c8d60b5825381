// Stopping: grace arithmetic, hooks within it, and sidecars after everybody else.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import type { Container, Pod, PodSpec } from '../core/pod.ts';
import { podUid, sandboxId } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import { KubeletError } from '../lib/errors.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { fakeInfra, recordingEvents, type SeenEvent } from '../../test/golden/fixture.ts';
import { HookRunner } from './hooks.ts';
import { ContainerStopper, graceSeconds } from './stop-container.ts';
import { PodStopper } from './stop-pod.ts';

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'a' }], ...spec },
});

const seen = (name: string, more: Partial<ObservedContainer> = {}): ObservedContainer =>
  observedContainer(name, { startedAt: 1n, ...more });

const snapshotOf = (...containers: ObservedContainer[]): PodSnapshot => ({
  uid: podUid('u'),
  name: 'p',
  namespace: 'ns',
  sandboxes: [
    { id: sandboxId('s2'), attempt: 1, ready: true, createdAt: 2n, hostNetwork: false, ips: [], runtimeHandler: '' },
    { id: sandboxId('s1'), attempt: 0, ready: false, createdAt: 1n, hostNetwork: false, ips: [], runtimeHandler: '' },
  ],
  containers: containers.reverse(),
  ips: ['10.0.0.1'],
  version: 1,
});

class Bench {
  readonly clock = new ManualClock();
  readonly events: SeenEvent[] = [];
  readonly calls: string[] = [];
  readonly cutShort: string[] = [];
  /** Milliseconds a command or a stop takes. */
  readonly takes = new Map<string, number>();
  readonly fails = new Map<string, Error>();
  readonly stopper: ContainerStopper;
  readonly pods: PodStopper;

  constructor() {
    const act = async (what: string, signal: AbortSignal): Promise<void> => {
      this.calls.push(`${this.clock.monotonic() / 1000}s ${what}`);
      await this.clock.sleep(this.takes.get(what.replace(/ \d+$/, '')) ?? 0, signal);
      if (signal.aborted) this.cutShort.push(`${this.clock.monotonic() / 1000}s ${what}`);
      signal.throwIfAborted();
      const fault = this.fails.get(what.replace(/ \d+$/, ''));
      if (fault !== undefined) throw fault;
    };
    const cri = {
      execSync: async (r: { cmd: string[] }, signal: AbortSignal) => {
        await act(`exec ${r.cmd.join(' ')}`, signal);
        return { stdout: Buffer.from(''), stderr: Buffer.from(''), exitCode: r.cmd[0] === 'false' ? 1 : 0 };
      },
      stopContainer: (r: { containerId: string; timeout: number }, signal: AbortSignal) =>
        act(`stop ${r.containerId} ${r.timeout}`, signal),
      stopPodSandbox: (r: { podSandboxId: string }, signal: AbortSignal) =>
        act(`stop sandbox ${r.podSandboxId}`, signal),
    } as unknown as CriRuntime;
    const infra = fakeInfra(this.clock, '/r');
    const events = recordingEvents(this.events);
    const hooks = new HookRunner({ cri, events, infra, nodeIps: () => [] }, { kubernetesVersion: '1.36' });
    this.stopper = new ContainerStopper({ cri, hooks, events, infra });
    this.pods = new PodStopper({ cri, stopper: this.stopper });
  }

  async kill(pod: Pod | undefined, snapshot: PodSnapshot, graceOverrideSeconds?: number): Promise<readonly string[]> {
    let done = false;
    const onContainersStopped = (): void =>
      void this.calls.push(`${this.clock.monotonic() / 1000}s containers stopped`);
    const work = this.pods
      .stop({ pod, snapshot, graceOverrideSeconds, onContainersStopped }, new AbortController().signal)
      .finally(() => (done = true));
    while (!done) await this.clock.advance(50);
    return (await work).map((f) => `${f.action} ${f.target}: ${f.message}`);
  }
}

describe('grace', () => {
  const probe = { tcpSocket: { port: 1 }, terminationGracePeriodSeconds: 7 };
  const container: Container = {
    name: 'a',
    livenessProbe: probe,
    startupProbe: { ...probe, terminationGracePeriodSeconds: 8 },
  };
  for (const [what, pod, reason, want] of [
    ['nothing said', podOf(), undefined, 2],
    ['by the spec', podOf({ terminationGracePeriodSeconds: 30 }), undefined, 30],
    ['zero is a word too', podOf({ terminationGracePeriodSeconds: 0 }), undefined, 0],
    ['by the deletion', podOf({ terminationGracePeriodSeconds: 30 }, { deletionGracePeriodSeconds: 5 }), undefined, 5],
    ['by the liveness probe', podOf({ terminationGracePeriodSeconds: 30 }), 'livenessProbe', 7],
    ['by the startup probe', podOf({ terminationGracePeriodSeconds: 30 }), 'startupProbe', 8],
    [
      'the deletion outranks probes',
      podOf({ terminationGracePeriodSeconds: 30 }, { deletionGracePeriodSeconds: 5 }),
      'livenessProbe',
      5,
    ],
    ['other reasons do not ask probes', podOf({ terminationGracePeriodSeconds: 30 }), 'changed', 30],
  ] as const)
    it(what, () => assert.equal(graceSeconds(pod, container, reason), want));
});

describe('stopping a pod', () => {
  it('all containers side by side, then every sandbox', async () => {
    const bench = new Bench();
    bench.takes.set('stop a', 2000);
    const pod = podOf({ containers: [{ name: 'a' }, { name: 'b' }], terminationGracePeriodSeconds: 3 });
    assert.deepEqual(await bench.kill(pod, snapshotOf(seen('a'), seen('b'))), []);
    const sandboxes = ['2s stop sandbox s2', '2s stop sandbox s1'];
    assert.deepEqual(bench.calls, ['0s stop a 3', '0s stop b 3', ...sandboxes, '2s containers stopped']);
    assert.deepEqual(
      bench.events.map((e) => `${e.reason} ${e.message} ${e.fieldPath}`),
      ['Killing Stopping container a spec.containers{a}', 'Killing Stopping container b spec.containers{b}'],
    );
  });

  it('what does not run is not stopped', async () => {
    const bench = new Bench();
    await bench.kill(podOf(), snapshotOf(seen('a', { state: 'exited' })));
    assert.deepEqual(bench.calls, ['0s stop sandbox s2', '0s stop sandbox s1', '0s containers stopped']);
  });

  it('containers that the runtime lost track of, or may be starting, can run until their sandbox is gone', async () => {
    for (const state of ['unknown', 'created'] as const) {
      const bench = new Bench();
      await bench.kill(podOf(), snapshotOf(seen('a', { state })));
      assert.deepEqual(bench.calls, ['0s stop sandbox s2', '0s stop sandbox s1']);
    }
  });

  it('the hook uses up the grace in whole seconds', async () => {
    const bench = new Bench();
    bench.takes.set('exec slow', 2037);
    const pod = podOf({
      containers: [{ name: 'a', lifecycle: { preStop: { exec: { command: ['slow'] } } } }],
      terminationGracePeriodSeconds: 8,
    });
    await bench.kill(pod, snapshotOf(seen('a')));
    assert.deepEqual(bench.calls.slice(0, 2), ['0s exec slow', '2.037s stop a 6']);
  });

  it('a hook that lasts too long leaves two seconds and no event', async () => {
    const bench = new Bench();
    bench.takes.set('exec slow', 60_000);
    bench.takes.set('stop a', 2000);
    const pod = podOf({
      containers: [{ name: 'a', lifecycle: { preStop: { exec: { command: ['slow'] } } } }],
      terminationGracePeriodSeconds: 5,
    });
    await bench.kill(pod, snapshotOf(seen('a')));
    assert.deepEqual(bench.calls.slice(0, 2), ['0s exec slow', '5s stop a 2']);
    assert.deepEqual(bench.cutShort, ['7s exec slow'], 'it goes on until its container is gone');
    assert.deepEqual(
      bench.events.map((e) => e.reason),
      ['Killing'],
    );
  });

  it('a failing hook is told and does not hold up the stop', async () => {
    const bench = new Bench();
    const pod = podOf({
      containers: [{ name: 'a', lifecycle: { preStop: { exec: { command: ['false'] } } } }],
      terminationGracePeriodSeconds: 5,
    });
    await bench.kill(pod, snapshotOf(seen('a')));
    assert.deepEqual(
      bench.events.map((e) => `${e.reason} ${e.message}`),
      ['Killing Stopping container a', 'FailedPreStopHook PreStopHook failed'],
    );
    assert.equal(bench.calls[1], '0s stop a 5');
  });

  it('without grace there is no hook, and still two seconds', async () => {
    const bench = new Bench();
    const pod = podOf({
      containers: [{ name: 'a', lifecycle: { preStop: { exec: { command: ['x'] } } } }],
      terminationGracePeriodSeconds: 30,
    });
    await bench.kill(pod, snapshotOf(seen('a')), 0);
    assert.equal(bench.calls[0], '0s stop a 2');
  });

  const sided = podOf({
    initContainers: [
      { name: 's1', restartPolicy: 'Always' },
      { name: 's2', restartPolicy: 'Always' },
    ],
    terminationGracePeriodSeconds: 10,
  });

  it('sidecars wait for main containers, the last started goes first', async () => {
    const bench = new Bench();
    bench.takes.set('stop a', 3000);
    bench.takes.set('stop s2', 1000);
    await bench.kill(sided, snapshotOf(seen('s1'), seen('s2'), seen('a')));
    assert.deepEqual(bench.calls.slice(0, 3), ['0s stop a 10', '3s stop s2 7', '4s stop s1 6']);
    assert.deepEqual(bench.events.map((e) => e.message).length, 3);
  });

  it('sidecars wait no longer than their grace', async () => {
    const bench = new Bench();
    bench.takes.set('stop a', 30_000);
    await bench.kill(sided, snapshotOf(seen('s1'), seen('a')));
    assert.deepEqual(bench.calls.slice(0, 2), ['0s stop a 10', '10s stop s1 2']);
  });

  it('only running containers are waited for', async () => {
    const bench = new Bench();
    await bench.kill(sided, snapshotOf(seen('s1'), seen('a', { state: 'exited' })));
    assert.equal(bench.calls[0], '0s stop s1 10');
  });

  it('failures keep their full text, and sandboxes are stopped all the same', async () => {
    const bench = new Bench();
    bench.fails.set('stop a', new GrpcError(GrpcCode.Unknown, 'no'));
    const failures = await bench.kill(podOf(), snapshotOf(seen('a')));
    assert.deepEqual(failures, ['KillContainer a: rpc error: code = Unknown desc = no']);
    assert.deepEqual(bench.calls.slice(1), ['0s stop sandbox s2', '0s stop sandbox s1'], 'and nobody says it stopped');
  });

  it('what is gone already counts as stopped', async () => {
    const bench = new Bench();
    bench.fails.set('stop a', new GrpcError(GrpcCode.NotFound, 'gone'));
    bench.fails.set('stop sandbox s1', new KubeletError('notFound', 'gone'));
    assert.deepEqual(await bench.kill(podOf(), snapshotOf(seen('a'))), []);
  });

  it('a pod known only by its containers', async () => {
    const bench = new Bench();
    const annotations = {
      'io.kubernetes.container.preStopHandler': '{"exec":{"command":["bye"]}}',
      'io.kubernetes.pod.terminationGracePeriod': '6',
    };
    await bench.kill(undefined, snapshotOf(seen('a', { annotations })));
    assert.deepEqual(bench.calls.slice(0, 2), ['0s exec bye', '0s stop a 6']);
    assert.equal(bench.events[0]?.fieldPath, 'spec.containers{a}');
  });
});
