// A taken name: the leftover goes and the create is tried once more; what runs is never touched.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { withFreeContainerName, withFreeSandboxName } from './name-conflict.ts';

const signal = new AbortController().signal;
const CONTAINERD = new GrpcError(
  GrpcCode.Unknown,
  'failed to reserve sandbox name "p_ns_u_0": name "p_ns_u_0" is reserved for "abc"',
);
const CRIO = new GrpcError(GrpcCode.Unknown, 'error reserving ctr name k8s_c for id x: name is reserved');
const OTHER = new GrpcError(GrpcCode.Unknown, 'no space left');

function fake(state: {
  sandboxes?: unknown[];
  containers?: { metadata: { attempt: number }; state: number; id: string }[];
}): { cri: CriRuntime; calls: string[] } {
  const calls: string[] = [];
  const cri = {
    listPodSandbox: async () => ({ items: state.sandboxes ?? [] }),
    listContainers: async (r: { filter: { state?: { state: number } } }) => ({
      containers: (state.containers ?? []).filter(
        (c) => r.filter.state === undefined || c.state === r.filter.state.state,
      ),
    }),
    stopPodSandbox: async (r: { podSandboxId: string }) => void calls.push(`stop ${r.podSandboxId}`),
    removePodSandbox: async (r: { podSandboxId: string }) => void calls.push(`remove ${r.podSandboxId}`),
    removeContainer: async (r: { containerId: string }) => void calls.push(`remove ${r.containerId}`),
  };
  return { cri: cri as unknown as CriRuntime, calls };
}

/** Fails the given number of times. */
const failing = (times: number, err: Error, calls: string[]) => async (): Promise<string> => {
  calls.push('create');
  if (calls.filter((c) => c === 'create').length <= times) throw err;
  return 'id';
};

const sandbox = { id: 's', state: 0, metadata: { uid: 'u', attempt: 0 } };
const owner = { uid: 'u', attempt: 0, name: 'c' };

describe('a taken sandbox name', () => {
  it('leftover stopped and removed, created again', async () => {
    const { cri, calls } = fake({
      sandboxes: [sandbox, { ...sandbox, id: 'other', metadata: { uid: 'u', attempt: 1 } }],
    });
    assert.equal(await withFreeSandboxName(cri, owner, failing(1, CONTAINERD, calls), signal), 'id');
    assert.deepEqual(calls, ['create', 'stop s', 'remove s', 'create']);
  });
  it('once only', async () => {
    const { cri, calls } = fake({ sandboxes: [sandbox] });
    await assert.rejects(withFreeSandboxName(cri, owner, failing(2, CONTAINERD, calls), signal), /reserved/);
    assert.equal(calls.filter((c) => c === 'create').length, 2);
  });
  it('not while something runs in it', async () => {
    const { cri, calls } = fake({
      sandboxes: [sandbox],
      containers: [{ id: 'c', state: 1, metadata: { attempt: 0 } }],
    });
    await assert.rejects(withFreeSandboxName(cri, owner, failing(1, CONTAINERD, calls), signal), /reserved/);
    assert.deepEqual(calls, ['create']);
  });
  it('owner not to be found: as it is', async () => {
    const { cri, calls } = fake({});
    await assert.rejects(withFreeSandboxName(cri, owner, failing(1, CONTAINERD, calls), signal), /reserved/);
    assert.deepEqual(calls, ['create']);
  });
  it('other failures: as they are', async () => {
    const { cri, calls } = fake({ sandboxes: [sandbox] });
    await assert.rejects(withFreeSandboxName(cri, owner, failing(1, OTHER, calls), signal), /no space/);
    assert.deepEqual(calls, ['create']);
  });
});

describe('a taken container name', () => {
  for (const [what, state, want] of [
    ['created only: removed', 0, ['create', 'remove c', 'create']],
    ['ended: removed', 2, ['create', 'remove c', 'create']],
    ['running: stays', 1, ['create']],
  ] as const)
    it(what, async () => {
      const { cri, calls } = fake({ containers: [{ id: 'c', state, metadata: { attempt: 0 } }] });
      await withFreeContainerName(cri, owner, failing(1, CRIO, calls), signal).catch(() => undefined);
      assert.deepEqual(calls, want);
    });
});
