// What memory a pod asks for, how nodes for it are preferred, and pods whose containers would be left without.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../core/pod.ts';
import { bestHint, hintsByType, hintsOfHeld } from './memory-hints.ts';
import { memoryRequestsOfPod, type MemoryRequests } from './memory-requests.ts';
import { emptySharedMemory } from './pod-partition.ts';

const amounts = (memory: string): Container['resources'] => ({ requests: { memory, cpu: '1' } });
const podOf = (containers: readonly Container[], inits?: readonly Container[], own?: Container['resources']): Pod => ({
  metadata: { name: 'p' },
  spec: {
    containers,
    ...(inits === undefined ? {} : { initContainers: inits }),
    ...(own === undefined ? {} : { resources: own }),
  },
});

for (const [name, pod, podLevelManagers, expected] of [
  ['nothing', podOf([{ name: 'a' }]), false, {}],
  [
    'two containers',
    podOf([
      { name: 'a', resources: amounts('1') ?? {} },
      { name: 'b', resources: amounts('2') ?? {} },
    ]),
    false,
    { memory: 3 },
  ],
  [
    'init containers beside sidecars',
    podOf(
      [{ name: 'a', resources: amounts('2') ?? {} }],
      [
        { name: 's', restartPolicy: 'Always', resources: amounts('1') ?? {} },
        { name: 'i', resources: { requests: { memory: '5', 'hugepages-2Mi': '7' } } },
      ],
    ),
    false,
    { memory: 6 },
  ],
  [
    'pod level',
    podOf([{ name: 'a' }], undefined, { requests: { memory: '9', 'hugepages-2Mi': '0' } }),
    true,
    { memory: 9 },
  ],
  ['pod level, only limits', podOf([{ name: 'a' }], undefined, { limits: { memory: '9' } }), true, {}],
] as const)
  test(`asked for: ${name}`, () =>
    assert.deepEqual(Object.fromEntries(memoryRequestsOfPod(pod, { podLevelManagers })), expected));

const hint = (numaNodes: readonly number[] | undefined, preferred = true) => ({ numaNodes, preferred });
for (const [name, hints, expected] of [
  ['none', [], undefined],
  ['preferred before not', [hint([0], false), hint([0, 1])], [0, 1]],
  ['fewer nodes', [hint([0, 1]), hint([1])], [1]],
  ['lower nodes', [hint([1, 2]), hint([0, 2])], [0, 2]],
  ['the highest that differs decides', [hint([0, 3]), hint([1, 2])], [1, 2]],
  ['the first of equal ones', [hint([0, 1]), hint([0, 1])], [0, 1]],
  ['any node is no node', [hint([0]), hint(undefined)], undefined],
] as const)
  test(`the best hint: ${name}`, () => assert.deepEqual(bestHint(hints)?.numaNodes, expected));

test('what is held leads to itself, unless something else is asked for', () => {
  const asked: MemoryRequests = new Map([['memory', 4]]);
  const held = [{ numaNodes: [1], type: 'memory', size: 4 }];
  assert.deepEqual(hintsOfHeld(held, asked), { memory: [{ numaNodes: [1], preferred: true }] });
  assert.equal(hintsOfHeld([], asked), undefined);
  assert.equal(hintsOfHeld(held, new Map([['memory', 5]])), undefined);
  assert.deepEqual(hintsByType([], asked), {});
});

test('no container is left without memory', () => {
  const own = new Map([
    ['all', 10],
    ['half', 5],
  ]);
  const requestsOf = ({ name }: Container): MemoryRequests =>
    new Map([...own].filter(([key]) => name.startsWith(key)).map(([, bytes]) => ['memory', bytes]));
  const problem = (containers: readonly string[], inits: readonly Container[] = []): string | undefined =>
    emptySharedMemory(
      podOf(
        containers.map((name) => ({ name })),
        inits,
      ),
      new Map([['memory', 10]]),
      requestsOf,
    );
  const sidecar = (name: string): Container => ({ name, restartPolicy: 'Always' });
  assert.equal(problem(['all']), undefined);
  assert.equal(problem(['half', 'shared']), undefined);
  assert.match(problem(['all', 'shared']) ?? '', /sum of exclusive container memory requests equals pod budget/);
  assert.match(problem(['shared'], [sidecar('all')]) ?? '', /leaving no memory for shared containers/);
  assert.match(problem(['half'], [sidecar('all'), { name: 'init' }]) ?? '', /shared init containers but no memory/);
  assert.equal(problem(['half'], [sidecar('half'), { name: 'init' }, { name: 'half-init' }]), undefined);
});
