import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { DraManager, type DraManagerDeps } from './dra-manager.ts';
import { draMetrics } from './metrics.ts';

const { signal } = new AbortController();

const podWith = (...claims: string[]): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [], resourceClaims: claims.map((name) => ({ name, resourceClaimName: name })) },
});

test('every pod that comes and goes counts, with claims or without', async () => {
  const registry = new Registry();
  const manager: DraManager = new DraManager(
    {
      clock: new ManualClock(),
      log: silentLogger,
      drivers: {} as DraManagerDeps['drivers'],
      claim: () => Promise.reject(new KubeletError('notFound', 'no such claim')),
      pods: { alive: () => [], sourcesReady: () => true, isRunning: () => false },
      health: { of: () => ({ health: 'Healthy', message: '' }) },
      durations: draMetrics(registry, () => new Map()).operations,
    },
    { checkpoint: join(tmpdir(), 'unused'), extendedResources: true, podGroups: true, healthMessages: true },
  );
  await manager.prepare(podWith(), signal);
  await assert.rejects(manager.prepare(podWith('unknown'), signal), /no such claim/);
  await manager.unprepare(podWith(), signal);
  const counts = registry.render().matchAll(/_count\{is_error="(\w+)",operation_name="(\w+)"\} (\d+)$/gm);
  assert.deepEqual(
    [...counts].map(([, failed, operation, count]) => `${operation} ${failed} ${count}`),
    ['PrepareResources false 1', 'PrepareResources true 1', 'UnprepareResources false 1'],
  );
});
