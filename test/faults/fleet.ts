// A fleet of pods on a test node and what must hold for them whatever happens: each wanted one runs exactly once, what
// ran goes on, readiness does not flap, and nothing of an unwanted one is left.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Node } from '../../src/core/node.ts';
import type { Pod, PodSpec, PodStatus } from '../../src/core/pod.ts';
import { ContainerState, PodSandboxState } from '../../src/cri/gen/cri.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { NODES, PODS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { container } from '../cluster/scene.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import type { ObservedCall } from './cri-proxy.ts';

const never = new AbortController().signal;
const NAMESPACE = 'default';
const LABEL = 'io.kubernetes.';

/** Small and reproducible: a failure prints its seed. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

const probe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 5 };

/** The kinds of pods worth having in a fleet. `steady`: its containers only ever end because somebody ended them. */
export const KINDS: Readonly<Record<string, { readonly steady: boolean; readonly spec: PodSpec }>> = {
  plain: { steady: true, spec: { containers: [container('main')] } },
  two: {
    steady: true,
    spec: {
      volumes: [{ name: 'work', emptyDir: {} }],
      containers: [container('a', { volumeMounts: [{ name: 'work', mountPath: '/work' }] }), container('b')],
    },
  },
  ready: { steady: true, spec: { containers: [container('main', { readinessProbe: probe, startupProbe: probe })] } },
  sidecar: {
    steady: true,
    spec: {
      initContainers: [
        container('prepare', { command: ['true'] }),
        container('side', { restartPolicy: 'Always', readinessProbe: probe }),
      ],
      containers: [container('main')],
    },
  },
  crash: { steady: false, spec: { containers: [container('main', { command: ['sh', '-c', 'sleep 0.3; exit 3'] })] } },
};

type Member = {
  readonly name: string;
  readonly kind: string;
  readonly isStatic: boolean;
  wanted: boolean;
  uid?: string;
};

/** A container of the runtime starts only once, so its id says that it is the same run. */
export type RunningContainer = { readonly id: string; readonly key: string };

export class Fleet {
  readonly members = new Map<string, Member>();
  /** Every time the API server showed a wanted steady pod going from ready to not ready. */
  readonly flaps: string[] = [];
  /** Every time the node was seen not ready. */
  readonly nodeFlaps: string[] = [];
  /** Every time a restart count became smaller. */
  readonly backwards: string[] = [];
  /** Static pods made anew with the same content: the same UID begins to count again. */
  readonly remade = new Set<string>();
  readonly #node: TestNode;
  readonly #stop = new AbortController();
  #nodeWasReady = false;
  readonly #restarts = new Map<string, number>();
  readonly #ready = new Map<string, boolean>();
  /** Steady pods that somebody troubled: going unready is right for them. */
  readonly excused = new Set<string>();
  readonly #pods: Reflector<Pod>;
  readonly #nodes: Reflector<Node>;

