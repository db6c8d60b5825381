// A whole node for the server's tests: one pod, the ports, and credentials of every kind.
import type { KubeObject } from '../../../src/core/meta.ts';
import type { Pod } from '../../../src/core/pod.ts';
import { PODS, type Resource } from '../../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../../harness/containerd.ts';
import { startNode, type NodeOptions, type TestNode } from '../../harness/node.ts';
import { until, untilSeen } from '../../harness/until.ts';
import { send, type Credential, type Target } from './http-client.ts';
import { freePort } from '../../harness/ports.ts';

const never = new AbortController().signal;
export const NAMESPACE = 'golden';

export type ServerNode = {
  readonly node: TestNode;
  readonly main: Target;
  readonly readOnly: Target;
  readonly health: Target;
  readonly admin: Credential;
  stop(): Promise<void>;
};

export async function startServerNode(options: NodeOptions = {}): Promise<ServerNode> {
  const readOnlyPort = await freePort();
  const node = await startNode({ ...options, config: `readOnlyPort: ${readOnlyPort}\n${options.config ?? ''}` });
  const hour = 3_600_000;
  const pem = node.api.issueClient('kubernetes-admin', ['system:masters'], {
    notBeforeMs: Date.now() - hour,
    notAfterMs: Date.now() + hour,
  });
  const admin = { cert: pem, key: pem };
  const host = await until('the main port is open', async () => {
    const log = await node.log();
    return log.includes('"listening" listener="server"') && addressOf(log);
  });
  const main = { host, port: node.port, tls: true, as: admin };
  await untilSeen(
    'the main port answers',
    async () => (await send(main, 'GET', '/nosuch')).status,
    (seen) => seen === 404,
  );
  return {
    node,
    admin,
    main,
    readOnly: { host, port: readOnlyPort, tls: false },
    health: { host, port: node.healthzPort, tls: false },
    async stop() {
      await removePods(node);
      await node.stop();
    },
  };
}

/** Where the server says it listens. */
const addressOf = (log: string): string =>
  /"listening" listener="server" address="([^"]+)"/.exec(log)?.[1] ?? '127.0.0.1';

/** Volumes of pods that were never taken down would stay mounted. */
async function removePods(node: TestNode): Promise<void> {
  const pods = (await node.client.list(PODS, {}, never)).items;
  await Promise.all(
    pods.map((pod) =>
      node.client.delete(PODS, { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, {}, never),
    ),
  );
  await untilSeen(
    'all pods are gone',
    async () => (await node.client.list(PODS, {}, never)).items,
    (seen) => seen.length === 0,
  );
}

export async function createNamespace(node: TestNode): Promise<void> {
  const namespaces = { base: '/api/v1', plural: 'namespaces' } as Resource<KubeObject>;
  await node.client.create(
    namespaces,
    {},
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } } as KubeObject,
    never,
  );
}

export const LOOP = 'echo started; trap "exit 0" TERM; while :; do sleep 1; done';

export async function startPod(node: TestNode, name: string, script = LOOP, more: object = {}): Promise<Pod> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName: 'n1',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [
        { name: 'web', image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script], ...more },
      ],
    },
  } as unknown as Pod;
  await node.client.create(PODS, { namespace: NAMESPACE }, pod, never);
  return until(`pod ${name} runs`, async () => {
    const seen = await node.client.get(PODS, { namespace: NAMESPACE, name }, never);
    return seen.status?.phase === 'Running' && seen;
  });
}
