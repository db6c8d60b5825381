// The planner's rows, written short: `a running`, `a exited 1`, `a#7 created`; newest first.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, sandboxId } from '../../src/core/ids.ts';
import type { Container, Pod, PodSpec, ResourceRequirements } from '../../src/core/pod.ts';
import { observedContainer } from '../../src/core/snapshot.fixture.ts';
import type { ObservedContainer, ObservedSandbox, PodSnapshot } from '../../src/core/snapshot.ts';
import { containerHash } from '../../src/runtime/container-hash.ts';
import { planPod } from '../../src/runtime/plan.ts';
import type { PodStep, ProbeResult } from '../../src/runtime/plan-steps.ts';

const IMAGE = 'busybox';
export const box = (name: string, more: Partial<Container> = {}): Container => ({ name, image: IMAGE, ...more });
export const sidecar = (name: string, more: Partial<Container> = {}): Container =>
  box(name, { restartPolicy: 'Always', ...more });
export const PROBE = { tcpSocket: { port: 1 } };

export const podOf = (spec: Partial<PodSpec>, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [box('a')], restartPolicy: 'Always', ...spec },
});

/** `a running`, `a exited 1`, `a created`; an id may follow the name: `a#7 exited 0`. */
function seen(text: string, createdAt: number): ObservedContainer {
  const [who = '', state = '', code = '0', reason = ''] = text.split(' ');
  const [name = '', id = who] = who.split('#');
  return observedContainer(name, {
    id,
    state: state as ObservedContainer['state'],
    createdAt: BigInt(createdAt),
    startedAt: 1n,
    finishedAt: 2n,
    exitCode: Number(code),
    reason,
    image: IMAGE,
    annotations: reason === 'foreign' ? {} : { 'io.kubernetes.container.hash': containerHash({ name, image: IMAGE }) },
  });
}

export const READY: ObservedSandbox = {
  id: sandboxId('s'),
  attempt: 4,
  ready: true,
  createdAt: 1n,
  hostNetwork: false,
  ips: ['10.0.0.1'],
  runtimeHandler: '',
};

/** Containers are given newest first. */
const snapshotOf = (containers: readonly string[], sandboxes: readonly ObservedSandbox[] = [READY]): PodSnapshot => ({
  uid: podUid('u'),
  name: 'p',
  namespace: 'ns',
  sandboxes,
  containers: containers.map((text, i) => seen(text, 1000 - i)),
  ips: ['10.0.0.1'],
  version: 1,
});

function shown(step: PodStep): string {
  switch (step.do) {
    case 'killPod':
      return 'kill pod';
    case 'killContainer':
      return `kill ${step.id}: ${step.message}`;
    case 'removeContainer':
      return `remove ${step.id}${step.keepLogs ? ' keeping logs' : ''}`;
    case 'createSandbox':
      return `sandbox ${step.attempt}${step.replaces === undefined ? '' : ` for ${step.replaces}`}`;
    case 'resize':
      return `resize${step.restarting.size === 0 ? '' : ` restarting ${[...step.restarting].join(' ')}`}`;
    case 'startContainer':
      return `start ${step.name}${step.blocks ? ' blocking' : ''}${step.leftover === undefined ? '' : ` instead of ${step.leftover}`}`;
    default:
      return step satisfies never;
  }
}

type Row = {
  readonly rule: string;
  readonly pod?: Pod;
  readonly seen?: readonly string[];
  readonly sandboxes?: readonly ObservedSandbox[];
  readonly startup?: ProbeResult;
  readonly liveness?: ProbeResult;
  readonly actuated?: Readonly<Record<string, ResourceRequirements>>;
  readonly actuatedPod?: ResourceRequirements;
  readonly restartingAll?: boolean;
  readonly steps: readonly string[];
};

function check(row: Row): void {
  const plan = planPod({
    pod: row.pod ?? podOf({}),
    snapshot: snapshotOf(row.seen ?? [], row.sandboxes),
    probes: { liveness: () => row.liveness, startup: () => row.startup },
    ...(row.actuated !== undefined && {
      actuated: {
        containers: new Map(Object.entries(row.actuated)),
        ...(row.actuatedPod !== undefined && { pod: row.actuatedPod }),
      },
    }),
    ...(row.restartingAll === undefined ? {} : { restartingAll: row.restartingAll }),
  });
  assert.deepEqual(plan.steps.map(shown), row.steps);
}

export const table = (title: string, rows: readonly Row[]): void =>
  void describe(title, () => {
    for (const row of rows) void it(row.rule, () => check(row));
  });