  constructor(node: TestNode) {
    this.#node = node;
    const deps = { client: node.client, clock: systemClock, log: silentLogger };
    this.#pods = new Reflector<Pod>(deps, { name: 'fleet', resource: PODS, namespace: NAMESPACE, scout: true });
    this.#pods.subscribe((changes) => {
      for (const { after } of changes) if (after !== undefined) this.#seen(after);
    });
    this.#nodes = new Reflector<Node>(deps, { name: 'fleet-node', resource: NODES, scout: true });
    this.#nodes.subscribe((changes) => {
      for (const { after } of changes) if (after !== undefined) this.#nodeSeen(after);
    });
  }

  start(): void {
    const keep = process.env['FAULT_LOG'];
    if (keep !== undefined) {
      writeFileSync(`${keep}.cri`, '');
      this.#node.cri.observe = (call) => appendFileSync(`${keep}.cri`, lineOf(call));
    }
    void this.#pods.run(this.#stop.signal);
    void this.#nodes.run(this.#stop.signal);
  }

  /** `FAULT_LOG` names where the logs of kubelet and runtime and the CRI calls go for a closer look. */
  stop(): void {
    this.#stop.abort();
    const keep = process.env['FAULT_LOG'];
    if (keep === undefined) return;
    copyFileSync(join(this.#node.dir, 'kubelet.log'), keep);
    copyFileSync(this.#node.containerd.logFile, `${keep}.runtime`);
  }

  #nodeSeen(node: Node): void {
    const ready = node.status?.conditions?.find((c) => c.type === 'Ready');
    if (ready?.status === 'True') this.#nodeWasReady = true;
    else if (this.#nodeWasReady) this.nodeFlaps.push(`${ready?.status}: ${ready?.message}`);
  }

  #seen(pod: Pod): void {
    const name = pod.metadata.name.replace(new RegExp(`-${NODE_NAME}$`), '');
    const member = this.members.get(name);
    const uid = pod.metadata.uid ?? '';
    for (const { name: c, restartCount } of pod.status?.containerStatuses ?? []) {
      const key = `${uid} ${c}`;
      if (member !== undefined && !this.remade.has(name) && restartCount < (this.#restarts.get(key) ?? 0))
        this.backwards.push(`${name}/${c}: ${briefly(pod)}`);
      this.#restarts.set(key, restartCount);
    }
    const ready = isReady(pod);
    const was = this.#ready.get(uid);
    this.#ready.set(uid, ready);
    if (member === undefined || !member.wanted || pod.metadata.deletionTimestamp !== undefined) return;
    // A static pod that is made anew ends before it begins, and its mirror shows both.
    const mayEnd = this.excused.has(name) || this.remade.has(name);
    if (was === true && !ready && KINDS[member.kind]?.steady === true && !mayEnd)
      this.flaps.push(`${name}: ${briefly(pod)}`);
  }

  manifestOf(name: string): string {
    return join(this.#node.manifests, `${name}.json`);
  }

  async create(name: string, kind: string, isStatic: boolean): Promise<void> {
    const spec = KINDS[kind]?.spec;
    assert.ok(spec !== undefined, kind);
    const pod = podOf(name, spec, isStatic);
    if (this.members.has(name)) this.remade.add(name);
    this.members.set(name, { name, kind, isStatic, wanted: true });
    if (isStatic) {
      writeFileSync(`${this.manifestOf(name)}.tmp`, JSON.stringify(pod));
      renameSync(`${this.manifestOf(name)}.tmp`, this.manifestOf(name));
      return;
    }
    const made = await this.#node.client.create(PODS, { namespace: NAMESPACE }, pod, never);
    const member = this.members.get(name);
    if (member !== undefined) member.uid = made.metadata.uid ?? '';
  }

  /** Creates a plain pod and says how long it took until it was ready. */
  async readyMs(name: string): Promise<number> {
    const begun = performance.now();
    await this.create(name, 'plain', false);
    await untilSeen(
      `${name} is ready`,
      () => this.shown(name),
      (pod) => pod !== undefined && isReady(pod),
    );
    return Math.round(performance.now() - begun);
  }

  async remove(name: string): Promise<void> {
    const member = this.members.get(name);
    assert.ok(member !== undefined, name);
    member.wanted = false;
    if (member.isStatic) rmSync(this.manifestOf(name));
    else await this.#node.client.delete(PODS, { namespace: NAMESPACE, name }, {}, never);
  }

  wanted(): Member[] {
    return [...this.members.values()].filter((m) => m.wanted);
  }

  steady(): Member[] {
    return this.wanted().filter((m) => KINDS[m.kind]?.steady === true);
  }

  /** As the API server shows it; a static pod's mirror. */
  async shown(name: string): Promise<Pod | undefined> {
    try {
      return await this.#node.client.get(PODS, { namespace: NAMESPACE, name: this.#shownName(name) }, never);
    } catch (err) {
      if (isFault(err, 'notFound')) return undefined;
      throw err;
    }
  }

  /** What the runtime runs, by `pod/container`, asked behind the kubelet's back. */
  async running(): Promise<Map<string, RunningContainer[]>> {
    const { containers } = await this.#node.containerd.runtime.listContainers({}, never);
    const found = new Map<string, RunningContainer[]>();
    for (const c of containers) {
      if (c.state !== ContainerState.CONTAINER_RUNNING) continue;
      const key = `${plainName(c.labels)}/${c.labels[`${LABEL}container.name`]}`;
      found.set(key, [...(found.get(key) ?? []), { id: c.id, key }]);
    }
    return found;
  }

  /** What runs of the steady pods and does not end by itself. */
  async steadyContainers(except: ReadonlySet<string> = new Set()): Promise<RunningContainer[]> {
    const kept = this.steady()
      .filter((m) => !except.has(m.name))
      .flatMap((m) => keptRunning(KINDS[m.kind]?.spec).map((c) => `${m.name}/${c}`));
    const running = await this.running();
    return kept.flatMap((key) => running.get(key) ?? []);
  }

  /** Everything in `before` still runs: the same containers, not others of their names. */
  async assertWentOn(before: readonly RunningContainer[], why: string): Promise<void> {
    const now = await this.running();
    for (const c of before) assert.deepEqual(now.get(c.key), [c], `${c.key} did not go on ${why}`);
  }

  /** Restart counts of all steady pods, static ones too, by `pod/container`, as the API server shows them. */
  restartCounts(except: ReadonlySet<string> = new Set()): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name } of this.steady()) {
      if (except.has(name)) continue;
      for (const c of statusesOf(this.#pods.store.byName(NAMESPACE, this.#shownName(name))))
        counts.set(`${name}/${c.name}`, c.restartCount);
    }
    return counts;
  }

  /** Nothing runs twice: one ready sandbox per pod name, one running container per name, no attempt used twice. */
  async assertNothingTwice(): Promise<void> {
    const { runtime } = this.#node.containerd;
    const { items } = await runtime.listPodSandbox({}, never);
    const { containers } = await runtime.listContainers({}, never);
    const ready = items.filter((s) => s.state === PodSandboxState.SANDBOX_READY).map((s) => plainName(s.labels));
    assert.deepEqual(repeated(ready), [], 'two ready sandboxes');
    const of = (c: (typeof containers)[number]): string => `${c.labels[`${LABEL}pod.uid`]}/${c.metadata?.name}`;
    const alive = containers.filter((c) => c.state === ContainerState.CONTAINER_RUNNING);
    assert.deepEqual(repeated(alive.map(of)), [], 'two running containers of one name');
    assert.deepEqual(repeated(containers.map((c) => `${of(c)}/${c.metadata?.attempt}`)), [], 'an attempt used twice');
  }

  #shownName(name: string): string {
    return this.members.get(name)?.isStatic === true ? `${name}-${NODE_NAME}` : name;
  }

  /**
   * Every wanted steady pod runs and is shown ready; of every unwanted one nothing runs and nothing is shown. What the
   * watch knows is looked at first; only when that fits are API server and runtime asked.
   */
  async converged(): Promise<true | string> {
    const watched = this.#asShown((name) => this.#pods.store.byName(NAMESPACE, name));
    if (watched !== true) return watched;
    const { items } = await this.#node.client.list(PODS, { namespace: NAMESPACE }, never);
    const listed = new Map(items.map((pod) => [pod.metadata.name, pod]));
    const shown = this.#asShown((name) => listed.get(name));
    return shown === true ? this.#asRunning(await this.running(), listed) : shown;
  }

  #asShown(find: (name: string) => Pod | undefined): true | string {
    for (const { name, kind, wanted, isStatic, uid } of this.members.values()) {
      const pod = find(this.#shownName(name));
      if (!wanted) {
        if (pod !== undefined) return `${name} is still shown: ${pod.status?.phase}`;
        continue;
      }
      if (pod === undefined || (!isStatic && pod.metadata.uid !== uid)) return `${name} is not shown`;
      if (KINDS[kind]?.steady !== true) {
        if (pod.status?.phase !== 'Running') return `${name} is ${pod.status?.phase}`;
      } else if (!isReady(pod)) return `${name} is not ready: ${briefly(pod)}`;
    }
    return true;
  }

  #asRunning(running: ReadonlyMap<string, RunningContainer[]>, listed: ReadonlyMap<string, Pod>): true | string {
    const pods = new Set([...running.keys()].map((key) => key.split('/')[0] ?? ''));
    for (const { name, kind, wanted } of this.members.values()) {
      if (!wanted && pods.has(name)) return `${name} still runs`;
      if (!wanted || KINDS[kind]?.steady !== true) continue;
      const shown = statusesOf(listed.get(this.#shownName(name)));
      for (const c of keptRunning(KINDS[kind]?.spec)) {
        const found = running.get(`${name}/${c}`) ?? [];
        if (found.length !== 1) return `${name}/${c} runs ${found.length} times`;
        const id = shown.find((s) => s.name === c)?.containerID ?? '';
        if (id.split('//')[1] !== found[0]?.id) return `${name}/${c} is shown as ${id}, runs as ${found[0]?.id}`;
      }
    }
    return true;
  }

  async assertAlive(): Promise<void> {
    if (this.#node.kubelet.crashed)
      assert.fail(`the kubelet ended by itself: ${(await this.#node.log()).slice(-3000)}`);
  }

  /** Resolves to what was waited for longest. */
  async untilConverged(why: string, timeoutMs?: number): Promise<string> {
    let last = 'nothing';
    await until(
      `the fleet is as wanted ${why}`,
      async () => {
        if (this.#node.kubelet.crashed) return true;
        const answer = await this.converged();
        if (answer === true) return true;
        last = answer;
        throw new Error(answer);
      },
      timeoutMs,
    );
    await this.assertAlive();
    return last;
  }

  /** containerd cannot remove a container whose start was cut off at one certain moment; it can when it was restarted. */
  async #isStuck(containerId: string): Promise<boolean> {
    const { status } = await this.#node.containerd.runtime.containerStatus({ containerId }, never);
    return status?.reason === 'StartError' && status.message.includes('failed to get task pid: context canceled');
  }

  /** After all pods are gone: no sandbox, container, pod directory, mount or cgroup of any of them. */
  async leftovers(): Promise<string[]> {
    const { runtime } = this.#node.containerd;
    const { items } = await runtime.listPodSandbox({}, never);
    const { containers: listed } = await runtime.listContainers({}, never);
    const containers = [];
    for (const c of listed) if (!(await this.#isStuck(c.id))) containers.push(c);
    const pods = join(this.#node.dir, 'kubelet', 'pods');
    // The root directory itself is a mount where that of the machine is private.
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((path) => path.startsWith(`${this.#node.dir}/`) && path !== join(this.#node.dir, 'kubelet'));
    return [
      ...items.filter((s) => s.state === PodSandboxState.SANDBOX_READY).map((s) => `sandbox ${s.id}`),
      ...containers.map((c) => `container ${plainName(c.labels)}/${c.metadata?.name}`),
      ...(existsSync(pods) ? readdirSync(pods) : []).map((d) => `directory ${d}`),
      ...mounts.map((m) => `mount ${m}`),
      ...podCgroups(this.#node.cgroupRoot).map((c) => `cgroup ${c}`),
    ];
  }
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

function lineOf({ call, tookMs, request, error }: ObservedCall): string {
  const at = new Date(Date.now() - tookMs).toISOString().slice(11, 23);
  const r = request as { config?: { metadata?: unknown }; containerId?: string; podSandboxId?: string };
  const about = [r.podSandboxId, r.containerId, JSON.stringify(r.config?.metadata)].filter((x) => x !== undefined);
  return `${at} +${Math.round(tookMs)} ${call} ${about.join(' ')} ${error ?? ''}\n`;
}

const briefly = ({ status, metadata }: Pod): string =>
  [
    metadata.resourceVersion,
    status?.phase,
    ...statusesOf({ status }).map(
      (c) =>
        `${c.name}=${Object.keys(c.state).join()}${c.started === true ? ',started' : ''}${c.ready ? ',ready' : ''}`,
    ),
  ].join(' ');

const statusesOf = (pod: { readonly status?: PodStatus | undefined } | undefined) => [
  ...(pod?.status?.initContainerStatuses ?? []),
  ...(pod?.status?.containerStatuses ?? []),
];

const keptRunning = (spec: PodSpec | undefined): string[] => [
  ...(spec?.initContainers ?? []).filter((c) => c.restartPolicy === 'Always').map((c) => c.name),
  ...(spec?.containers ?? []).map((c) => c.name),
];

/** The fleet's name of a pod: static ones carry the node's name behind it. */
const plainName = (labels: Readonly<Record<string, string>>): string =>
  (labels[`${LABEL}pod.name`] ?? '').replace(new RegExp(`-${NODE_NAME}$`), '');

function repeated(keys: readonly string[]): string[] {
  const seen = new Set<string>();
  return keys.filter((key) => seen.has(key) || (seen.add(key), false));
}

export function podOf(name: string, spec: PodSpec, isStatic = false): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      terminationGracePeriodSeconds: 2,
      ...(isStatic ? {} : { nodeName: NODE_NAME, automountServiceAccountToken: false }),
      ...spec,
    },
  };
}

function podCgroups(root: string): string[] {
  const found = new Set<string>();
  for (const controller of readdirSync('/sys/fs/cgroup')) {
    const base = join('/sys/fs/cgroup', controller, root);
    if (!existsSync(base)) continue;
    for (const entry of readdirSync(base, { recursive: true, withFileTypes: true }))
      if (entry.isDirectory() && /pod[0-9a-f-]{32,36}$/.test(entry.name)) found.add(`${controller} ${entry.name}`);
  }
  return [...found];
}
