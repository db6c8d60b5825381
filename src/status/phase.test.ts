import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, ContainerStatus, Pod, PodPhase } from '../core/pod.ts';
import { phaseOf } from './phase.ts';

type Short =
  | 'running'
  | 'started'
  | 'waiting'
  | 'ok'
  | 'failed'
  | 'restarting'
  | 'failed before'
  | 'ok before'
  | 'missing';

const ended = (exitCode: number, reason = 'Error') => ({
  terminated: { exitCode, reason, startedAt: null, finishedAt: null },
});
const STATES: Record<Exclude<Short, 'missing'>, Pick<ContainerStatus, 'state' | 'lastState' | 'started'>> = {
  running: { state: { running: { startedAt: 'x' } }, lastState: {}, started: false },
  started: { state: { running: { startedAt: 'x' } }, lastState: {}, started: true },
  waiting: { state: { waiting: { reason: 'ContainerCreating' } }, lastState: {} },
  ok: { state: ended(0, 'Completed'), lastState: {} },
  failed: { state: ended(1), lastState: {} },
  restarting: { state: ended(1, 'RestartingAllContainers'), lastState: {} },
  'failed before': { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended(1) },
  'ok before': { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended(0) },
};
const statusOf = (name: string, short: Short): ContainerStatus[] =>
  short === 'missing'
    ? []
    : [{ name, ready: false, restartCount: 0, image: '', imageID: '', ...STATES[short] } as ContainerStatus];

type Row = {
  readonly policy?: Pod['spec']['restartPolicy'];
  readonly init?: readonly Short[];
  readonly sidecar?: Short;
  readonly main: readonly Short[];
  readonly terminal?: true;
  readonly initialised?: true;
  readonly static?: true;
};

function phase({ policy, init = [], sidecar, main, terminal, initialised, static: isStatic }: Row): PodPhase {
  const named = (kind: string, shorts: readonly Short[]): readonly [Container[], ContainerStatus[]] => [
    shorts.map((_, i) => ({ name: `${kind}${i}` })),
    shorts.flatMap((short, i) => statusOf(`${kind}${i}`, short)),
  ];
  const [initContainers, initStatuses] = named('i', init);
  const [containers, mainStatuses] = named('m', main);
  const beside = sidecar === undefined ? [] : [{ name: 's', restartPolicy: 'Always' as const }];
  const pod: Pod = {
    metadata: { name: 'p', ...(isStatic === true && { annotations: { 'kubernetes.io/config.source': 'file' } }) },
    spec: {
      ...(policy === undefined ? {} : { restartPolicy: policy }),
      initContainers: [...initContainers, ...beside],
      containers,
    },
  };
  const statuses = {
    init: [...initStatuses, ...(sidecar === undefined ? [] : statusOf('s', sidecar))],
    main: mainStatuses,
  };
  return phaseOf(pod, statuses, { terminal: terminal === true, initialised: initialised === true });
}

const rows: readonly [string, Row, PodPhase][] = [
  ['all run', { main: ['started', 'running'] }, 'Running'],
  ['one waits to start for the first time', { main: ['running', 'waiting'] }, 'Pending'],
  ['one nobody saw', { main: ['running', 'missing'] }, 'Pending'],
  ['one is to start again', { main: ['failed before'] }, 'Running'],
  ['one that is gone from the runtime, Never', { policy: 'Never', main: ['failed before'] }, 'Failed'],
  ['one that is gone from the runtime, OnFailure', { policy: 'OnFailure', main: ['failed before'] }, 'Running'],
  [
    'one is gone from the runtime, another runs, Never',
    { policy: 'Never', main: ['failed before', 'running'] },
    'Running',
  ],
  ['one ended and starts again', { main: ['failed'] }, 'Running'],
  ['all ended well, Never', { policy: 'Never', main: ['ok', 'ok'] }, 'Succeeded'],
  ['one ended ill, Never', { policy: 'Never', main: ['ok', 'failed'] }, 'Failed'],
  ['one ended ill, another runs, Never', { policy: 'Never', main: ['running', 'failed'] }, 'Running'],
  ['one ended well, OnFailure', { policy: 'OnFailure', main: ['ok'] }, 'Succeeded'],
  ['one ended ill, OnFailure', { policy: 'OnFailure', main: ['failed'] }, 'Running'],
  ['one ended ill and all start over, Never', { policy: 'Never', main: ['restarting'] }, 'Running'],
  ['stopped for good, ill', { main: ['failed'], terminal: true }, 'Failed'],
  ['stopped for good, well', { main: ['ok'], terminal: true }, 'Succeeded'],
  ['a static pod is never over while it may restart', { main: ['failed'], terminal: true, static: true }, 'Running'],
  ['an init container runs', { init: ['running'], main: ['waiting'] }, 'Pending'],
  ['an init container was not seen', { init: ['missing'], main: ['missing'] }, 'Pending'],
  ['an init container is done', { init: ['ok'], main: ['running'] }, 'Running'],
  ['an init container failed for good', { policy: 'Never', init: ['failed'], main: ['waiting'] }, 'Failed'],
  ['an init container failed and is tried again', { init: ['failed'], main: ['waiting'] }, 'Pending'],
  [
    'an init container failed and all start over',
    { policy: 'Never', init: ['restarting'], main: ['waiting'] },
    'Pending',
  ],
  ['an init container waits after a failure', { init: ['failed before'], main: ['waiting'] }, 'Pending'],
  ['the same, Never', { policy: 'Never', init: ['failed before'], main: ['waiting'] }, 'Failed'],
  ['an init container waits after a success', { init: ['ok before'], main: ['waiting'] }, 'Pending'],
  ['an init container fails in a new sandbox', { init: ['failed before'], main: ['failed'] }, 'Running'],
  ['an init container is done in a new sandbox', { init: ['ok before'], main: ['failed'] }, 'Running'],
  ['an init container runs in a new sandbox', { init: ['running'], main: ['failed'] }, 'Pending'],
  ['a sidecar nobody saw', { sidecar: 'missing', main: ['waiting'] }, 'Pending'],
  ['a sidecar that has not started', { sidecar: 'running', main: ['waiting'] }, 'Pending'],
  [
    'a sidecar that has not started beside a main one that has',
    { sidecar: 'running', main: ['running'], initialised: true },
    'Running',
  ],
  ['a sidecar that has not started in a new sandbox', { sidecar: 'running', main: ['failed'] }, 'Pending'],
  ['a sidecar that waits', { sidecar: 'waiting', main: ['running'] }, 'Pending'],
  ['a sidecar that ended keeps nobody', { policy: 'Never', sidecar: 'failed', main: ['ok'] }, 'Succeeded'],
  ['a sidecar that starts again', { sidecar: 'failed before', main: ['running'] }, 'Running'],
  ['a sidecar outlives the rest', { policy: 'Never', sidecar: 'started', main: ['ok'] }, 'Running'],
  ['a pod without containers', { main: [] }, 'Pending'],
];

describe('phase', () => {
  for (const [name, row, expected] of rows) it(name, () => assert.equal(phase(row), expected));
});
