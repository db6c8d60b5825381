import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { configuredGroups, keptTimes } from './create.ts';

const config = { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 };
const rows: readonly [string, Parameters<typeof environmentOf>[0], number][] = [
  ['not configured', {}, 0],
  ['configured', { config }, 2],
  ['configured, but the gate is off', { config, gates: { GracefulNodeShutdown: false } }, 0],
];

describe('whether a shutdown is held up', () => {
  for (const [name, otherwise, groups] of rows)
    it(name, () => assert.equal(configuredGroups(environmentOf(otherwise)).length, groups));
});

for (const on of [true, false])
  it(`the times of a shutdown are ${on ? '' : 'not '}shown with the gate of the priorities ${on ? 'on' : 'off'}`, async () => {
    const rootDir = mkdtempSync(join(tmpdir(), 'shutdown-'));
    try {
      const gates = { GracefulNodeShutdownBasedOnPodPriority: on };
      const env = environmentOf({ flags: { rootDir }, gates });
      await keptTimes(env).started(5000);
      const shown = /^kubelet_graceful_shutdown_start_time_seconds 5$/m.test(env.registry.render());
      assert.deepEqual([shown, existsSync(join(rootDir, 'graceful_node_shutdown_state'))], [on, on]);
    } finally {
      rmSync(rootDir, { recursive: true });
    }
  });
