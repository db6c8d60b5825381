import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { containerId, podUid, sandboxId, type ContainerId } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import { systemClock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { GarbageCollector, type CollectorDeps } from './collector.ts';
import { ContainerRemover } from './container-remover.ts';
import type { GarbageRuntime } from './cri-garbage.ts';
import { DEFAULT_POLICY, type GcContainer, type GcSandbox } from './plan.ts';
import { until } from '../../test/harness/until.ts';

const root = mkdtempSync(join(tmpdir(), 'garbage-'));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
const signal = new AbortController().signal;

const container = (id: string, pod: string, state: GcContainer['state'] = 'exited'): GcContainer => ({
  id: containerId(id),
  sandboxId: sandboxId(`s-${pod}`),
  podUid: podUid(pod),
  podName: pod,
  namespace: 'ns',
  name: 'c',
  state,
  attempt: 0,
  createdAt: BigInt(count++),
});

class FakeRuntime implements GarbageRuntime {
  list: GcContainer[] = [];
  boxes: GcSandbox[] = [];
  readonly calls: string[] = [];
  readonly stuck = new Set<string>();
  most = 0;
  onRemove: () => void = () => undefined;
  #active = 0;

  lists = 0;
  asked: ContainerId[] = [];

  containers = (): Promise<readonly GcContainer[]> => {
    this.lists++;
    return Promise.resolve([...this.list]);
  };
  sandboxes = (): Promise<readonly GcSandbox[]> => Promise.resolve([...this.boxes]);
  container = (id: ContainerId) => {
    this.asked.push(id);
    const found = this.list.find((c) => c.id === id);
    return Promise.resolve(found && { logPath: `/logs/${id}.log`, state: found.state });
  };
  kill = (id: string): Promise<void> => this.#did(`kill ${id}`);
  removeContainer = async (id: string): Promise<void> => {
    this.onRemove();
    this.most = Math.max(this.most, ++this.#active);
    await new Promise((resolve) => setImmediate(resolve));
    this.#active--;
    if (this.stuck.has(id)) throw new KubeletError('unavailable', 'stuck');
    this.list = this.list.filter((c) => c.id !== id);
    await this.#did(`remove ${id}`);
  };
  removeSandbox = (id: string): Promise<void> => {
    this.boxes = this.boxes.filter((s) => s.id !== id);
    return this.#did(`sandbox ${id}`);
  };
  #did(call: string): Promise<void> {
    this.calls.push(call);
    return Promise.resolve();
  }
}

function setup(gone: readonly string[] = [], more: Partial<CollectorDeps> = {}, limits = {}) {
  const directory = join(root, String(count++));
  const places = { podLogs: join(directory, 'pods'), containerLogs: join(directory, 'containers') };
  for (const path of Object.values(places)) mkdirSync(path, { recursive: true });
  const runtime = new FakeRuntime();
  const logs: string[] = [];
  const stopped: string[] = [];
  const collector = new GarbageCollector(
    {
      clock: systemClock,
      log: silentLogger,
      runtime,
      pods: { contentRemovable: (uid) => gone.includes(uid), runtimeRemovable: (uid) => uid.startsWith('done') },
      remover: new ContainerRemover(
        {
          runtime,
          removeLogs: (path) => Promise.resolve(void logs.push(path)),
          postStop: (uid, name, id) => void stopped.push(`${uid} ${name} ${id}`),
        },
        places,
      ),
      sourcesReady: () => true,
      events: { node: () => undefined },
      ...more,
    },
    { policy: DEFAULT_POLICY, everyMs: 60_000, ...places, ...limits },
  );
  return { runtime, collector, logs, stopped, ...places };
}

describe('garbage collector', () => {
  it('frees what each removed container held, whoever asks for the removal', async () => {
    const { runtime, collector, stopped } = setup(['old']);
    runtime.list = [container('a', 'old'), container('k', 'new')];
    await collector.collect({ allUnused: false }, signal);
    assert.deepEqual(stopped, ['old c a']);
    const dead = [observedContainer('x', { id: 'x', state: 'exited' }), observedContainer('c', { id: 'runs' })];
    await collector.removeContainersOf({ ...emptySnapshot(podUid('u'), 'p', 'n'), containers: dead }, signal);
    assert.deepEqual(stopped.slice(1), ['u x x']);
  });

  it('removes what pods that are gone leave, with logs and links, and nothing of others', async () => {
    const { runtime, collector, logs, podLogs, containerLogs } = setup(['old']);
    runtime.list = [
      container('a', 'old'),
      container('b', 'old', 'unknown'),
      container('r', 'old', 'running'),
      container('k', 'new'),
    ];
    runtime.boxes = [{ id: sandboxId('box'), podUid: podUid('old'), ready: false, attempt: 0, createdAt: 1n }];
    mkdirSync(join(podLogs, 'ns_old_old', 'c'), { recursive: true });
    mkdirSync(join(podLogs, 'ns_new_new'));
    for (const name of ['old_ns_c-a', 'x-gone', 'x-r', 'x-k'])
      symlinkSync('/nowhere', join(containerLogs, `${name}.log`));
    writeFileSync(join(containerLogs, 'other'), '');
    symlinkSync(
      '/nowhere',
      Buffer.concat([Buffer.from(`${containerLogs}/`), Buffer.from([0xe9]), Buffer.from('.log')]),
    );
    const result = await collector.collect({ allUnused: false }, signal);
    assert.equal(result.failed, 0);
    assert.deepEqual(runtime.calls.sort(), ['kill b', 'remove a', 'remove b', 'sandbox box']);
    assert.deepEqual(logs.sort(), ['/logs/a.log', '/logs/b.log']);
    assert.deepEqual(readdirSync(podLogs), ['ns_new_new']);
    // The links of a running container and of nobody stay and go; the one of a dead container goes.
    assert.deepEqual(readdirSync(containerLogs).sort(), ['other', 'x-r.log', '\ufffd.log'], 'those of the kubelet go');
  });

  it('lists containers once where no sandbox can go, and asks for none that was listed alive', async () => {
    const { runtime, collector, containerLogs } = setup(['old']);
    runtime.list = [container('r', 'new', 'running'), container('k', 'new')];
    runtime.boxes = [{ id: sandboxId('s-new'), podUid: podUid('new'), ready: true, attempt: 0, createdAt: 1n }];
    for (const name of ['x-r', 'x-k']) symlinkSync('/nowhere', join(containerLogs, `${name}.log`));
    await collector.collect({ allUnused: false }, signal);
    assert.equal(runtime.lists, 1);
    assert.deepEqual(runtime.asked, ['k']);
    assert.deepEqual(readdirSync(containerLogs), ['x-r.log']);
    runtime.list = [];
    await collector.collect({ allUnused: false }, signal);
    assert.deepEqual(readdirSync(containerLogs), []);
  });

  it('takes nothing for gone before all sources have been heard', async () => {
    const { runtime, collector } = setup(['old'], { sourcesReady: () => false });
    runtime.list = [container('a', 'old')];
    await collector.collect({ allUnused: true }, signal);
    assert.deepEqual(runtime.calls, []);
  });

  it('takes what terminated pods hold only when asked to', async () => {
    const { runtime, collector } = setup();
    runtime.list = [container('a', 'done1')];
    await collector.collect({ allUnused: false }, signal);
    assert.deepEqual(runtime.calls, []);
    await collector.collect({ allUnused: true }, signal);
    assert.deepEqual(runtime.calls, ['remove a']);
  });

  it('does a bounded part of a mountain, and gets past what is stuck', async () => {
    const { runtime, collector } = setup(['old'], {}, { maxPerPass: 20, concurrency: 4 });
    for (let i = 0; i < 100; i++) runtime.list.push(container(`c${i}`, 'old'));
    for (let i = 0; i < 20; i++) runtime.stuck.add(`c${i}`);
    const first = await collector.collect({ allUnused: false }, signal);
    assert.deepEqual(first, { removed: 0, failed: 20, left: 80 });
    for (let i = 0; i < 4; i++) await collector.collect({ allUnused: false }, signal);
    assert.equal(runtime.list.length, 20);
    assert.ok(runtime.most <= 4);
    runtime.stuck.clear();
    await collector.collect({ allUnused: false }, signal);
    assert.equal(runtime.list.length, 0);
  });

  it('comes back soon while there is more, and once a minute otherwise', async () => {
    const clock = new ManualClock();
    const { runtime, collector } = setup(['old'], { clock }, { maxPerPass: 10 });
    for (let i = 0; i < 25; i++) runtime.list.push(container(`c${i}`, 'old'));
    const stopper = new AbortController();
    const running = collector.run(stopper.signal);
    await clock.advance(59_000);
    assert.equal(runtime.list.length, 25);
    const settled = async (length: number): Promise<void> => {
      await until(`${length} are left`, () => runtime.list.length === length);
      await until('the next pass is due', () => clock.pending > 0);
    };
    await clock.advance(1000);
    await settled(15);
    await clock.advance(1000);
    await settled(5);
    await clock.advance(1000);
    await settled(0);
    stopper.abort();
    await running;
  });

  it('tells the node when the runtime does not say what is there', async () => {
    const clock = new ManualClock();
    const told: string[] = [];
    const events = { node: (...event: readonly string[]) => void told.push(event.join(' ')) };
    const { runtime, collector } = setup([], { clock, events });
    runtime.containers = () => Promise.reject(new Error('no answer'));
    const stopper = new AbortController();
    const running = collector.run(stopper.signal);
    await clock.advance(60_000);
    await until('it is told', () => told.length > 0);
    assert.deepEqual(told, ['Warning ContainerGCFailed no answer']);
    stopper.abort();
    await running;
  });

  it('removes all dead containers of one pod', async () => {
    const { runtime, collector } = setup();
    runtime.list = [container('a', 'p'), container('b', 'p', 'running')];
    const snapshot = {
      ...emptySnapshot(podUid('p'), 'p', 'ns'),
      containers: [observedContainer('c', { id: 'a', state: 'exited' }), observedContainer('c', { id: 'b' })],
    };
    await collector.removeContainersOf(snapshot, signal);
    assert.deepEqual(runtime.calls, ['remove a']);
  });

  it('asks the runtime once to remove a container, however many want it gone', async () => {
    const { runtime, collector } = setup(['p']);
    runtime.list = [container('a', 'p')];
    const snapshot = {
      ...emptySnapshot(podUid('p'), 'p', 'ns'),
      containers: [observedContainer('c', { id: 'a', state: 'exited' })],
    };
    const results = await Promise.all([
      collector.removeContainersOf(snapshot, signal),
      collector.prune(snapshot, 0, signal),
      collector.collect({ allUnused: false }, signal),
    ]);
    assert.deepEqual(runtime.calls, ['remove a']);
    assert.deepEqual(
      results.map(({ failed }) => failed),
      [0, 0, 0],
    );
  });

  describe('while pods start', () => {
    /** Nobody starts from `untilMs` on, or whenever the test says otherwise. */
    function busy(untilMs: number) {
      const clock = new ManualClock();
      const starts = { untilMs };
      const quiet = async (stop: AbortSignal): Promise<void> => {
        while (clock.monotonic() < starts.untilMs) {
          await clock.sleep(starts.untilMs - clock.monotonic(), stop);
          stop.throwIfAborted();
        }
      };
      const made = setup(['p'], { clock, quiet });
      const stopper = new AbortController();
      const running = made.collector.run(stopper.signal);
      const stop = async (): Promise<void> => {
        stopper.abort();
        await running;
      };
      const untilLeft = async (count: number): Promise<void> => {
        await until(`${count} are left`, () => made.runtime.list.length <= count);
        assert.equal(made.runtime.list.length, count);
      };
      return { ...made, clock, starts, stop, untilLeft };
    }

    for (const [what, startingUntilMs, removedAtMs] of [
      ['lets them', 70_000, 70_000],
      ['does not wait for them forever', 1_000_000, 90_000],
    ] as const)
      it(what, async () => {
        const { runtime, clock, stop, untilLeft } = busy(startingUntilMs);
        runtime.list = [container('a', 'p')];
        await clock.advance(removedAtMs - 1);
        assert.equal(runtime.list.length, 1);
        await clock.advance(1);
        await untilLeft(0);
        await stop();
      });

    it('lets them also in the middle of a pass', async () => {
      const { runtime, clock, starts, stop, untilLeft } = busy(0);
      runtime.list = Array.from({ length: 20 }, (_, i) => container(`a${i}`, 'p'));
      runtime.onRemove = () => void (starts.untilMs = 75_000);
      await clock.advance(60_000);
      await untilLeft(15); // the five that were under way
      for (let i = 0; i < 20; i++) await new Promise(setImmediate);
      assert.equal(runtime.list.length, 15);
      await clock.advance(15_000);
      await untilLeft(0);
      await stop();
    });

    it('hurries when an eviction needs the room', async () => {
      const { runtime, collector, clock, stop, untilLeft } = busy(1_000_000);
      runtime.list = [container('a', 'p')];
      await clock.advance(61_000);
      assert.equal(runtime.list.length, 1);
      await collector.collect({ allUnused: true }, signal);
      await untilLeft(0);
      await stop();
    });
  });
});
