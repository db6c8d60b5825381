// What a sync does when something fails: reasons, events, and what still happens.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import type { Container, Pod, PodSpec } from '../core/pod.ts';
import { ContainerStartError } from '../core/reasons.ts';
import { KubeletError } from '../lib/errors.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ScriptedRuntime, type RuntimeScript } from '../../test/golden/scripted-runtime.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  mountsFromSpec,
  recordingEvents,
  removerOn,
  type SeenEvent,
} from '../../test/golden/fixture.ts';
import type { ImageRequest, ResourceManager } from './needs.ts';
import { PodRuntime, type PodRuntimeDeps, type PodSyncRequest } from './pod-runtime.ts';
import type { PodSyncResult } from './sync-result.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kts-sync-'));
  await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
});
after(() => rm(root, { recursive: true, force: true }));

const box = (name: string, more: Partial<Container> = {}): Container => ({ name, image: `img-${name}`, ...more });
const podOf = (spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers: [box('a')], enableServiceLinks: true, restartPolicy: 'Always', ...spec },
});

const broken = new GrpcError(GrpcCode.Unknown, 'broken');

class Bench {
  readonly clock = new ManualClock();
  readonly events: SeenEvent[] = [];
  readonly ensured: ImageRequest[] = [];
  readonly scripted: ScriptedRuntime;
  readonly runtime: PodRuntime;
  ensure: (request: ImageRequest, signal: AbortSignal) => Promise<{ imageRef: string }> = async ({ image }) => ({
    imageRef: `ref-${image}`,
  });

  constructor(
    pod: Pod,
    options: {
      fail?: Partial<Record<keyof CriRuntime, Error>>;
      script?: Partial<RuntimeScript>;
      resources?: Partial<ResourceManager>;
      cluster?: Partial<PodRuntimeDeps['cluster']>;
    } = {},
  ) {
    this.scripted = new ScriptedRuntime({ podIp: '10.0.0.1', ...options.script }, this.clock);
    const fails = Object.entries(options.fail ?? {}).map(([verb, err]) => [verb, () => Promise.reject(err)]);
    const cri = { ...this.scripted.cri, ...Object.fromEntries(fails) } as CriRuntime;
    this.runtime = new PodRuntime(
      {
        cri,
        images: {
          ensure: (request, signal) => {
            this.ensured.push(request);
            return this.ensure(request, signal);
          },
        },
        volumes: mountsFromSpec(root, pod),
        resources: { cgroupParentOf: () => '/x', ...options.resources },
        remover: removerOn(cri, root),
        cluster: { ...fakeCluster(), ...options.cluster },
        events: recordingEvents(this.events),
        infra: fakeInfra(this.clock, root),
      },
      facts(root),
    );
  }

  /** `snapshot`: as somebody saw it, where that is not how it is. */
  sync(pod: Pod, more: Partial<PodSyncRequest> = {}): Promise<PodSyncResult> {
    const probes = { liveness: () => undefined, startup: () => undefined };
    const snapshot = this.scripted.snapshot('u', 'p', 'ns');
    return this.runtime.syncPod({ pod, snapshot, pullSecrets: [], probes, ...more }, new AbortController().signal);
  }

  get reported(): string[] {
    return this.events.map((e) => `${e.type} ${e.reason}: ${e.message}`);
  }
}

