// A namespace on a test node and the few words the tests speak: create, wait, read, delete, look inside.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../../src/core/meta.ts';
import type { KubeEvent } from '../../src/core/node.ts';
import type {
  Container,
  ContainerStatus,
  EnvVar,
  Pod,
  PodCondition,
  PodPhase,
  PodSpec,
  Volume,
} from '../../src/core/pod.ts';
import type { DeleteOptions } from '../../src/kube/client.ts';
import { CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICE_ACCOUNTS, type Resource } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { untilSeen } from '../harness/until.ts';

export const never = new AbortController().signal;
export const NAMESPACES: Resource<KubeObject> = { base: '/api/v1', plural: 'namespaces' };

/** How many tests of a suite go on at the same time: more only wait for each other. */
export const AT_ONCE = 5;

/** Ends at once when asked to. */
export const SERVE = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'];
export const shell = (script: string): readonly string[] => ['sh', '-c', script];

export const container = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'IfNotPresent',
  command: SERVE,
  ...more,
});

/** A variable with a fact about the pod. */
export const fieldEnv = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
/** A directory of the pod's own, and where it is mounted. */
export const EMPTY: readonly Volume[] = [{ name: 'work', emptyDir: {} }];
export const WORK = { name: 'work', mountPath: '/scratch' };

export const conditionOf = (pod: Pod, type: string): PodCondition | undefined =>
  pod.status?.conditions?.find((c) => c.type === type);
export const isTrue = (pod: Pod, type: string): boolean => conditionOf(pod, type)?.status === 'True';
export const statusOf = (pod: Pod, name: string): ContainerStatus | undefined =>
  [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])].find((c) => c.name === name);

export class Scene {
  readonly node: TestNode;
  readonly namespace: string;

  private constructor(node: TestNode, namespace: string) {
    this.node = node;
    this.namespace = namespace;
  }

  /** Makes the namespace, with what controllers put into one. */
  static async open(node: TestNode, namespace: string): Promise<Scene> {
    const scene = new Scene(node, namespace);
    await ensure(node, NAMESPACES, undefined, { metadata: { name: namespace } });
    await ensure(node, SERVICE_ACCOUNTS, namespace, { metadata: { name: 'default', namespace } });
    const data = { 'ca.crt': node.api.caPem };
    await ensure(node, CONFIG_MAPS, namespace, { metadata: { name: 'kube-root-ca.crt', namespace }, data });
    return scene;
  }

