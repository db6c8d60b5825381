import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { MountedVolume, PersistentSource, VolumePlugin } from './plugin.ts';
import { Attachments } from './attachments.ts';
import { notMountedError } from './mount-messages.ts';
import { PodVolumes } from './pod-volumes.ts';

/** One pod with volumes of a kind whose every verb is scripted. */
class Script {
  readonly clock = new ManualClock();
  readonly calls: string[] = [];
  readonly events: string[] = [];
  changes = 0;
  setUp: (name: string, signal: AbortSignal) => Promise<Partial<MountedVolume>> = () => Promise.resolve({});
  tearDown: (name: string) => Promise<void> = () => Promise.resolve();
  resolve: (name: string) => Promise<string> = (name) => Promise.resolve(name);
  readonly stop = new AbortController();
  persistent: PersistentSource | undefined;
  attachments: Attachments | undefined;
  usedByOthers = false;
  readonly plugin: VolumePlugin = {
    name: 'test/scripted',
    refreshes: true,
    setUp: async ({ specName }, signal) => {
      this.calls.push(`${this.clock.monotonic()} setUp ${specName}`);
      const mounted = await this.setUp(specName, signal);
      return { hostPath: `/${specName}`, readOnly: false, selinuxRelabel: false, ...mounted };
    },
    tearDown: ({ specName }) => {
      this.calls.push(`${this.clock.monotonic()} tearDown ${specName}`);
      return this.tearDown(specName);
    },
    references: (volume) => [{ kind: 'secret', name: `of-${volume.name}` }],
    attachedName: ({ specName }) => `test/${specName}`,
    uniqueName: ({ specName }) => `test/${specName}`,
  };
  readonly volumes = new PodVolumes(
    'u',
    {
      resolver: {
        resolve: async (_pod, volume) => ({
          plugin: this.plugin,
          specName: await this.resolve(volume.name),
          volumeMode: 'Filesystem',
          readOnly: false,
          ...(this.persistent === undefined ? {} : { persistent: this.persistent }),
        }),
        byName: () => Promise.resolve(this.plugin),
      },
      cleanSubPaths: (_uid, volume) => {
        this.calls.push(`${this.clock.monotonic()} subPaths ${volume}`);
        return Promise.resolve();
      },
      ensurePodDirs: () => Promise.resolve(),
      events: {
        pod: (_p, _t, reason, message) => void this.events.push(`${reason}: ${message}`),
        node: () => undefined,
      },
      clock: this.clock,
      log: silentLogger,
      attachments: {
        whenAttached: (name, signal) => this.attachments?.whenAttached(name, signal) ?? Promise.resolve(''),
        isUsable: () => true,
        isAttached: (name) => this.attachments?.isAttached(name),
      },
      node: () => ({ metadata: { name: 'n', labels: { zone: 'a' } } }),
      isUsedByOthers: () => this.usedByOthers,
    },
    { stepTimeoutMs: 10_000, onChange: () => void this.changes++ },
    this.stop.signal,
  );
}

const pod = (...names: string[]): Pod => ({
  metadata: { name: 'p' },
  spec: {
    volumes: names.map((name) => ({ name, scripted: {} })),
    containers: [{ name: 'c', volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) }],
  },
});

test('a pod is blocked while a volume it waits for failed or is to be attached, not while it is mounted', async () => {
  const s = new Script();
  const mounting = Promise.withResolvers<Partial<MountedVolume>>();
  s.setUp = () => mounting.promise;
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(0);
  assert.equal(s.volumes.isBlocked, false);
  mounting.reject(new KubeletError('notFound', 'secret "x" not found'));
  await s.clock.advance(0);
  assert.equal(s.volumes.isBlocked, true);
  s.setUp = () => Promise.resolve({});
  await s.clock.advance(500);
  assert.deepEqual([s.volumes.missing, s.volumes.isBlocked], [[], false]);
  s.attachments = new Attachments();
  s.volumes.setWanted(pod('a', 'b'));
  await s.clock.advance(0);
  assert.deepEqual([s.volumes.missing, s.volumes.isBlocked], [['b'], true]);
});

