import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageOf } from '../../lib/errors.ts';
import type { HintsByResource } from '../topology/hint-provider.ts';
import { allocationRejection } from '../topology/rejection.ts';
import { podOfVector, readVectors, type PodVector } from '../vectors.fixture.ts';
import type { MemoryBlock } from './machine-memory.ts';
import { MemoryPolicy } from './memory-policy.ts';
import { MemoryState } from './memory-state.ts';
import { formatMemoryState, parseMemoryState } from './memory-state-file.ts';

type Masked = Readonly<Record<string, { readonly masks: readonly number[]; readonly preferred: readonly number[] }>>;

type Answer = {
  readonly c: string;
  readonly hints: Masked | null;
  readonly hint: readonly number[] | null;
  readonly hintPreferred: boolean;
  readonly blocks?: readonly WireBlock[] | null;
  readonly error?: string;
  readonly reason?: string;
};

type WireBlock = { readonly numaAffinity: readonly number[]; readonly type: string; readonly size: number };

type Operation =
  | {
      readonly op: 'admit';
      readonly pod: PodVector;
      readonly podHints: Masked | null;
      readonly result: readonly Answer[];
    }
  | { readonly op: 'start'; readonly uid: string; readonly released: readonly string[] | null }
  | { readonly op: 'remove'; readonly uid: string; readonly containers: readonly string[] };

type MemoryVector = {
  readonly id: number;
  readonly nodes: readonly {
    readonly id: number;
    readonly memory: number;
    readonly hugepages: readonly (readonly [number, number])[] | null;
  }[];
  readonly reservedMemory: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly ops: readonly Operation[];
  readonly file: string;
  readonly restart: string;
};

const maskOf = (nodes: readonly number[]): number => nodes.reduce((mask, n) => mask | (1 << n), 0);

const masked = (hints: HintsByResource | undefined): Masked | null =>
  hints === undefined
    ? null
    : Object.fromEntries(
        Object.entries(hints).map(([type, list = []]) => [
          type,
          {
            masks: list.map((h) => maskOf(h.numaNodes ?? [])),
            preferred: list.filter((h) => h.preferred).map((h) => maskOf(h.numaNodes ?? [])),
          },
        ]),
      );

const wire = (blocks: readonly MemoryBlock[] | undefined): readonly WireBlock[] | null =>
  blocks === undefined
    ? null
    : blocks
        .map(({ numaNodes, type, size }) => ({ numaAffinity: numaNodes, type, size }))
        .sort((a, b) => (a.type < b.type ? -1 : 1));

const policyOf = ({ nodes, reservedMemory }: MemoryVector): MemoryPolicy =>
  new MemoryPolicy(
    nodes.map(({ id, memory, hugepages }) => ({
      id,
      memoryBytes: memory,
      hugePages: (hugepages ?? []).map(([sizeKb, pages]) => ({ sizeKb, pages })),
      distances: [],
      cores: [],
    })),
    new Map(Object.entries(reservedMemory).map(([id, own]) => [Number(id), new Map(Object.entries(own))])),
    { podLevelManagers: false },
  );

function admit(policy: MemoryPolicy, state: MemoryState, op: Extract<Operation, { op: 'admit' }>, label: string): void {
  const pod = podOfVector(op.pod);
  assert.deepEqual(masked(policy.podHints(state, pod)), op.podHints, `${label} pod hints`);
  for (const answer of op.result) {
    const { c, hint, hintPreferred } = answer;
    const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find(({ name }) => name === c);
    assert.ok(container !== undefined);
    const hints = masked(policy.hints(state, pod, container));
    const run = (): object => {
      try {
        if (policy.manages(pod))
          policy.allocate(state, pod, container, { numaNodes: hint ?? undefined, preferred: hintPreferred });
        return { blocks: wire(state.of(op.pod.uid, c)) };
      } catch (err) {
        return { error: messageOf(err), reason: allocationRejection(err).reason };
      }
    };
    const { blocks, error, reason } = answer;
    assert.deepEqual(run(), error === undefined ? { blocks } : { error, reason }, `${label} ${c}`);
    assert.deepEqual(hints, answer.hints, `${label} ${c} hints`);
  }
}

/** The file with the blocks of every container in the order of their types, and without the sum over another order. */
const comparable = (file: string): object => {
  const parsed = JSON.parse(file) as { entries?: Record<string, Record<string, WireBlock[]>>; checksum?: number };
  for (const own of Object.values(parsed.entries ?? {}))
    for (const blocks of Object.values(own)) blocks.sort((a, b) => (a.type < b.type ? -1 : 1));
  return { ...parsed, checksum: 0 };
};

test('a life of the Static policy goes as upstream’s', () => {
  const cases = readVectors<MemoryVector>('memory-static');
  assert.ok(cases.length > 0);
  for (const vector of cases) {
    const policy = policyOf(vector);
    const state = new MemoryState(() => undefined);
    policy.validate(state);
    for (const [at, op] of vector.ops.entries()) {
      if (op.op === 'admit') admit(policy, state, op, `case ${vector.id}, step ${at}`);
      else
        for (const container of (op.op === 'start' ? op.released : op.containers) ?? [])
          policy.release(state, op.uid, container);
    }
    const label = `case ${vector.id}`;
    assert.deepEqual(comparable(formatMemoryState('Static', state, false)), comparable(vector.file), label);
  }
});

test('upstream’s files are read, and written again to the byte', () => {
  for (const vector of readVectors<MemoryVector>('memory-static')) {
    const read = new MemoryState(() => undefined, parseMemoryState(vector.file, 'Static', false));
    assert.equal(formatMemoryState('Static', read, false), vector.file, `case ${vector.id}`);
    const problem = (): string => {
      try {
        policyOf(vector).validate(read);
        return '';
      } catch (err) {
        return messageOf(err);
      }
    };
    if (vector.restart !== 'varies') assert.equal(problem(), vector.restart, `case ${vector.id} restart`);
  }
});
