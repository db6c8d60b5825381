// When the kernel is asked to tell, and what follows when it does.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { MemoryNotifier, usageThresholds } from './memory-notifier.ts';
import { memory, nodeFigures } from './testing.ts';
import { parseThresholds } from './thresholds.ts';

const MI = 2 ** 20;
const thresholds = parseThresholds(
  {
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1Gi' },
    evictionSoft: { 'memory.available': '50%' },
    evictionSoftGracePeriod: { 'memory.available': '30s' },
    evictionMinimumReclaim: {},
  },
  true,
);
const figures = nodeFigures({
  memory: { ...memory(600 * MI, 400 * MI), usageBytes: 450 * MI },
  systemContainers: [{ name: 'pods', memory: { ...memory(700 * MI, 100 * MI), usageBytes: 100 * MI } }],
});

describe('memory use that stands for a threshold', () => {
  it('is the capacity without the threshold, and with what the page cache holds', () =>
    assert.deepEqual(usageThresholds(thresholds, figures), [
      { signal: 'memory.available', bytes: 950 * MI },
      { signal: 'memory.available', bytes: 550 * MI },
      { signal: 'allocatableMemory.available', bytes: 700 * MI },
    ]));
  it('is not known without figures', () => assert.deepEqual(usageThresholds(thresholds, nodeFigures({})), []));
});

describe('waiting for the kernel', () => {
  const setup = () => {
    const clock = new ManualClock();
    const open = new Set<number>();
    const crossed = new Set<number>();
    const failing = new Set<string>();
    const notifier = new MemoryNotifier({
      clock,
      log: silentLogger,
      watch: async (signal, bytes) => {
        if (failing.has(signal)) throw new Error('no such cgroup');
        open.add(bytes);
        return { crossed: () => crossed.delete(bytes), close: () => void open.delete(bytes) };
      },
    });
    return { clock, open, crossed, failing, notifier };
  };
  const { signal } = new AbortController();

  it('ends when a threshold is crossed, and otherwise after its time', async () => {
    const { clock, open, crossed, notifier } = setup();
    await notifier.update(thresholds, figures);
    assert.deepEqual([...open], [950 * MI, 550 * MI, 700 * MI]);
    let rested = false;
    const first = notifier.rest(10_000, signal).then(() => (rested = true));
    await clock.advance(9000);
    assert.equal(rested, false);
    await clock.advance(1000);
    await first;
    const begun = clock.monotonic();
    const second = notifier.rest(10_000, signal);
    await clock.advance(1000);
    crossed.add(550 * MI);
    await clock.advance(250);
    await second;
    assert.equal(clock.monotonic() - begun, 1250);
    notifier.close();
    assert.equal(open.size, 0);
  });

  it('looks again at once when a threshold was crossed during a look', async () => {
    const { clock, crossed, notifier } = setup();
    await notifier.update(thresholds, figures);
    crossed.add(950 * MI);
    await notifier.update(thresholds, figures);
    const begun = clock.monotonic();
    await notifier.rest(10_000, signal);
    assert.equal(clock.monotonic(), begun);
    const next = notifier.rest(10_000, signal);
    await clock.advance(10_000);
    await next;
    assert.equal(clock.monotonic() - begun, 10_000, 'once');
  });

  it('does without a cgroup that cannot be watched, and never watches twice', async () => {
    const { open, failing, notifier } = setup();
    failing.add('allocatableMemory.available');
    await notifier.update(thresholds, figures);
    await notifier.update(thresholds, figures);
    assert.deepEqual([...open], [950 * MI, 550 * MI]);
  });
});
