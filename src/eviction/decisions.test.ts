// The pure decisions of eviction, as tables: thresholds, pressures over time, storage limits, messages.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatQuantity } from '../core/quantity.ts';
import type { Pod } from '../core/pod.ts';
import type { PodFigures } from './figures.ts';
import { storageExcess } from './local-storage.ts';
import { explain } from './messages.ts';
import { CALM, graceSecondsFor, look, type PressureState } from './pressure.ts';
import { observationsOf } from './signals.ts';
import { fs, memory, nodeFigures, pod, podFigures } from './testing.ts';
import { amountIn, metBy, parseThresholds, withContainerFs, type ThresholdConfig } from './thresholds.ts';

const config = (more: Partial<ThresholdConfig>): ThresholdConfig => ({
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  ...more,
});
const GI = 2 ** 30;
const MI = 2 ** 20;

describe('thresholds', () => {
  it('hard, soft, off, with their reclaims, and one for what pods may use in all', () => {
    const parsed = parseThresholds(
      config({
        evictionHard: {
          'memory.available': '100Mi',
          'nodefs.available': '10%',
          'imagefs.available': '0%',
          'pid.available': '100%',
        },
        evictionSoft: { 'memory.available': '1Gi' },
        evictionSoftGracePeriod: { 'memory.available': '1m30s' },
        evictionMinimumReclaim: { 'memory.available': '50Mi', 'nodefs.available': '1%' },
      }),
      true,
    );
    assert.deepEqual(
      parsed.map((t) => [t.signal, formatQuantity(amountIn(t.value, 1000n)), t.graceMs, t.minReclaim !== undefined]),
      [
        ['memory.available', '100Mi', 0, true],
        ['nodefs.available', '100', 0, true],
        ['memory.available', '1Gi', 90_000, true],
        ['allocatableMemory.available', '100Mi', 0, true],
      ],
    );
  });

  it('shares of the capacity are cut to whole bytes of a 32-bit fraction', () => {
    const [t] = parseThresholds(config({ evictionHard: { 'nodefs.available': '10%' } }), false);
    assert.ok(t !== undefined);
    // 0.1 as a 32-bit float is a little more than a tenth.
    assert.equal(formatQuantity(amountIn(t.value, 100_000_000_000n)), '10000000149');
  });

  it('writable layers follow the filesystem that holds them', () => {
    const parsed = parseThresholds(
      config({
        evictionHard: { 'nodefs.available': '1Gi', 'imagefs.available': '2Gi', 'containerfs.available': '9Gi' },
      }),
      false,
    );
    const inodes = parseThresholds(config({ evictionSoft: { 'nodefs.inodesFree': '5' } }), false);
    assert.deepEqual(
      withContainerFs(inodes, 'shared').map((t) => [t.signal, t.graceMs]),
      [
        ['nodefs.inodesFree', 0],
        ['containerfs.inodesFree', 0],
      ],
    );
    const of = (layout: 'shared' | 'dedicated' | 'split'): unknown =>
      withContainerFs(parsed, layout).map((t) => [t.signal, formatQuantity(amountIn(t.value, 0n))]);
    assert.deepEqual(of('dedicated'), [
      ['nodefs.available', '1Gi'],
      ['imagefs.available', '2Gi'],
      ['containerfs.available', '2Gi'],
    ]);
    for (const layout of ['shared', 'split'] as const)
      assert.deepEqual((of(layout) as unknown[]).at(-1), ['containerfs.available', '1Gi']);
  });

  it('are met below, not at, their value; and resolved only beyond the reclaim', () => {
    const all = parseThresholds(
      config({ evictionHard: { 'memory.available': '1Gi' }, evictionMinimumReclaim: { 'memory.available': '100Mi' } }),
      false,
    );
    const met = (availableBytes: number, reclaimed: boolean): boolean =>
      metBy(all, observationsOf(nodeFigures({ memory: memory(availableBytes, GI) })), reclaimed).length > 0;
    assert.deepEqual(
      [met(GI - 1, false), met(GI, false), met(GI, true), met(GI + 100 * MI, true)],
      [true, false, true, false],
    );
    assert.equal(metBy(all, new Map(), false).length, 0, 'what nobody measured is not short');
  });
});

describe('observations', () => {
  it('of every signal', () => {
    const disk = fs({ availableBytes: 10, capacityBytes: 100, inodesFree: 5, inodes: 50 }, 7);
    const seen = observationsOf(
      nodeFigures({
        memory: memory(3000, 1000, 7),
        systemContainers: [{ name: 'pods', memory: memory(500, 300, 7) }],
        fs: disk,
        runtime: { imageFs: disk, containerFs: disk },
        rlimit: { time: { ms: 7 }, maxpid: 32768, curproc: 768 },
      }),
    );
    const rows = [...seen].map(([s, o]) => [s, formatQuantity(o.available), o.capacity, o.atMs]);
    assert.deepEqual(rows, [
      ['memory.available', '3000', 4000n, 7],
      ['allocatableMemory.available', '500', 800n, 7],
      ['nodefs.available', '10', 100n, 7],
      ['nodefs.inodesFree', '5', 50n, 7],
      ['imagefs.available', '10', 100n, 7],
      ['imagefs.inodesFree', '5', 50n, 7],
      ['containerfs.available', '10', 100n, 7],
      ['containerfs.inodesFree', '5', 50n, 7],
      ['pid.available', '32k', 32768n, 7],
    ]);
  });
});

