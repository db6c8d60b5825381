// The node's figures and readiness as the page shows them, and pulls.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { NodeCondition } from '../core/node.ts';
import type { PullView } from '../images/pull-progress.ts';
import { Moment, type FsFigures, type NodeFigures, type Psi } from '../stats/summary-types.ts';
import { readyView } from './node-ready.ts';
import { diskView, nodeUse } from './node-use.ts';
import { pullViews } from './pull-views.ts';

const time = new Moment(0);
const fs = (capacityBytes: number | undefined, availableBytes: number | undefined): FsFigures => ({
  time,
  availableBytes,
  capacityBytes,
  usedBytes: undefined,
  inodesFree: undefined,
  inodes: undefined,
  inodesUsed: undefined,
});
const line = (avg10: number) => ({ total: 0, avg10, avg60: 0, avg300: 0 });
const psi: Psi = { some: line(1), full: line(2) };

describe('what the node uses', () => {
  it('is shown as far as it is known', () => {
    const figures = {
      cpu: { usageNanoCores: 5e8, psi },
      memory: { workingSetBytes: 1, availableBytes: 2, psi },
      io: { psi },
      swap: { swapUsageBytes: 3 },
      rlimit: { curproc: 4 },
      network: { rxBytes: 5, txBytes: 6 },
      fs: fs(100, 40),
      runtime: { imageFs: fs(50, 40) },
    };
    assert.deepEqual(nodeUse(figures as unknown as NodeFigures), {
      cpuCores: 0.5,
      memoryWorkingSetBytes: 1,
      memoryAvailableBytes: 2,
      swapBytes: 3,
      processes: 4,
      networkRxBytes: 5,
      networkTxBytes: 6,
      disks: [
        { name: 'node', usedBytes: 60, capacityBytes: 100 },
        { name: 'images', usedBytes: 10, capacityBytes: 50 },
      ],
      psi: { cpu: { some: 1, full: 2 }, memory: { some: 1, full: 2 }, io: { some: 1, full: 2 } },
    });
  });

  it('is nothing while nothing was measured', () => {
    const nothing = { disks: [], psi: {} };
    assert.deepEqual(nodeUse({} as unknown as NodeFigures), nothing);
    const empty = { cpu: {}, memory: {}, io: {}, swap: {}, rlimit: {}, network: {}, runtime: {} };
    assert.deepEqual(nodeUse(empty as unknown as NodeFigures), nothing);
  });

  it('has no disk of unknown size', () => {
    assert.equal(diskView('d', undefined), undefined);
    assert.equal(diskView('d', fs(100, undefined)), undefined);
    assert.equal(diskView('d', fs(undefined, 1)), undefined);
  });
});

describe('readiness', () => {
  const ready = (status: string, more: Partial<NodeCondition> = {}): NodeCondition =>
    ({ type: 'Ready', status, ...more }) as NodeCondition;
  const short = [{ signal: 'memory.available', met: true }] as never;
  for (const [name, conditions, errors, signals, sentence, fix] of [
    ['ready', [ready('True')], [], [], 'The node is ready: the runtime answers and nothing runs short.', undefined],
    ['short of memory', [ready('True')], [], short, 'The node is ready but short of memory.available.', undefined],
    ['no reason', [ready('False')], [], [], 'The node is not ready: no reason was given.', undefined],
    ['a reason', [ready('False', { reason: 'X' })], [], [], 'The node is not ready: X.', undefined],
    ['PLEG', [ready('False', { message: 'PLEG is late.' })], [], [], 'The node is not ready: PLEG is late.', /load/],
    ['standalone', undefined, ['runtime is down'], [], 'The node is not ready: runtime is down.', /containerd/],
  ] as const)
    it(name, () => {
      const { why } = readyView(conditions, errors, signals);
      assert.equal(why.sentence, sentence);
      if (fix === undefined) assert.equal(why.fix, undefined);
      else assert.match(why.fix ?? '', fix);
    });
});

describe('pulls', () => {
  const pull = (pod: string, phase: PullView['phase'], more: Partial<PullView> = {}): PullView => ({
    podUid: podUid(pod),
    namespace: 'n',
    pod,
    image: 'big:1',
    phase,
    sinceMs: 5,
    ...more,
  });
  it('a pod that waits for a pull that runs does not set it back', () => {
    const progress = { source: 'size', doneBytes: 1, layers: [] } as const;
    const views = pullViews([pull('a', 'pulling', { pullingSinceMs: 6, progress }), pull('b', 'queued')]);
    assert.deepEqual(views, [
      { image: 'big:1', state: 'pulling', startedAtMs: 6, doneBytes: 1, layers: [], pods: ['n/a', 'n/b'] },
    ]);
  });

  it('layers are done or being pulled; a pod with two containers of an image is named once', () => {
    const layers = [
      { digest: 'a', doneBytes: 2, totalBytes: 2, done: true },
      { digest: 'b', doneBytes: 1, totalBytes: 2, done: false },
    ];
    const [view] = pullViews([
      pull('a', 'pulling', { progress: { source: 'layers', doneBytes: 3, layers } }),
      pull('a', 'queued'),
    ]);
    assert.deepEqual([view?.pods, view?.layers?.map((l) => l.state)], [['n/a'], ['done', 'pulling']]);
  });
});
