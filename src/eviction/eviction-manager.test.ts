// What the manager does about a node that runs short, look by look.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { EvictionManager, type EvictionOptions, type PodEviction } from './eviction-manager.ts';
import type { DiskLayout, NodeFigures, PodFigures } from './figures.ts';
import { asking, fs, memory, pod, podFigures } from './testing.ts';
import { parseThresholds } from './thresholds.ts';

const never = new AbortController().signal;
const thresholds = parseThresholds(
  {
    evictionHard: { 'memory.available': '100', 'nodefs.available': '100' },
    evictionSoft: {},
    evictionSoftGracePeriod: {},
    evictionMinimumReclaim: {},
  },
  false,
);

function setup(pods: readonly Pod[], options: Partial<EvictionOptions> = {}) {
  const clock = new ManualClock();
  const state = {
    freeMemory: 1000,
    freeDisk: 1000,
    figures: [] as PodFigures[],
    /** Undefined: as `figures`. */
    measured: undefined as PodFigures[] | undefined,
    unmeasured: new Set<string>(),
    layout: 'shared' as DiskLayout,
    gone: true,
    reclaims: 0,
    refusesToStop: false,
    stopsAfterMs: 0,
    podsRead: 0,
    granted: new Map<string, Pod>(),
  };
  const done: string[] = [];
  const reasons: PodEviction[] = [];
  const registry = new Registry();
  const reclaim = (what: string) => async (): Promise<void> => {
    done.push(what);
    state.freeDisk += state.reclaims;
  };
  const manager = new EvictionManager(
    {
      pods: {
        active: () => pods,
        allocated: (wanted) => state.granted.get(wanted.metadata.name) ?? wanted,
        evict: async (victim, why) => {
          done.push(`evict ${victim.metadata.name}`);
          reasons.push(why);
          if (state.stopsAfterMs > 0) await clock.sleep(state.stopsAfterMs, never);
          if (state.refusesToStop) throw new KubeletError('deadline', 'timeout waiting to kill pod');
        },
        gone: () => state.gone,
      },
      figures: {
        node: async (): Promise<NodeFigures> => ({
          systemContainers: [],
          memory: memory(state.freeMemory, 1000, clock.now()),
          fs: fs({ availableBytes: state.freeDisk, capacityBytes: 5000 }, clock.now()),
        }),
        pods: async () => {
          state.podsRead++;
          return state.figures;
        },
        measuredPods: async (candidates) => {
          done.push(`measure ${candidates.map(({ metadata }) => metadata.name).join()}`);
          return { figures: state.measured ?? state.figures, unmeasured: state.unmeasured };
        },
      },
      layout: async () => state.layout,
      reclaim: { unusedContainers: reclaim('containers'), unusedImages: reclaim('images') },
      events: { pod: () => undefined, node: (_, reason, message) => void done.push(`${reason}: ${message}`) },
      onPressure: (now) => void done.push(`pressure [${now.join()}]`),
      infra: { clock, log: silentLogger, registry },
    },
    { thresholds, transitionMs: 60_000, maxPodGraceSeconds: 0, localStorageLimits: true, ...options },
  );
  const look = async (): Promise<readonly string[]> => {
    done.length = 0;
    const looking = manager.lookOnce(never);
    for (let i = 0; i < 20; i++) await clock.advance(1000);
    await looking;
    return [...done];
  };
  return { clock, state, done, reasons, registry, manager, look };
}

const critical = pod('critical', { priority: 2_000_001_000 });

