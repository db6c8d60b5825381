import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../core/pod.ts';
import { reclaimSteps } from './eviction-manager.ts';
import type { DiskLayout, PodFigures } from './figures.ts';
import { diskUse, memoryOf, rankPods } from './ranking.ts';
import type { Signal } from './signals.ts';
import { asking, fs, memory, pod, podFigures } from './testing.ts';

const MI = 2 ** 20;
const LOCAL = { volumes: [{ name: 'v', emptyDir: {} }] };

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

  it('memory: overhead adds to a request and is none itself; what the whole pod asks for counts alone', () => {
    const overhead = { memory: '200Mi' };
    const pods = [
      pod('no-request', { overhead }),
      pod('with-overhead', { ...asking({ memory: '50Mi' }), overhead }),
      pod('pod-level', { ...asking({ memory: '1Gi' }), resources: { requests: { memory: '99Mi' } } }),
      pod('pod-level-cpu', { ...asking({ memory: '1Gi' }), resources: { requests: { cpu: '1' } } }),
      pod('nothing-pod-level', { ...asking({ memory: '1Gi' }), resources: {} }),
    ];
    const figures = pods.map((p) => podFigures(p.metadata.name, { memory: memory(0, 100 * MI) }));
    assert.deepEqual(order(pods, figures, 'memory.available'), [
      'no-request',
      'pod-level-cpu',
      'pod-level',
      'with-overhead',
      'nothing-pod-level',
    ]);
  });

  it('disk: where the whole pod asks for something, storage that its containers ask for does not count', () => {
    const pods = [
      pod('asked', asking({ 'ephemeral-storage': '1Gi' })),
      pod('pod-level', { ...asking({ 'ephemeral-storage': '1Gi' }), resources: { limits: { memory: '1Gi' } } }),
    ];
    const containers = [{ name: 'c', memory: undefined, rootfs: fs({ usedBytes: MI, inodesUsed: 10 }) }];
    const figures = pods.map((p) => podFigures(p.metadata.name, { containers }));
    for (const signal of ['nodefs.available', 'nodefs.inodesFree'] as const)
      assert.deepEqual(order(pods, figures, signal), ['pod-level', 'asked']);
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
        { name: 'v', emptyDir: { medium: '' } },
        { name: 'w', hostPath: { path: '/' } },
        { name: 'x', emptyDir: { medium: 'HugePages-2Mi' } },
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

  it('the pod that goes first for a disk holds the most among its equals', () => {
    const priority = fc.constantFrom(0, 10);
    const pods = fc.array(fc.record({ priority, holds: fc.nat(1000), isMeasured: fc.boolean() }), { minLength: 1 });
    fc.assert(
      fc.property(pods, fc.constantFrom('nodefs.available', 'nodefs.inodesFree'), (given, signal) => {
        const all = given.map((o, i) => ({ ...o, pod: pod(`p${i}`, { ...LOCAL, priority: o.priority }) }));
        const unmeasured = new Set(all.filter((o) => !o.isMeasured).map((o) => o.pod.metadata.name));
        const figures = (p: Pod) => {
          const { holds = 0 } = all.find((o) => o.pod === p) ?? {};
          return podFigures(p.metadata.name, {
            volume: [{ ...fs({ usedBytes: holds, inodesUsed: holds }), name: 'v' }],
          });
        };
        const ranked = rankPods(
          all.map((o) => o.pod),
          signal,
          'shared',
          figures,
          unmeasured,
        );
        const first = all.find((o) => o.pod === ranked[0]);
        assert.ok(first !== undefined);
        if (unmeasured.size > 0) return assert.ok(!first.isMeasured);
        const equals = all.filter((o) => o.priority === first.priority);
        assert.equal(first.holds, Math.max(...equals.map((o) => o.holds)));
      }),
    );
  });

  it('unmeasured volumes count only where they are on the filesystem that runs low', () => {
    const pods = [pod('a', LOCAL), pod('b', LOCAL)];
    const figures = (p: Pod) => podFigures(p.metadata.name);
    const first = (signal: Signal, layout: DiskLayout): string | undefined =>
      rankPods(pods, signal, layout, figures, new Set(['b']))[0]?.metadata.name;
    assert.equal(first('nodefs.available', 'dedicated'), 'b');
    assert.equal(first('imagefs.available', 'dedicated'), 'a');
    assert.equal(first('memory.available', 'shared'), 'a');
  });
});
