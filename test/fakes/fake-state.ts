// Sandboxes, containers and images of the fake runtime: plain records and the rules a CRI runtime keeps.
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  ContainerEventType,
  ContainerState,
  NamespaceMode,
  PodSandboxState,
  type ContainerConfig,
  type ContainerEventResponse,
  type ContainerStatus,
  type Image,
  type LinuxContainerResources,
  type PodSandboxConfig,
  type PodSandboxStatus,
} from '../../src/cri/gen/cri.ts';
import { rfc3339Nano } from '../../src/core/time.ts';
import type { Clock, Timer } from '../../src/lib/clock.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';
import { programOf, type Program } from './fake-programs.ts';

export type FakeSandbox = {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly createdAt: bigint;
  readonly ip: string;
  ready: boolean;
};

export type FakeContainer = {
  readonly id: string;
  readonly sandbox: FakeSandbox;
  readonly config: ContainerConfig;
  readonly image: Image;
  readonly createdAt: bigint;
  readonly program: Program | undefined;
  state: ContainerState;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  message: string;
  resources: LinuxContainerResources | undefined;
  timer: Timer | undefined;
  onExit: (() => void)[];
};

export class FakeState {
  readonly clock: Clock;
  readonly sandboxes = new Map<string, FakeSandbox>();
  readonly containers = new Map<string, FakeContainer>();
  readonly images = new Map<string, Image>();
  /** Told every event, as GetContainerEvents sends it. */
  onEvent: (event: ContainerEventResponse) => void = () => undefined;
  #lastIp = 1;
  /** CRI-O hands out again what a name was given to, and prepares a container's program when it creates it. */
  readonly #isCrio: boolean;

  constructor(clock: Clock, ways: 'containerd' | 'cri-o' = 'containerd') {
    this.clock = clock;
    this.#isCrio = ways === 'cri-o';
  }

  addImage(ref: string, more: Partial<Image> = {}): Image {
    const id = more.id ?? `sha256:${randomBytes(32).toString('hex')}`;
    const image: Image = {
      id,
      repoTags: [ref],
      repoDigests: [],
      size: 1_000_000,
      username: '',
      pinned: false,
      ...more,
    };
    this.images.set(id, image);
    return image;
  }

  findImage(name: string): Image | undefined {
    const tagged = /[:@][^/]*$/.test(name) ? name : `${name}:latest`;
    return (
      this.images.get(name) ??
      [...this.images.values()].find((i) => [...i.repoTags, ...i.repoDigests].some((n) => n === name || n === tagged))
    );
  }

  runSandbox(config: PodSandboxConfig, runtimeHandler: string): FakeSandbox {
    const name = sandboxName(config);
    const holder = [...this.sandboxes.values()].find((s) => sandboxName(s.config) === name);
    if (holder !== undefined && this.#isCrio) return holder;
    if (holder !== undefined)
      throw new GrpcError(
        GrpcCode.Unknown,
        `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${holder.id}"`,
      );
    const hostNetwork = config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;
    const sandbox: FakeSandbox = {
      id: newId(),
      config,
      runtimeHandler,
      createdAt: this.clock.nowNanos(),
      ip: hostNetwork ? '' : this.#nextIp(),
      ready: true,
    };
    this.sandboxes.set(sandbox.id, sandbox);
    this.#tell(sandbox.id, sandbox, ContainerEventType.CONTAINER_CREATED_EVENT);
    this.#tell(sandbox.id, sandbox, ContainerEventType.CONTAINER_STARTED_EVENT);
    return sandbox;
  }

  stopContainersOf(id: string): void {
    for (const c of this.containersIn(id)) if (c.state === ContainerState.CONTAINER_RUNNING) this.exit(c.id, 137);
  }

  stopSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    this.stopContainersOf(id);
    if (!sandbox.ready) return;
    sandbox.ready = false;
    this.#tell(id, sandbox, ContainerEventType.CONTAINER_STOPPED_EVENT);
  }

  removeSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    this.stopSandbox(id);
    // CRI-O does not tell of the end of a sandbox, nor of what goes with it.
    for (const c of this.containersIn(id)) {
      if (this.#isCrio) this.containers.delete(c.id);
      else this.removeContainer(c.id);
    }
    this.sandboxes.delete(id);
    if (!this.#isCrio) this.#tell(id, sandbox, ContainerEventType.CONTAINER_DELETED_EVENT);
  }

  createContainer(sandboxId: string, config: ContainerConfig): FakeContainer {
    const sandbox = this.sandboxes.get(sandboxId);
    if (sandbox === undefined)
      throw new GrpcError(GrpcCode.NotFound, `failed to find sandbox id "${sandboxId}": not found`);
    const image = this.findImage(config.image?.image ?? '');
    if (image === undefined)
      throw new GrpcError(GrpcCode.NotFound, `failed to resolve image "${config.image?.image}": not found`);
    const name = containerName(sandbox, config);
    const holder = [...this.containers.values()].find((c) => containerName(c.sandbox, c.config) === name);
    if (holder !== undefined && this.#isCrio) return holder;
    if (holder !== undefined)
      throw new GrpcError(
        GrpcCode.Unknown,
        `failed to reserve container name "${name}": name "${name}" is reserved for "${holder.id}"`,
      );
    const program = programOf([...config.command, ...config.args]);
    if (program === undefined && this.#isCrio)
      throw new GrpcError(GrpcCode.Unknown, `container create failed: exec: ${config.command[0]}: no such file`);
    const container: FakeContainer = {
      id: newId(),
      sandbox,
      config,
      image,
      createdAt: this.clock.nowNanos(),
      program,
      state: ContainerState.CONTAINER_CREATED,
      startedAt: 0n,
      finishedAt: 0n,
      exitCode: 0,
      reason: '',
      message: '',
      resources: config.linux?.resources,
      timer: undefined,
      onExit: [],
    };
    this.containers.set(container.id, container);
    this.#tell(container.id, sandbox, ContainerEventType.CONTAINER_CREATED_EVENT);
    return container;
  }

  startContainer(id: string): void {
    const container = this.container(id);
    if (container.state !== ContainerState.CONTAINER_CREATED)
      throw new GrpcError(GrpcCode.Unknown, `failed to start container "${id}": it is not in created state`);
    const { program } = container;
    if (program === undefined) {
      this.#die(container, 128, 'StartError', 'failed to create containerd task: no such file or directory');
      throw new GrpcError(GrpcCode.Unknown, `failed to create containerd task: exec: ${container.config.command[0]}`);
    }
    container.state = ContainerState.CONTAINER_RUNNING;
    container.startedAt = this.clock.nowNanos();
    this.#tell(id, container.sandbox, ContainerEventType.CONTAINER_STARTED_EVENT);
    this.writeLog(container, program.output);
    if (program.endsAfterMs !== undefined)
      container.timer = this.clock.after(program.endsAfterMs, () => this.exit(id, program.exitCode));
  }

  /** Sends SIGTERM, waits up to `graceMs` and kills. */
  async stopContainer(id: string, graceMs: number): Promise<void> {
    const container = this.containers.get(id);
    if (container === undefined || container.state !== ContainerState.CONTAINER_RUNNING) return;
    // Only the first process of a PID namespace may ignore SIGTERM; in the pod's namespace that is the sandbox's.
    const alone = container.config.linux?.securityContext?.namespaceOptions?.pid === NamespaceMode.CONTAINER;
    const code = container.program?.onTerm ?? (alone ? undefined : 143);
    if (graceMs > 0 && code !== undefined) return this.exit(id, code);
    const timer = this.clock.after(graceMs, () => this.exit(id, 137));
    await new Promise<void>((resolve) => container.onExit.push(resolve));
    timer.cancel();
  }

  /** Ends a running container as if its process had. */
  exit(id: string, exitCode: number, reason?: string): void {
    const container = this.containers.get(id);
    if (container === undefined || container.state !== ContainerState.CONTAINER_RUNNING) return;
    this.#die(container, exitCode, reason ?? (exitCode === 0 ? 'Completed' : 'Error'), '');
  }

  removeContainer(id: string): void {
    const container = this.containers.get(id);
    if (container === undefined) return;
    this.exit(id, 137);
    this.containers.delete(id);
    this.#tell(id, container.sandbox, ContainerEventType.CONTAINER_DELETED_EVENT);
  }

  container(id: string): FakeContainer {
    const container = this.containers.get(id);
    if (container === undefined)
      throw new GrpcError(GrpcCode.NotFound, `an error occurred when try to find container "${id}": not found`);
    return container;
  }

  containersIn(sandboxId: string): FakeContainer[] {
    return [...this.containers.values()].filter((c) => c.sandbox.id === sandboxId);
  }

  writeLog(container: FakeContainer, output: string): void {
    const { config, sandbox } = container;
    if (sandbox.config.logDirectory === '' || config.logPath === '') return;
    const path = join(sandbox.config.logDirectory, config.logPath);
    mkdirSync(dirname(path), { recursive: true });
    const lines = output.split('\n').slice(0, -1);
    appendFileSync(path, lines.map((l) => `${rfc3339Nano(this.clock.nowNanos())} stdout F ${l}\n`).join(''));
  }

  #die(container: FakeContainer, exitCode: number, reason: string, message: string): void {
    container.timer?.cancel();
    Object.assign(container, { state: ContainerState.CONTAINER_EXITED, exitCode, reason, message });
    container.finishedAt = this.clock.nowNanos();
    for (const done of container.onExit.splice(0)) done();
    this.#tell(container.id, container.sandbox, ContainerEventType.CONTAINER_STOPPED_EVENT);
  }

  /** On the loopback interface: what a kubelet asks of a pod stays on the machine. */
  #nextIp(): string {
    const n = ++this.#lastIp;
    return `127.99.${Math.floor(n / 254) % 254}.${(n % 254) + 1}`;
  }

  #tell(containerId: string, sandbox: FakeSandbox, containerEventType: ContainerEventType): void {
    this.onEvent({
      containerId,
      containerEventType,
      createdAt: this.clock.nowNanos(),
      podSandboxStatus: sandboxStatus(sandbox),
      containersStatuses: this.containersIn(sandbox.id).map(containerStatus),
    });
  }
}

