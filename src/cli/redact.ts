// What may leave the machine in a support bundle. Field by field what is known to hold no secret is taken; everything else
// (environment, arguments, annotations, what containers wrote or answered) stays here. Pure.
import type { KubeEvent } from '../core/node.ts';
import type { Container, ContainerState, ContainerStatus, Pod } from '../core/pod.ts';
import type { WorkersView } from '../page/model.ts';
import type { NamedWhy } from './texts.ts';

type Json = Readonly<Record<string, unknown>>;

const pick = <T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> =>
  Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>;

const LEFT_OUT = '(left out)';

export const redactedPod = ({ metadata, spec, status }: Pod): Json => ({
  metadata: pick(metadata, ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'finalizers']),
  spec: {
    ...pick(spec, [
      'restartPolicy',
      'terminationGracePeriodSeconds',
      'activeDeadlineSeconds',
      'hostNetwork',
      'hostPID',
      'hostIPC',
      'hostUsers',
      'priority',
      'runtimeClassName',
      'resources',
    ]),
    initContainers: (spec.initContainers ?? []).map(redactedContainer),
    containers: spec.containers.map(redactedContainer),
    volumes: (spec.volumes ?? []).map(({ name, ...source }) => ({ name, kind: Object.keys(source)[0] })),
  },
  status: {
    ...pick(status ?? {}, ['phase', 'reason', 'startTime', 'qosClass', 'podIPs']),
    conditions: (status?.conditions ?? []).map((c) => pick(c, ['type', 'status', 'reason', 'lastTransitionTime'])),
    initContainerStatuses: (status?.initContainerStatuses ?? []).map(redactedStatus),
    containerStatuses: (status?.containerStatuses ?? []).map(redactedStatus),
  },
});

const redactedContainer = (container: Container): Json => ({
  ...pick(container, ['name', 'image', 'imagePullPolicy', 'resources', 'ports', 'restartPolicy']),
  mounts: (container.volumeMounts ?? []).map((m) => pick(m, ['name', 'mountPath', 'readOnly'])),
  probes: (['startupProbe', 'readinessProbe', 'livenessProbe'] as const).flatMap((kind) => {
    const probe = container[kind];
    const how = (['exec', 'httpGet', 'tcpSocket', 'grpc'] as const).find((h) => probe?.[h] !== undefined);
    return probe === undefined
      ? []
      : [{ kind, how, ...pick(probe, ['periodSeconds', 'timeoutSeconds', 'failureThreshold', 'initialDelaySeconds']) }];
  }),
});

const redactedStatus = (status: ContainerStatus): Json => ({
  ...pick(status, ['name', 'image', 'imageID', 'containerID', 'ready', 'started', 'restartCount']),
  state: redactedState(status.state),
  lastState: redactedState(status.lastState),
});

const redactedState = ({ waiting, running, terminated }: ContainerState): Json => ({
  ...(waiting === undefined ? {} : { waiting: pick(waiting, ['reason']) }),
  ...(running === undefined ? {} : { running }),
  ...(terminated === undefined
    ? {}
    : { terminated: pick(terminated, ['exitCode', 'signal', 'reason', 'startedAt', 'finishedAt']) }),
});

/** Events whose text is the node's own. Others quote what containers wrote, their command lines, or mount options. */
const SAFE_EVENTS = new Set([
  'Scheduled',
  'Pulling',
  'Pulled',
  'PullProgress',
  'Created',
  'Started',
  'Killing',
  'BackOff',
  'FailedCreatePodSandBox',
  'NetworkNotReady',
  'SandboxChanged',
  'Evicted',
  'Preempting',
  'OOMKilling',
  'Starting',
  'NodeReady',
  'NodeNotReady',
  'NodeHasSufficientMemory',
  'NodeHasNoDiskPressure',
  'NodeHasSufficientPID',
  'NodeHasDiskPressure',
  'NodeHasInsufficientMemory',
  'Rebooted',
]);

export const redactedEvent = (event: KubeEvent): Json => ({
  ...pick(event, ['type', 'reason', 'count', 'firstTimestamp', 'lastTimestamp']),
  about: pick(event.involvedObject, ['kind', 'namespace', 'name', 'uid', 'fieldPath']),
  message: SAFE_EVENTS.has(event.reason ?? '') ? event.message : LEFT_OUT,
});

export const redactedWhy = ({ namespace, name, why }: NamedWhy): Json => ({
  namespace,
  name,
  ...pick(why, ['state', 'cause', 'container', 'nextRetryMs']),
});

export const redactedWorkers = ({ workers, calls }: WorkersView): Json => ({
  workers: workers.map((w) =>
    pick(w, ['uid', 'pod', 'phase', 'busy', 'sinceMs', 'waitsFor', 'waitsSinceMs', 'nextMs']),
  ),
  calls,
});

type Waterfall = { readonly spans?: readonly { readonly error?: string }[] };

export const redactedWaterfall = (waterfall: Waterfall): Json => ({
  ...waterfall,
  spans: (waterfall.spans ?? []).map((span) => (span.error === undefined ? span : { ...span, error: LEFT_OUT })),
});