test('failures are retried at exact moments, doubling up to two minutes and two seconds', async () => {
  const s = new Script();
  s.setUp = () => Promise.reject(new KubeletError('notFound', 'secret "x" not found'));
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(500_000);
  const at = s.calls.map((call) => Number(call.split(' ')[0]));
  assert.deepEqual(at.slice(0, 11), [0, 500, 1500, 3500, 7500, 15500, 31500, 63500, 127500, 249500, 371500]);
  assert.equal(s.events[0], 'FailedMount: MountVolume.SetUp failed for volume "a" : secret "x" not found');
  assert.equal(s.events.length, s.calls.length);
  const err = notMountedError(s.volumes.missingByCause(), s.volumes.complaints(), 'context deadline exceeded');
  assert.match(
    err.message,
    /^unmounted volumes=\[a\], unattached volumes=\[\], failed to process volumes=\[\]: context/,
  );
  assert.match(err.message, /secret "x" not found \(for 8m20s\)$/);
  s.setUp = () => Promise.resolve({});
  s.volumes.markStale({ kind: 'secret', name: 'of-b' });
  s.volumes.reconcile();
  await s.clock.advance(0);
  assert.deepEqual(s.volumes.missing, ['a'], 'another object does not cut the back-off short');
  s.volumes.markStale({ kind: 'secret', name: 'of-a' });
  s.volumes.reconcile();
  await s.clock.advance(0);
  assert.deepEqual(s.volumes.missing, []);
  assert.deepEqual(s.volumes.complaints(), []);
  assert.equal(s.clock.pending, 0);
});

test('a stage that a plugin names is the one in the words', async () => {
  const s = new Script();
  const detail = { stage: 'MountVolume.MountDevice' };
  s.setUp = () => Promise.reject(new KubeletError('internal', 'no device', { detail }));
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(0);
  assert.equal(s.events[0], 'FailedMount: MountVolume.MountDevice failed for volume "a" : no device');
  s.stop.abort();
});

test('volumes are mounted side by side, and one that hangs is told to stop at its deadline', async () => {
  const s = new Script();
  s.setUp = (name, signal) =>
    name === 'slow'
      ? new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      : Promise.resolve({});
  s.volumes.setWanted(pod('slow', 'quick'));
  await s.clock.advance(0);
  assert.deepEqual(s.volumes.missing, ['slow']);
  assert.deepEqual([...s.volumes.mounts().keys()], ['quick']);
  assert.deepEqual(s.volumes.attachedNames(), ['test/slow', 'test/quick']);
  await s.clock.advance(10_000);
  assert.match(s.events[0] ?? '', /volume "slow" : no answer in 10000ms/);
  await s.clock.advance(500);
  assert.equal(s.calls.filter((c) => c.endsWith('setUp slow')).length, 2);
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  assert.ok(s.calls.includes('10500 tearDown slow'), 'deletion does not wait for the mount');
  assert.equal(s.volumes.isEmpty, true);
  assert.equal(s.clock.pending, 0);
});

test('a step that ignores its deadline is reported, and never run twice at once', async () => {
  const s = new Script();
  let release: (() => void) | undefined;
  s.setUp = () => new Promise((resolve) => (release = () => resolve({})));
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(60_000);
  assert.equal(s.calls.length, 1);
  assert.match(s.events[0] ?? '', /volume "a" : no end after mounting, still waiting/);
  s.volumes.setUnwanted();
  await s.clock.advance(1_000);
  assert.equal(s.volumes.isUnmounted, false);
  release?.();
  await s.clock.advance(0);
  assert.deepEqual(s.calls.slice(1), ['61000 subPaths a', '61000 tearDown a']);
  assert.equal(s.volumes.isEmpty, true);
});

test('content is refreshed when asked, when the pod changes and when the plugin says so', async () => {
  const s = new Script();
  s.setUp = () => Promise.resolve({ refreshAtMs: s.clock.now() + 60_000 });
  const first = pod('a');
  s.volumes.setWanted(first);
  s.volumes.setWanted(first);
  await s.clock.advance(59_000);
  assert.equal(s.calls.length, 1);
  await s.clock.advance(1_000);
  assert.deepEqual(s.calls, ['0 setUp a', '60000 setUp a']);
  const { metadata } = first;
  s.volumes.setWanted({ ...first, status: { phase: 'Running' } });
  s.volumes.setWanted({ ...pod('a'), metadata: { ...metadata, resourceVersion: '2' } });
  await s.clock.advance(0);
  assert.equal(s.calls.length, 2, 'no volume shows the status');
  s.volumes.setWanted({ ...first, metadata: { ...metadata, labels: { app: 'b' } } });
  await s.clock.advance(0);
  assert.equal(s.calls.length, 3);
  let release: (() => void) | undefined;
  s.setUp = () => new Promise((resolve) => (release = () => resolve({})));
  for (let i = 0; i < 3; i++) {
    s.volumes.markStale();
    s.volumes.reconcile();
    await s.clock.advance(0);
  }
  s.setUp = () => Promise.resolve({});
  release?.();
  await s.clock.advance(0);
  assert.equal(s.calls.length, 5, 'a change during a refresh means exactly one more');
  s.setUp = () => Promise.reject(new KubeletError('notFound', 'gone'));
  s.volumes.markStale();
  s.volumes.reconcile();
  await s.clock.advance(0);
  assert.deepEqual(s.volumes.missing, [], 'a failed refresh leaves the volume mounted');
  assert.match(s.volumes.complaints()[0] ?? '', /: gone \(for 0s\)$/);
  s.stop.abort();
});

