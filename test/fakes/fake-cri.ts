// A CRI runtime in memory, served over a real unix socket: for tests with hundreds of pods, and for those that need an
// exit, an error or a lost event at an exact moment. It passes the same contract suite as containerd.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  CgroupDriver,
  ContainerState,
  ImageService,
  RuntimeService,
  type Container,
  type ContainerEventResponse,
  type ContainerStats,
  type PodSandbox,
} from '../../src/cri/gen/cri.ts';
import { criImages, criRuntime, type CriImages, type CriRuntime } from '../../src/cri/services.ts';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';
import { aborted } from '../../src/lib/abort.ts';
import { programOf } from './fake-programs.ts';
import { containerStatus, FakeState, sandboxStatus, type FakeContainer } from './fake-state.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';

export type FakeCriOptions = {
  readonly clock?: Clock;
  /** Serve GetContainerEvents; without it that verb is unimplemented. */
  readonly events?: boolean;
  /** Added to every call. */
  readonly latencyMs?: number;
  readonly socketPath?: string;
  readonly cgroupDriver?: CgroupDriver;
  /** CRI-O keeps events for its first client, tells odd figures, and takes a moment between a sandbox's containers and itself. */
  readonly ways?: 'containerd' | 'cri-o';
  /** Keep what was asked in `calls`; on unless very many calls are to come. */
  readonly recordCalls?: boolean;
};

export type RecordedCall = { readonly verb: string; readonly request: unknown };
/** Runs before a verb; a throw becomes its answer. */
export type Interference = (verb: string, request: unknown, signal: AbortSignal) => Promise<void> | void;

const MAX_RECORDED = 100_000;
/** Of events that CRI-O keeps. */
const MAX_QUEUED = 1000;
const CRIO_SANDBOX_STOP_MS = 300;

export class FakeCri {
  readonly state: FakeState;
  readonly root: string;
  readonly socketPath: string;
  readonly endpoint: string;
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  readonly calls: RecordedCall[] = [];
  interfere: Interference = () => undefined;
  /** Conditions of the Status verb. */
  conditions = ['RuntimeReady', 'NetworkReady'].map((type) => ({ type, status: true, reason: '', message: '' }));
  /** Images that PullImage can get; by reference. */
  readonly pullable = new Set<string>();
  readonly #o: FakeCriOptions;
  readonly #channel: GrpcChannel;
  readonly #subscribers = new Set<(event: ContainerEventResponse) => void>();
  #queued: ContainerEventResponse[] = [];
  #server: GrpcServer | undefined;

