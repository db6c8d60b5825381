// The pure decisions of eviction, as tables: thresholds, pressures over time, ranking, storage limits, messages.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatQuantity } from '../core/quantity.ts';
import type { Pod } from '../core/pod.ts';
import type { PodFigures } from './figures.ts';
import { reclaimSteps } from './eviction-manager.ts';
import { storageExcess } from './local-storage.ts';
import { explain } from './messages.ts';
import { CALM, graceSecondsFor, look, type PressureState } from './pressure.ts';
import { diskUse, memoryOf, rankPods } from './ranking.ts';
import { observationsOf } from './signals.ts';
import { asking, fs, memory, nodeFigures, pod, podFigures } from './testing.ts';
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

  it('a hard threshold leaves a second, a soft one what both allow', () => {
    const [hard, , soft] = thresholds;
    assert.ok(hard !== undefined && soft !== undefined);
    assert.deepEqual(
      [graceSecondsFor(hard, 60, 30), graceSecondsFor(soft, 60, 30), graceSecondsFor(soft, 5, 30)],
      [1, 30, 5],
    );
  });
});

describe('ranking', () => {
  const order = (
    pods: readonly Pod[],
    figures: readonly PodFigures[],
    signal: Parameters<typeof rankPods>[1],
    layout: Parameters<typeof rankPods>[2] = 'shared',
  ): string[] =>
    rankPods(pods, signal, layout, (p) => figures.find((f) => f.podRef.uid === p.metadata.uid)).map(
      (p) => p.metadata.name,
    );

  it('memory: whoever uses more than asked for, then priority, then the excess; the unknown before all', () => {
    const pods = [
      pod('within', asking({ memory: '1Gi' })),
      pod('over-important', { ...asking({ memory: '1Mi' }), priority: 100 }),
      pod('over-little', asking({ memory: '99Mi' })),
      pod('over-much', asking({ memory: '50Mi' })),
      pod('unknown'),
      pod('within-low', { ...asking({ memory: '1Gi' }), priority: -5 }),
    ];
    const figures = pods
      .filter((p) => p.metadata.name !== 'unknown')
      .map((p) => podFigures(p.metadata.name, { memory: memory(0, 100 * MI) }));
    assert.deepEqual(order(pods, figures, 'memory.available'), [
      'unknown',
      'over-much',
      'over-little',
      'over-important',
      'within-low',
      'within',
    ]);
  });

  it('process ids: priority, then how many', () => {
    const pods = [pod('few'), pod('many'), pod('important', { priority: 10 })];
    const counts: Record<string, number> = { few: 2, many: 50, important: 500 };
    const figures = pods.map((p) =>
      podFigures(p.metadata.name, { process_stats: { process_count: counts[p.metadata.name] ?? 0 } }),
    );
    assert.deepEqual(order(pods, figures, 'pid.available'), ['many', 'few', 'important']);
  });

  it('disk: what lies on the filesystem that runs low', () => {
    const volumes = [
      { name: 'v', emptyDir: {} },
      { name: 'm', emptyDir: { medium: 'Memory' } },
    ];
    const pods = [
      pod('layer', { volumes }),
      pod('logs', { volumes }),
      pod('volume', { volumes }),
      pod('in-memory', { volumes }),
    ];
    const use = (rootfs: number, logs: number, v: number, m: number): Partial<PodFigures> => ({
      containers: [
        {
          name: 'c',
          memory: undefined,
          rootfs: fs({ usedBytes: rootfs, inodesUsed: rootfs }),
          logs: fs({ usedBytes: logs, inodesUsed: logs }),
        },
      ],
      volume: [
        { name: 'v', ...fs({ usedBytes: v, inodesUsed: v }) },
        { name: 'm', ...fs({ usedBytes: m, inodesUsed: m }) },
      ],
    });
    const figures = [
      podFigures('layer', use(100, 0, 0, 0)),
      podFigures('logs', use(0, 90, 0, 0)),
      podFigures('volume', use(0, 0, 80, 0)),
      podFigures('in-memory', use(1, 0, 0, 500)),
    ];
    for (const signal of ['nodefs.available', 'nodefs.inodesFree'] as const) {
      assert.deepEqual(order(pods, figures, signal), ['layer', 'logs', 'volume', 'in-memory']);
      assert.deepEqual(order(pods, figures, signal, 'dedicated').slice(0, 2), ['logs', 'volume']);
      assert.deepEqual(order(pods, figures, signal, 'split').slice(0, 3), ['layer', 'logs', 'volume']);
    }
    assert.deepEqual(order(pods, figures, 'imagefs.available', 'dedicated').slice(0, 2), ['layer', 'in-memory']);
  });

  it('what is taken away before any pod', () => {
    const both = ['unusedContainers', 'unusedImages'];
    for (const [signal, layout, steps] of [
      ['memory.available', 'shared', []],
      ['pid.available', 'shared', []],
      ['nodefs.available', 'shared', both],
      ['imagefs.inodesFree', 'shared', both],
      ['nodefs.available', 'dedicated', []],
      ['imagefs.available', 'dedicated', both],
      ['containerfs.available', 'dedicated', both],
      ['imagefs.available', 'split', ['unusedImages']],
      ['nodefs.available', 'split', ['unusedContainers']],
      ['containerfs.inodesFree', 'split', ['unusedContainers']],
    ] as const)
      assert.deepEqual(reclaimSteps(signal, layout), steps, `${signal} ${layout}`);
  });
});

describe('what a pod uses, as far as it is known', () => {
  const container = (more: object) => ({ name: 'c', ...more }) as PodFigures['containers'][number];
  it('memory: of the pod, else of its containers', () => {
    assert.equal(memoryOf(podFigures('a', { memory: memory(0, 7) })), 7);
    const figures = podFigures('a', { containers: [container({ memory: memory(0, 3) }), container({})] });
    assert.equal(memoryOf(figures), 3);
  });

  it('disk: what is in the places that count', () => {
    const volumes = [
      { ...fs({ inodesUsed: 5 }), name: 'v' },
      { ...fs({}), name: 'w' },
      { ...fs({ inodesUsed: 9 }), name: 'x' },
    ];
    const figures = podFigures('a', {
      volume: volumes,
      containers: [container({ rootfs: fs({ inodesUsed: 1 }), logs: fs({ inodesUsed: 2 }) }), container({})],
    });
    const its = pod('a', {
      volumes: [
        { name: 'v', emptyDir: {} },
        { name: 'w', hostPath: { path: '/' } },
      ],
    });
    const all = { rootfs: true, logs: true, volumes: true };
    assert.equal(diskUse(its, figures, all, 'inodesUsed'), 8);
    assert.equal(diskUse(its, figures, { ...all, rootfs: false, volumes: false }, 'inodesUsed'), 2);
    assert.equal(diskUse(its, podFigures('a'), all, 'usedBytes'), 0);
  });

  it('process ids and inodes nobody counted are none', () => {
    const pods = [pod('a'), pod('b', { priority: 1 })];
    const figures = (p: Pod) => podFigures(p.metadata.uid ?? '');
    for (const signal of ['pid.available', 'nodefs.inodesFree', 'imagefs.available'] as const)
      for (const layout of ['shared', 'dedicated', 'split'] as const)
        assert.deepEqual(
          rankPods(pods, signal, layout, figures).map((p) => p.metadata.name),
          ['a', 'b'],
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