test('a volume found under another name is taken over once its claim is resolved', async () => {
  const s = new Script();
  let answer: ((name: string) => void) | undefined;
  s.resolve = () => new Promise((resolve) => (answer = resolve));
  s.volumes.adopt({ plugin: s.plugin, specName: 'pv-1', volumeMode: 'Filesystem' });
  s.volumes.adopt({ plugin: s.plugin, specName: 'pv-2', volumeMode: 'Filesystem' });
  s.volumes.setWanted(pod('claim'));
  await s.clock.advance(1_000);
  assert.deepEqual(s.calls, [], 'nothing is unmounted while a claim is not resolved');
  answer?.('pv-1');
  await s.clock.advance(0);
  assert.deepEqual(s.calls, ['1000 setUp pv-1']);
  assert.equal(s.volumes.mounts().get('claim')?.hostPath, '/pv-1');
  assert.equal(s.volumes.specNameOf('claim'), 'pv-1');
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  const ends = ['1000 subPaths pv-1', '1000 subPaths pv-2', '1000 tearDown pv-1', '1000 tearDown pv-2'];
  assert.deepEqual(
    new Set(s.calls.slice(1)),
    new Set(ends),
    'another volume that containers may use goes with the pod',
  );
});

test('a mounted volume stays when its claim names another one, until the pod is over', async () => {
  const s = new Script();
  s.persistent = { volume: { metadata: { name: 'pv' }, spec: {} }, mountOptions: [], migrated: false };
  s.resolve = () => Promise.resolve('pv-1');
  s.volumes.setWanted(pod('claim'));
  await s.clock.advance(0);
  s.resolve = () => Promise.resolve('pv-2');
  for (let look = 0; look < 3; look++) {
    s.volumes.markStale();
    s.volumes.reconcile();
    await s.clock.advance(1_000);
  }
  assert.deepEqual(s.calls, ['0 setUp pv-1']);
  assert.deepEqual(s.events, [
    'VolumeNotReplaced: volume "claim" stays "pv-1" until the pod ends: its claim names "pv-2" now, which is not mounted',
  ]);
  assert.deepEqual([s.volumes.attachedNames(), s.volumes.specNameOf('claim')], [['test/pv-1'], 'pv-1']);
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  s.volumes.setWanted(pod('claim'));
  await s.clock.advance(0);
  assert.deepEqual(s.calls.slice(1), ['3000 subPaths pv-1', '3000 tearDown pv-1', '3000 setUp pv-2']);
});

test('what is only on disk stays until the pod is known to be over', async () => {
  const s = new Script();
  s.volumes.adopt({ plugin: s.plugin, specName: 'a', volumeMode: 'Filesystem' });
  s.volumes.adopt({ specName: 'binds', volumeMode: 'Filesystem' });
  s.volumes.reconcile();
  await s.clock.advance(1_000);
  assert.deepEqual(s.calls, []);
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  assert.deepEqual(new Set(s.calls), new Set(['1000 subPaths a', '1000 subPaths binds', '1000 tearDown a']));
  assert.equal(s.volumes.isEmpty, true);
});

test('a failed unmount is retried and complained about, without an event', async () => {
  const s = new Script();
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(0);
  s.tearDown = () => Promise.reject(new KubeletError('conflict', 'busy: held by pid 7 (sh, open files)'));
  s.volumes.setUnwanted();
  await s.clock.advance(499);
  assert.match(s.volumes.complaints()[0] ?? '', /^volume "a": UnmountVolume.TearDown failed .* held by pid 7/);
  s.tearDown = () => Promise.resolve();
  await s.clock.advance(1);
  assert.equal(s.volumes.isEmpty, true);
  assert.deepEqual(s.events, []);
});

test('a pod that is wanted again while being unmounted is mounted again afterwards', async () => {
  const s = new Script();
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(0);
  let release: (() => void) | undefined;
  s.tearDown = () => new Promise((resolve) => (release = resolve));
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(10);
  release?.();
  await s.clock.advance(0);
  assert.deepEqual(s.calls, ['0 setUp a', '0 subPaths a', '0 tearDown a', '10 setUp a']);
  assert.deepEqual(s.volumes.missing, []);
});

const node = (version: string, inUse: string[], attached: string[]): Node => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: version },
  status: { volumesInUse: inUse, volumesAttached: attached.map((name) => ({ name, devicePath: `/dev/${name}` })) },
});

