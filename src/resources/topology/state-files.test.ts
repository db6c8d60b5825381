// The state files of the CPU and the memory manager when they are damaged or written by hand, and the settings of topology.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCpuSet } from '../../core/cpuset.ts';
import { parseCpuState } from '../cpu/cpu-state-file.ts';
import { parseMemoryState } from '../memory/memory-state-file.ts';
import { parseObject } from '../../core/go-json.ts';
import { mapJson } from './checkpoint-text.ts';
import { topologySettings } from './topology-options.ts';

for (const [text, problem] of [
  ['', /unexpected end of JSON input/],
  ['{"a":', /unexpected end of JSON input/],
  ['{"a', /unexpected end of JSON input/],
  ['nonsense', /the content is not JSON/],
  ['[]', /the content is not a JSON object/],
  ['null', /the content is not a JSON object/],
] as const)
  test(`a file with ${JSON.stringify(text)} is refused`, () => assert.throws(() => parseObject(text), problem));

test('keys are written in the order of text', () => {
  const map = new Map([
    ['b', 1],
    ['10', 2],
    ['2', 3],
  ]);
  assert.equal(mapJson(map, String), '{"10":2,"2":3,"b":1}');
});

const cpus = (more: object): string => JSON.stringify({ policyName: 'static', defaultCpuSet: '0-3', ...more });

test('CPUs: a file without a sum counts, with null for what is absent', () => {
  const state = parseCpuState(cpus({ entries: { u: { a: '1', b: null } }, podEntries: null }), 'static', true);
  assert.equal(formatCpuSet(state.shared), '0-3');
  assert.deepEqual(
    [...(state.entries.get('u') ?? [])].map(([name, set]) => [name, formatCpuSet(set)]),
    [
      ['a', '1'],
      ['b', ''],
    ],
  );
  assert.equal(state.pods.size, 0);
  assert.equal(parseCpuState('{}', '', false).shared.size, 0);
});

const V1 = /CPUManagerCheckpointV1/;
const CORRUPTED = /checkpoint is corrupted/;
for (const [name, text, problem] of [
  ['another policy', cpus({}), /configured policy "none" differs from state checkpoint policy "static"/],
  ['a policy that is no text', cpus({ policyName: 7 }), CORRUPTED],
  ['a shared set that is no text', cpus({ defaultCpuSet: [0] }), CORRUPTED],
  ['entries that are no map', cpus({ entries: [] }), CORRUPTED],
  ['a container set that is no text', cpus({ entries: { u: { a: 7 } } }), V1],
  ['a pod entry that is no map', cpus({ podEntries: { u: '0' } }), CORRUPTED],
  ['a wrong sum', cpus({ checksum: 5 }), CORRUPTED],
  ['a wrong sum beside entries', cpus({ checksum: 5, entries: { u: { a: '1' } } }), V1],
  ['an unreadable shared set', cpus({ policyName: 'none', defaultCpuSet: 'x' }), /could not parse default cpu set "x"/],
  [
    'an unreadable set',
    cpus({ policyName: 'none', entries: { u: { a: '1-' } } }),
    /could not parse cpuset "1-" for container "a" in pod "u"/,
  ],
] as const)
  test(`CPUs: ${name} is refused`, () => assert.throws(() => parseCpuState(text, 'none', true), problem));

const memory = (more: object): string => JSON.stringify({ policyName: 'Static', machineState: {}, ...more });
const node = (more: object = {}): object => ({ 0: { numberOfAssignments: 1, memoryMap: {}, cells: [0], ...more } });

test('memory: a file without a sum counts, with null for what is absent', () => {
  const text = memory({
    machineState: { 0: { memoryMap: { memory: { total: 8, free: null } }, cells: null } },
    entries: { u: { a: [{ numaAffinity: [0], type: 'memory', size: 4 }, {}], b: null } },
  });
  const { machine, entries, pods } = parseMemoryState(text, 'Static', true);
  assert.deepEqual(machine.get(0), {
    assignments: 0,
    tables: new Map([['memory', { total: 8, systemReserved: 0, allocatable: 0, reserved: 0, free: 0 }]]),
    cells: [],
  });
  assert.deepEqual(entries.get('u')?.get('a'), [
    { numaNodes: [0], type: 'memory', size: 4 },
    { numaNodes: [], type: '', size: 0 },
  ]);
  assert.deepEqual([entries.get('u')?.get('b'), pods.size], [[], 0]);
  assert.equal(parseMemoryState('{}', '', false).machine.size, 0);
});

for (const [name, text, problem] of [
  ['another policy', memory({}), /configured policy "None" differs from state checkpoint policy "Static"/],
  ['a policy that is no text', memory({ policyName: 7 }), CORRUPTED],
  ['a machine that is no map', memory({ machineState: [] }), CORRUPTED],
  ['a node that is no map', memory({ machineState: { 0: 1 } }), CORRUPTED],
  ['a node without a number', memory({ machineState: { x: {} } }), CORRUPTED],
  ['assignments that are no number', memory({ machineState: node({ numberOfAssignments: '1' }) }), CORRUPTED],
  ['cells that are no list', memory({ machineState: node({ cells: 1 }) }), CORRUPTED],
  ['cells that are no numbers', memory({ machineState: node({ cells: ['a'] }) }), CORRUPTED],
  ['a table that is no map', memory({ machineState: node({ memoryMap: { memory: 1 } }) }), CORRUPTED],
  ['a total that is a fraction', memory({ machineState: node({ memoryMap: { memory: { total: 1.5 } } }) }), CORRUPTED],
  ['a free that is no number', memory({ machineState: node({ memoryMap: { memory: { free: 'x' } } }) }), CORRUPTED],
  ['a block that is no map', memory({ entries: { u: { a: [1] } } }), CORRUPTED],
  ['a block whose type is no text', memory({ entries: { u: { a: [{ type: 1 }] } } }), CORRUPTED],
  ['a block whose nodes are no list', memory({ entries: { u: { a: [{ numaAffinity: 1 }] } } }), CORRUPTED],
  ['a block whose size is no number', memory({ entries: { u: { a: [{ size: 'x' }] } } }), CORRUPTED],
  ['entries that are no map', memory({ entries: { u: 1 } }), CORRUPTED],
  ['pod entries that are no map', memory({ podEntries: { u: 1 } }), CORRUPTED],
  ['a wrong sum', memory({ checksum: 5 }), CORRUPTED],
] as const)
  test(`memory: ${name} is refused`, () => assert.throws(() => parseMemoryState(text, 'None', true), problem));

const numa = (id: number, distances: readonly number[]) => ({
  id,
  memoryBytes: 0,
  hugePages: [],
  distances,
  cores: [],
});

test('topology: unknown words are refused, distances go by id', () => {
  const options = { 'prefer-closest-numa-nodes': 'true' };
  const config = { policy: 'restricted', scope: 'pod', options };
  const nodes = [numa(0, [10, 20]), numa(2, [20])];
  assert.deepEqual(topologySettings(config, nodes).merge.distances?.get(2), [20, , 0]); // eslint-disable-line no-sparse-arrays
  assert.throws(() => topologySettings({ ...config, policy: 'x' }, nodes), /unknown policy: "x"/);
  assert.throws(() => topologySettings({ ...config, scope: 'x' }, nodes), /unknown scope: "x"/);
  assert.throws(() => topologySettings(config, [numa(0, [])]), /error getting NUMA distances/);
});
