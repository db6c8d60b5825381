// One row per rule about main containers, restart rules, debug containers and resize.
import type { Container, ResourceRequirements } from '../core/pod.ts';
import { box, podOf, PROBE, table } from '../../test/golden/plan-table.ts';

const inits = podOf({ initContainers: [box('i1'), box('i2')] });
const never = podOf({ restartPolicy: 'Never' });

table('main containers', [
  { rule: 'all are there: nothing to do', seen: ['a running'], steps: [] },
  { rule: 'missing: start', pod: podOf({ containers: [box('a'), box('b')] }), seen: ['a running'], steps: ['start b'] },
  { rule: 'created only: start another instead', seen: ['a created'], steps: ['start a instead of a'] },
  { rule: 'ended well under Always: again', seen: ['a exited 0'], steps: ['start a'] },
  {
    rule: 'ended well under OnFailure: done',
    pod: podOf({ restartPolicy: 'OnFailure' }),
    seen: ['a exited 0'],
    steps: ['kill pod'],
  },
  {
    rule: 'failed under OnFailure: again',
    pod: podOf({ restartPolicy: 'OnFailure' }),
    seen: ['a exited 1'],
    steps: ['start a'],
  },
  { rule: 'failed under Never: done', pod: never, seen: ['a exited 1'], steps: ['kill pod'] },
  {
    rule: 'one done, one runs: the pod goes on',
    pod: podOf({ restartPolicy: 'Never', containers: [box('a'), box('b')] }),
    seen: ['a exited 0', 'b running'],
    steps: [],
  },
  { rule: 'only the newest instance counts', seen: ['a#2 running', 'a#1 exited 1'], steps: [] },
  {
    rule: 'an older instance came to life late: it goes, the newest stays',
    seen: ['a#2 running', 'a#1 running'],
    steps: ['kill 1: Container a runs beside a newer instance of itself'],
  },
  {
    rule: 'an older instance runs where the newest has ended: it goes before the next is started',
    seen: ['a#2 exited 1', 'a#1 running'],
    steps: ['kill 1: Container a runs beside a newer instance of itself', 'start a'],
  },
  {
    rule: 'being deleted: not again',
    pod: podOf({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    seen: ['a exited 1'],
    steps: ['kill pod'],
  },
  {
    rule: 'unknown: killed and started again',
    seen: ['a unknown'],
    steps: ['kill a: Container is in "unknown" state, try killing it before restart', 'start a'],
  },
  {
    rule: 'changed: killed and started again, whatever the policy',
    pod: podOf({ restartPolicy: 'Never', containers: [box('a', { image: 'other' })] }),
    seen: ['a running'],
    steps: ['kill a: Container a definition changed, will be restarted', 'start a'],
  },
  {
    rule: 'liveness failed: killed and started again',
    pod: podOf({ containers: [box('a', { livenessProbe: PROBE })] }),
    seen: ['a running'],
    liveness: 'failure',
    steps: ['kill a: Container a failed liveness probe, will be restarted', 'start a'],
  },
  {
    rule: 'liveness failed under Never: killed only',
    pod: podOf({ restartPolicy: 'Never', containers: [box('a', { livenessProbe: PROBE }), box('b')] }),
    seen: ['a running', 'b running'],
    liveness: 'failure',
    steps: ['kill a: Container a failed liveness probe'],
  },
  {
    rule: 'a result without a probe means nothing',
    seen: ['a running'],
    liveness: 'failure',
    startup: 'failure',
    steps: [],
  },
  {
    rule: 'startup failed: killed and started again',
    pod: podOf({ containers: [box('a', { startupProbe: PROBE })] }),
    seen: ['a running'],
    startup: 'failure',
    steps: ['kill a: Container a failed startup probe, will be restarted', 'start a'],
  },
  {
    rule: "the container's own policy is the one that counts",
    pod: podOf({ containers: [box('a', { restartPolicy: 'Never', livenessProbe: PROBE }), box('b')] }),
    seen: ['a running', 'b running'],
    liveness: 'failure',
    steps: ['kill a: Container a failed liveness probe'],
  },
  {
    rule: 'made by somebody else, without our hash: left alone',
    pod: podOf({ containers: [box('a', { image: 'other' })] }),
    seen: ['a running 0 foreign'],
    steps: [],
  },
]);

const rule = (
  action: 'Restart' | 'RestartAllContainers',
  operator: 'In' | 'NotIn',
  ...values: number[]
): Partial<Container> => ({
  restartPolicy: 'Never',
  restartPolicyRules: [{ action, exitCodes: { operator, values } }],
});

table('restart rules', [
  {
    rule: 'a matching code restarts',
    pod: podOf({ containers: [box('a', rule('Restart', 'In', 3))] }),
    seen: ['a exited 3'],
    steps: ['start a'],
  },
  {
    rule: 'another code does not',
    pod: podOf({ containers: [box('a', rule('Restart', 'In', 3))] }),
    seen: ['a exited 4'],
    steps: ['kill pod'],
  },
  {
    rule: 'NotIn turns it round',
    pod: podOf({ containers: [box('a', rule('Restart', 'NotIn', 3))] }),
    seen: ['a exited 4'],
    steps: ['start a'],
  },
  {
    rule: 'all containers: others first, those that asked last, logs kept',
    pod: podOf({
      initContainers: [box('i1')],
      containers: [box('a', rule('RestartAllContainers', 'In', 3)), box('b')],
    }),
    seen: ['a exited 3', 'b running', 'i1 exited 0'],
    steps: ['remove b keeping logs', 'remove i1 keeping logs', 'remove a keeping logs'],
  },
  {
    rule: 'all containers: goes on where it was interrupted',
    pod: podOf({ initContainers: [box('i1')] }),
    seen: ['i1 exited 0'],
    restartingAll: true,
    steps: ['remove i1 keeping logs'],
  },
  { rule: 'all containers gone: from the start', pod: inits, restartingAll: true, steps: ['start i1 blocking'] },
]);

table('debug containers', [
  { rule: 'started once', pod: podOf({ ephemeralContainers: [box('d')] }), seen: ['a running'], steps: ['start d'] },
  {
    rule: 'never again',
    pod: podOf({ ephemeralContainers: [box('d')] }),
    seen: ['d exited 1', 'a running'],
    steps: [],
  },
  {
    rule: 'even before initialisation is over',
    pod: podOf({ initContainers: [box('i1')], ephemeralContainers: [box('d')] }),
    seen: ['i1 running'],
    steps: ['start d'],
  },
]);

const sized = (cpu: string, memory: string): ResourceRequirements => ({
  limits: { cpu, memory },
  requests: { cpu, memory },
});
const restartOnMemory = { resizePolicy: [{ resourceName: 'memory', restartPolicy: 'RestartContainer' as const }] };

table('resize', [
  {
    rule: 'nothing changed',
    pod: podOf({ containers: [box('a', { resources: sized('1', '1Gi') })] }),
    actuated: { a: sized('1000m', '1024Mi') },
    seen: ['a running'],
    steps: [],
  },
  {
    rule: 'in place',
    pod: podOf({ containers: [box('a', { resources: sized('2', '1Gi') })] }),
    actuated: { a: sized('1', '1Gi') },
    seen: ['a running'],
    steps: ['resize'],
  },
  {
    rule: 'with restart',
    pod: podOf({ containers: [box('a', { resources: sized('1', '2Gi'), ...restartOnMemory })] }),
    actuated: { a: sized('1', '1Gi') },
    seen: ['a running'],
    steps: ['kill a: Container a resize requires restart', 'resize restarting a', 'start a'],
  },
  {
    rule: 'without a record there is nothing to compare',
    pod: podOf({ containers: [box('a', { resources: sized('2', '1Gi') })] }),
    actuated: {},
    seen: ['a running'],
    steps: [],
  },
  {
    rule: 'not up yet: the pod itself gets its values first',
    pod: podOf({ containers: [box('a', { resources: sized('2', '1Gi') })] }),
    actuated: { a: sized('1', '1Gi') },
    steps: ['resize', 'start a'],
  },
  {
    rule: 'with a new sandbox nobody is resized while running',
    pod: podOf({ containers: [box('a', { resources: sized('2', '1Gi') })] }),
    actuated: { a: sized('1', '1Gi') },
    sandboxes: [],
    steps: ['sandbox 0', 'resize restarting a', 'start a'],
  },
  {
    rule: 'the pod as a whole',
    pod: podOf({ resources: sized('2', '2Gi'), containers: [box('a', { resources: sized('1', '1Gi') })] }),
    actuated: { a: sized('1', '1Gi') },
    actuatedPod: sized('1', '1Gi'),
    seen: ['a running'],
    steps: ['resize'],
  },
  {
    rule: 'a limit from the pod is a change too',
    pod: podOf({ resources: sized('1', '2Gi'), containers: [box('a', restartOnMemory)] }),
    actuated: { a: { limits: { cpu: '1', memory: '1Gi' } } },
    actuatedPod: sized('1', '1Gi'),
    seen: ['a running'],
    steps: ['kill a: Container a resize requires restart', 'resize restarting a', 'start a'],
  },
  {
    rule: 'static pods are replaced instead',
    pod: podOf(
      { containers: [box('a', { resources: sized('2', '1Gi') })] },
      { annotations: { 'kubernetes.io/config.source': 'file' } },
    ),
    actuated: { a: sized('1', '1Gi') },
    seen: ['a running'],
    steps: [],
  },
]);
