// A shutdown announced, handled, called off; and a machine where nobody announces any.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { abortable, aborted } from '../lib/abort.ts';
import { systemClock } from '../lib/clock.ts';
import { Variant } from '../lib/dbus/values.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Logind } from './logind.ts';
import { ShutdownManager } from './shutdown-manager.ts';

const pod = (name: string, priority: number): Pod => ({
  metadata: { name, namespace: 'ns', uid: name },
  spec: { containers: [], priority, terminationGracePeriodSeconds: 30 },
});

function setup(pods: readonly Pod[], broken = false) {
  const clock = new ManualClock();
  const done: string[] = [];
  const state = { broken, known: true, stuck: new Set<string>(), lost: Promise.withResolvers<void>() };
  let begun = 0;
  let announce: (down: boolean) => void = () => assert.fail('nobody watches');
  const manager = new ShutdownManager(
    {
      source: {
        allowDelay: async (seconds) => {
          done.push(`delay ${seconds}`);
          if (state.broken) throw new KubeletError('unavailable', 'no logind');
        },
        inhibit: async () => {
          done.push('held');
          return { release: () => void done.push('released') };
        },
        watch: (onPrepare, signal) => {
          announce = onPrepare;
          return Promise.race([aborted(signal), state.lost.promise]);
        },
      },
      pods: {
        known: () => state.known,
        running: () => (state.known ? pods : []),
        end: async ({ metadata: { name } }, grace, signal) => {
          done.push(`end ${name} in ${grace}`);
          if (!state.stuck.has(name)) return;
          await aborted(signal);
          signal.throwIfAborted();
        },
      },
      events: { pod: () => undefined, node: (_, __, message) => void done.push(message) },
      onChange: () => undefined,
      times: {
        load: () => Promise.reject(new Error('the disk is not there')),
        started: async (now) => void (begun = now),
        ended: async (now) => void done.push(`took ${now - begun}`),
      },
      infra: { clock, log: silentLogger },
    },
    [
      { priority: 0, seconds: 20 },
      { priority: 1000, seconds: 10 },
    ],
  );
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await clock.advance(0);
    await running;
  };
  return { clock, done, state, manager, announce: (down: boolean) => announce(down), end };
}

describe('the shutdown manager', () => {
  it('holds the machine until the pods have ended, also when the monitor is lost meanwhile', async () => {
    const t = setup([pod('stuck', 2)]);
    t.state.stuck.add('stuck');
    await t.clock.advance(0);
    t.announce(true);
    await t.clock.advance(0);
    t.state.lost.reject(new KubeletError('unavailable', 'the bus is gone'));
    await t.clock.advance(1000);
    assert.ok(!t.done.includes('released'), t.done.join());
    await t.clock.advance(30_000);
    assert.equal(t.done.at(-1), 'released');
    await t.end();
  });

  it('waits for the sources of pods when the machine goes down right after the start, but not for ever', async () => {
    for (const knownAfterMs of [2000, Infinity]) {
      const t = setup([pod('web', 1)]);
      t.state.known = false;
      await t.clock.advance(0);
      t.announce(true);
      await t.clock.advance(Math.min(knownAfterMs, 4000));
      assert.deepEqual([t.manager.shuttingDown, t.done.includes('released')], [false, false]);
      t.state.known = knownAfterMs !== Infinity;
      await t.clock.advance(2500);
      assert.deepEqual([t.manager.shuttingDown, t.done.includes('released')], [true, true]);
      assert.equal(t.done.includes('end web in 20'), t.state.known);
      await t.end();
    }
  });

  it('ends pods group by group, goes on when one is stuck, then lets the machine go', async () => {
    const t = setup([pod('high', 2000), pod('low', 1), pod('stuck', 2)]);
    t.state.stuck.add('stuck');
    await t.clock.advance(0);
    t.announce(true);
    await t.clock.advance(19_999);
    assert.equal(t.manager.shuttingDown, true);
    assert.deepEqual(t.done, [
      'delay 30',
      'held',
      'Shutdown manager detected shutdown event',
      'end low in 20',
      'end stuck in 20',
    ]);
    t.done.length = 0;
    await t.clock.advance(1);
    assert.deepEqual(t.done, ['end high in 10', 'took 20000', 'released']);
    await t.end();
  });

  it('holds the next one up when this one was called off', async () => {
    const t = setup([]);
    await t.clock.advance(0);
    t.announce(true);
    t.announce(false);
    await t.clock.advance(0);
    assert.equal(t.manager.shuttingDown, false);
    assert.deepEqual(t.done.slice(2), [
      'Shutdown manager detected shutdown event',
      'took 0',
      'released',
      'Shutdown manager detected shutdown cancellation',
      'held',
    ]);
    await t.end();
    assert.equal(t.done.at(-1), 'released');
  });

  it('tries again where there is no logind', async () => {
    const t = setup([], true);
    await t.clock.advance(0);
    for (const waitMs of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
      t.done.length = 0;
      await t.clock.advance(waitMs - 1);
      assert.deepEqual(t.done, []);
      await t.clock.advance(1);
      assert.deepEqual(t.done, ['delay 30'], `after ${waitMs}`);
    }
    t.state.broken = false;
    await t.clock.advance(60_000);
    assert.equal(t.done.at(-1), 'held');
    // Lost after it worked: soon again.
    t.state.lost.reject(new KubeletError('unavailable', 'the bus was restarted'));
    t.state.lost = Promise.withResolvers<void>();
    await t.clock.advance(1000);
    assert.deepEqual(t.done.slice(-3), ['released', 'delay 30', 'held']);
    await t.end();
    assert.equal(t.clock.pending, 0);
  });
});

