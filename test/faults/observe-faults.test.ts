// The observer when the runtime misbehaves: the fake behind a proxy that makes trouble.
// runs: gate
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openCri, type CriConnection } from '../../src/cri/connection.ts';
import { podUid } from '../../src/core/ids.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcCode } from '../../src/lib/grpc/status.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Observer } from '../../src/observe/observer.ts';
import { FakeCri } from '../fakes/fake-cri.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { runPod } from '../harness/pods.ts';
import { CriProxy } from './cri-proxy.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

const forever = new AbortController().signal;
/** Long enough for a busy machine to see the other pods meanwhile. */
const READ_DEADLINE_MS = 2000;

describe('observer behind a faulty connection', () => {
  const fake = new FakeCri();
  const proxy = new CriProxy(fake.socketPath);
  const stop = new AbortController();
  let cri: CriConnection;
  let observer: Observer;
  let running: Promise<void>;

  before(async () => {
    fake.state.addImage(BUSYBOX_IMAGE);
    await fake.start();
    await proxy.start();
    cri = openCri(systemClock, { runtimeEndpoint: proxy.endpoint, imageEndpoint: '', timeoutMs: 10_000 });
    observer = new Observer(
      { runtime: cri.runtime, channel: cri.channel, clock: systemClock, log: silentLogger, registry: new Registry() },
      { readDeadlineMs: READ_DEADLINE_MS, withoutEventsMs: 100, idleMs: 200, idleMaxMs: 400 },
    );
    running = observer.run(stop.signal);
    await observer.cache.whenReady(forever);
    await untilSeen(
      'events flow',
      () => observer.stream,
      (seen) => seen === 'cri',
    );
  });
  after(async () => {
    stop.abort();
    await running;
    cri.close();
    await proxy.stop();
    await fake.stop();
  });
  const stateOf = (uid: string): string | undefined => observer.cache.get(podUid(uid))?.containers[0]?.state;

  it('finds by relist what a lost event would have told', async () => {
    const pod = await runPod(fake, 'lost', ['sleep', '1000']);
    await untilSeen(
      'seen',
      () => stateOf(pod.uid),
      (seen) => seen === 'running',
    );
    proxy.events = 'drop';
    fake.state.exit(pod.containerId, 7);
    await untilSeen(
      'found',
      () => stateOf(pod.uid),
      (seen) => seen === 'exited',
    );
    proxy.events = undefined;
  });

  it('tells a death once, however often the event comes', async () => {
    const pod = await runPod(fake, 'twice', ['sleep', '1000']);
    await untilSeen(
      'seen',
      () => stateOf(pod.uid),
      (seen) => seen === 'running',
    );
    proxy.events = 'duplicate';
    let deaths = 0;
    const off = observer.cache.onChange((_, events) => {
      deaths += events.filter((e) => e.type === 'ContainerDied' && e.id === pod.containerId).length;
    });
    fake.state.exit(pod.containerId, 1);
    await untilSeen(
      'seen',
      () => deaths,
      (seen) => seen > 0,
    );
    await timePasses(300, 'nothing to happen');
    off();
    proxy.events = undefined;
    assert.equal(deaths, 1);
  });

  it('sets a pod that hangs aside by name, while others go on', async () => {
    const sick = await runPod(fake, 'sick', ['sleep', '1000']);
    const well = await runPod(fake, 'well', ['sleep', '1000']);
    await until('both seen', () => stateOf(sick.uid) === 'running' && stateOf(well.uid) === 'running');
    const lift = proxy.inject({
      verb: 'ContainerStatus',
      fault: { do: 'hang' },
      when: (r) => (r as { containerId: string }).containerId === sick.containerId,
    });
    const read = observer.cache.refresh(podUid(sick.uid), forever);
    await assert.rejects(read, { kind: 'deadline' });
    const [named] = observer.cache.unreadable();
    assert.deepEqual([named?.name, named?.namespace, named?.uid], ['sick', 'test', sick.uid]);
    // The end of another pod is seen while the sick one is being read, which is given up before long.
    let seenMeanwhile = 0;
    for (let i = 0; i < 20 && seenMeanwhile === 0; i++) {
      const other = i === 0 ? well : await runPod(fake, `well-${i}`, ['sleep', '1000']);
      await untilSeen(
        'the other pod runs',
        () => stateOf(other.uid),
        (seen) => seen === 'running',
      );
      let isGivenUp = false;
      const again = assert.rejects(observer.cache.refresh(podUid(sick.uid), forever)).then(() => (isGivenUp = true));
      fake.state.exit(other.containerId, 0);
      await untilSeen(
        'the other pod is seen',
        () => stateOf(other.uid),
        (seen) => seen === 'exited',
      );
      if (!isGivenUp) seenMeanwhile++;
      await again;
    }
    assert.ok(seenMeanwhile > 0, 'the other pods had to wait');
    assert.equal(observer.unhealthy(), undefined);
    lift();
    await untilSeen(
      'readable again',
      () => observer.cache.unreadable(),
      (seen) => seen.length === 0,
    );
  });

  it('keeps the last truth while a read fails, then tells what happened meanwhile', async () => {
    const pod = await runPod(fake, 'fails', ['sleep', '1000']);
    await untilSeen(
      'seen',
      () => stateOf(pod.uid),
      (seen) => seen === 'running',
    );
    // A read under way might see the death before the fault begins.
    await observer.cache.refresh(podUid(pod.uid), forever);
    const lift = proxy.inject({
      verb: 'ContainerStatus',
      fault: { do: 'error', code: GrpcCode.Internal, message: 'broken' },
    });
    fake.state.exit(pod.containerId, 9);
    await untilSeen(
      'set aside',
      () => observer.cache.unreadable(),
      (seen) => seen.some((p) => p.uid === pod.uid),
    );
    assert.equal(stateOf(pod.uid), 'running');
    lift();
    await untilSeen(
      'told',
      () => stateOf(pod.uid),
      (seen) => seen === 'exited',
    );
    assert.equal(observer.cache.get(podUid(pod.uid))?.containers[0]?.exitCode, 9);
  });

  it('comes back after an outage without blaming a pod', async () => {
    const pod = await runPod(fake, 'outage', ['sleep', '1000']);
    await untilSeen(
      'seen',
      () => stateOf(pod.uid),
      (seen) => seen === 'running',
    );
    const outage = proxy.outage(500);
    await timePasses(50, 'an outage');
    fake.state.exit(pod.containerId, 0);
    await assert.rejects(observer.cache.refresh(podUid(pod.uid), forever), { kind: 'unavailable' });
    await outage;
    await untilSeen(
      'seen after the outage',
      () => stateOf(pod.uid),
      (seen) => seen === 'exited',
    );
    assert.deepEqual(observer.cache.unreadable(), []);
  });

  it('lists in parts when the runtime finds the whole list too large', async () => {
    const pod = await runPod(fake, 'large', ['sh', '-c', 'exit 3']);
    await untilSeen(
      'seen',
      () => stateOf(pod.uid),
      (seen) => seen === 'exited',
    );
    const whole = (r: unknown): boolean => (r as { filter?: unknown }).filter === undefined;
    const tooLarge = {
      do: 'error',
      code: GrpcCode.ResourceExhausted,
      message: 'trying to send message larger than max',
    } as const;
    const lifts = ['ListContainers', 'ListPodSandbox'].map((verb) =>
      proxy.inject({ verb, fault: tooLarge, when: whole }),
    );
    proxy.events = 'drop';
    const later = await runPod(fake, 'later', ['sleep', '1000']);
    await untilSeen(
      'found by a relist',
      () => stateOf(later.uid),
      (seen) => seen === 'running',
    );
    assert.equal(stateOf(pod.uid), 'exited');
    assert.equal(observer.unhealthy(), undefined);
    proxy.events = undefined;
    for (const lift of lifts) lift();
  });

  it('rejects the call whose answer is cut off as unavailable, and the next one works', async () => {
    proxy.inject({ verb: 'Version', fault: { do: 'cut' }, times: 1 });
    await assert.rejects(cri.runtime.version({}, forever), { kind: 'unavailable' });
    const answers = async (): Promise<boolean> => (await cri.runtime.version({}, forever)).runtimeName === 'fake';
    await until('the next call connects', answers);
  });
});

