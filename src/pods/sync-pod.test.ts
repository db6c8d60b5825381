// A sync acts on what the runtime shows now, never on what it showed before the last try.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sandboxId, type PodUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import type { ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import { rejection } from '../core/rejection.ts';
import { apiTime } from '../core/time.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { StartErrors } from './start-errors.ts';
import { StartTurns } from './start-turns.ts';
import { SyncPod, type SyncPodDeps } from './sync-pod.ts';

const { signal } = new AbortController();
const POD: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { hostNetwork: true, containers: [{ name: 'c', image: 'i' }] },
};

/** A runtime that starts what the snapshot does not show, and reads that fail while `broken`. */
class World {
  started = 0;
  broken = false;
  outdated = false;
  mountVolumes: () => Promise<void> = () => Promise.resolve();
  status = {} as PodStatus;
  readonly told: string[] = [];
  #shown: PodSnapshot | undefined;
  readonly observed: SyncPodDeps['observed'] = {
    get: () => this.#shown,
    isOutdated: () => this.outdated,
    beginMutation: () => (unseen) => void (this.outdated = unseen),
    refresh: (uid: PodUid) => {
      if (this.broken) return Promise.reject(new Error('no answer'));
      if (this.started > 0) this.#shown = aliveSnapshot(uid);
      this.outdated = false;
      return Promise.resolve(this.#shown);
    },
  };

  deps(): SyncPodDeps {
    return {
      observed: this.observed,
      status: {
        hasWritten: () => false,
        last: () => this.status,
        write: () => Promise.resolve(this.status),
        sandboxReady: () => undefined,
        forget: () => undefined,
      },
      startErrors: new StartErrors(),
      prerequisites: {
        awaitMirror: () => Promise.resolve(),
        networkProblem: () => undefined,
        registerObjects: () => undefined,
        cgroupExists: () => Promise.resolve(true),
        ensureCgroup: () => Promise.resolve(),
        keepMirror: () => undefined,
        ensureDirectories: () => Promise.resolve(),
        mountVolumes: () => this.mountVolumes(),
        volumesBlocked: () => new Promise(() => undefined),
        addProbes: () => undefined,
      },
      runtime: {
        sync: (_pod: Pod, snapshot: PodSnapshot | undefined) => {
          if (snapshot === undefined) this.started++;
          return Promise.resolve({ acted: snapshot === undefined, startErrors: new Map() });
        },
        kill: () => Promise.resolve(),
      },
      turns: new StartTurns(new ManualClock(), { atOnce: 1 }),
      adoptions: new StartTurns(new ManualClock(), { atOnce: 1 }),
      events: { pod: (_pod: Pod, _type: string, reason: string) => void this.told.push(reason) },
      rejecting: {
        events: { pod: () => undefined },
        status: { set: (_pod: Pod, { phase, message }: PodStatus) => void this.told.push(`${phase}: ${message}`) },
        log: silentLogger,
        counted: { rejectedLater: (reason: string) => void this.told.push(reason) },
      },
      clock: new ManualClock(),
    } as unknown as SyncPodDeps;
  }

  sync(): Promise<unknown> {
    return new SyncPod(this.deps()).sync(POD, signal);
  }
}

describe('a start that could not be read afterwards', () => {
  it('is not done a second time', async () => {
    const world = new World();
    world.broken = true;
    await assert.rejects(world.sync(), /no answer/);
    await assert.rejects(world.sync(), /no answer/);
    assert.equal(world.started, 1);
    assert.deepEqual(world.told, ['FailedSync'], 'the pod says why nothing happens');
    world.broken = false;
    await world.sync();
    assert.equal(world.started, 1);
  });
});

describe('a pod with a deadline', () => {
  it('is due then, whatever became of its sync', async () => {
    const world = new World();
    world.mountVolumes = () => Promise.reject(new Error('not yet'));
    const clock = new ManualClock();
    world.status = { startTime: apiTime(clock.now()) };
    const sync = new SyncPod({ ...world.deps(), clock });
    const pod: Pod = { ...POD, spec: { ...POD.spec, activeDeadlineSeconds: 7 } };
    await assert.rejects(sync.sync(pod, signal), /not yet/);
    assert.equal(sync.dueAt(pod), clock.monotonic() + 7000);
    assert.equal(sync.dueAt(POD), undefined);
  });
});

describe('a sync whose cgroup step ends first', () => {
  /** What is under way, and the moment at which directories are there. */
  const setup = (ensureCgroup: (own: AbortSignal) => Promise<void>) => {
    const directories = Promise.withResolvers<void>();
    const did: string[] = [];
    const deps = new World().deps();
    const sync = new SyncPod({
      ...deps,
      prerequisites: {
        ...deps.prerequisites,
        ensureCgroup: (_pod, own) => ensureCgroup(own),
        ensureDirectories: () => directories.promise.then(() => void did.push('directories')),
        mountVolumes: () => Promise.resolve(void did.push('volumes')),
      },
    });
    return { sync, directories, did };
  };
  const deletion = new AbortController();

  for (const [how, ensureCgroup, own] of [
    ['fails', () => Promise.reject(new Error('no cgroup')), signal],
    [
      'is aborted by the deletion of the pod',
      (asked: AbortSignal) =>
        new Promise<void>((_resolve, reject) => {
          asked.addEventListener('abort', () => reject(new Error('the pod is being stopped')));
          deletion.abort();
        }),
      deletion.signal,
    ],
  ] as const)
    it(`${how} settles when its directories are made, and mounts nothing`, async () => {
      const { sync, directories, did } = setup(ensureCgroup);
      const settled = sync.sync(POD, own).then(
        () => void did.push('done'),
        (err: Error) => void did.push(err.message),
      );
      await setImmediate();
      assert.deepEqual(did, [], 'the step waits for what it began');
      directories.resolve();
      await settled;
      assert.deepEqual(did, ['directories', how === 'fails' ? 'no cgroup' : 'the pod is being stopped']);
    });

  it('kills a pod that ran outside its cgroup, and mounts nothing in the same pass', async () => {
    const directories = Promise.withResolvers<void>();
    const did: string[] = [];
    const deps = new World().deps();
    const sync = new SyncPod({
      ...deps,
      observed: { ...deps.observed, get: (uid) => aliveSnapshot(uid) },
      prerequisites: {
        ...deps.prerequisites,
        cgroupExists: () => Promise.resolve(false),
        ensureDirectories: () => directories.promise,
        mountVolumes: () => Promise.resolve(void did.push('volumes')),
      },
      runtime: { ...deps.runtime, kill: () => Promise.resolve(void did.push('killed')) },
    });
    const settled = sync.sync(POD, signal).then(() => void did.push('done'));
    await setImmediate();
    assert.deepEqual(did, ['killed']);
    directories.resolve();
    await settled;
    assert.deepEqual(did, ['killed', 'done']);
  });
});

describe('a pod that turns out to be impossible on this node', () => {
  it('is rejected and ends, and nothing is started', async () => {
    const world = new World();
    world.mountVolumes = () => Promise.reject(rejection('VolumeAttachmentLimitExceeded', 'no more'));
    assert.deepEqual(await world.sync(), { terminal: true });
    assert.deepEqual(world.told, ['VolumeAttachmentLimitExceeded', 'Failed: Pod was rejected: no more']);
    assert.equal(world.started, 0);
  });

  it('any other failure is told and tried again', async () => {
    const world = new World();
    world.mountVolumes = () => Promise.reject(new Error('not yet'));
    await assert.rejects(world.sync(), /not yet/);
    assert.deepEqual(world.told, ['FailedMount']);
  });
});

const SANDBOX: ObservedSandbox = {
  id: sandboxId('s'),
  attempt: 0,
  ready: true,
  createdAt: 1n,
  hostNetwork: true,
  ips: [],
  runtimeHandler: '',
};

describe('pods found running when the agent starts', () => {
  const named = (name: string): Pod => ({ ...POD, metadata: { name, namespace: 'n', uid: name } });

  it('are looked after a few at a time, and a new pod does not wait for them', async () => {
    const clock = new ManualClock();
    const synced: string[] = [];
    const written = new Set<string>();
    const deps = new World().deps();
    const ended = new AbortController();
    const sync = new SyncPod({
      ...deps,
      clock,
      turns: new StartTurns(clock, { atOnce: 4 }),
      adoptions: new StartTurns(clock, { atOnce: 4 }),
      observed: {
        ...deps.observed,
        get: (uid) => (uid === 'new' ? undefined : { ...aliveSnapshot(uid), sandboxes: [SANDBOX] }),
      },
      status: {
        hasWritten: (uid: PodUid) => written.has(uid),
        write: (pod: Pod) => Promise.resolve(written.add(pod.metadata.name)).then(() => ({})),
        sandboxReady: () => undefined,
      } as never,
      runtime: {
        sync: (pod) => {
          synced.push(pod.metadata.name);
          const busy = pod.metadata.name === 'new' ? Promise.resolve() : clock.sleep(100, ended.signal);
          return busy.then(() => ({ acted: false, startErrors: new Map() }));
        },
        kill: () => Promise.resolve(),
      },
    });
    const found = Array.from({ length: 20 }, (_, i) => sync.sync(named(`found-${i}`), signal));
    const added = sync.sync(named('new'), signal);
    await clock.advance(0);
    await added;
    assert.deepEqual(synced, ['found-0', 'found-1', 'found-2', 'found-3', 'new']);
    void sync.sync(named('found-19'), signal);
    await clock.advance(0);
    assert.equal(synced.at(-1), 'found-19', 'a later pass waits for nobody');
    for (let ms = 0; ms < 600; ms += 100) await clock.advance(100);
    await Promise.all(found);
    assert.equal(new Set(synced).size, 21);
  });
});

describe('pods that wait for somebody else', () => {
  /** Each sync of such a pod lasts for ever. */
  const crowd = (clock: ManualClock, wait: Partial<SyncPodDeps['prerequisites']>, hangs: boolean) => {
    const started: string[] = [];
    const world = new World();
    const deps = world.deps();
    const forever = new Promise<never>(() => undefined);
    const isGood = (pod: Pod): boolean => pod.metadata.name === 'good';
    const sync = new SyncPod({
      ...deps,
      clock,
      turns: new StartTurns(clock, { atOnce: 4 }),
      prerequisites: {
        ...deps.prerequisites,
        mountVolumes: async (pod, own) => (isGood(pod) ? undefined : wait.mountVolumes?.(pod, own)),
        volumesBlocked: (pod, own) => (isGood(pod) ? forever : (wait.volumesBlocked?.(pod, own) ?? forever)),
      },
      runtime: {
        sync: (pod, _snapshot, { onWaiting }) => {
          started.push(pod.metadata.name);
          if (isGood(pod)) return Promise.resolve({ acted: false, startErrors: new Map() });
          if (hangs) onWaiting();
          return forever;
        },
        kill: () => Promise.resolve(),
      },
    });
    const named = (name: string): Pod => ({ ...POD, metadata: { name, namespace: 'n', uid: name } });
    for (let i = 0; i < 100; i++) void sync.sync(named(`bad-${i}`), signal);
    const good = sync.sync(named('good'), signal);
    return { started, good };
  };

  it('for a hook or a pull: the next starts at once', async () => {
    const clock = new ManualClock();
    const { started, good } = crowd(clock, {}, true);
    await clock.advance(0);
    await good;
    assert.deepEqual([started.length, clock.monotonic()], [101, 0]);
  });

  it('for volumes that failed: the next starts at once', async () => {
    const clock = new ManualClock();
    const mountVolumes = (): Promise<void> => new Promise(() => undefined);
    const { started, good } = crowd(clock, { mountVolumes, volumesBlocked: () => Promise.resolve() }, true);
    await clock.advance(0);
    await good;
    assert.deepEqual([started, clock.monotonic()], [['good'], 0]);
  });

  it('for volumes that hang: the next starts after a moment', async () => {
    const clock = new ManualClock();
    const mountVolumes = (): Promise<void> => new Promise(() => undefined);
    const { started, good } = crowd(clock, { mountVolumes }, true);
    for (let ms = 0; ms < 100 * 250; ms += 250) await clock.advance(250);
    await good;
    assert.deepEqual(started, ['good']);
  });

  it('a runtime that hangs itself is asked for no more than it can take', async () => {
    const clock = new ManualClock();
    const { started } = crowd(clock, {}, false);
    await clock.advance(4999);
    assert.equal(started.length, 4);
  });
});