test('a volume that a controller attaches is mounted once the node lists it as used and attached', async () => {
  const s = new Script();
  const attachments = (s.attachments = new Attachments());
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(300_000);
  assert.deepEqual(s.volumes.attachedNames(), ['test/a'], 'said to be in use before it is');
  assert.deepEqual(s.volumes.missingByCause(), { unmounted: ['a'], unattached: ['a'], unresolved: [] });
  assert.equal(attachments.reportBegins(s.volumes.attachedNames()), true);
  attachments.nodeSeen(node('4', [], ['test/a']));
  attachments.nodeSeen(node('3', ['test/a'], ['test/a']));
  await s.clock.advance(0);
  assert.deepEqual(s.calls, [], 'an older object says nothing');
  attachments.nodeSeen(node('5', ['test/a'], ['test/a']));
  await s.clock.advance(0);
  assert.deepEqual(s.calls, [], 'the answer to the report has not come');
  attachments.reportAnswered(node('5', ['test/a'], ['test/a']));
  await s.clock.advance(0);
  assert.deepEqual(s.calls, ['300000 setUp a']);
  assert.deepEqual(s.events, []);
  s.tearDown = () => Promise.reject(new KubeletError('internal', 'busy'));
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  assert.deepEqual(s.volumes.attachedNames(), ['test/a'], 'in use until nothing of it is left');
  s.tearDown = () => Promise.resolve();
  await s.clock.advance(500);
  assert.deepEqual(s.volumes.attachedNames(), []);
  s.stop.abort();
});

test('a wait for a controller ends with the pod, and leaves nothing behind', async () => {
  const s = new Script();
  s.attachments = new Attachments();
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(1_000);
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  assert.equal(s.volumes.isEmpty, true);
  assert.deepEqual(s.calls, []);
  assert.equal(s.clock.pending, 0);
});

test('what was found on disk is in use until the node says that it is not attached', async () => {
  const s = new Script();
  const attachments = (s.attachments = new Attachments());
  s.volumes.adopt({ plugin: s.plugin, specName: 'a', volumeMode: 'Filesystem', attachedName: 'test/a' });
  assert.deepEqual(s.volumes.attachedNames(), ['test/a']);
  attachments.nodeSeen(node('1', [], ['test/a']));
  assert.deepEqual(s.volumes.attachedNames(), ['test/a']);
  attachments.nodeSeen(node('2', [], []));
  assert.deepEqual(s.volumes.attachedNames(), []);
  s.stop.abort();
});

test('a claim that cannot be resolved is told with all that is missing, and tried again', async () => {
  const s = new Script();
  s.resolve = (name) =>
    name === 'a' ? Promise.reject(new KubeletError('notFound', 'error processing PVC d/c: x')) : Promise.resolve(name);
  s.setUp = () => new Promise(() => undefined);
  s.volumes.setWanted(pod('b', 'a'));
  await s.clock.advance(0);
  assert.deepEqual(s.events, [
    'FailedMount: Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], failed to process volumes=[a]: error processing PVC d/c: x',
  ]);
  s.setUp = () => Promise.resolve({});
  s.resolve = (name) => Promise.resolve(name);
  await s.clock.advance(500);
  assert.deepEqual(s.volumes.missing, ['b']);
  s.stop.abort();
});

test('two volumes of one claim are one mount', async () => {
  const s = new Script();
  s.resolve = () => Promise.resolve('pv');
  s.volumes.setWanted(pod('a', 'b'));
  await s.clock.advance(0);
  assert.deepEqual(s.calls, ['0 setUp pv']);
  assert.deepEqual(
    [...s.volumes.mounts()].map(([name, { hostPath }]) => [name, hostPath]),
    [
      ['a', '/pv'],
      ['b', '/pv'],
    ],
  );
  assert.deepEqual(s.volumes.complaints(), []);
  s.volumes.setUnwanted();
  await s.clock.advance(0);
  assert.deepEqual(s.calls, ['0 setUp pv', '0 subPaths pv', '0 tearDown pv']);
  assert.equal(s.volumes.isEmpty, true);
});

test('a volume for one pod waits for the other pod, and its group is handed on', async () => {
  const s = new Script();
  const metadata = { name: 'pv', annotations: { 'pv.beta.kubernetes.io/gid': '77' } };
  s.persistent = {
    volume: { metadata, spec: { accessModes: ['ReadWriteOncePod'] } },
    claim: { metadata: { name: 'c' } },
    mountOptions: [],
    migrated: false,
  };
  s.usedByOthers = true;
  s.volumes.setWanted(pod('a'));
  await s.clock.advance(0);
  assert.deepEqual(s.events, [
    'FailedMount: MountVolume.SetUp failed for volume "a" : volume uses the ReadWriteOncePod access mode and is already in use by another pod',
  ]);
  s.usedByOthers = false;
  await s.clock.advance(500);
  assert.equal(s.volumes.mounts().get('a')?.gid, 77);
  s.stop.abort();
});
