// Pods that no recording of the Go kubelet has, and what its rules say becomes of them: status and events, word by word.
// All of them at once on one node.
// runs: gate
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Container, ContainerState, Pod, PodSpec } from '../../src/core/pod.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const namespace = 'default';
const SERVE = 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';
const PRESENT = `Container image "${BUSYBOX_IMAGE}" already present on machine and can be accessed by the pod`;

const run = (name: string, script: string, more: Partial<Container> = {}): Container => ({
  name,
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', script],
  ...more,
});

/** `phase reason; container state; …`, with the pod's own name and UID left out of messages. */
function reported(pod: Pod): string {
  const { phase = '', reason, message, initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const state = (s: ContainerState): string => {
    if (s.running !== undefined) return 'running';
    const { waiting, terminated } = s;
    const what = waiting ?? terminated;
    const code = terminated === undefined ? '' : ` ${terminated.exitCode}`;
    return `${what?.reason ?? ''}${code}${what?.message ? ` (${anonymous(what.message, pod)})` : ''}`;
  };
  const last = (s: ContainerState): string => (Object.keys(s).length === 0 ? '' : `, before ${state(s)}`);
  const head = [phase, reason, message].filter((text) => text !== undefined).join(' ');
  return [
    head,
    ...[...initContainerStatuses, ...containerStatuses].map(
      (c) => `${c.name} ${state(c.state)}${last(c.lastState)}${c.restartCount > 0 ? ` #${c.restartCount}` : ''}`,
    ),
  ].join('; ');
}

const anonymous = (text: string, { metadata }: Pod): string =>
  text.replaceAll(`${metadata.name}_${namespace}(${metadata.uid})`, '<pod>').replaceAll('\n', '|');

type Row = {
  readonly name: string;
  readonly spec: PodSpec;
  /** What the status must come to say. */
  readonly says: string;
  /** Beside those of containers that come up: type, reason and message. */
  readonly events?: readonly string[];
};

const startup = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 };
const ends = { restartPolicy: 'Never' } as const;
const gang = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }] as const;
const REMOVED = 'RestartingAllContainers 137 (The container is removed because RestartAllContainers in place)';
const NOT_THERE = 'localhost/none:1';
const REFUSED = '127.0.0.1:1/none:1';
const REFUSAL = `failed to pull and unpack image "${REFUSED}": failed to resolve image: failed to do request: Head "https://127.0.0.1:1/v2/none/manifests/1": dial tcp 127.0.0.1:1: connect: connection refused`;
const LONG = { hostname: 'h'.repeat(40), subdomain: 's'.repeat(30), setHostnameAsFQDN: true };
const FQDN = `${LONG.hostname}.${LONG.subdomain}.${namespace}.svc.cluster.local`;