describe('pressure over time', () => {
  const thresholds = parseThresholds(
    config({
      evictionHard: { 'nodefs.available': '10', 'memory.available': '100' },
      evictionSoft: { 'memory.available': '200' },
      evictionSoftGracePeriod: { 'memory.available': '20s' },
      evictionMinimumReclaim: { 'memory.available': '50' },
    }),
    false,
  );
  const TRANSITION = 60_000;
  const walk = (
    steps: readonly (readonly [sec: number, memoryFree: number, diskFree: number, measuredSec?: number])[],
  ) => {
    let state: PressureState = CALM;
    return steps.map(([sec, free, disk, measured]) => {
      const ms = (measured ?? sec) * 1000;
      const figures = nodeFigures({
        memory: memory(free, 1000, ms),
        fs: fs({ availableBytes: disk, capacityBytes: 1000 }, ms),
      });
      const seen = look(state, thresholds, observationsOf(figures), sec * 1000, TRANSITION);
      state = seen.state;
      const urgent = seen.urgent.map((t) => `${t.signal}${t.graceMs === 0 ? '' : ' soft'}`);
      return [seen.pressures.join(), urgent.join()];
    });
  };

  it('shows at once, acts after the grace period, and stays for the transition period', () =>
    assert.deepEqual(
      walk([
        [0, 500, 500],
        [10, 150, 500],
        [20, 150, 500],
        [30, 150, 500],
        // Not below the threshold, but not beyond the reclaim either.
        [40, 220, 500],
        [50, 300, 500],
        [60, 300, 500],
        [99, 300, 500],
        [100, 300, 500],
      ]),
      [
        ['', ''],
        ['MemoryPressure', ''],
        ['MemoryPressure', ''],
        ['MemoryPressure', 'memory.available soft'],
        ['MemoryPressure', 'memory.available soft'],
        ['MemoryPressure', ''],
        ['MemoryPressure', ''],
        ['MemoryPressure', ''],
        ['', ''],
      ],
    ));

  it('memory goes first, and nothing is decided twice on one measurement', () =>
    assert.deepEqual(
      walk([
        [0, 50, 5],
        [10, 50, 5, 0],
        [20, 50, 5],
      ]),
      [
        ['MemoryPressure,DiskPressure', 'memory.available,nodefs.available'],
        ['MemoryPressure,DiskPressure', ''],
        ['MemoryPressure,DiskPressure', 'memory.available,memory.available soft,nodefs.available'],
      ],
    ));

  it('so does the memory of all pods together', () => {
    const hard = { 'nodefs.available': '10', 'memory.available': '100' };
    const figures = nodeFigures({
      memory: memory(500, 1000),
      systemContainers: [{ name: 'pods', memory: memory(50, 1000) }],
      fs: fs({ availableBytes: 5, capacityBytes: 1000 }),
    });
    const { urgent } = look(CALM, parseThresholds(config({ evictionHard: hard }), true), observationsOf(figures), 0, 0);
    assert.deepEqual(
      urgent.map((t) => t.signal),
      ['allocatableMemory.available', 'nodefs.available'],
    );
  });

  it('a clock that was set back stops nothing', () =>
    assert.deepEqual(
      walk([
        [0, 50, 500, 7200],
        [10, 50, 500, 3610],
        [20, 50, 500, 3610],
      ]).map(([, urgent]) => urgent),
      ['memory.available', 'memory.available', ''],
    ));

  it('a hard threshold leaves a second, a soft one what both allow', () => {
    const [hard, , soft] = thresholds;
    assert.ok(hard !== undefined && soft !== undefined);
    assert.deepEqual(
      [graceSecondsFor(hard, 60, 30), graceSecondsFor(soft, 60, 30), graceSecondsFor(soft, 5, 30)],
      [1, 30, 5],
    );
  });
});

