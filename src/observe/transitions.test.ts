import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, sandboxId } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type ObservedContainer, type ObservedState, type PodSnapshot } from '../core/snapshot.ts';
import { sameObservation, transitions } from './transitions.ts';

const container = (state: ObservedState, id = 'c'): ObservedContainer => observedContainer('web', { id, state });
const pod = (containers: readonly ObservedContainer[], ready?: boolean): PodSnapshot => ({
  ...emptySnapshot(podUid('u'), 'p', 'n', 1),
  containers,
  sandboxes:
    ready === undefined
      ? []
      : [{ id: sandboxId('s'), attempt: 0, ready, createdAt: 1n, hostNetwork: false, ips: [], runtimeHandler: '' }],
});
const types = (before: PodSnapshot | undefined, after: PodSnapshot | undefined): string[] =>
  transitions(before, after).map((e) => `${e.type} ${e.containerName ?? 'sandbox'}`);

describe('transitions', () => {
  const states = [undefined, 'created', 'running', 'exited', 'unknown'] as const;
  const [STARTED, DIED, REMOVED] = ['ContainerStarted web', 'ContainerDied web', 'ContainerRemoved web'];
  const expected = (before: (typeof states)[number], after: (typeof states)[number]): (string | undefined)[] => {
    const life = (s: typeof before): string => (s === 'created' ? 'unknown' : (s ?? 'gone'));
    if (life(before) === life(after)) return [];
    if (after === 'running') return [STARTED];
    if (after === 'exited') return [DIED];
    if (after !== undefined) return [];
    return before === 'exited' ? [REMOVED] : [DIED, REMOVED];
  };
  for (const before of states)
    for (const after of states)
      it(`${before ?? 'nothing'} → ${after ?? 'nothing'}`, () => {
        const snapshot = (s: typeof before): PodSnapshot => pod(s === undefined ? [] : [container(s)]);
        assert.deepEqual(types(snapshot(before), snapshot(after)), expected(before, after));
      });

  it('covers sandboxes', () => {
    assert.deepEqual(types(undefined, pod([], true)), ['ContainerStarted sandbox']);
    assert.deepEqual(types(pod([], true), pod([], false)), ['ContainerDied sandbox']);
    assert.deepEqual(types(pod([], false), undefined), ['ContainerRemoved sandbox']);
  });

  it('knows a read that says nothing new, whatever its version', () => {
    assert.ok(sameObservation(pod([container('running')]), { ...pod([container('running')]), version: 9 }));
    assert.ok(!sameObservation(pod([container('running')]), pod([{ ...container('running'), startedAt: 2n }])));
    assert.ok(!sameObservation(undefined, pod([])));
  });
});