const ROWS: readonly Row[] = [
  {
    name: 'init-fails',
    spec: { ...ends, initContainers: [run('i', 'exit 3')], containers: [run('m', SERVE)] },
    says: 'Failed; i Error 3; m PodInitializing',
  },
  {
    name: 'init-fails-again',
    spec: { restartPolicy: 'OnFailure', initContainers: [run('i', 'exit 3')], containers: [run('m', SERVE)] },
    says: 'Pending; i CrashLoopBackOff (back-off 10s restarting failed container=i pod=<pod>), before Error 3 #1; m PodInitializing',
    events: ['Warning BackOff Back-off restarting failed container i in pod <pod>'],
  },
  {
    name: 'job-with-sidecar',
    spec: {
      ...ends,
      initContainers: [run('s', SERVE, { restartPolicy: 'Always' })],
      containers: [run('m', 'sleep 0.5')],
    },
    says: 'Succeeded; s Completed 0; m Completed 0',
    events: ['Normal Killing Stopping container s'],
  },
  {
    name: 'rule-restarts-all',
    spec: {
      ...ends,
      containers: [
        run('m', '[ -e /v/done ] || { touch /v/done; sleep 0.5; exit 42; }; sleep 1000', {
          ...ends,
          restartPolicyRules: gang,
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
        }),
        run('o', SERVE),
      ],
      volumes: [{ name: 'v', emptyDir: {} }],
    },
    says: `Running; m running, before ${REMOVED} #1; o running, before ${REMOVED} #1`,
    events: ['Normal Killing killing'],
  },
  {
    name: 'last-words',
    spec: {
      ...ends,
      containers: [
        // The two streams are read apart: without a pause their lines may change places.
        run('log', 'echo one; sleep 1; echo two >&2; exit 2', { terminationMessagePolicy: 'FallbackToLogsOnError' }),
        run('ok', 'echo one', { terminationMessagePolicy: 'FallbackToLogsOnError' }),
      ],
    },
    says: 'Failed; log Error 2 (one|two|); ok Completed 0',
  },
  {
    name: 'no-image',
    spec: { containers: [{ ...run('m', SERVE), image: NOT_THERE }] },
    says: `Pending; m ErrImageNeverPull (Container image "${NOT_THERE}" is not present with pull policy of Never)`,
    events: [
      'Warning Failed Error: ErrImageNeverPull',
      `Warning ErrImageNeverPull Container image "${NOT_THERE}" is not present with pull policy of Never`,
    ],
  },
  {
    name: 'no-registry',
    spec: { containers: [{ ...run('m', SERVE), image: REFUSED, imagePullPolicy: 'Always' }] },
    says: `Pending; m ImagePullBackOff (Back-off pulling image "${REFUSED}": ErrImagePull: ${REFUSAL})`,
    events: [
      `Normal BackOff Back-off pulling image "${REFUSED}"`,
      `Normal Pulling Pulling image "${REFUSED}"`,
      'Warning Failed Error: ErrImagePull',
      'Warning Failed Error: ImagePullBackOff',
      `Warning Failed Failed to pull image "${REFUSED}": ${REFUSAL}`,
    ],
  },
  {
    name: 'root',
    spec: { containers: [run('m', SERVE, { securityContext: { runAsNonRoot: true } })] },
    says: 'Pending; m CreateContainerConfigError (container has runAsNonRoot and image will run as root (pod: "<pod>", container: m))',
    events: [
      'Warning Failed Error: container has runAsNonRoot and image will run as root (pod: "<pod>", container: m)',
    ],
  },
  {
    name: 'hook-fails',
    spec: {
      ...ends,
      containers: [run('m', SERVE, { lifecycle: { postStart: { exec: { command: ['false'] } } } })],
    },
    says: 'Succeeded; m Completed 0',
    events: ['Normal Killing FailedPostStartHook', 'Warning FailedPostStartHook PostStartHook failed'],
  },
  {
    name: 'never-started-up',
    spec: { ...ends, containers: [run('m', SERVE, { startupProbe: startup })] },
    says: 'Succeeded; m Completed 0',
    events: ['Normal Killing Stopping container m', 'Warning Unhealthy Startup probe failed: '],
  },
  {
    name: 'long-name',
    spec: { ...LONG, containers: [run('m', SERVE)] },
    says: 'Pending; m ContainerCreating',
    events: [
      `Warning FailedCreatePodSandBox Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, FQDN ${FQDN} is too long (64 characters is the max, ${FQDN.length} characters requested)`,
    ],
  },
  {
    name: 'no-config-map',
    spec: { containers: [run('m', SERVE, { envFrom: [{ configMapRef: { name: 'absent' } }] })] },
    says: 'Pending; m CreateContainerConfigError (configmap "absent" not found)',
    events: ['Warning Failed Error: configmap "absent" not found'],
  },
  {
    name: 'no-variable',
    spec: {
      volumes: [{ name: 'v', emptyDir: {} }],
      containers: [run('m', SERVE, { volumeMounts: [{ name: 'v', mountPath: '/v', subPathExpr: '$(NOPE)/x' }] })],
    },
    says: 'Pending; m CreateContainerConfigError (missing value for NOPE)',
    events: ['Warning Failed Error: missing value for NOPE'],
  },
  {
    name: 'overdue',
    spec: { activeDeadlineSeconds: 2, containers: [run('m', SERVE)] },
    says: 'Failed DeadlineExceeded Pod was active on the node longer than the specified deadline; m Completed 0',
    events: [
      'Normal DeadlineExceeded Pod was active on the node longer than the specified deadline',
      'Normal Killing Stopping container m',
    ],
  },
];

/** Every container that comes up tells these. */
const ORDINARY = new Set([
  `Normal Pulled ${PRESENT}`,
  'Normal Created Container created',
  'Normal Started Container started',
]);

describe('pods no recording has', () => {
  let node: TestNode;
  const read = (name: string): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
  const eventsOf = async (name: string): Promise<readonly KubeEvent[]> =>
    (await node.client.list(EVENTS, { namespace }, never)).items.filter((e) => e.involvedObject?.name === name);

  before(async () => {
    node = await startNode({ containerd: '2.1' });
    for (const { name, spec } of ROWS) {
      const common = { nodeName: NODE_NAME, automountServiceAccountToken: false, terminationGracePeriodSeconds: 2 };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { ...common, ...spec } };
      await node.client.create<Pod>(PODS, { namespace }, pod, never);
    }
  });
  after(() => node?.stop());

  for (const { name, says, events = [] } of ROWS)
    it(name, async () => {
      let last = '';
      await untilSeen(
        name,
        async () => (last = reported(await read(name))),
        (seen) => seen === says,
      ).catch(() => assert.equal(last, says));
      const pod = await read(name);
      const seen = (e: KubeEvent): string => `${e.type} ${e.reason} ${anonymous(e.message ?? '', pod)}`;
      const found = async (): Promise<string[]> =>
        [...new Set((await eventsOf(name)).map(seen))].filter((e) => !ORDINARY.has(e)).sort();
      const expected = [...events].sort();
      // Events are sent behind everything else.
      await untilSeen('its events', found, (seen) => seen.length >= expected.length).catch(() => undefined);
      assert.deepEqual(await found(), expected);
    });

  it('tries what cannot be done no more than twice before it waits', async () => {
    for (const name of ['no-image', 'root', 'no-config-map', 'no-variable']) {
      const [failed] = (await eventsOf(name)).filter((e) => e.reason === 'Failed');
      const first = Date.parse(failed?.firstTimestamp ?? '');
      const rounds = 1 + Math.floor((Date.now() - first) / 10_000);
      assert.ok((failed?.count ?? 0) <= 1 + rounds, `${name}: ${failed?.count} times`);
    }
  });
});
