// What a sentence and its evidence say when more or less is known than usual.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodFacts, Why } from './facts.ts';
import { inOneLine, why } from './why.ts';
import {
  ago,
  appWith,
  conditions,
  containerIn,
  crashed,
  deleting,
  eventOf,
  factsOf,
  http,
  init,
  NOW,
  podOf,
  probed,
  refused,
  running,
  waitingFor,
  withApp,
} from './why.fixture.ts';

const of = (facts: Partial<PodFacts>): Why => why(factsOf(facts));
type Row = readonly [name: string, facts: Partial<PodFacts>, cause: string, words: RegExp, evidence?: RegExp];

const ended = (exitCode: number, more: object = {}): PodFacts['status'] =>
  withApp({ terminated: { exitCode, startedAt: null, finishedAt: null, ...more } });

function check(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const [name, facts, cause, words, evidence] of rows)
      it(name, () => {
        const found = of(facts);
        assert.equal(found.cause, cause, found.sentence);
        assert.match(found.sentence, words);
        if (evidence !== undefined) assert.match(found.evidence.join('\n'), evidence);
      });
  });
}

check('containers', [
  [
    'a long message stays out of the sentence',
    { status: waitingFor('CreateContainerError', 'x'.repeat(700)) },
    'CreateFailed',
    /could not create it, next try in 17 s\.$/,
    /x{500}…$/,
  ],
  ['no message', { status: waitingFor('RunContainerError', '') }, 'StartFailed', /could not start it, next/],
  [
    'killed beyond the limit of the pod',
    { status: crashed(1, 'OOMKilled'), pod: podOf({ resources: { limits: { memory: '1Gi' } } }) },
    'CrashLoopOutOfMemory',
    /its limit of 1Gi/,
  ],
  [
    'killed beyond what the node had',
    { status: crashed(137, 'OOMKilled') },
    'CrashLoopOutOfMemory',
    /more memory than the node had/,
  ],
  [
    'killed while the node ran out of memory',
    { status: ended(137), events: [eventOf('OOMKilling', 'm')] },
    'OutOfMemory',
    /more memory/,
    /event OOMKilling: m/,
  ],
  [
    'ended, restarted never',
    { status: ended(1), pod: podOf({ restartPolicy: 'Never' }) },
    'ExitedWithError',
    /exit code 1 and is not restarted\.$/,
    /^last run: exit code 1$/,
  ],
  [
    'done, restarted on failure only',
    { status: ended(0), pod: podOf({ restartPolicy: 'OnFailure' }) },
    'ContainerCompleted',
    /not restarted/,
  ],
  ['done, to be restarted', { status: ended(0) }, 'ContainerCompleted', /and is restarted, next try in 17 s/],
  [
    'an init container that failed',
    init(
      { terminated: { exitCode: 3, reason: 'Error', message: 'boom', startedAt: ago(9), finishedAt: ago(4) } },
      { restartCount: 2 },
    ),
    'ExitedWithError',
    /^Init container "migrate" ends with exit code 3/,
    /\(Error\) at .*: boom\n2 restarts so far\nit ran for 5 s/,
  ],
  [
    'an init container in a crash loop',
    init({ waiting: { reason: 'CrashLoopBackOff' } }),
    'CrashLoop',
    /^Init container "migrate" keeps ending/,
  ],
]);

check('pods that ended', [
  [
    'failed with a container',
    { status: { ...ended(2), phase: 'Failed' } },
    'ExitedWithError',
    /container "app" ends with exit code 2 and is not restarted/,
  ],
  [
    'failed by its init container',
    {
      status: {
        phase: 'Failed',
        initContainerStatuses: [
          containerIn({ terminated: { exitCode: 137, reason: 'OOMKilled', startedAt: null, finishedAt: null } }),
        ],
      },
    },
    'OutOfMemory',
    /The pod failed/,
  ],
  ['failed without a word', { status: { phase: 'Failed' } }, 'Failed', /^The pod failed\.$/],
  [
    'failed for a reason nobody knows',
    refused('Strange', 'because'),
    'Strange',
    /^The pod failed \(Strange\): because\.$/,
  ],
  [
    'evicted without words',
    { status: { phase: 'Failed', reason: 'Evicted' } },
    'EvictedUnderPressure',
    /low on resources\.$/,
  ],
  [
    'refused under pressure without conditions',
    refused('Evicted', 'The node had condition: x'),
    'RefusedUnderPressure',
    /\(unknown\)/,
  ],
  ['a deadline nobody knows', refused('DeadlineExceeded'), 'DeadlineExceeded', /\(\? s\)/],
  [
    'out of memory on the node',
    refused('OutOfmemory', 'requested: 2000000, used: 1, capacity: 3000000'),
    'OutOfResource',
    /asked for 2.0 MB/,
  ],
  [
    'out of devices',
    refused('OutOfv.com/gpu', 'requested: 2, used: 1, capacity: 2'),
    'OutOfResource',
    /asked for 2, 1 of 2 are taken/,
  ],
  ['out of something, without numbers', refused('OutOfpods', 'full'), 'OutOfResource', /not enough pods is left\.$/],
  [
    'a port that nobody has now',
    {
      ...refused('NodePorts'),
      pod: podOf({
        initContainers: [
          { name: 's', restartPolicy: 'Always', ports: [{ containerPort: 1, hostPort: 9 }, { containerPort: 2 }] },
        ],
      }),
      others: [
        podOf(
          { containers: [{ name: 'x', ports: [{ containerPort: 1, hostPort: 9, protocol: 'UDP' }] }] },
          { uid: 'o' },
        ),
      ],
    },
    'PortTaken',
    /host port 9 was taken by another pod/,
  ],
]);

