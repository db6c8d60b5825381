import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RuntimeCondition, StatusResponse } from '../cri/gen/cri.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { RuntimeHealth } from './runtime-health.ts';

const forever = new AbortController().signal;
const condition = (type: string, status: boolean): RuntimeCondition => ({ type, status, reason: 'R', message: 'M' });
const answer = (...conditions: RuntimeCondition[]): StatusResponse => ({
  status: { conditions },
  info: {},
  runtimeHandlers: [],
});
const GOOD = answer(condition('RuntimeReady', true), condition('NetworkReady', true));

function setup() {
  const clock = new ManualClock();
  const says: { status: StatusResponse | Error; relist: string | undefined } = { status: GOOD, relist: undefined };
  const health = new RuntimeHealth({
    clock,
    log: silentLogger,
    relist: { unhealthy: () => says.relist },
    runtime: {
      status: async () => {
        if (says.status instanceof Error) throw says.status;
        return says.status;
      },
    },
  });
  return { clock, says, health };
}

describe('RuntimeHealth', () => {
  it('knows nothing before it asked', () => {
    const state = setup().health.state();
    assert.deepEqual(state.runtimeErrors, ['container runtime status check may not have completed yet']);
    assert.deepEqual(state.networkErrors, ['network state unknown']);
  });

  it('words what is wrong as upstream does', async () => {
    const t = setup();
    await t.health.check(forever);
    t.says.status = answer(condition('RuntimeReady', false), condition('NetworkReady', false));
    const state = await t.health.check(forever);
    assert.deepEqual(state.runtimeErrors, ['container runtime not ready: RuntimeReady=false reason:R message:M']);
    assert.deepEqual(state.networkErrors, [
      'container runtime network not ready: NetworkReady=false reason:R message:M',
    ]);
    t.says.status = answer();
    assert.equal((await t.health.check(forever)).networkReady, false);
  });

  it('calls the runtime down after 30 s without a good answer, and adds the relist’s complaint', async () => {
    const t = setup();
    assert.equal((await t.health.check(forever)).ready, true);
    t.says.status = new GrpcError(GrpcCode.Unavailable, 'away');
    await t.clock.advance(30_000);
    assert.equal((await t.health.check(forever)).ready, true);
    await t.clock.advance(1);
    t.says.relist = 'PLEG is not healthy: …';
    assert.deepEqual(t.health.state().runtimeErrors, ['container runtime is down', 'PLEG is not healthy: …']);
  });

  it('sorts handlers and reads features', async () => {
    const t = setup();
    const features = { recursiveReadOnlyMounts: true, userNamespaces: false };
    t.says.status = {
      ...GOOD,
      runtimeHandlers: [{ name: 'runc', features }, { name: '' }],
      features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false },
    };
    const state = await t.health.check(forever);
    assert.deepEqual(state.handlers, [
      { name: '', recursiveReadOnlyMounts: false, userNamespaces: false },
      { name: 'runc', ...features },
    ]);
    assert.equal(state.features.supplementalGroupsPolicy, true);
  });

  it('asks once more when told to while it is asking', async () => {
    const t = setup();
    const stop = new AbortController();
    let asked = 0;
    t.health.onChange(() => {
      if (++asked === 1) t.health.checkSoon();
    });
    const running = t.health.run(stop.signal);
    t.says.status = answer(condition('RuntimeReady', true), condition('NetworkReady', false));
    await t.clock.advance(1);
    assert.equal(t.health.state().networkReady, false);
    stop.abort();
    await running;
  });

  it('says why pods cannot have networks, and when they can again', async () => {
    const t = setup();
    const never = new AbortController().signal;
    const networked = (ready: boolean) => answer(condition('RuntimeReady', true), condition('NetworkReady', ready));
    const [up, down] = [networked(true), networked(false)];
    let again = 0;
    t.says.status = down;
    await t.health.check(never);
    t.health.onNetworkReady(() => again++);
    assert.notEqual(t.health.networkProblem(), undefined);
    for (const status of [down, up, up, down, up]) {
      t.says.status = status;
      await t.health.check(never);
    }
    assert.equal(again, 2);
    assert.equal(t.health.networkProblem(), undefined);
    assert.deepEqual(t.health.handlerFeatures('unheard-of'), { userNamespaces: false, recursiveReadOnlyMounts: false });
  });

  it('asks every 5 s, at once when told to, and tells changes once', async () => {
    const t = setup();
    const stop = new AbortController();
    const reported: boolean[] = [];
    t.health.onChange((s) => reported.push(s.networkReady));
    const running = t.health.run(stop.signal);
    await t.clock.advance(20_000);
    assert.deepEqual(reported, [true]);
    t.says.status = answer(condition('RuntimeReady', true), condition('NetworkReady', false));
    t.health.checkSoon();
    await t.clock.advance(1);
    assert.deepEqual(reported, [true, false]);
    stop.abort();
    await running;
    assert.equal(t.clock.pending, 0);
  });
});
