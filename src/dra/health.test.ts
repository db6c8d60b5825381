import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { HealthCache, shortened } from './health.ts';

describe('health of devices', () => {
  it('is unknown when it was not told again in time', async () => {
    const clock = new ManualClock();
    const health = new HealthCache({ clock, log: silentLogger }, { file: '/nonexistent/file' });
    const told = {
      lastUpdatedTime: 0,
      healthCheckTimeoutSeconds: 10,
      message: 'm',
      device: { poolName: 'p', deviceName: 'd' },
    };
    assert.ok(health.update('x', [{ ...told, health: 1 }]));
    assert.ok(!health.update('x', [{ ...told, health: 1 }]));
    assert.equal(health.of('x', 'p', 'd').health, 'Healthy');
    await clock.advance(10_001);
    assert.equal(health.of('x', 'p', 'd').health, 'Unknown');
    assert.ok(health.update('x', [{ ...told, health: 2 }]));
    assert.deepEqual([health.of('x', 'p', 'd').health, health.of('x', 'p', 'd').message], ['Unhealthy', 'm']);
    assert.ok(health.clear('x'));
    assert.equal(health.of('x', 'p', 'd').health, 'Unknown');
  });

  it('keeps no names that a driver makes up', async (t) => {
    const clock = new ManualClock();
    const dir = mkdtempSync(join(tmpdir(), 'kts-health-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'health');
    const health = new HealthCache({ clock, log: silentLogger }, { file });
    const tell = (name: string, count: number, healthCheckTimeoutSeconds = 1): void => {
      const devices = Array.from({ length: count }, (_, i) => ({
        lastUpdatedTime: 0,
        healthCheckTimeoutSeconds,
        message: '',
        health: 1,
        device: { poolName: 'p', deviceName: `${name}${i}` },
      }));
      health.update('x', devices);
    };
    const names = async (): Promise<string[]> => {
      await health.close();
      const all = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { Devices: object }>;
      return Object.keys(all['x']?.Devices ?? {});
    };
    for (let i = 0; i < 20; i++) {
      tell(`made-up-${i}-`, 1);
      await clock.advance(60_000);
    }
    assert.ok((await names()).length <= 11, 'those of the last ten minutes');
    tell('lasting', 9_000, 2 ** 40);
    tell('other', 9_000, 2 ** 40);
    const kept = await names();
    assert.equal(kept.length, 10_000);
    assert.equal(kept.filter((name) => name.startsWith('p/other')).length, 9_000);
    tell('l'.repeat(300), 1);
    assert.equal(
      (await names()).some((name) => name.includes('lll')),
      false,
    );
  });

  it('is as old as it is, whatever becomes of the clock', async () => {
    const clock = new ManualClock();
    const health = new HealthCache({ clock, log: silentLogger }, { file: '/nonexistent/file' });
    const device = { poolName: 'p', deviceName: 'd' };
    const told = { lastUpdatedTime: 0, healthCheckTimeoutSeconds: 10, message: '', health: 1, device };
    health.update('x', [told]);
    clock.jumpWall(3_600_000);
    assert.equal(health.of('x', 'p', 'd').health, 'Healthy');
    clock.jumpWall(-7_200_000);
    await clock.advance(10_001);
    assert.equal(health.of('x', 'p', 'd').health, 'Unknown');
  });

  it('is written when something changed, not with every message', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dra-health-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'dra_health_state');
    const clock = new ManualClock();
    const health = new HealthCache({ clock, log: silentLogger }, { file });
    const told = { lastUpdatedTime: 0, healthCheckTimeoutSeconds: 10, message: '', health: 1 };
    const [a, b] = ['a', 'b'].map((deviceName) => ({ ...told, device: { poolName: 'p', deviceName } }));
    assert.ok(a !== undefined && b !== undefined);
    const written = async (): Promise<Record<string, string>> => {
      await health.close();
      const { x } = JSON.parse(readFileSync(file, 'utf8')) as { x: { Devices: Record<string, { Health: string }> } };
      return Object.fromEntries(Object.entries(x.Devices).map(([key, { Health }]) => [key, Health]));
    };
    health.update('x', [a, b]);
    assert.deepEqual(await written(), { 'p/a': 'Healthy', 'p/b': 'Healthy' });
    rmSync(file);
    for (let i = 0; i < 12; i++) {
      assert.ok(!health.update('x', [a, ...(i < 1 ? [b] : [])]), 'nothing is new');
      await clock.advance(900);
    }
    assert.ok(!existsSync(file), 'nothing was written');
    assert.ok(health.update('x', [a]), 'the other was not told of in time');
    assert.deepEqual(await written(), { 'p/a': 'Healthy', 'p/b': 'Unknown' });
    assert.ok(health.update('x', [{ ...a, healthCheckTimeoutSeconds: 20 }]), 'a longer timeout');
    await written();
    rmSync(file);
    await clock.advance(5000);
    assert.ok(!health.update('x', [{ ...a, healthCheckTimeoutSeconds: 20 }]));
    await health.close();
    const next = new HealthCache({ clock, log: silentLogger }, { file });
    await next.load();
    await clock.advance(19_000);
    assert.equal(next.of('x', 'p', 'a').health, 'Healthy', 'the end of a run keeps when it was told last');
  });

  it('cuts long messages between characters', () => {
    assert.equal(shortened('ü'.repeat(512)), 'ü'.repeat(512));
    const cut = shortened('ü'.repeat(513));
    assert.equal(cut, `${'ü'.repeat(510)}...`);
  });
});
