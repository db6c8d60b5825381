import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aborted } from '../lib/abort.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { CriRuntime } from './services.ts';
import { uncancelled } from './uncancelled.ts';

type Call = (request: object, signal: AbortSignal) => Promise<unknown>;

function setup(verb: keyof CriRuntime) {
  const clock = new ManualClock();
  const seen: AbortSignal[] = [];
  const hangs: Call = async (_, signal) => {
    seen.push(signal);
    await aborted(signal);
    throw signal.reason;
  };
  const cri = { [verb]: hangs } as unknown as CriRuntime;
  const [whole, pod] = [new AbortController(), new AbortController()];
  const call = (uncancelled(clock, cri, whole.signal)[verb] as unknown as Call)({}, pod.signal);
  const failed = call.then(
    () => undefined,
    (err: unknown) => (err as Error).message,
  );
  return { clock, whole, pod, failed, isCalledOff: () => seen[0]?.aborted };
}

for (const [verb, isKept] of [
  ['runPodSandbox', true],
  ['createContainer', true],
  ['startContainer', true],
  ['stopContainer', false],
  ['removeContainer', false],
] as const)
  test(`${verb} is ${isKept ? 'not ' : ''}called off with its pod`, async () => {
    const t = setup(verb);
    t.pod.abort(new Error('stopped'));
    assert.equal(t.isCalledOff(), !isKept);
    t.whole.abort(new Error('agent stops'));
    await t.failed;
  });

test('a call that hangs is called off ten seconds after its pod was to stop', async () => {
  const t = setup('runPodSandbox');
  await t.clock.advance(60_000);
  t.pod.abort(new Error('stopped'));
  await t.clock.advance(9999);
  assert.equal(t.isCalledOff(), false);
  await t.clock.advance(1);
  assert.equal(await t.failed, 'no answer 10000ms after its pod was to stop');
  assert.equal(t.clock.pending, 0);
});

test('the end of the agent calls it off at once', async () => {
  const t = setup('runPodSandbox');
  t.whole.abort(new Error('agent stops'));
  assert.equal(await t.failed, 'agent stops');
});
