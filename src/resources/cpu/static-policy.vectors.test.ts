import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCpuSet, tryParseCpuSet, type CpuSet } from '../../core/cpuset.ts';
import type { Pod } from '../../core/pod.ts';
import { messageOf } from '../../lib/errors.ts';
import { restoreProblem } from '../topology/checkpoint-text.ts';
import type { HintsByResource } from '../topology/hint-provider.ts';
import { allocationRejection } from '../topology/rejection.ts';
import { podOfVector, readVectors, topologiesOf, type PodVector, type TopologyVector } from '../vectors.fixture.ts';
import { parseCpuOptions } from './cpu-options.ts';
import { CpuState } from './cpu-state.ts';
import { formatCpuState, parseCpuState } from './cpu-state-file.ts';
import type { CpuTopology } from './cpu-topology.ts';
import { StaticPolicy } from './static-policy.ts';

type Settings = {
  readonly topology: string;
  readonly options: Readonly<Record<string, string>> | null;
  readonly reservedCount: number;
  readonly reservedSystemCPUs: string;
  readonly topologyPolicy?: string;
};

type Answer = { readonly c: string; readonly hint: readonly number[] | null; readonly [key: string]: unknown };

type Operation = { readonly default: string } & (
  | { readonly op: 'admit'; readonly pod: PodVector; readonly result: readonly Answer[] }
  | { readonly op: 'remove'; readonly uid: string; readonly containers: readonly string[] }
);

type StaticVector = Settings & {
  readonly kind: 'static';
  readonly id: number;
  readonly newError?: string;
  readonly reserved: string;
  readonly startDefault: string;
  readonly ops: readonly Operation[];
  readonly file: string;
  readonly restart: Settings & { readonly policy: string; readonly newError?: string; readonly error?: string };
};

const set = (text: string): CpuSet => tryParseCpuSet(text) ?? new Set();

const policyOf = (topology: CpuTopology, o: Settings): StaticPolicy =>
  new StaticPolicy(topology, {
    options: parseCpuOptions(o.options ?? {}, { alpha: true, beta: true }),
    reservedCount: o.reservedCount,
    reservedCpus: set(o.reservedSystemCPUs),
    topologyPolicy: o.topologyPolicy ?? 'best-effort',
    podLevelManagers: false,
  });

const ignored = (): void => undefined;

function admit(policy: StaticPolicy, state: CpuState, pod: Pod, answers: readonly Answer[]): readonly object[] {
  return answers.map(({ c, hint }) => {
    const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find(({ name }) => name === c);
    assert.ok(container !== undefined);
    try {
      policy.allocate(state, pod, container, hint ?? undefined);
      return { c, cpus: formatCpuSet(state.of(pod.metadata.uid ?? '', c) ?? new Set()), hint };
    } catch (err) {
      return { c, error: messageOf(err), hint, ...allocationRejection(err) };
    }
  });
}

test('a life of the static policy goes as upstream’s, to the last byte of the state file', () => {
  const lines = readVectors<StaticVector | TopologyVector>('cpu-static');
  const topologyNamed = topologiesOf(lines);
  const cases = lines.filter((line) => line.kind === 'static');
  assert.ok(cases.length > 0);
  for (const vector of cases) {
    const label = `case ${vector.id}`;
    if (vector.newError !== undefined) {
      assert.throws(() => policyOf(topologyNamed(vector.topology), vector), { message: vector.newError }, label);
      continue;
    }
    const policy = policyOf(topologyNamed(vector.topology), vector);
    const state = new CpuState(ignored);
    policy.validate(state);
    assert.equal(formatCpuSet(policy.reserved), vector.reserved, label);
    assert.equal(formatCpuSet(state.shared), vector.startDefault, label);
    for (const [at, op] of vector.ops.entries()) {
      const step = `${label}, step ${at}`;
      if (op.op === 'admit') assert.deepEqual(admit(policy, state, podOfVector(op.pod), op.result), op.result, step);
      else for (const container of op.containers) policy.release(state, op.uid, container);
      assert.equal(formatCpuSet(state.shared), op.default, step);
    }
    assert.equal(formatCpuState('static', state, false), vector.file, label);
    restart(vector, topologyNamed, label);
  }
});

/** Another start reads the file, with other settings perhaps. */
function restart(
  { file, restart: o }: StaticVector,
  topologyNamed: (name: string) => CpuTopology,
  label: string,
): void {
  const run = (): { newError: string } | { error: string } => {
    let policy: StaticPolicy | undefined;
    try {
      if (o.policy === 'static') policy = policyOf(topologyNamed(o.topology), o);
    } catch (err) {
      return { newError: messageOf(err) };
    }
    let read: CpuState;
    try {
      read = new CpuState(ignored, parseCpuState(file, o.policy, false));
    } catch (err) {
      return { error: messageOf(restoreProblem('CPU', '<dir>/cpu_manager_state', messageOf(err))) };
    }
    try {
      policy?.validate(read);
      return { error: '' };
    } catch (err) {
      return { error: messageOf(err) };
    }
  };
  if (o.error === 'varies') return;
  assert.deepEqual(run(), o.newError === undefined ? { error: o.error } : { newError: o.newError }, `${label} restart`);
}

type MaskedHints = {
  readonly cpu: { readonly masks: readonly number[]; readonly preferred: readonly number[] };
} | null;

type HintsVector = Settings & {
  readonly kind: 'hints';
  readonly id: number;
  readonly pod: PodVector;
  readonly default: string;
  readonly podEntries: Readonly<Record<string, string>>;
  readonly reuse: string;
  readonly containerHints: Readonly<Record<string, MaskedHints>>;
  readonly podHints: MaskedHints;
};

const maskOf = (nodes: readonly number[] | undefined): number => (nodes ?? []).reduce((mask, n) => mask | (1 << n), 0);

function masked(hints: HintsByResource): MaskedHints {
  if (hints['cpu'] === undefined) return null;
  return {
    cpu: {
      masks: hints['cpu'].map((hint) => maskOf(hint.numaNodes)),
      preferred: hints['cpu'].filter((hint) => hint.preferred).map((hint) => maskOf(hint.numaNodes)),
    },
  };
}

test('hints of containers and of whole pods are upstream’s', () => {
  const lines = readVectors<HintsVector | TopologyVector>('cpu-hints');
  const topologyNamed = topologiesOf(lines);
  const cases = lines.filter((line) => line.kind === 'hints');
  assert.ok(cases.length > 0);
  for (const vector of cases) {
    const label = `case ${vector.id}`;
    const policy = policyOf(topologyNamed(vector.topology), vector);
    const pod = podOfVector(vector.pod);
    const entries = new Map(Object.entries(vector.podEntries).map(([name, cpus]) => [name, set(cpus)]));
    const state = new CpuState(ignored, {
      shared: set(vector.default),
      entries: new Map(entries.size > 0 ? [[vector.pod.uid, entries]] : []),
      pods: new Map(),
    });
    policy.setReusable(vector.pod.uid, set(vector.reuse));
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers])
      assert.deepEqual(
        masked(policy.hints(state, pod, container)),
        vector.containerHints[container.name],
        `${label} ${container.name}`,
      );
    assert.deepEqual(masked(policy.podHints(state, pod)), vector.podHints, label);
  }
});