const newId = (): string => randomBytes(32).toString('hex');

const sandboxName = ({ metadata }: PodSandboxConfig): string =>
  `${metadata?.name}_${metadata?.namespace}_${metadata?.uid}_${metadata?.attempt}`;
const containerName = ({ config: { metadata: pod } }: FakeSandbox, { metadata }: ContainerConfig): string =>
  `${metadata?.name}_${pod?.name}_${pod?.namespace}_${pod?.uid}_${metadata?.attempt}`;

export function sandboxStatus(sandbox: FakeSandbox): PodSandboxStatus {
  const { config } = sandbox;
  const options = config.linux?.securityContext?.namespaceOptions;
  return {
    id: sandbox.id,
    metadata: config.metadata,
    state: sandbox.ready ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY,
    createdAt: sandbox.createdAt,
    network: { ip: sandbox.ready ? sandbox.ip : '', additionalIps: [] },
    linux: { namespaces: { options } },
    labels: config.labels,
    annotations: config.annotations,
    runtimeHandler: sandbox.runtimeHandler,
  };
}

export function containerStatus(container: FakeContainer): ContainerStatus {
  const { config, image, sandbox } = container;
  return {
    id: container.id,
    metadata: config.metadata,
    state: container.state,
    createdAt: container.createdAt,
    startedAt: container.startedAt,
    finishedAt: container.finishedAt,
    exitCode: container.exitCode,
    image: config.image && { ...config.image, image: image.repoTags[0] ?? image.id },
    imageRef: image.id,
    imageId: image.id,
    reason: container.reason,
    message: container.message,
    labels: config.labels,
    annotations: config.annotations,
    mounts: config.mounts,
    logPath: config.logPath === '' ? '' : join(sandbox.config.logDirectory, config.logPath),
    resources: { linux: container.resources },
    stopSignal: config.stopSignal,
  };
}