check('probes', [
  [
    'a startup probe that fails',
    {
      pod: appWith({ startupProbe: { tcpSocket: { port: 1 } } }),
      status: running({ started: false }),
      probes: [probed('startup', 'success', 'failure')],
    },
    'StartupProbeFailing',
    /TCP connection to port 1/,
    /allowed: 3 failures, one run every 10 s, 1 s each/,
  ],
  [
    'a startup probe to come',
    {
      pod: appWith({ startupProbe: { grpc: { port: 2 }, initialDelaySeconds: 100 } }),
      status: running({ started: false }),
    },
    'StartupProbePending',
    /gRPC health check on port 2\) is asked for the first time in 10 s/,
  ],
  [
    'a probe that is not in the spec any more',
    { status: running({ started: false }), probes: [probed('startup', 'failure')] },
    'StartupProbeFailing',
    /\(probe\)/,
  ],
  [
    'not started, without such a probe',
    { status: running({ started: false }) },
    'ContainerStarted',
    /has just started/,
  ],
  [
    'a readiness probe without a path',
    {
      pod: appWith({ readinessProbe: { httpGet: { port: 3 } } }),
      status: running(),
      probes: [probed('readiness', 'failure')],
    },
    'ReadinessProbeFailing',
    /HTTP GET \/ on port 3/,
  ],
  [
    'a command that says nothing',
    {
      pod: appWith({ readinessProbe: { exec: {} } }),
      status: running(),
      probes: [{ ...probed('readiness'), runs: [{ atMs: NOW, result: 'failure', output: '' }] }],
    },
    'ReadinessProbeFailing',
    /\(command \)/,
    /^the last 1 runs failed\nallowed/,
  ],
  [
    'a liveness probe of a container that is not ready',
    { pod: appWith({ livenessProbe: http }), status: running(), probes: [probed('liveness', 'failure')] },
    'LivenessProbeFailing',
    /will be restarted/,
  ],
]);

const stopping = (worker: PodFacts['worker'] & object, more: Partial<PodFacts> = {}): Partial<PodFacts> =>
  deleting({ worker, ...more });
check('pods being stopped', [
  ['nobody works on it yet', { ...deleting({}), worker: undefined } as never, 'Deleted', /about to be stopped/],
  [
    'no status, no times',
    stopping({ phase: 'terminating' }, { status: {} }),
    'SandboxStopping',
    /network and the sandbox/,
  ],
  [
    'in its grace period, by a hook',
    {
      ...stopping({ phase: 'terminating', sinceMs: NOW - 1000, graceSeconds: 30 }, { status: running() }),
      pod: {
        ...appWith({ lifecycle: { preStop: { exec: {} } } }),
        metadata: { name: 'web', deletionTimestamp: ago(1) },
      },
    },
    'GracePeriod',
    /has 29 s left to end \(its preStop hook counts\)/,
  ],
  [
    'late',
    stopping(
      { phase: 'terminating', sinceMs: NOW - 9000, lastError: { message: 'm', atMs: NOW, attempts: 2 } },
      { status: running() },
    ),
    'StoppingLate',
    /grace period of 0 s and could not be killed for 9 s/,
    /^failed 2 times: m$/,
  ],
  [
    'not to be killed',
    stopping(
      { phase: 'terminating', sinceMs: NOW - 9000 },
      { status: running(), events: [eventOf('FailedKillPod', 'm')] },
    ),
    'KillFailed',
    /cannot be stopped/,
    /event FailedKillPod: m/,
  ],
  [
    'a sidecar still runs',
    stopping(
      { phase: 'terminating', sinceMs: NOW, graceSeconds: 5 },
      { status: { initContainerStatuses: [containerIn({ running: { startedAt: ago(9) } }, { name: 's' })] } },
    ),
    'GracePeriod',
    /container "s" has 5 s left to end\.$/,
  ],
  [
    'something is being removed',
    stopping({ phase: 'terminated' }, { underWay: [{ name: 'unmount', sinceMs: NOW - 2000 }] }),
    'CleaningUp',
    /\(unmount for 2.* s\)/,
  ],
  [
    'the object remains',
    stopping({ phase: 'finished' }, { events: [{ metadata: { name: 'e' }, involvedObject: {} }] }),
    'ApiServer',
    /has not confirmed/,
    /last event .* ago: $/,
  ],
  ['the object remains, no event', stopping({ phase: 'finished' }), 'ApiServer', /has not confirmed/],
]);

