import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { SystemCgroups } from './system-cgroups.ts';

function open(kubelet: string, system: string, refuse = ''): { placed: string[]; clock: ManualClock; stop(): void } {
  const placed: string[] = [];
  const clock = new ManualClock();
  const processes = {
    place: (path: string, pids: readonly number[]) => {
      if (path === refuse) return Promise.reject(new Error('read-only'));
      placed.push(`${path} ${pids.join(' ')}`);
      return Promise.resolve();
    },
    unplaced: () => Promise.resolve([7, 8]),
  };
  const stop = new AbortController();
  void new SystemCgroups({ processes, clock, log: silentLogger }, { kubelet, system, pid: 42 }).run(stop.signal);
  return { placed, clock, stop: () => stop.abort() };
}

describe('processes in cgroups of the system', () => {
  for (const [name, kubelet, system, expected] of [
    ['the kubelet', '/kubelet.slice', '', ['/kubelet.slice 42']],
    ['whoever is in none', '', '/system', ['/system 7 8']],
    ['both, the kubelet first', '/kubelet', '/system', ['/kubelet 42', '/system 7 8']],
  ] as const)
    it(name, async () => {
      const t = open(kubelet, system);
      await t.clock.advance(0);
      assert.deepEqual(t.placed, expected);
      await t.clock.advance(60_000);
      assert.deepEqual(t.placed, [...expected, ...expected], 'and again every minute');
      t.stop();
    });

  it('one that cannot be had does not keep the other from it', async () => {
    const t = open('/kubelet', '/system', '/kubelet');
    await t.clock.advance(0);
    assert.deepEqual(t.placed, ['/system 7 8']);
    t.stop();
  });

  it('the root is no place for the system', () =>
    assert.throws(() => open('', '/'), { message: 'system container cannot be root ("/")' }));
});
