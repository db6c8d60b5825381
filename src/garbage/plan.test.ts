import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerId, podUid, sandboxId } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type ObservedContainer } from '../core/snapshot.ts';
import {
  DEFAULT_POLICY,
  planContainers,
  planLogDirectories,
  planPrune,
  planSandboxes,
  type GcContainer,
  type GcPolicy,
  type GcSandbox,
} from './plan.ts';

const SECOND = 1_000_000_000n;
const NOW = 10_000n * SECOND;

/** `pod/name[#attempt]@second[!state]` */
const dead = (text: string): GcContainer => {
  const [, pod = '', name = '', attempt = '0', second = '0', state = 'exited'] =
    /^(\w+)\/(\w+)(?:#(\d+))?@(\d+)(?:!(\w+))?$/.exec(text) ?? [];
  return {
    id: containerId(text),
    sandboxId: sandboxId(pod),
    podUid: podUid(pod),
    podName: pod,
    namespace: 'ns',
    name,
    state: state as GcContainer['state'],
    attempt: Number(attempt),
    createdAt: BigInt(second) * SECOND,
  };
};
const none = (): boolean => false;
const plan = (
  texts: readonly string[],
  policy: Partial<GcPolicy> = {},
  gone: readonly string[] = [],
): readonly string[] =>
  planContainers(texts.map(dead), (uid) => gone.includes(uid), { ...DEFAULT_POLICY, ...policy }, NOW).map((c) => c.id);

describe('dead containers', () => {
  const rows: readonly (readonly [
    string,
    readonly string[],
    Partial<GcPolicy>,
    readonly string[],
    readonly string[],
  ])[] = [
    ['nothing', [], {}, [], []],
    ['the newest of each stays', ['p/a@1', 'p/a@3', 'p/a@2', 'p/b@1', 'q/a@1'], {}, [], ['p/a@1', 'p/a@2']],
    ['the last start stays, though the clock was set back', ['p/a#3@9', 'p/a#4@2'], {}, [], ['p/a#3@9']],
    ['running ones are none', ['p/a@9!running', 'p/a@1'], {}, [], []],
    ['all of a pod that is gone', ['p/a@1', 'p/a@9!running', 'p/b@2', 'q/a@1'], {}, ['p'], ['p/a@1', 'p/b@2']],
    ['young ones stay', ['p/a@1', 'p/a@9999', 'p/a@9998'], { minAgeMs: 60_000 }, [], []],
    ['even of pods that are gone', ['p/a@9999'], { minAgeMs: 60_000 }, ['p'], []],
    ['none kept', ['p/a@1'], { maxPerContainer: 0 }, [], ['p/a@1']],
    ['all kept', ['p/a@1', 'p/a@2'], { maxPerContainer: -1 }, [], []],
    [
      'a limit for all: one of each',
      ['p/a@1', 'p/a@2', 'q/a@3', 'q/a@4'],
      { maxPerContainer: 5, maxContainers: 2 },
      [],
      ['p/a@1', 'q/a@3'],
    ],
    ['a limit for all: the oldest go', ['p/a@1', 'q/a@2', 'r/a@3'], { maxContainers: 1 }, [], ['p/a@1', 'q/a@2']],
    ['just created is no death', ['p/a@9990!created', 'p/a@1'], { maxPerContainer: 0 }, [], ['p/a@1']],
    ['created long ago is', ['p/a@1!created'], { maxPerContainer: 0 }, [], ['p/a@1!created']],
  ];
  for (const [name, texts, policy, gone, expected] of rows)
    it(name, () => assert.deepEqual(plan(texts, policy, gone), expected));
});

describe('sandboxes', () => {
  const sandbox = (pod: string, second: number, ready = false, attempt = 0): GcSandbox => ({
    id: sandboxId(`${pod}@${second}`),
    podUid: podUid(pod),
    ready,
    attempt,
    createdAt: BigInt(second) * SECOND,
  });
  const ids = (found: readonly GcSandbox[]): readonly string[] => found.map((s) => s.id);
  it('all but the newest of a pod that stays', () =>
    assert.deepEqual(ids(planSandboxes([sandbox('p', 1), sandbox('p', 3), sandbox('p', 2)], new Set(), none)), [
      'p@1',
      'p@2',
    ]));
  it('all but the last one made, though the clock was set back', () =>
    assert.deepEqual(ids(planSandboxes([sandbox('p', 9, false, 0), sandbox('p', 2, false, 1)], new Set(), none)), [
      'p@9',
    ]));
  it('not one with containers, not one that is ready', () =>
    assert.deepEqual(
      ids(
        planSandboxes(
          [sandbox('p', 1), sandbox('p', 2, true), sandbox('p', 3), sandbox('p', 4)],
          new Set([sandboxId('p@1')]),
          none,
        ),
      ),
      ['p@3'],
    ));
  it('all of a pod that is gone, if they are not ready', () =>
    assert.deepEqual(ids(planSandboxes([sandbox('p', 1), sandbox('p', 2, true)], new Set(), () => true)), ['p@1']));
});

describe('log directories', () => {
  it('of pods that are gone', () =>
    assert.deepEqual(
      planLogDirectories(['ns_a_u1', 'ns_b_u2', 'odd', 'ns_c_', 'ns_d_e_u1'], (uid) => uid === 'u1'),
      ['ns_a_u1', 'ns_d_e_u1'],
    ));
});

describe('pruning one pod', () => {
  const one = (name: string, second: number, state: ObservedContainer['state'] = 'exited'): ObservedContainer =>
    observedContainer(name, { id: `${name}@${second}`, attempt: second, state, createdAt: BigInt(second) });
  const snapshot = {
    ...emptySnapshot(podUid('u'), 'p', 'ns'),
    containers: [one('a', 4, 'running'), one('a', 3), one('a', 2), one('b', 2), one('b', 1), one('c', 1, 'created')],
  };
  it('keeps the newest dead one of each', () => assert.deepEqual(planPrune(snapshot, 1), ['a@2', 'b@1']));
  it('of one container only', () => assert.deepEqual(planPrune(snapshot, 1, 'b'), ['b@1']));
  it('all', () => assert.deepEqual(planPrune(snapshot, 0), ['a@3', 'a@2', 'b@2', 'b@1']));
});