describe('a container that cannot start', () => {
  const hook = (name: 'preCreate' | 'preStart'): Partial<ResourceManager> => ({
    hooks: {
      preCreate: async () => (name === 'preCreate' ? Promise.reject(new Error('no CPUs')) : {}),
      preStart: async () => Promise.reject(new Error('no devices')),
      hasExclusiveCpus: () => false,
      ownsCpus: () => false,
    },
  });
  const rows: readonly [string, ConstructorParameters<typeof Bench>[1], Pod, string, string, readonly string[]][] = [
    [
      'config',
      {},
      podOf({ containers: [box('a', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })] }),
      'CreateContainerConfigError',
      'cannot find volume "v" to mount into container "a"',
      ['Warning Failed: Error: cannot find volume "v" to mount into container "a"'],
    ],
    [
      'pre-create hook',
      { resources: hook('preCreate') },
      podOf(),
      'PreCreateHookError',
      'no CPUs',
      ['Warning Failed: Internal PreCreateContainer hook failed: no CPUs'],
    ],
    [
      'create',
      { fail: { createContainer: broken } },
      podOf(),
      'CreateContainerError',
      'broken',
      ['Warning Failed: Error: broken'],
    ],
    [
      'pre-start hook',
      { resources: hook('preStart') },
      podOf(),
      'PreStartHookError',
      'no devices',
      ['Warning Failed: Internal PreStartContainer hook failed: no devices'],
    ],
    [
      'start',
      { fail: { startContainer: broken } },
      podOf(),
      'RunContainerError',
      'broken',
      ['Normal Created: Container created', 'Warning Failed: Error: broken'],
    ],
    [
      'post-start hook',
      { script: { execExits: { x: 1 } } },
      podOf({ containers: [box('a', { lifecycle: { postStart: { exec: { command: ['x'] } } } })] }),
      'PostStartHookError',
      'Exec lifecycle hook ([x]) for Container "a" in Pod "p_ns(u)" failed - error: command \'x\' exited with 1: , message: ""',
      [
        'Normal Created: Container created',
        'Normal Started: Container started',
        'Warning FailedPostStartHook: PostStartHook failed',
        'Normal Killing: FailedPostStartHook',
      ],
    ],
  ];
  for (const [what, options, pod, reason, message, reported] of rows)
    it(what, async () => {
      const bench = new Bench(pod, options);
      const result = await bench.sync(pod);
      assert.deepEqual(result.startErrors.get('a'), { reason, message });
      assert.deepEqual(bench.reported, reported);
      assert.match(result.failure?.message ?? '', new RegExp(`^failed to "StartContainer" for "a" with ${reason}: `));
    });

  it('leaves no termination message file, however often it is tried', async () => {
    const refused = podOf({
      containers: [
        box('a', { terminationMessagePath: '/dev/termination-log', securityContext: { runAsNonRoot: true } }),
      ],
    });
    const failing = podOf({ containers: [box('a', { terminationMessagePath: '/dev/termination-log' })] });
    for (const [pod, options, reason] of [
      [refused, {}, 'CreateContainerConfigError'],
      [failing, { fail: { createContainer: broken } }, 'CreateContainerError'],
    ] as const) {
      const bench = new Bench(pod, options);
      for (const _ of [1, 2, 3]) assert.equal((await bench.sync(pod)).startErrors.get('a')?.reason, reason);
      const files = await readdir(join(root, 'pods', 'u', 'containers', 'a')).catch(() => []);
      assert.deepEqual(files, [], reason);
    }
  });

  it('image: the event names the reason, the status has the text, the retry its time', async () => {
    const pod = podOf();
    const bench = new Bench(pod);
    const fault = Object.assign(new ContainerStartError('ImagePullBackOff', 'long story'), {
      retryAt: bench.clock.now() + 5000,
    });
    bench.ensure = () => Promise.reject(fault);
    const result = await bench.sync(pod);
    assert.deepEqual(result.startErrors.get('a'), { reason: 'ImagePullBackOff', message: 'long story' });
    assert.deepEqual(bench.reported, ['Warning Failed: Error: ImagePullBackOff']);
    assert.equal(result.retryAt, bench.clock.monotonic() + 5000);
  });

  it('a text with its id is told with its name', async () => {
    const bench = new Bench(podOf(), { script: { startErrors: { a: 'task container-1: no' } } });
    const result = await bench.sync(podOf());
    assert.equal(bench.reported.at(-1), 'Warning Failed: Error: task a: no');
    assert.equal(result.startErrors.get('a')?.message, 'task container-1: no');
  });

  it('in a sandbox that was stopped behind our back: no back-off, no blame, and another look at once', async () => {
    const pod = podOf({ restartPolicy: 'Always' });
    const bench = new Bench(pod);
    await bench.sync(pod);
    bench.scripted.exit('a', 137);
    const wasTried = bench.scripted.stopSandboxDuringNextStart();
    const result = await bench.sync(pod);
    assert.deepEqual([wasTried(), result.startErrors.get('a')], [true, undefined]);
    assert.deepEqual([result.acted, result.retryAt], [true, bench.clock.monotonic()]);
    const again = await bench.sync(pod);
    assert.deepEqual([again.startErrors.get('a'), again.failure], [undefined, undefined]);
    assert.ok(!bench.reported.some((line) => line.includes('BackOff')));
  });

  it('does not keep the next from starting', async () => {
    const pod = podOf({ containers: [box('a'), box('b')] });
    const bench = new Bench(pod, { script: { startErrors: { a: 'no' } } });
    const result = await bench.sync(pod);
    assert.deepEqual(
      [...result.startErrors].map(([name, e]) => [name, e?.reason]),
      [
        ['a', 'RunContainerError'],
        ['b', undefined],
      ],
    );
    assert.equal(result.acted, true);
  });

  it('a regular init container ends the sync, a sidecar does not', async () => {
    const pod = podOf({ initContainers: [box('s', { restartPolicy: 'Always' }), box('i')] });
    const bench = new Bench(pod, { script: { startErrors: { s: 'no', i: 'no' } } });
    await bench.sync(pod);
    assert.deepEqual([...(await bench.sync(pod)).startErrors.keys()], ['s']);
  });
});

