import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { PullView } from './pull-progress.ts';
import { dueQuarter, reportPull } from './pull-reports.ts';

const pod: Pod = { metadata: { name: 'web', namespace: 'shop', uid: 'u' }, spec: { containers: [] } };
const pull = (percent: number, forMs: number, nowMs = 0): PullView => ({
  podUid: podUid('u'),
  namespace: 'shop',
  pod: 'web',
  image: 'app:1',
  phase: 'pulling',
  sinceMs: nowMs - forMs,
  pullingSinceMs: nowMs - forMs,
  progress: { source: 'layers', doneBytes: percent * 1e6, totalBytes: 100e6, layers: [] },
});

describe('which quarter is told of', () => {
  for (const [percent, forMs, told, expected] of [
    [50, 29_000, 0, undefined],
    [24, 31_000, 0, undefined],
    [25, 31_000, 0, 25],
    [60, 31_000, 0, 50],
    [60, 31_000, 50, undefined],
    [80, 31_000, 25, 75],
    [100, 31_000, 50, undefined],
  ] as const)
    it(`${percent} % after ${forMs} ms, told of ${told}: ${expected}`, () =>
      assert.equal(dueQuarter(pull(percent, forMs), 0, told), expected));

  it('none of what is not known', () => {
    const { progress: _, ...bare } = pull(0, 60_000);
    assert.equal(dueQuarter(bare, 0, 0), undefined);
    assert.equal(dueQuarter({ ...bare, phase: 'queued' }, 0, 0), undefined);
  });
});

describe('a pull that takes long', () => {
  const setup = (tell: boolean) => {
    const clock = new ManualClock();
    const waiting: string[] = [];
    const events: string[] = [];
    const begun = clock.now();
    const stop = reportPull(
      {
        clock,
        log: silentLogger,
        events: {
          pod: (_pod, _type, reason, message, options) =>
            void events.push(`${reason} ${message} ${options?.fieldPath ?? ''}`),
          node: () => undefined,
        },
        ...(tell ? { onWaiting: (_pod, container, message) => void waiting.push(`${container}: ${message}`) } : {}),
      },
      { pod, fieldPath: 'spec.containers{app}' },
      () => pull((clock.now() - begun) / 1000, clock.now() - begun, clock.now()),
    );
    return { clock, waiting, events, stop };
  };

  it('is told of every ten seconds in the status and at quarters by events', async () => {
    const t = setup(true);
    await t.clock.advance(9999);
    assert.deepEqual(t.waiting, []);
    await t.clock.advance(1);
    assert.deepEqual(t.waiting, ['app: Pulling image "app:1": 10 % of 100 MB, 10 s so far']);
    await t.clock.advance(80_000);
    assert.equal(t.waiting.length, 9);
    assert.deepEqual(
      t.events.map((e) => e.slice(0, 46)),
      [30, 50, 80].map((percent) => `PullProgress Pulling image "app:1": ${percent} % of 10`),
    );
    t.stop();
    assert.equal(t.clock.pending, 0);
  });

  it('is not where that is switched off', async () => {
    const t = setup(false);
    await t.clock.advance(90_000);
    assert.deepEqual([t.waiting, t.events], [[], []]);
    t.stop();
  });
});
