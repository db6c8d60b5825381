// Labels and annotations on sandboxes and containers. They carry what must survive a restart of the agent.
import { namespaceOf, type Container, type ContainerPort, type LifecycleHandler, type Pod } from '../core/pod.ts';
import { goJson } from '../core/go-json.ts';
import { CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import { containerHash } from './container-hash.ts';

export const HASH = 'io.kubernetes.container.hash';
const RESTART_COUNT = 'io.kubernetes.container.restartCount';
const TERMINATION_MESSAGE_PATH = 'io.kubernetes.container.terminationMessagePath';
const TERMINATION_MESSAGE_POLICY = 'io.kubernetes.container.terminationMessagePolicy';
const PRE_STOP = 'io.kubernetes.container.preStopHandler';
const PORTS = 'io.kubernetes.container.ports';
const DELETION_GRACE = 'io.kubernetes.pod.deletionGracePeriod';
const TERMINATION_GRACE = 'io.kubernetes.pod.terminationGracePeriod';

export const podLabels = (pod: Pod): Record<string, string> => ({
  [POD_NAME]: pod.metadata.name,
  [POD_NAMESPACE]: namespaceOf(pod),
  [POD_UID]: pod.metadata.uid ?? '',
});

export const containerLabels = (pod: Pod, container: Container): Record<string, string> => ({
  ...podLabels(pod),
  [CONTAINER_NAME]: container.name,
});

/** The keys in the order the API type has them, absent ones left out. */
const portJson = (port: ContainerPort): Record<string, unknown> => ({
  ...(port.name ? { name: port.name } : {}),
  ...(port.hostPort ? { hostPort: port.hostPort } : {}),
  containerPort: port.containerPort,
  ...(port.protocol ? { protocol: port.protocol } : {}),
  ...(port.hostIP ? { hostIP: port.hostIP } : {}),
});

const handlerJson = ({ exec, httpGet, tcpSocket, sleep }: LifecycleHandler): Record<string, unknown> => ({
  ...(exec === undefined ? {} : { exec: exec.command === undefined ? {} : { command: exec.command } }),
  ...(httpGet === undefined
    ? {}
    : {
        httpGet: {
          ...(httpGet.path ? { path: httpGet.path } : {}),
          port: httpGet.port,
          ...(httpGet.host ? { host: httpGet.host } : {}),
          ...(httpGet.scheme ? { scheme: httpGet.scheme } : {}),
          ...(httpGet.httpHeaders ? { httpHeaders: httpGet.httpHeaders } : {}),
        },
      }),
  ...(tcpSocket === undefined
    ? {}
    : { tcpSocket: { port: tcpSocket.port, ...(tcpSocket.host ? { host: tcpSocket.host } : {}) } }),
  ...(sleep === undefined ? {} : { sleep: { seconds: sleep.seconds } }),
});

export function containerAnnotations(pod: Pod, container: Container, restartCount: number): Record<string, string> {
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  const preStop = container.lifecycle?.preStop;
  const ports = container.ports ?? [];
  return {
    [HASH]: containerHash(container),
    [RESTART_COUNT]: String(restartCount),
    [TERMINATION_MESSAGE_PATH]: container.terminationMessagePath ?? '',
    [TERMINATION_MESSAGE_POLICY]: container.terminationMessagePolicy ?? '',
    ...(deletionGracePeriodSeconds === undefined ? {} : { [DELETION_GRACE]: String(deletionGracePeriodSeconds) }),
    ...(terminationGracePeriodSeconds === undefined
      ? {}
      : { [TERMINATION_GRACE]: String(terminationGracePeriodSeconds) }),
    ...(preStop === undefined ? {} : { [PRE_STOP]: goJson(handlerJson(preStop)) }),
    ...(ports.length === 0 ? {} : { [PORTS]: goJson(ports.map(portJson)) }),
  };
}

type Annotated = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

const parsed = <T>(text: string | undefined): T | undefined => {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    // Written by somebody else: as good as absent.
    return undefined;
  }
};

const seconds = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;

/** The container spec as far as stopping it needs one, read back from a container whose pod is no longer known. */
export function restoredContainer(seen: Annotated): Container {
  const preStop = parsed<LifecycleHandler>(seen.annotations[PRE_STOP]);
  const ports = parsed<ContainerPort[]>(seen.annotations[PORTS]);
  return {
    name: seen.name,
    ...(Array.isArray(ports) ? { ports } : {}),
    ...(typeof preStop === 'object' && preStop !== null ? { lifecycle: { preStop } } : {}),
  };
}

/** The pod of such a container. */
export function restoredPod(uid: string, name: string, namespace: string, seen: Annotated | undefined): Pod {
  const deletion = seconds(seen?.annotations[DELETION_GRACE]);
  const termination = seconds(seen?.annotations[TERMINATION_GRACE]);
  return {
    metadata: {
      uid,
      name: seen?.labels[POD_NAME] ?? name,
      namespace: seen?.labels[POD_NAMESPACE] ?? namespace,
      ...(deletion === undefined ? {} : { deletionGracePeriodSeconds: deletion }),
    },
    spec: { containers: [], ...(termination === undefined ? {} : { terminationGracePeriodSeconds: termination }) },
  };
}

export const restartCountOf = (seen: { readonly attempt: number } & Pick<Annotated, 'annotations'>): number =>
  seconds(seen.annotations[RESTART_COUNT]) ?? seen.attempt;