describe('local storage limits', () => {
  const limits = { 'ephemeral-storage': '1Gi' };
  const container = (rootfs: number, logs: number): PodFigures['containers'] => [
    { name: 'c', memory: undefined, rootfs: fs({ usedBytes: rootfs }), logs: fs({ usedBytes: logs }) },
  ];
  const limited = pod('p', {
    containers: [{ name: 'c', resources: { limits } }],
    volumes: [{ name: 'v', emptyDir: { sizeLimit: '1024Mi' } }],
  });
  const volume = (usedBytes: number): PodFigures['volume'] => [{ name: 'v', ...fs({ usedBytes }) }];
  const message = (
    figures: Partial<PodFigures>,
    layout: 'shared' | 'dedicated' | 'split' = 'shared',
    of = limited,
  ): string | undefined => storageExcess(of, podFigures('p', figures), layout)?.message;

  it('of a volume', () => {
    assert.equal(message({ volume: volume(GI) }), undefined);
    assert.equal(message({ volume: volume(GI + 1) }), 'Usage of EmptyDir volume "v" exceeds the limit "1Gi". ');
  });
  it('of the pod', () =>
    assert.equal(
      message({ volume: volume(GI / 2), containers: container(GI / 4, GI / 4 + 1) }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
    ));
  it('of the pod, with what it wrote to its hosts file and termination messages', () => {
    const total = { 'ephemeral-storage': fs({ usedBytes: GI + 1 }) };
    assert.equal(
      message({ ...total, containers: container(GI / 2, GI / 4) }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
    );
    assert.equal(message({ 'ephemeral-storage': fs({ usedBytes: GI }) }), undefined);
  });
  it('of the pod, whose layers count on a disk of their own too', () =>
    assert.equal(
      message({ containers: container(GI, 1) }, 'dedicated'),
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
    ));
  it('of one container, whose layer counts where it shares the disk', () => {
    const two = pod('p', {
      containers: [
        { name: 'c', resources: { limits } },
        { name: 'd', resources: { limits } },
      ],
    });
    const over = { containers: container(GI, 1) };
    assert.equal(message(over, 'shared', two), 'Container c exceeded its local ephemeral storage limit "1Gi". ');
    assert.equal(message(over, 'dedicated', two), undefined);
    assert.equal(message(over, 'split', two), undefined);
  });
  it('of one container, where none is not a limit', () => {
    const two = pod('p', {
      containers: [
        { name: 'c', resources: { limits: { 'ephemeral-storage': '0' } } },
        { name: 'd', resources: { limits } },
      ],
    });
    assert.equal(message({ containers: container(1, 1) }, 'shared', two), undefined);
  });
  it('none without limits', () =>
    assert.equal(message({ containers: container(GI, GI) }, 'shared', pod('p')), undefined));
});

describe('messages', () => {
  const figures = nodeFigures({ memory: memory(90 * MI, GI) });
  const thresholds = parseThresholds(config({ evictionHard: { 'memory.available': '100Mi' } }), false);
  const reported = (p: Pod, f: PodFigures | undefined) => explain('memory', p, f, thresholds, observationsOf(figures));
  const HEAD = 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ';

  it('name the containers that used more than they asked for', () => {
    const containers = [
      { name: 'c', memory: memory(0, 20 * MI) },
      { name: 'd', memory: memory(0, 30 * MI) },
      { name: 'e', memory: memory(0, 5 * MI) },
    ];
    const p = pod('p', {
      containers: [
        { name: 'c', resources: { requests: { memory: '10Mi' } } },
        { name: 'd' },
        { name: 'e', resources: { requests: { memory: '5Mi' } } },
      ],
    });
    assert.deepEqual(reported(p, podFigures('p', { containers })), {
      message: `${HEAD}Container c was using 20Mi, request is 10Mi, has larger consumption of memory. Container d was using 30Mi, request is 0, has larger consumption of memory. `,
      annotations: { offending_containers: 'c,d', offending_containers_usage: '20Mi,30Mi', starved_resource: 'memory' },
    });
  });

  it('name the pod where it has a request of its own, and its containers beside it', () => {
    const p = pod('p', { containers: [{ name: 'c' }], resources: { requests: { memory: '30Mi' } } });
    const containers = [{ name: 'c', memory: memory(0, 20 * MI) }];
    assert.deepEqual(reported(p, podFigures('p', { memory: memory(0, 20 * MI), containers })), {
      message: `${HEAD}Pod p was using 20Mi, request is 30Mi, has larger consumption of memory. Container c was using 20Mi, request is 0, has larger consumption of memory. `,
      annotations: {
        offending_pod: 'p',
        offending_pod_usage: '20Mi',
        offending_containers: 'c',
        offending_containers_usage: '20Mi',
        starved_resource: 'memory',
      },
    });
  });

  it('count inodes in thousands', () => {
    const inodes = parseThresholds(config({ evictionHard: { 'nodefs.inodesFree': '20k' } }), false);
    const seen = observationsOf(nodeFigures({ fs: fs({ inodesFree: 15_000, inodes: 100_000 }) }));
    assert.equal(
      explain('inodes', pod('p'), undefined, inodes, seen).message,
      'The node was low on resource: inodes. Threshold quantity: 20k, available: 15k. ',
    );
  });

  it('say what is known of a pod without figures', () =>
    assert.deepEqual(reported(pod('p'), undefined), { message: HEAD, annotations: {} }));
});