const gated = podOf({ readinessGates: [{ conditionType: 'G' }, { conditionType: 'H' }] });
const condition = (type: string, status: 'True' | 'False', more: object = {}) => ({ type, status, ...more });
const nothing = { metadata: { name: 'e' }, involvedObject: {} };
check('pods that start', [
  [
    'no conditions at all, a sandbox that failed without words',
    { status: { phase: 'Pending' }, events: [{ ...nothing, reason: 'FailedCreatePodSandBox', count: 2 }] },
    'SandboxFailed',
    /because the runtime failed/,
    /^event FailedCreatePodSandBox \(2 times\): $/,
  ],
  [
    'a step that has no words of its own',
    {
      status: { phase: 'Pending' },
      underWay: [{ name: 'strange', of: 'x', sinceMs: NOW - 2000 }],
      worker: { phase: 'syncing' },
    },
    'Starting',
    /strange "x" for 2/,
  ],
  [
    'an event without a reason says nothing',
    { events: [nothing], status: { phase: 'Running' }, worker: undefined } as never,
    'Unknown',
    /./,
  ],
]);

check('ready or nearly', [
  [
    'gates',
    { pod: gated, status: { phase: 'Running', conditions: [condition('G', 'False', { reason: 'R' })] } },
    'ReadinessGates',
    /"G", "H"/,
    /^G is False: R\nH was never set$/,
  ],
  [
    'a gate without a word',
    { pod: gated, status: { phase: 'Running', conditions: [condition('G', 'False'), condition('H', 'True')] } },
    'ReadinessGates',
    /"G"/,
    /^G is False: $/,
  ],
  [
    'sidecars that are not ready',
    {
      pod: podOf({ initContainers: [{ name: 's', restartPolicy: 'Always' }] }),
      status: {
        ...conditions('Initialized'),
        initContainerStatuses: [containerIn({ running: { startedAt: ago(9) } }, { name: 's', started: true })],
        phase: 'Running',
      },
    },
    'ContainerStarted',
    /"s" has just started/,
  ],
  ['no conditions at all', { pod: gated, status: { phase: 'Running' } }, 'ReadinessGates', /"G", "H"/],
  [
    'a resize without a reason',
    { status: { phase: 'Running', ...conditions('Ready', 'PodResizePending') } },
    'ResizePending',
    /waits for room/,
    /^PodResizePending: $/,
  ],
  [
    'nothing known at all',
    { status: { phase: 'Running' }, worker: undefined } as never,
    'Unknown',
    /^The pod is Running/,
  ],
  [
    'an init container runs',
    init({ running: { startedAt: '' } }, { restartCount: 1 }),
    'InitContainerRunning',
    /\(1 of 1\) runs; the others/,
    /^1 restarts so far$/,
  ],
  [
    'a sidecar that is up does not hold up',
    {
      ...init({ running: { startedAt: ago(9) } }, { name: 'side', started: true }),
      pod: podOf({ initContainers: [{ name: 'side', restartPolicy: 'Always' }] }),
    },
    'Unknown',
    /nothing is known/,
  ],
]);

describe('in one line', () => {
  it('with what to do where there is something', () => {
    const found = of({ status: ended(1) });
    assert.equal(inOneLine(found), `${found.sentence} ${found.todo}`);
    assert.equal(inOneLine({ ...found, todo: '' }), found.sentence);
  });

  it('a try that is due is now; one under way is not announced', () => {
    const said = (worker: PodFacts['worker']) =>
      of({ status: waitingFor('RunContainerError', ''), worker: worker as never });
    assert.match(said({ phase: 'syncing', nextRunMs: NOW + 500 }).sentence, /, next try now\.$/);
    assert.match(said({ phase: 'syncing', nextRunMs: NOW + 5000, busySinceMs: NOW }).sentence, /could not start it\.$/);
    assert.equal(said(undefined).nextRetryMs, undefined);
  });
});