  /** Creates a pod on the node: bound already, no token, a short grace period, unless told otherwise. */
  pod(name: string, spec: Partial<PodSpec>, metadata: Partial<Pod['metadata']> = {}, bound = true): Promise<Pod> {
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: this.namespace, ...metadata },
      spec: {
        ...(bound ? { nodeName: NODE_NAME } : {}),
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 5,
        containers: [container('main')],
        ...spec,
      },
    };
    return this.node.client.create(PODS, { namespace: this.namespace }, body, never);
  }

  create<T>(resource: Resource<T>, name: string, body: object): Promise<T> {
    const whole = { metadata: { name, namespace: this.namespace }, ...body };
    return this.node.client.create(resource, { namespace: this.namespace }, whole, never);
  }

  secret(name: string, data: Readonly<Record<string, string>>, more: object = {}): Promise<unknown> {
    return this.create(SECRETS, name, { stringData: data, ...more });
  }

  configMap(name: string, data: Readonly<Record<string, string>>, more: object = {}): Promise<unknown> {
    return this.create(CONFIG_MAPS, name, { data, ...more });
  }

  patch<T>(resource: Resource<T>, name: string, body: object, subresource?: string): Promise<T> {
    const where = { namespace: this.namespace, name, ...(subresource === undefined ? {} : { subresource }) };
    return this.node.client.patch(resource, where, body, never);
  }

  read(name: string): Promise<Pod> {
    return this.node.client.get(PODS, { namespace: this.namespace, name }, never);
  }

  async until(name: string, what: string, check: (pod: Pod) => boolean, timeoutMs?: number): Promise<Pod> {
    return untilSeen(`${name} ${what}`, () => this.read(name), check, timeoutMs);
  }

  ready(name: string, timeoutMs?: number): Promise<Pod> {
    return this.until(name, 'is ready', (pod) => isTrue(pod, 'Ready'), timeoutMs);
  }

  phase(name: string, phase: PodPhase, timeoutMs?: number): Promise<Pod> {
    return this.until(name, `is ${phase}`, (pod) => pod.status?.phase === phase, timeoutMs);
  }

  delete(name: string, options: DeleteOptions = {}): Promise<void> {
    return this.node.client.delete(PODS, { namespace: this.namespace, name }, options, never);
  }

  async gone(name: string, timeoutMs?: number): Promise<void> {
    await untilSeen(
      `${name} is gone`,
      () => this.shown(name),
      (pod) => pod === undefined,
      timeoutMs,
    );
  }

  async isGone(name: string): Promise<boolean> {
    return (await this.shown(name)) === undefined;
  }

  /** Undefined when there is none. */
  async shown(name: string): Promise<Pod | undefined> {
    try {
      return await this.read(name);
    } catch (err) {
      if (isFault(err, 'notFound')) return undefined;
      throw err;
    }
  }

  async events(uid: string): Promise<readonly KubeEvent[]> {
    const query = { fieldSelector: `involvedObject.uid=${uid}` };
    return (await this.node.client.list(EVENTS, { namespace: this.namespace, query }, never)).items;
  }

  async event(pod: Pod, reason: string, check: (event: KubeEvent) => boolean = () => true): Promise<KubeEvent> {
    const isWanted = (e: KubeEvent): boolean => e.reason === reason && check(e);
    const events = await untilSeen(
      `${pod.metadata.name} has an event ${reason}`,
      () => this.events(pod.metadata.uid ?? ''),
      (seen) => seen.some(isWanted),
    );
    return events.find(isWanted) as KubeEvent;
  }

  /** The grace periods with which containers of the pod are stopped from now on. */
  stopsOf(pod: Pod): readonly number[] {
    const ids = new Set((pod.status?.containerStatuses ?? []).map((c) => c.containerID?.replace(/^.*\/\//, '')));
    const stops: number[] = [];
    const before = this.node.cri.observe;
    this.node.cri.observe = (call) => {
      before?.(call);
      const { containerId, timeout } = call.request as { containerId?: string; timeout?: number };
      if (call.call === 'StopContainer' && ids.has(containerId)) stops.push(Number(timeout));
    };
    return stops;
  }

  /** What a container wrote, without the stamps. */
  async output(pod: Pod, name = 'main', attempt = 0): Promise<string> {
    const folder = `${this.namespace}_${pod.metadata.name}_${pod.metadata.uid ?? ''}`;
    const text = await readFile(join(this.node.dir, 'pod-logs', folder, name, `${attempt}.log`), 'utf8');
    return text.replace(/^\S+ std(?:out|err) (?:F |P (.*)\n)/gm, '$1');
  }

  /** A file of one of the pod's volumes, on the host. */
  volumeFile(pod: Pod, plugin: string, path: string): string {
    return join(this.node.dir, 'kubelet', 'pods', pod.metadata.uid ?? '', 'volumes', `kubernetes.io~${plugin}`, path);
  }

  /** Runs a command in the pod's container, behind the kubelet's back. */
  async exec(pod: Pod, script: string, name = 'main'): Promise<string> {
    const containerId = (statusOf(pod, name)?.containerID ?? '').replace(/^.*\/\//, '');
    const cmd = ['sh', '-c', script];
    const { stdout, stderr, exitCode } = await this.node.containerd.runtime.execSync(
      { containerId, cmd, timeout: 10 },
      never,
    );
    assert.equal(exitCode, 0, `${script}: ${Buffer.from(stderr).toString()}`);
    return Buffer.from(stdout).toString();
  }
}

async function ensure(
  node: TestNode,
  resource: Resource<unknown>,
  namespace: string | undefined,
  body: object,
): Promise<void> {
  try {
    await node.client.create(resource, namespace === undefined ? {} : { namespace }, body, never);
  } catch (err) {
    if (!isFault(err, 'exists', 'conflict')) throw err;
  }
}