  constructor(options: FakeCriOptions = {}) {
    this.#o = options;
    this.state = new FakeState(options.clock ?? systemClock, options.ways);
    this.root = temporaryFolder('kts-fake-');
    this.socketPath = options.socketPath ?? join(this.root, 'cri.sock');
    this.endpoint = `unix://${this.socketPath}`;
    this.#channel = new GrpcChannel(systemClock, { target: { socketPath: this.socketPath } });
    this.runtime = criRuntime(this.#channel, { timeoutMs: 60_000 });
    this.images = criImages(this.#channel, { timeoutMs: 60_000 });
    this.state.onEvent = (event) => {
      if (options.ways === 'cri-o' && this.#subscribers.size === 0 && this.#queued.length < MAX_QUEUED)
        this.#queued.push(event);
      this.#subscribers.forEach((send) => send(event));
    };
  }

  async start(): Promise<void> {
    const server = new GrpcServer();
    this.#serveSandboxes(server);
    this.#serveContainers(server);
    this.#serveStats(server);
    this.#serveNode(server);
    this.#serveImages(server);
    this.#server = server;
    await server.listen(this.socketPath);
  }

  /** Breaks all connections and comes back after `downMs` with the same pods, as a runtime's restart does. */
  async restart(downMs = 0): Promise<void> {
    await this.#server?.close();
    rmSync(this.socketPath, { force: true });
    await systemClock.sleep(downMs, new AbortController().signal);
    await this.start();
  }

  async stop(): Promise<void> {
    this.#channel.close();
    await this.#server?.close();
    for (const c of this.state.containers.values()) c.timer?.cancel();
    removeFolder(this.root);
  }

  /** Sends an event that nothing caused: a duplicate, or one for something long gone. */
  sendEvent(event: ContainerEventResponse): void {
    this.state.onEvent(event);
  }

  #unary<Req, Res>(server: GrpcServer, rpc: Rpc<Req, Res>, handle: (request: Req) => Promise<Res> | Res): void {
    const verb = rpc.path.split('/').at(-1) ?? '';
    server.unary(rpc, async (request, signal) => {
      if (this.#o.recordCalls !== false && this.calls.length < MAX_RECORDED) this.calls.push({ verb, request });
      if (this.#o.latencyMs !== undefined) await systemClock.sleep(this.#o.latencyMs, signal);
      await this.interfere(verb, request, signal);
      return handle(request);
    });
  }

  #serveSandboxes(server: GrpcServer): void {
    const { state } = this;
    this.#unary(server, RuntimeService.runPodSandbox, ({ config, runtimeHandler }) => {
      if (config?.metadata === undefined)
        throw new GrpcError(GrpcCode.InvalidArgument, 'sandbox config has no metadata');
      return { podSandboxId: state.runSandbox(config, runtimeHandler).id };
    });
    this.#unary(server, RuntimeService.stopPodSandbox, async ({ podSandboxId }) => {
      if (this.#o.ways === 'cri-o') {
        state.stopContainersOf(podSandboxId);
        await systemClock.sleep(CRIO_SANDBOX_STOP_MS, new AbortController().signal);
      }
      state.stopSandbox(podSandboxId);
      return {};
    });
    this.#unary(server, RuntimeService.removePodSandbox, ({ podSandboxId }) => {
      state.removeSandbox(podSandboxId);
      return {};
    });
    this.#unary(server, RuntimeService.podSandboxStatus, ({ podSandboxId }) => {
      const sandbox = state.sandboxes.get(podSandboxId);
      if (sandbox === undefined)
        throw new GrpcError(GrpcCode.NotFound, `an error occurred when try to find sandbox: not found`);
      return { status: sandboxStatus(sandbox), info: {}, containersStatuses: [], timestamp: 0n };
    });
    this.#unary(server, RuntimeService.listPodSandbox, ({ filter }) => {
      const items = [...state.sandboxes.values()].map((s): PodSandbox => {
        const { id, metadata, state: ready, createdAt, labels, annotations, runtimeHandler } = sandboxStatus(s);
        return { id, metadata, state: ready, createdAt, labels, annotations, runtimeHandler };
      });
      return {
        items: items.filter(
          (s) =>
            (!filter?.id || s.id.startsWith(filter.id)) &&
            (filter?.state === undefined || s.state === filter.state.state) &&
            hasLabels(s.labels, filter?.labelSelector),
        ),
      };
    });
    this.#unary(server, RuntimeService.updatePodSandboxResources, () => ({}));
  }

  #serveContainers(server: GrpcServer): void {
    const { state } = this;
    this.#unary(server, RuntimeService.createContainer, ({ podSandboxId, config }) => {
      if (config === undefined) throw new GrpcError(GrpcCode.InvalidArgument, 'no container config');
      return { containerId: state.createContainer(podSandboxId, config).id };
    });
    this.#unary(server, RuntimeService.startContainer, ({ containerId }) => {
      state.startContainer(containerId);
      return {};
    });
    this.#unary(server, RuntimeService.stopContainer, async ({ containerId, timeout }) => {
      await state.stopContainer(containerId, timeout * 1000);
      return {};
    });
    this.#unary(server, RuntimeService.removeContainer, ({ containerId }) => {
      state.removeContainer(containerId);
      return {};
    });
    this.#unary(server, RuntimeService.containerStatus, ({ containerId }) => ({
      status: containerStatus(state.container(containerId)),
      info: {},
    }));
    this.#unary(server, RuntimeService.listContainers, ({ filter }) => ({
      containers: [...state.containers.values()]
        .filter(
          (c) =>
            (!filter?.id || c.id.startsWith(filter.id)) &&
            (!filter?.podSandboxId || c.sandbox.id === filter.podSandboxId) &&
            (filter?.state === undefined || c.state === filter.state.state) &&
            hasLabels(c.config.labels, filter?.labelSelector),
        )
        .map(listed),
    }));
    this.#unary(server, RuntimeService.updateContainerResources, ({ containerId, linux }) => {
      const container = state.container(containerId);
      const given = Object.entries(linux ?? {}).filter(([, value]) => value !== 0 && value !== '');
      if (container.resources !== undefined)
        container.resources = { ...container.resources, ...Object.fromEntries(given) };
      else container.resources = linux;
      return {};
    });
    this.#unary(server, RuntimeService.reopenContainerLog, ({ containerId }) => {
      state.writeLog(state.container(containerId), '');
      return {};
    });
    this.#unary(server, RuntimeService.execSync, ({ containerId, cmd }) => {
      const container = state.container(containerId);
      const program = programOf(cmd);
      if (container.startedAt === 0n || container.finishedAt !== 0n)
        throw new GrpcError(GrpcCode.Unknown, 'container is not running');
      if (program === undefined) throw new GrpcError(GrpcCode.Unknown, `exec failed: "${cmd[0]}": not found`);
      return { stdout: Buffer.from(program.output), stderr: new Uint8Array(), exitCode: program.exitCode };
    });
  }

  #serveStats(server: GrpcServer): void {
    const { state } = this;
    this.#unary(server, RuntimeService.listContainerStats, () => ({
      stats: [...state.containers.values()]
        .filter((c) => c.state === ContainerState.CONTAINER_RUNNING)
        .map((c) => usageOf(c, state.clock.nowNanos(), this.root))
        .map((usage) => (this.#o.ways === 'cri-o' ? { ...usage, ...CRIO_FIGURES } : usage)),
    }));
  }

  #serveNode(server: GrpcServer): void {
    this.#unary(server, RuntimeService.version, () => ({
      version: '0.1.0',
      runtimeName: this.#o.ways === 'cri-o' ? 'cri-o' : 'fake',
      runtimeVersion: '1.0.0',
      runtimeApiVersion: 'v1',
    }));
    this.#unary(server, RuntimeService.status, () => ({
      status: { conditions: this.conditions },
      info: {},
      runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: true } }],
      features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false },
    }));
    this.#unary(server, RuntimeService.runtimeConfig, () => ({
      linux: { cgroupDriver: this.#o.cgroupDriver ?? CgroupDriver.CGROUPFS },
    }));
    this.#unary(server, RuntimeService.updateRuntimeConfig, () => ({}));
    if (this.#o.events === false) return;
    server.serverStream(RuntimeService.getContainerEvents, async (_request, signal, send) => {
      this.#subscribers.add(send);
      for (const event of this.#queued.splice(0)) send(event);
      await aborted(signal);
      this.#subscribers.delete(send);
    });
  }

  #serveImages(server: GrpcServer): void {
    const { state } = this;
    this.#unary(server, ImageService.listImages, () => ({ images: [...state.images.values()] }));
    this.#unary(server, ImageService.imageStatus, ({ image }) => ({
      image: state.findImage(image?.image ?? ''),
      info: {},
    }));
    this.#unary(server, ImageService.removeImage, ({ image }) => {
      const found = state.findImage(image?.image ?? '');
      if (found !== undefined) state.images.delete(found.id);
      return {};
    });
    this.#unary(server, ImageService.pullImage, ({ image }) => {
      const ref = image?.image ?? '';
      if (!this.pullable.has(ref))
        throw new GrpcError(GrpcCode.NotFound, `failed to pull and unpack image "${ref}": not found`);
      return { imageRef: (state.findImage(ref) ?? state.addImage(ref)).id };
    });
    this.#unary(server, ImageService.imageFsInfo, () => ({
      imageFilesystems: [
        {
          timestamp: state.clock.nowNanos(),
          fsId: { mountpoint: this.root },
          usedBytes: { value: 0 },
          inodesUsed: { value: 0 },
        },
      ],
      containerFilesystems: [],
    }));
  }
}

