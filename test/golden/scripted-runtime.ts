// A container runtime in memory that does what a script says: which containers end and how, which starts fail. It keeps
// every changing call, and shows its state as the snapshots that the planner reads.
import { ContainerState, PodSandboxState } from '../../src/cri/gen/cri.ts';
import type { CriRuntime } from '../../src/cri/services.ts';
import { containerId, podUid, sandboxId } from '../../src/core/ids.ts';
import { observedContainer } from '../../src/core/snapshot.fixture.ts';
import type { ObservedContainer, ObservedMount, ObservedSandbox, PodSnapshot } from '../../src/core/snapshot.ts';
import type { ManualClock } from '../../src/lib/manual-clock.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';

export type RuntimeScript = {
  readonly podIp: string;
  /** Exit codes of containers that end by themselves, right after their start. */
  readonly exits?: Readonly<Record<string, number>>;
  /** Text of the failure of StartContainer, by container name. */
  readonly startErrors?: Readonly<Record<string, string>>;
  /** Exit codes of hook commands, by their joined text. */
  readonly execExits?: Readonly<Record<string, number>>;
  /** How long hook commands take, by their joined text. */
  readonly execMs?: Readonly<Record<string, number>>;
};

const STATES: Readonly<Record<ObservedContainer['state'], ContainerState>> = {
  created: ContainerState.CONTAINER_CREATED,
  running: ContainerState.CONTAINER_RUNNING,
  exited: ContainerState.CONTAINER_EXITED,
  unknown: ContainerState.CONTAINER_UNKNOWN,
};

