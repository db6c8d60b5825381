// A shutdown announced, handled, called off; and a machine where nobody announces any.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { aborted } from '../lib/abort.ts';
import { systemClock } from '../lib/clock.ts';
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
  const state = { broken, stuck: new Set<string>(), lost: Promise.withResolvers<void>() };
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
        active: () => pods,
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
    t.state.lost.reject(new KubeletError('unavailable', 'busctl ended with 1'));
    await t.clock.advance(1000);
    assert.ok(!t.done.includes('released'), t.done.join());
    await t.clock.advance(30_000);
    assert.equal(t.done.at(-1), 'released');
    await t.end();
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
    await t.clock.advance(60_000);
    t.state.broken = false;
    await t.clock.advance(60_000);
    assert.deepEqual(t.done, ['delay 30', 'delay 30', 'delay 30', 'held']);
    await t.end();
    assert.equal(t.clock.pending, 0);
  });
});

describe('the longest delay logind grants', () => {
  const never = new AbortController().signal;
  async function allow(first: number, afterReload: number): Promise<string | undefined> {
    const dir = mkdtempSync(join(tmpdir(), 'kts-logind-'));
    const program = (name: string, text: string): void =>
      writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    program('busctl', `cat ${dir}/max`);
    program('systemctl', `echo 't ${afterReload}000000' > ${dir}/max`);
    writeFileSync(join(dir, 'max'), `t ${first}000000\n`);
    const override = join(dir, 'conf.d', '99-kubelet.conf');
    const { PATH } = process.env;
    process.env['PATH'] = `${dir}:${PATH ?? ''}`;
    try {
      await new Logind(systemClock, { override }).allowDelay(30, never);
      return readFileSync(override, 'utf8');
    } catch (err) {
      if (err instanceof KubeletError) throw err;
      return undefined;
    } finally {
      process.env['PATH'] = PATH;
      rmSync(dir, { recursive: true });
    }
  }

  it('is not waited for when the agent stops while the bus is silent', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kts-logind-'));
    for (const name of ['busctl', 'systemd-inhibit'])
      writeFileSync(join(dir, name), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    const { PATH } = process.env;
    process.env['PATH'] = `${dir}:${PATH ?? ''}`;
    try {
      const clock = new ManualClock();
      const stop = new AbortController();
      const logind = new Logind(clock);
      const asked = [logind.allowDelay(30, stop.signal), logind.inhibit(stop.signal)];
      stop.abort(new Error('agent stops'));
      for (const answer of asked) await assert.rejects(answer);
      const silent = [logind.allowDelay(30, never), logind.inhibit(never)].map((answer) => assert.rejects(answer));
      await clock.advance(10_000);
      await Promise.all(silent);
      assert.equal(clock.pending, 0);
    } finally {
      process.env['PATH'] = PATH;
      rmSync(dir, { recursive: true });
    }
  });

  it('is left alone when it suffices', async () => assert.equal(await allow(30, 0), undefined));
  it('is raised when it does not', async () =>
    assert.equal(await allow(5, 30), '# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n'));
  it('is an error when it cannot be', () =>
    assert.rejects(allow(5, 10), /unable to update logind InhibitDelayMaxSec to 30s.*\(10s\) is less than/));
});