describe('a new pod', () => {
  const made = async (bench: Bench, pod: Pod): Promise<unknown> => {
    const { made: all } = await bench.sync(pod);
    return all === undefined ? undefined : [all.sandbox.id, all.containerIds];
  };

  it('comes with what was made of it, when nothing else was done', async () => {
    const pod = podOf({ containers: [box('a'), box('b')] });
    const bench = new Bench(pod, { script: { exits: { a: 1 } } });
    assert.deepEqual(await made(bench, pod), ['sandbox-1', ['container-1', 'container-2']]);
    assert.equal(await made(bench, pod), undefined, 'a restart in a sandbox that was there');
  });

  it('must be looked at in full when a container did not start, or its sandbox says nothing', async () => {
    const pod = podOf({ containers: [box('a'), box('b')] });
    assert.equal(await made(new Bench(pod, { script: { startErrors: { a: 'no' } } }), pod), undefined);
    assert.equal(await made(new Bench(pod, { fail: { podSandboxStatus: broken } }), pod), undefined);
  });
});

describe('the sandbox', () => {
  it('is not made while the resolver file cannot be read, and is as soon as it can', async () => {
    const bench = new Bench(podOf());
    await rename(join(root, 'resolv.conf'), join(root, 'away'));
    const failed = await bench.sync(podOf());
    assert.match(failed.failure?.message ?? '', /: open \S+resolv\.conf: no such file or directory/);
    await rename(join(root, 'away'), join(root, 'resolv.conf'));
    assert.equal((await bench.sync(podOf())).failure, undefined);
  });

  it('cannot be made: the full text is told', async () => {
    const bench = new Bench(podOf(), { fail: { runPodSandbox: broken } });
    const result = await bench.sync(podOf());
    assert.deepEqual(bench.reported, [
      'Warning FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = broken',
    ]);
    assert.equal(result.startErrors.size, 0);
    assert.match(
      result.failure?.message ?? '',
      /^failed to "CreatePodSandbox" for "p_ns\(u\)" with CreatePodSandboxError: /,
    );
    assert.equal(bench.ensured.length, 0);
  });
  it('a look at an image begun meanwhile is called off with it', async () => {
    const bench = new Bench(podOf(), { fail: { podSandboxStatus: broken } });
    let calledOff = false;
    bench.ensure = (_request, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          calledOff = true;
          reject(new Error('called off'));
        }),
      );
    await bench.sync(podOf());
    assert.equal(calledOff, true);
  });
  it('called off: nothing is told', async () => {
    const bench = new Bench(podOf());
    const stop = new AbortController();
    bench.ensure = () => {
      stop.abort(new Error('stopping'));
      return Promise.reject(new Error('no'));
    };
    const probes = { liveness: () => undefined, startup: () => undefined };
    const snapshot = bench.scripted.snapshot('u', 'p', 'ns');
    await assert.rejects(
      bench.runtime.syncPod({ pod: podOf(), snapshot, pullSecrets: [], probes }, stop.signal),
      /stopping/,
    );
    assert.deepEqual(bench.reported, []);
  });
  it('of a pod that is being stopped is nobody’s news', async () => {
    const bench = new Bench(podOf(), { fail: { runPodSandbox: broken } });
    await bench.sync(podOf(), { isTerminating: () => true });
    assert.deepEqual(bench.reported, []);
  });
  it('does not tell its address', async () => {
    const bench = new Bench(podOf(), { fail: { podSandboxStatus: broken } });
    await bench.sync(podOf());
    assert.deepEqual(bench.reported, [
      'Warning FailedPodSandBoxStatus: Unable to get pod sandbox status: rpc error: code = Unknown desc = broken',
    ]);
  });
  it('has no such runtime class', async () => {
    const cluster = {
      runtimeHandler: () => Promise.reject(new KubeletError('notFound', 'runtimeclass "x" not found')),
    };
    const bench = new Bench(podOf(), { cluster });
    await bench.sync(podOf({ runtimeClassName: 'x' }));
    assert.deepEqual(bench.reported, [
      'Warning FailedCreatePodSandBox: Failed to create pod sandbox: runtimeclass "x" not found',
    ]);
  });
  it('cannot have users of its own here', async () => {
    const cluster = { handlerFeatures: () => ({ userNamespaces: false, recursiveReadOnlyMounts: false }) };
    const bench = new Bench(podOf(), { cluster });
    await bench.sync(podOf({ hostUsers: false }));
    assert.match(
      bench.reported[0] ?? '',
      /can't set `spec\.hostUsers: false`, runtime does not support user namespaces$/,
    );
  });
  it('claims are not ready', async () => {
    const bench = new Bench(podOf(), { resources: { prepare: () => Promise.reject(new Error('no claim')) } });
    await bench.sync(podOf());
    assert.deepEqual(bench.reported, [
      'Warning FailedPrepareDynamicResources: Failed to prepare dynamic resources: no claim',
    ]);
  });
});

