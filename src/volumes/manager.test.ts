// The manager with a kind of volume whose every verb is scripted: how it ends, and what it tells of volumes that do not come.
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { VolumeManager, type VolumeManagerDeps } from './manager.ts';
import type { MountedVolume, VolumePlugin } from './plugin.ts';

const MOUNTED: MountedVolume = { hostPath: '/v', readOnly: false, selinuxRelabel: false };
const pod: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: {
    volumes: [{ name: 'v', scripted: {} }],
    containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
  },
};

function scripted(
  verbs: Partial<Pick<VolumePlugin, 'setUp' | 'tearDown'>>,
  deps: Partial<Pick<VolumeManagerDeps, 'expander'>> = {},
) {
  const clock = new ManualClock();
  const warned: string[] = [];
  const plugin: VolumePlugin = {
    name: 'test/scripted',
    refreshes: false,
    setUp: () => Promise.resolve(MOUNTED),
    tearDown: () => Promise.resolve(),
    ...verbs,
  };
  const manager = new VolumeManager({
    resolver: {
      resolve: () => Promise.resolve({ plugin, specName: 'v', volumeMode: 'Filesystem', readOnly: false }),
      byName: () => Promise.resolve(plugin),
    },
    podDirs: { ensureOnce: () => Promise.resolve() },
    subPaths: { cleanUp: () => Promise.resolve() },
    events: { pod: () => undefined, node: () => undefined },
    clock,
    ...deps,
    log: {
      ...silentLogger,
      warn: (message: string, fields?: Record<string, unknown>) =>
        void warned.push(`${message}: ${String(fields?.['podUID'])} ${String(fields?.['why'])}`),
    },
  } as unknown as VolumeManagerDeps);
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  return { clock, warned, manager, stop, running };
}

const { signal } = new AbortController();

test('what was remembered of a pod’s expansions goes with its last volume', async () => {
  const forgotten: string[] = [];
  const gone = Promise.withResolvers<void>();
  const expander = { expand: () => Promise.resolve(undefined), forget: (uid: string) => void forgotten.push(uid) };
  const { clock, manager, stop, running } = scripted({ tearDown: () => gone.promise }, { expander });
  await manager.waitMounted(pod, signal);
  manager.podRemoved('u');
  await clock.advance(0);
  assert.deepEqual(forgotten, []);
  gone.resolve();
  await manager.waitUnmounted('u', signal);
  assert.deepEqual(forgotten, ['u']);
  stop.abort();
  await running;
});

const hung = (): Promise<never> => new Promise(() => undefined);

for (const verb of ['setUp', 'tearDown'] as const)
  test(`the agent stops although a ${verb} does not listen to its signal, and says which volume it was`, async () => {
    const { clock, warned, manager, stop, running } = scripted({ [verb]: hung });
    const mounted = manager.waitMounted(pod, signal);
    mounted.catch(() => undefined);
    await clock.advance(0);
    if (verb === 'tearDown') manager.podRemoved('u');
    await clock.advance(1000);
    stop.abort();
    let ended = false;
    const done = running.then(() => void (ended = true));
    await clock.advance(4999);
    assert.equal(ended, false);
    await clock.advance(1);
    await done;
    const doing = verb === 'setUp' ? 'mounting' : 'unmounting';
    assert.deepEqual(warned, [`volumes are left behind as they are: u volume "v": ${doing} (for 6s)`]);
  });

test('a pod whose volumes are mounted waits for nothing, unless it was called off', async () => {
  const { clock, manager, stop, running } = scripted({});
  await Promise.all([manager.waitMounted(pod, signal), clock.advance(0)]);
  const { pending } = clock;
  let mounted = false;
  const again = manager.waitMounted(pod, signal).then(() => void (mounted = true));
  assert.equal(clock.pending, pending, 'no deadline');
  await again;
  assert.ok(mounted);
  await assert.rejects(manager.waitMounted(pod, AbortSignal.abort(new Error('called off'))), /called off/);
  stop.abort();
  await running;
});

test('the agent stops at once when all steps listen, and says nothing', async () => {
  const setUp: VolumePlugin['setUp'] = (_request, own) =>
    new Promise((_resolve, reject) => own.addEventListener('abort', () => reject(new Error('called off'))));
  const { clock, warned, manager, stop, running } = scripted({ setUp });
  manager.waitMounted(pod, signal).catch(() => undefined);
  await clock.advance(0);
  stop.abort();
  await running;
  assert.deepEqual(warned, []);
});

test('tells when a volume fails that a pod waits for, and not of one that is being mounted', async () => {
  const setUp = Promise.withResolvers<MountedVolume>();
  const { clock, manager } = scripted({ setUp: () => setUp.promise });
  manager.waitMounted(pod, signal).catch(() => undefined);
  let blocked = false;
  const told = manager.whenBlocked('u', signal).then(() => void (blocked = true));
  await clock.advance(100);
  assert.equal(blocked, false);
  setUp.reject(new KubeletError('notFound', 'secret "x" not found'));
  await clock.advance(0);
  await told;
  const called = new AbortController();
  const other = manager.whenBlocked('other', called.signal);
  called.abort(new Error('called off'));
  await assert.rejects(other, /called off/);
});

describe('a pod whose end was told', () => {
  const calledOff = AbortSignal.abort(new Error('the pod is being stopped'));

  for (const [when, late] of [
    ['amid the unmount', false],
    ['after it', true],
  ] as const)
    it(`is not taken in by the rest of a sync that arrives ${when}`, async () => {
      const gone = Promise.withResolvers<void>();
      const { clock, manager, stop, running } = scripted({ tearDown: () => gone.promise });
      await manager.waitMounted(pod, signal);
      manager.podRemoved('u');
      await clock.advance(0);
      if (late) gone.resolve();
      await clock.advance(0);
      await assert.rejects(manager.waitMounted(pod, calledOff), /being stopped/);
      await assert.rejects(manager.waitMounted(pod, signal), /has ended/);
      gone.resolve();
      await manager.waitUnmounted('u', signal);
      assert.equal(manager.hasMounts('u'), false);
      assert.equal(manager.totals().size, 0, 'nothing of it is kept');
      stop.abort();
      await running;
    });

  it('is mounted again once it starts over', async () => {
    const { manager, stop, running } = scripted({});
    await manager.waitMounted(pod, signal);
    manager.podRemoved('u');
    await manager.waitUnmounted('u', signal);
    manager.reopen('u');
    await manager.waitMounted(pod, signal);
    assert.equal(manager.hasMounts('u'), true);
    stop.abort();
    await running;
  });

  it('is not mounted by a sync that was called off before it asked', async () => {
    const { manager, stop, running } = scripted({});
    await assert.rejects(manager.waitMounted(pod, calledOff), /being stopped/);
    assert.equal(manager.totals().size, 0);
    stop.abort();
    await running;
  });
});
