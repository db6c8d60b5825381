import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CriRuntime } from './services.ts';
import { stoppingOnce } from './stop-once.ts';

const { signal } = new AbortController();

function setup(): { calls: string[]; runtime: CriRuntime; failing: Set<string> } {
  const calls: string[] = [];
  const failing = new Set<string>();
  const call =
    (verb: string) =>
    ({ podSandboxId = '' }: { podSandboxId?: string }): Promise<object> => {
      calls.push(`${verb} ${podSandboxId}`);
      return failing.has(podSandboxId) ? Promise.reject(new Error('broken')) : Promise.resolve({});
    };
  const inner = { stopPodSandbox: call('stop'), removePodSandbox: call('remove') } as unknown as CriRuntime;
  return { calls, runtime: stoppingOnce(inner), failing };
}

describe('stopping a sandbox', () => {
  it('asks the runtime once', async () => {
    const { calls, runtime } = setup();
    await runtime.stopPodSandbox({ podSandboxId: 'a' }, signal);
    await runtime.stopPodSandbox({ podSandboxId: 'a' }, signal);
    await runtime.stopPodSandbox({ podSandboxId: 'b' }, signal);
    assert.deepEqual(calls, ['stop a', 'stop b']);
  });

  it('asks again after a failure', async () => {
    const { calls, runtime, failing } = setup();
    failing.add('a');
    await assert.rejects(runtime.stopPodSandbox({ podSandboxId: 'a' }, signal), /broken/);
    failing.clear();
    await runtime.stopPodSandbox({ podSandboxId: 'a' }, signal);
    assert.deepEqual(calls, ['stop a', 'stop a']);
  });

  it('forgets it when it is removed, and the oldest of very many', async () => {
    const { calls, runtime } = setup();
    for (let i = 0; i <= 256; i++) await runtime.stopPodSandbox({ podSandboxId: `${i}` }, signal);
    await runtime.removePodSandbox({ podSandboxId: '7' }, signal);
    calls.length = 0;
    for (const id of ['0', '7', '8']) await runtime.stopPodSandbox({ podSandboxId: id }, signal);
    assert.deepEqual(calls, ['stop 0', 'stop 7']);
  });
});