describe('a sync', () => {
  it('tells the sandbox’s address before any container starts', async () => {
    const bench = new Bench(podOf());
    const seen: string[] = [];
    await bench.sync(podOf(), {
      onSandboxReady: (id, ips) => seen.push(id, ...ips, String(bench.scripted.calls.length)),
    });
    assert.deepEqual(seen, ['sandbox-1', '10.0.0.1', '1']);
  });
  it('maps users in every mount of a pod with its own', async () => {
    const pod = podOf({ hostUsers: false, containers: [box('a', { terminationMessagePath: '/t' })] });
    const bench = new Bench(pod);
    await bench.sync(pod);
    const config = bench.scripted.calls.find((c) => c.call === 'CreateContainer')?.request['config'] as {
      mounts: { uidMappings: unknown[] }[];
    };
    assert.equal(config.mounts.length, 2);
    for (const mount of config.mounts)
      assert.deepEqual(mount.uidMappings, [{ hostId: 65_536, containerId: 0, length: 65_536 }]);
  });
  it('gives image volumes to those who mount them, and only keeps those from starting', async () => {
    const env = [{ name: 'V', value: 'x' }];
    const mounts = { env, volumeMounts: [{ name: 'data', mountPath: '/d', subPathExpr: '$(V)/y' }] };
    const pod = podOf({
      containers: [box('a', mounts), box('b')],
      volumes: [{ name: 'data', image: { reference: 'data:v1', pullPolicy: 'Never' } }],
    });
    const bench = new Bench(pod);
    await bench.sync(pod);
    const config = bench.scripted.calls.find((c) => c.call === 'CreateContainer')?.request['config'] as {
      mounts: unknown[];
    };
    assert.deepEqual(config.mounts[0], {
      containerPath: '/d',
      image: { image: 'ref-data:v1', userSpecifiedImage: 'data:v1', runtimeHandler: '', annotations: {} },
      imageSubPath: 'x/y',
      readonly: true,
      propagation: 0,
      recursiveReadOnly: false,
    });

    const without = new Bench(pod);
    without.ensure = async ({ image }) => {
      if (image === 'data:v1') throw new ContainerStartError('ErrImageNeverPull', 'not here');
      return { imageRef: image };
    };
    const result = await without.sync(pod);
    assert.deepEqual(
      ['a', 'b'].map((name) => result.startErrors.get(name)?.reason),
      ['ErrImageNeverPull', undefined],
    );
    assert.ok(without.reported.includes('Warning Failed: Error: ErrImageNeverPull'));
  });
  it('asks for each image once', async () => {
    const pod = podOf({ containers: [box('a'), box('b')] });
    const bench = new Bench(pod);
    await bench.sync(pod);
    assert.deepEqual(
      bench.ensured.map((r) => r.fieldPath),
      ['spec.containers{a}', 'spec.containers{b}'],
    );
  });
  it('a failed kill stops it', async () => {
    const pod = podOf();
    const bench = new Bench(pod);
    await bench.sync(pod);
    const other = podOf({ containers: [box('a', { image: 'other' })] });
    const stuck = new Bench(other, { fail: { stopContainer: broken } });
    const result = await stuck.sync(other, { snapshot: bench.scripted.snapshot('u', 'p', 'ns') });
    assert.equal(
      result.failure?.message,
      'failed to "KillContainer" for "a" with KillContainerError: "rpc error: code = Unknown desc = broken"',
    );
    assert.deepEqual(stuck.scripted.calls, []);
  });
  it('everything starts over when a rule says so', async () => {
    const rules = {
      restartPolicy: 'Never' as const,
      restartPolicyRules: [
        { action: 'RestartAllContainers' as const, exitCodes: { operator: 'In' as const, values: [3] } },
      ],
    };
    const pod = podOf({ containers: [box('a', rules), box('b')] });
    const bench = new Bench(pod, { script: { exits: { a: 3 } } });
    await bench.sync(pod);
    assert.equal((await bench.sync(pod)).acted, true);
    assert.deepEqual(bench.scripted.snapshot('u', 'p', 'ns').containers, []);
    assert.deepEqual(
      bench.scripted.calls.filter((c) => c.call === 'StopContainer').map((c) => c.request),
      [{ containerId: 'container-2', timeout: 2 }],
    );
    assert.ok(bench.reported.includes('Normal Killing: killing'));
    // The first time at once, then with the back-off of the one that failed.
    assert.equal((await bench.sync(pod)).retryAt, undefined);
    await bench.sync(pod);
    const waiting = await bench.sync(pod);
    assert.equal(waiting.startErrors.get('a')?.reason, 'CrashLoopBackOff');
    assert.equal(waiting.startErrors.get('b'), undefined);
  });

  it('one that was created and never started goes before another takes its number', async () => {
    const bench = new Bench(podOf(), { fail: { startContainer: broken } });
    await bench.sync(podOf());
    const created = { ...bench.scripted.snapshot('u', 'p', 'ns') };
    assert.equal(created.containers[0]?.state, 'created');
    const stuck = new Bench(podOf(), { fail: { removeContainer: broken } });
    const waits = await stuck.sync(podOf(), { snapshot: created });
    assert.deepEqual(stuck.scripted.calls, []);
    assert.deepEqual([stuck.reported, waits.startErrors.size, waits.acted], [[], 0, true]);
    assert.equal(waits.retryAt, stuck.clock.monotonic() + 500);

    await bench.sync(podOf());
    const attempts = bench.scripted.calls
      .filter((c) => c.call === 'CreateContainer')
      .map((c) => (c.request['config'] as { metadata: { attempt: number } }).metadata.attempt);
    assert.deepEqual(attempts, [0, 0]);
    assert.equal(bench.scripted.snapshot('u', 'p', 'ns').containers.length, 1);
  });

  it('one that has started since it was seen is left alone, and looked at again', async () => {
    const bench = new Bench(podOf());
    await bench.sync(podOf());
    const running = bench.scripted.snapshot('u', 'p', 'ns');
    const seen = running.containers.map((c) => ({ ...c, state: 'created' as const }));
    bench.scripted.calls.length = 0;
    const { acted, failure, retryAt } = await bench.sync(podOf(), { snapshot: { ...running, containers: seen } });
    assert.deepEqual([acted, failure, retryAt], [true, undefined, bench.clock.monotonic()]);
    assert.deepEqual(bench.scripted.calls, []);
    assert.deepEqual(bench.scripted.snapshot('u', 'p', 'ns').containers, running.containers);
  });

  it('one that ended and cannot be removed does not keep the pod from going on', async () => {
    const pod = podOf({ initContainers: [box('i')] });
    const bench = new Bench(pod, {
      fail: { removeContainer: new GrpcError(GrpcCode.FailedPrecondition, 'cannot delete running task') },
      script: { exits: { i: 1 } },
    });
    for (let n = 0; n < 4; n++) {
      const result = await bench.sync(pod);
      assert.equal(result.failure, undefined);
      await bench.clock.advance(600_000);
    }
    assert.equal(bench.scripted.snapshot('u', 'p', 'ns').containers.length, 4);
  });
});
