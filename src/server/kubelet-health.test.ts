import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { RuntimeHealth } from '../observe/runtime-health.ts';
import { nodeChecks, processChecks } from './kubelet-health.ts';

const { signal } = new AbortController();
const MINUTE_MS = 60_000;
const GOOD = { status: { conditions: [{ type: 'RuntimeReady', status: true, reason: '', message: '' }] } };

test('the log fails when it is stuck for more than two minutes', () => {
  let stuckMs = 2 * MINUTE_MS;
  const checks = processChecks({ stuckForMs: () => stuckMs });
  assert.deepEqual(
    checks.map((c) => [c.name, c.failing()]),
    [
      ['ping', undefined],
      ['log', undefined],
    ],
  );
  stuckMs++;
  assert.equal(checks[1]?.failing(), 'log flush is stuck');
});

for (const [what, limitMs, syncFrequencyMs] of [
  ['five minutes', 5 * MINUTE_MS, MINUTE_MS],
  ['twice the sync frequency where that is longer', 8 * MINUTE_MS, 4 * MINUTE_MS],
] as const)
  test(`the sync loop fails after ${what} without a runtime, for either reason`, async () => {
    const clock = new ManualClock();
    const says = { relist: undefined as string | undefined, up: false };
    const runtime = new RuntimeHealth({
      clock,
      log: silentLogger,
      relist: { unhealthy: () => says.relist },
      runtime: {
        status: () =>
          says.up
            ? Promise.resolve({ ...GOOD, info: {}, runtimeHandlers: [] })
            : Promise.reject(new Error('the runtime is down')),
      },
    });
    const [syncLoop] = nodeChecks(runtime, syncFrequencyMs);
    assert.equal(syncLoop?.name, 'syncloop');
    await clock.advance(limitMs * 2);
    await runtime.check(signal);
    assert.equal(syncLoop?.failing(), undefined, 'a loop that never began is not late');
    const stop = new AbortController();
    const running = runtime.run(stop.signal);
    for (const trouble of [{ up: false }, { relist: 'PLEG is not healthy' }]) {
      Object.assign(says, { up: true, relist: undefined });
      await clock.advance(10_000);
      assert.equal(syncLoop?.failing(), undefined);
      Object.assign(says, trouble);
      await clock.advance(limitMs - 10_000);
      assert.equal(syncLoop?.failing(), undefined);
      // A runtime that does not answer counts as down only after half a minute.
      await clock.advance(50_000);
      assert.equal(syncLoop?.failing(), 'sync Loop took longer than expected');
    }
    stop.abort();
    await running;
  });