const listed = (container: FakeContainer): Container => {
  const status = containerStatus(container);
  return {
    id: status.id,
    podSandboxId: container.sandbox.id,
    metadata: status.metadata,
    image: status.image,
    imageRef: status.imageRef,
    state: status.state,
    createdAt: status.createdAt,
    labels: status.labels,
    annotations: status.annotations,
    imageId: status.imageId,
  };
};

/** As CRI-O has them: no limit shows as the largest number, and swap has the figures of memory. */
const CRIO_FIGURES = {
  memory: { timestamp: 1n, workingSetBytes: { value: 4096 }, availableBytes: { value: 2 ** 63 } },
  swap: { timestamp: 1n, swapUsageBytes: { value: 4096 }, swapAvailableBytes: { value: 2 ** 63 } },
};

/** It uses nothing, but it is there. */
const usageOf = ({ id, config }: FakeContainer, timestamp: bigint, mountpoint: string): ContainerStats => ({
  attributes: { id, metadata: config.metadata, labels: config.labels, annotations: config.annotations },
  cpu: { timestamp, usageCoreNanoSeconds: { value: 0 } },
  memory: { timestamp, workingSetBytes: { value: 0 } },
  writableLayer: { timestamp, fsId: { mountpoint }, usedBytes: { value: 0 }, inodesUsed: { value: 0 } },
});

const hasLabels = (labels: Record<string, string>, wanted: Record<string, string> | undefined): boolean =>
  Object.entries(wanted ?? {}).every(([k, v]) => labels[k] === v);