describe('the eviction manager', () => {
  it('does nothing while all is well', async () => {
    const t = setup([pod('a')]);
    assert.deepEqual(await t.look(), []);
    assert.deepEqual(t.manager.pressures(), []);
    assert.equal(t.state.podsRead, 0, 'what pods use is of no interest then');
  });

  it('looks at what pods use when one of them has a limit of local storage', async () => {
    const limited = (resources: object, volumes: object[] = []): Pod =>
      pod('a', { containers: [{ name: 'c', resources }], volumes } as unknown as Pod['spec']);
    for (const [of, read] of [
      [limited({}), 0],
      [limited({ limits: { memory: '1' } }, [{ name: 'v', emptyDir: {} }]), 0],
      [limited({ limits: { 'ephemeral-storage': '1' } }), 1],
      [limited({}, [{ name: 'v', emptyDir: { sizeLimit: '1' } }]), 1],
    ] as const) {
      const t = setup([of]);
      assert.deepEqual(await t.look(), []);
      assert.equal(t.state.podsRead, read, JSON.stringify(of.spec));
      const off = setup([of], { localStorageLimits: false });
      await off.look();
      assert.equal(off.state.podsRead, 0);
    }
  });

  it('evicts one pod for memory, never a critical one, and counts it', async () => {
    const t = setup([critical, pod('a'), pod('b')]);
    t.state.freeMemory = 50;
    t.state.figures = [
      podFigures('critical', { memory: memory(0, 900) }),
      podFigures('a', { memory: memory(0, 10) }),
      podFigures('b', { memory: memory(0, 500) }),
    ];
    assert.deepEqual(await t.look(), [
      'pressure [MemoryPressure]',
      'EvictionThresholdMet: Attempting to reclaim memory',
      'evict b',
    ]);
    assert.equal(t.reasons[0]?.graceSeconds, 1);
    assert.equal(t.reasons[0]?.condition?.type, 'DisruptionTarget');
    assert.match(t.registry.render(), /kubelet_evictions\{eviction_signal="memory\.available"\} 1/);
    assert.deepEqual(t.manager.pressures(), ['MemoryPressure']);
  });

  it('counts what pods were granted, not what they ask for meanwhile', async () => {
    const t = setup([pod('greedy', asking({ memory: '900' })), pod('modest', asking({ memory: '100' }))]);
    t.state.granted.set('greedy', pod('greedy', asking({ memory: '10' })));
    t.state.freeMemory = 50;
    t.state.figures = [
      podFigures('greedy', { containers: [{ name: 'c', memory: memory(0, 500) }], memory: memory(0, 500) }),
      podFigures('modest', { memory: memory(0, 110) }),
    ];
    assert.equal((await t.look()).at(-1), 'evict greedy');
    assert.match(t.reasons[0]?.message ?? '', /Container c was using 500, request is 10, /);
  });

  it('tells how old the figures of every threshold were when it chose, however long the pod takes to stop', async () => {
    const t = setup([pod('a')]);
    Object.assign(t.state, { freeMemory: 50, freeDisk: 50, stopsAfterMs: 15_000 });
    await t.look();
    const sums = t.registry.render().match(/^kubelet_eviction_stats_age_seconds_sum.*$/gm);
    assert.deepEqual(sums?.sort(), [
      'kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 0',
      'kubelet_eviction_stats_age_seconds_sum{eviction_signal="nodefs.available"} 0',
    ]);
  });

  it('spares the pods when taking away what nobody uses was enough', async () => {
    const t = setup([pod('a')]);
    Object.assign(t.state, { freeDisk: 50, reclaims: 100 });
    assert.deepEqual(await t.look(), [
      'pressure [DiskPressure]',
      'EvictionThresholdMet: Attempting to reclaim ephemeral-storage',
      'containers',
      'images',
    ]);
  });

  it('goes on to a pod when it was not, one for each look', async () => {
    const t = setup([pod('a'), pod('b')]);
    Object.assign(t.state, { freeDisk: 50, reclaims: 10 });
    assert.deepEqual((await t.look()).slice(-4), ['containers', 'images', 'measure a,b', 'evict a']);
    assert.deepEqual(
      (await t.look()).filter((d) => d.startsWith('evict')),
      ['evict a'],
    );
  });

  it('measures the volumes of all pods that may go before one goes for a disk, and for nothing else', async () => {
    const volumes = [{ name: 'v', emptyDir: {} }];
    const pods = ['a', 'b', 'c'].map((name) => pod(name, { volumes }));
    const t = setup([...pods, critical]);
    const holding = (name: string, usedBytes: number): PodFigures =>
      podFigures(name, { volume: [{ ...fs({ usedBytes }), name: 'v' }] });
    t.state.figures = pods.map(({ metadata }) => podFigures(metadata.name));
    t.state.measured = [holding('a', 1), holding('b', 10), holding('c', 5)];
    t.state.freeDisk = 50;
    assert.deepEqual((await t.look()).slice(-2), ['measure a,b,c', 'evict b']);
    t.state.unmeasured = new Set(['c']);
    assert.equal((await t.look()).at(-1), 'evict c', 'what nobody could measure may be anything');
    Object.assign(t.state, { freeDisk: 1000, freeMemory: 50 });
    assert.ok(!(await t.look()).some((line) => line.startsWith('measure')));
  });

  it('a pod that does not stop in time counts as evicted', async () => {
    const t = setup([pod('a'), pod('b')]);
    Object.assign(t.state, { freeMemory: 50, refusesToStop: true });
    assert.deepEqual(
      (await t.look()).filter((d) => d.startsWith('evict')),
      ['evict a'],
    );
  });

  it('with nobody to evict it is only told', async () => {
    const t = setup([critical]);
    t.state.freeMemory = 50;
    assert.deepEqual(
      (await t.look()).filter((d) => d.startsWith('evict')),
      [],
    );
  });

  it('local storage limits come first, for every pod beyond one, unless switched off', async () => {
    const volumes = [{ name: 'v', emptyDir: { sizeLimit: '10' } }];
    const over = { volume: [{ name: 'v', ...fs({ usedBytes: 11 }) }] };
    for (const [localStorageLimits, evicted] of [
      [true, ['evict a', 'evict b']],
      [false, []],
    ] as const) {
      const t = setup([pod('a', { volumes }), pod('b', { volumes }), pod('c')], { localStorageLimits });
      t.state.figures = [podFigures('a', over), podFigures('b', over), podFigures('c')];
      assert.deepEqual(await t.look(), evicted);
      if (localStorageLimits) assert.equal(t.reasons[0]?.condition, undefined);
    }
  });

  it('pods beyond their storage are stopped side by side, however long one takes', async () => {
    const volumes = [{ name: 'v', emptyDir: { sizeLimit: '10' } }];
    const over = { volume: [{ name: 'v', ...fs({ usedBytes: 11 }) }] };
    const names = ['a', 'b', 'c', 'd'];
    const t = setup(names.map((name) => pod(name, { volumes })));
    t.state.figures = names.map((name) => podFigures(name, over));
    t.state.stopsAfterMs = 10_000;
    const looking = t.manager.lookOnce(never);
    await t.clock.advance(10_000);
    assert.deepEqual(
      (await looking).map(({ metadata }) => metadata.name),
      names,
    );
    assert.equal(t.clock.pending, 0);
  });

  it('looks every ten seconds, and soon when an evicted pod is gone', async () => {
    const t = setup([pod('a')]);
    const stop = new AbortController();
    const running = t.manager.run(stop.signal);
    await t.clock.advance(9_999);
    Object.assign(t.state, { freeMemory: 50, gone: false });
    await t.clock.advance(1);
    const evictions = (): number => t.done.filter((d) => d === 'evict a').length;
    assert.equal(evictions(), 1);
    await t.clock.advance(5_000);
    assert.equal(evictions(), 1, 'it waits for the pod to be gone');
    t.state.gone = true;
    await t.clock.advance(1_000 + 1_099);
    assert.equal(evictions(), 1, 'what it had still shows in the figures of the last second');
    await t.clock.advance(1);
    assert.equal(evictions(), 2);
    Object.assign(t.state, { freeMemory: 1000 });
    await t.clock.advance(2_000);
    stop.abort();
    await running;
    assert.equal(t.clock.pending, 0);
  });
});