export type SeenCall = { readonly call: string; readonly request: Record<string, unknown> };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export class ScriptedRuntime {
  readonly calls: SeenCall[] = [];
  readonly #script: RuntimeScript;
  readonly #clock: ManualClock;
  readonly #sandboxes: Writable<ObservedSandbox>[] = [];
  readonly #containers: Writable<ObservedContainer>[] = [];
  #version = 0;
  #sandboxStopsAtStart = false;

  constructor(script: RuntimeScript, clock: ManualClock) {
    this.#script = script;
    this.#clock = clock;
  }

  /** Only what src/runtime calls. */
  get cri(): CriRuntime {
    const verbs: Record<string, (request: never) => unknown> = {
      runPodSandbox: (r) => this.#runPodSandbox(r),
      podSandboxStatus: (r: { podSandboxId: string }) => {
        const found = this.#sandboxes.find((s) => s.id === r.podSandboxId);
        const state = found?.ready === false ? PodSandboxState.SANDBOX_NOTREADY : PodSandboxState.SANDBOX_READY;
        return { status: { state, network: { ip: found?.ips[0] ?? '', additionalIps: [] } } };
      },
      containerStatus: (r: { containerId: string }) => {
        const found = this.#containers.find((c) => c.id === r.containerId);
        if (found === undefined) throw new GrpcError(GrpcCode.NotFound, 'no such container');
        return { status: { state: STATES[found.state] } };
      },
      createContainer: (r) => this.#createContainer(r),
      startContainer: (r) => this.#startContainer(r),
      stopContainer: (r) => this.#end(r, 'StopContainer'),
      stopPodSandbox: (r: { podSandboxId: string }) => {
        this.#note('StopPodSandbox', r);
        for (const s of this.#sandboxes) if (s.id === r.podSandboxId) s.ready = false;
        return {};
      },
      removeContainer: (r: { containerId: string }) => {
        this.#containers.splice(
          this.#containers.findIndex((c) => c.id === r.containerId),
          1,
        );
        return {};
      },
      execSync: (r) => this.#execSync(r),
      updateContainerResources: (r: Record<string, unknown>) => this.#note('UpdateContainerResources', r),
      updatePodSandboxResources: (r: Record<string, unknown>) => {
        this.#note('UpdatePodSandboxResources', r);
        throw new GrpcError(GrpcCode.Unimplemented, 'unknown method UpdatePodSandboxResources');
      },
    };
    const calls = Object.entries(verbs).map(([verb, act]) => [verb, async (r: never) => act(r)] as const);
    return Object.fromEntries(calls) as unknown as CriRuntime;
  }

  snapshot(uid: string, name: string, namespace: string): PodSnapshot {
    const newestFirst = <T>(items: readonly T[]): T[] => items.map((item) => ({ ...item })).reverse();
    const sandboxes = newestFirst(this.#sandboxes);
    return {
      uid: podUid(uid),
      name,
      namespace,
      sandboxes,
      containers: newestFirst(this.#containers),
      ips: sandboxes[0]?.ips ?? [],
      version: ++this.#version,
    };
  }

  startsOf(name: string): number {
    return this.#containers.filter((c) => c.name === name).length;
  }

  /** A container ends by itself. */
  exit(name: string, exitCode: number): void {
    for (const c of this.#containers)
      if (c.name === name && c.state === 'running')
        Object.assign(c, { state: 'exited', exitCode, finishedAt: this.#clock.nowNanos() });
  }

  /** Somebody else stops the sandbox while a container is being started in it; says whether that has happened. */
  stopSandboxDuringNextStart(): () => boolean {
    this.#sandboxStopsAtStart = true;
    return () => !this.#sandboxStopsAtStart;
  }

  #note(call: string, request: Record<string, unknown>): Record<string, never> {
    this.calls.push({ call, request });
    return {};
  }

  #runPodSandbox(r: { config: { metadata: { attempt: number }; linux: never } } & Record<string, unknown>): unknown {
    this.#note('RunPodSandbox', r);
    const linux = r.config.linux as { securityContext: { namespaceOptions: { network: number } } };
    const hostNetwork = linux.securityContext.namespaceOptions.network === 2;
    const id = sandboxId(`sandbox-${this.#sandboxes.length + 1}`);
    this.#sandboxes.push({
      id,
      attempt: r.config.metadata.attempt,
      ready: true,
      createdAt: this.#clock.nowNanos(),
      hostNetwork,
      ips: hostNetwork ? [] : [this.#script.podIp],
      runtimeHandler: '',
    });
    return { podSandboxId: id };
  }

  #createContainer(r: Record<string, unknown>): unknown {
    this.#note('CreateContainer', r);
    const config = r['config'] as {
      metadata: { name: string; attempt: number };
      labels: Record<string, string>;
      annotations: Record<string, string>;
      mounts?: readonly ObservedMount[];
    };
    const id = containerId(`container-${this.#containers.length + 1}`);
    this.#containers.push(
      observedContainer(config.metadata.name, {
        id,
        sandboxId: sandboxId(String(r['podSandboxId'])),
        attempt: config.metadata.attempt,
        state: 'created',
        createdAt: this.#clock.nowNanos(),
        labels: config.labels,
        annotations: config.annotations,
        mounts: config.mounts ?? [],
      }),
    );
    return { containerId: id };
  }

  #startContainer(r: { containerId: string }): unknown {
    this.#note('StartContainer', r);
    const found = this.#containers.find((c) => c.id === r.containerId);
    if (found === undefined) throw new GrpcError(GrpcCode.NotFound, 'no such container');
    const exit = this.#script.exits?.[found.name];
    const failure = this.#sandboxStopsAtStart ? 'sandbox is not running' : this.#script.startErrors?.[found.name];
    if (this.#sandboxStopsAtStart) for (const sandbox of this.#sandboxes) sandbox.ready = false;
    this.#sandboxStopsAtStart = false;
    found.startedAt = this.#clock.nowNanos();
    found.state = exit === undefined && failure === undefined ? 'running' : 'exited';
    if (found.state === 'exited') {
      found.exitCode = exit ?? 128;
      found.finishedAt = this.#clock.nowNanos();
    }
    if (failure !== undefined) throw new GrpcError(GrpcCode.Unknown, failure);
    return {};
  }

  #end(r: { containerId: string }, call: string): unknown {
    this.#note(call, r);
    for (const c of this.#containers) {
      if (c.id !== r.containerId || c.state !== 'running') continue;
      c.state = 'exited';
      c.exitCode = 137;
      c.finishedAt = this.#clock.nowNanos();
    }
    return {};
  }

  async #execSync(r: { cmd: readonly string[] } & Record<string, unknown>): Promise<unknown> {
    this.#note('ExecSync', r);
    const text = r.cmd.join(' ');
    const ms = this.#script.execMs?.[text];
    if (ms !== undefined) await this.#clock.sleep(ms, new AbortController().signal);
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: this.#script.execExits?.[text] ?? 0 };
  }
}
