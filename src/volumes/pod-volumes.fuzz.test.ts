// Whatever order of wishes, failures, restarts and hangs a pod goes through: no place is worked on twice at once, and in
// the end exactly what is wanted is mounted and no timer is left.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { VolumePlugin } from './plugin.ts';
import { PodVolumes } from './pod-volumes.ts';

const NAMES = ['a', 'b', 'c'];

type Action =
  | { readonly do: 'want'; readonly names: readonly string[] }
  | { readonly do: 'unwant' | 'restart' | 'refresh' }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'moods'; readonly moods: readonly Mood[] };
/** How the next calls of a plugin go. */
type Mood = 'fine' | 'fails' | 'slow' | 'half';

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant('want' as const), names: fc.subarray(NAMES) }),
  fc.record({ do: fc.constantFrom('unwant' as const, 'restart' as const, 'refresh' as const) }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 5_000 }) }),
  fc.record({
    do: fc.constant('moods' as const),
    moods: fc.array(fc.constantFrom<Mood>('fine', 'fails', 'slow', 'half'), { maxLength: 6 }),
  }),
);

class World {
  readonly clock = new ManualClock();
  /** What the node has: survives restarts of the manager. */
  readonly disk = new Set<string>();
  readonly busy = new Set<string>();
  moods: Mood[] = [];
  wanted: readonly string[] = [];
  isOver = false;
  #stop = new AbortController();
  volumes = this.#open();

  readonly #plugin: VolumePlugin = {
    name: 'test/model',
    refreshes: true,
    setUp: async ({ specName }, signal) => {
      await this.#work(specName, signal, () => this.disk.add(specName));
      return { hostPath: `/${specName}`, readOnly: false, selinuxRelabel: false };
    },
    tearDown: ({ specName }, signal) => this.#work(specName, signal, () => this.disk.delete(specName)),
  };

  async #work(name: string, signal: AbortSignal, effect: () => void): Promise<void> {
    assert.equal(this.busy.has(name), false, `${name} is worked on twice at once`);
    this.busy.add(name);
    try {
      const mood = this.moods.shift() ?? 'fine';
      if (mood === 'slow') await this.clock.sleep(3_000, signal);
      if (mood === 'fails') throw new KubeletError('internal', 'fails');
      if (mood === 'slow' && signal.aborted) throw new KubeletError('cancelled', 'told to stop');
      effect();
      if (mood === 'half') throw new KubeletError('internal', 'fails after the deed');
    } finally {
      this.busy.delete(name);
    }
  }

  #open(): PodVolumes {
    return new PodVolumes(
      'u',
      {
        resolver: {
          resolve: (_pod, volume) =>
            Promise.resolve({ plugin: this.#plugin, specName: volume.name, volumeMode: 'Filesystem', readOnly: false }),
          byName: () => Promise.resolve(this.#plugin),
        },
        cleanSubPaths: () => Promise.resolve(),
        ensurePodDirs: () => Promise.resolve(),
        events: { pod: () => undefined, node: () => undefined },
        clock: this.clock,
        log: silentLogger,
      },
      { stepTimeoutMs: 2_000, onChange: () => undefined },
      this.#stop.signal,
    );
  }

  async restart(): Promise<void> {
    this.volumes.stop();
    this.#stop.abort();
    await this.clock.advance(10_000);
    this.#stop = new AbortController();
    this.volumes = this.#open();
    for (const specName of this.disk) this.volumes.adopt({ plugin: this.#plugin, specName, volumeMode: 'Filesystem' });
    if (this.isOver) this.volumes.setUnwanted();
    else this.want(this.wanted);
  }

  want(names: readonly string[]): void {
    this.wanted = names;
    this.isOver = false;
    const pod: Pod = {
      metadata: { name: 'p' },
      spec: {
        volumes: NAMES.map((name) => ({ name, model: {} })),
        containers: [{ name: 'c', volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) }],
      },
    };
    this.volumes.setWanted(pod);
  }

  async act(step: Action): Promise<void> {
    if (step.do === 'want') this.want(step.names);
    else if (step.do === 'advance') await this.clock.advance(step.ms);
    else if (step.do === 'moods') this.moods = [...step.moods];
    else if (step.do === 'restart') await this.restart();
    else if (step.do === 'refresh') {
      this.volumes.markStale();
      this.volumes.reconcile();
    } else {
      this.wanted = [];
      this.isOver = true;
      this.volumes.setUnwanted();
    }
  }
}

test('any history ends with exactly what is wanted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (steps) => {
      const world = new World();
      for (const step of steps) await world.act(step);
      world.moods = [];
      await world.clock.advance(600_000);
      assert.deepEqual([...world.disk].sort(), [...world.wanted].sort());
      assert.deepEqual([...world.volumes.mounts().keys()].sort(), [...world.wanted].sort());
      assert.deepEqual(world.volumes.complaints(), []);
      assert.equal(world.clock.pending, 0);
    }),
    {
      numRuns: 300,
      examples: [
        // Wanted again while it is being unmounted, which then fails.
        [
          [
            { do: 'want', names: ['b', 'c'] },
            { do: 'advance', ms: 0 },
            { do: 'moods', moods: ['slow'] },
            { do: 'unwant' },
            { do: 'want', names: ['b', 'c'] },
          ],
        ],
      ],
    },
  );
});