describe('observer of a runtime with the ways of CRI-O', () => {
  it('does not look at what the runtime kept for it, and sees what happens now', async () => {
    let agoNanos = 60_000_000_000n;
    const clock = { ...systemClock, nowNanos: () => systemClock.nowNanos() - agoNanos };
    const fake = new FakeCri({ ways: 'cri-o', clock });
    fake.state.addImage(BUSYBOX_IMAGE);
    await fake.start();
    for (let i = 0; i < 100; i++) {
      const old = await runPod(fake, `old-${i}`, ['sleep', '1000']);
      fake.state.removeSandbox(old.sandboxId);
    }
    agoNanos = 0n;
    const pod = await runPod(fake, 'now', ['sleep', '1000']);
    fake.calls.length = 0;
    const cri = openCri(systemClock, { runtimeEndpoint: fake.endpoint, imageEndpoint: '', timeoutMs: 10_000 });
    const deps = { runtime: cri.runtime, channel: cri.channel, clock: systemClock, log: silentLogger };
    const observer = new Observer({ ...deps, registry: new Registry() }, { idleMs: 60_000 });
    const stop = new AbortController();
    const running = observer.run(stop.signal);
    try {
      await observer.cache.whenReady(forever);
      await untilSeen(
        'events flow',
        () => observer.stream,
        (seen) => seen === 'cri',
      );
      fake.state.exit(pod.containerId, 3);
      const exitCode = (): number | undefined => observer.cache.get(podUid(pod.uid))?.containers[0]?.exitCode;
      await untilSeen('its end is seen', exitCode, (seen) => seen === 3);
      const looks = fake.calls.filter(({ verb }) => !['Version', 'Status'].includes(verb)).length;
      assert.ok(looks < 30, `${looks} calls`);
    } finally {
      stop.abort();
      await running;
      cri.close();
      await fake.stop();
    }
  });
});