describe('the longest delay logind grants', () => {
  const never = new AbortController().signal;
  async function allow(first: number, afterReload: number): Promise<string | undefined> {
    const dir = mkdtempSync(join(tmpdir(), 'kts-logind-'));
    const override = join(dir, 'conf.d', '99-kubelet.conf');
    let seconds = first;
    const killed: unknown[] = [];
    const logind = new Logind(
      {
        bus: {
          property: async () => new Variant('t', BigInt(seconds) * 1_000_000n),
          watch: () => Promise.resolve(),
        },
        callForFile: () => Promise.reject(new Error('not asked')),
        killUnit: async (unit, number) => {
          killed.push([unit, number]);
          seconds = afterReload;
        },
        clock: systemClock,
      },
      { override },
    );
    try {
      await logind.allowDelay(30, never);
      if (!existsSync(override)) return undefined;
      assert.deepEqual(killed, [['systemd-logind.service', 1]]);
      return readFileSync(override, 'utf8');
    } finally {
      rmSync(dir, { recursive: true });
    }
  }

  it('is not waited for when the agent stops while the bus is silent', async () => {
    const silent = <T>(signal: AbortSignal): Promise<T> => abortable(signal, new Promise<T>(() => undefined));
    const logind = new Logind({
      bus: { property: (_at, _name, signal) => silent(signal), watch: (_rule, _on, signal) => silent(signal) },
      callForFile: (_call, signal) => silent(signal),
      killUnit: (_unit, _number, signal) => silent(signal),
      clock: new ManualClock(),
    });
    const stop = new AbortController();
    const asked = [
      logind.allowDelay(30, stop.signal),
      logind.inhibit(stop.signal),
      logind.watch(() => undefined, stop.signal),
    ];
    const rejected = asked.map((answer) => assert.rejects(answer));
    stop.abort(new Error('agent stops'));
    await Promise.all(rejected);
  });

  it('is left alone when it suffices', async () => assert.equal(await allow(30, 0), undefined));
  it('is raised when it does not', async () =>
    assert.equal(await allow(5, 30), '# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n'));
  it('is an error when it cannot be', () =>
    assert.rejects(allow(5, 10), /unable to update logind InhibitDelayMaxSec to 30s.*\(10s\) is less than/));
});
