// A CSI driver on the simulated machine: stages by a mount, publishes by another, keeps no state but the mounts. It checks
// what it is asked for: whoever calls it in the wrong order is reported.
import { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Rpc } from '../../../src/lib/grpc/rpc.ts';
import { Node, NodeRpcType, VolumeUsageUnit } from '../../../src/lib/csi-api/gen/csi.ts';
import { Registration } from '../../../src/lib/csi-api/gen/pluginregistration.ts';
import { makeDirs } from './host.ts';
import type { World } from './world.ts';

export const DRIVER = 'sim.csi';
const REGISTRY = '/var/lib/kubelet/plugins_registry';
const FOLDER = `/var/lib/kubelet/plugins/${DRIVER}`;
const SOCKETS = [`${FOLDER}/csi.sock`, `${REGISTRY}/${DRIVER}-reg.sock`] as const;
const AGAIN_MS = 5000;
const CAPABILITIES = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'] as const;

/** A call under way that its caller still waits for. */
type Call = {
  readonly name: string;
  readonly volume: string;
  readonly target: string;
  readonly isWaitedFor: () => boolean;
};

export type Report = (invariant: string, text: string) => void;

const ORDER = 'volumes in order';

export class CsiDriver {
  readonly #world: World;
  readonly #calls = new Set<Call>();
  readonly #busy = new Set<string>();
  readonly #slow = new Set<() => void>();
  /** Paths by volume. */
  readonly #staging = new Map<string, string>();
  #servers: GrpcServer[] = [];
  #generation = 0;
  /** Volumes that are attached to the node. */
  readonly attached = new Set<string>();
  report: Report = () => undefined;
  /** Runs before a call has any effect; a throw is its answer. */
  before: (name: string) => void = () => undefined;
  /** Runs when it had its effect. */
  after: (name: string) => void = () => undefined;
  slownessMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Where its sockets cannot be made (a full disk), whoever started it tries again. */
  async start(): Promise<void> {
    const { scheduler } = this.#world;
    const generation = ++this.#generation;
    try {
      await this.#listen();
    } catch (err) {
      this.#world.trace(`the CSI driver cannot start: ${(err as Error).message}`);
      if (generation !== this.#generation) return;
      this.stop(true);
      const stopped = this.#generation;
      const again = (): unknown => this.#generation === stopped && this.start();
      scheduler.after(AGAIN_MS, () => void again(), scheduler.world);
    }
  }

  async #listen(): Promise<void> {
    const node = new GrpcServer();
    const registration = new GrpcServer();
    this.#servers = [node, registration];
    this.#serve(node);
    registration.unary(Registration.getInfo, async () => {
      return { type: 'CSIPlugin', name: DRIVER, endpoint: SOCKETS[0], supportedVersions: ['1.0.0'] };
    });
    registration.unary(Registration.notifyRegistrationStatus, async () => ({}));
    for (const path of [FOLDER, REGISTRY]) makeDirs(this.#world.files, path);
    for (const path of SOCKETS) this.#unlink(path);
    await node.listen(SOCKETS[0]);
    await registration.listen(SOCKETS[1]);
  }

  /** Its process ends; what is mounted stays. `isKilled`: its sockets stay as well. */
  stop(isKilled: boolean): void {
    this.#generation++;
    for (const server of this.#servers) void server.close();
    this.#servers = [];
    this.#busy.clear();
    if (isKilled) return;
    try {
      for (const path of SOCKETS) this.#unlink(path);
    } catch {
      // A disk that cannot be written: as if it was killed.
    }
  }

  #unlink(path: string): void {
    const { files } = this.#world;
    if (files.find(path, 'unlink').inode !== undefined) files.unlink(path);
  }

  /** The machine was switched off. */
  forget(): void {
    this.stop(true);
    this.#calls.clear();
  }

  hurry(): void {
    const { scheduler } = this.#world;
    for (const end of this.#slow) scheduler.after(1000 * scheduler.latency.next(), end, scheduler.world);
    this.#slow.clear();
  }

  isMounted(path: string): boolean {
    return this.#world.files.mounts.some((m) => m.target === path);
  }

  /** Volumes with their paths. */
  get staged(): ReadonlyMap<string, string> {
    return new Map([...this.#staging].filter(([, path]) => this.isMounted(path)));
  }

  /** Target paths that a volume is mounted at. */
  publishedOf(volume: string): readonly string[] {
    return this.#targets(sourceOf(volume));
  }

  get published(): readonly string[] {
    return this.#targets(sourceOf(''));
  }

  #targets(source: string): readonly string[] {
    return this.#world.files.mounts
      .filter((m) => m.fs.source.startsWith(source) && m.target.includes('/pods/') && m.target.endsWith('/mount'))
      .filter((m) => source === sourceOf('') || m.fs.source === source)
      .map((m) => m.target);
  }

  #serve(server: GrpcServer): void {
    server.unary(Node.nodeGetInfo, async () => ({ nodeId: 'n1', maxVolumesPerNode: 0 }) as never);
    server.unary(Node.nodeGetCapabilities, async () => ({
      capabilities: CAPABILITIES.map((name) => ({ rpc: { type: NodeRpcType[name] } })),
    }));
    server.unary(Node.nodeGetVolumeStats, async () => {
      const bytes = { available: 60, total: 100, used: 40, unit: VolumeUsageUnit.BYTES };
      return { usage: [bytes] } as never;
    });
    this.#add(server, Node.nodeStageVolume, 'stage', ({ volumeId, stagingTargetPath }) => ({
      volume: volumeId,
      target: stagingTargetPath,
    }));
    this.#add(server, Node.nodeUnstageVolume, 'unstage', ({ volumeId, stagingTargetPath }) => ({
      volume: volumeId,
      target: stagingTargetPath,
    }));
    this.#add(server, Node.nodePublishVolume, 'publish', ({ volumeId, targetPath }) => ({
      volume: volumeId,
      target: targetPath,
    }));
    this.#add(server, Node.nodeUnpublishVolume, 'unpublish', ({ volumeId, targetPath }) => ({
      volume: volumeId,
      target: targetPath,
    }));
  }

  #add<Req, Res>(
    server: GrpcServer,
    rpc: Rpc<Req, Res>,
    name: 'stage' | 'unstage' | 'publish' | 'unpublish',
    about: (request: Req) => { readonly volume: string; readonly target: string },
  ): void {
    server.unary(rpc, async (request, gone) => {
      await this.#call(name, about(request), gone);
      return {} as Res;
    });
  }

  async #call(
    name: 'stage' | 'unstage' | 'publish' | 'unpublish',
    { volume, target }: { readonly volume: string; readonly target: string },
    gone: AbortSignal,
  ): Promise<void> {
    const { agent, trace } = this.#world;
    trace.call(this.#world, `csi ${name} ${volume} ${target}`);
    const { starts } = agent;
    const isWaitedFor = (): boolean => !gone.aborted && agent.starts === starts && agent.isRunning;
    const call: Call = { name, volume, target, isWaitedFor };
    this.#checkOrder(call);
    this.#calls.add(call);
    try {
      await this.#carryOut(call);
    } finally {
      this.#calls.delete(call);
    }
  }

  async #carryOut({ name, volume, target }: Call): Promise<void> {
    const { scheduler } = this.#world;
    const generation = this.#generation;
    if (this.#busy.has(volume)) throw new GrpcError(GrpcCode.Aborted, `an operation on ${volume} is under way`);
    this.before(name);
    this.#busy.add(volume);
    await this.#pass(this.slownessMs > 0 ? this.slownessMs * scheduler.latency.next() : 20 * scheduler.latency.next());
    if (generation !== this.#generation) throw new GrpcError(GrpcCode.Unavailable, 'the driver has ended');
    this.#busy.delete(volume);
    try {
      this.#act(name, volume, target);
    } catch (err) {
      throw new GrpcError(GrpcCode.Internal, (err as Error).message);
    }
    this.after(name);
  }

  #pass(ms: number): Promise<void> {
    const { scheduler } = this.#world;
    return new Promise((resolve) => {
      const end = (): void => {
        this.#slow.delete(end);
        resolve();
      };
      this.#slow.add(end);
      scheduler.after(ms, end, scheduler.world);
    });
  }

  #act(name: string, volume: string, target: string): void {
    const { files } = this.#world;
    const isMounted = this.isMounted(target);
    if (name === 'stage') {
      this.#staging.set(volume, target);
      if (!isMounted) files.mountFs(files.makeFs('ext4', sourceOf(volume)), target);
    } else if (name === 'publish') {
      if (isMounted) return;
      makeDirs(files, target);
      const staging = this.staged.get(volume);
      if (staging === undefined) files.mountFs(files.makeFs('ext4', sourceOf(volume)), target);
      else files.bind(staging, target);
    } else {
      if (isMounted) files.unmount(target);
      if (name === 'unpublish' && files.find(target, 'rmdir').inode !== undefined) files.rmdir(target);
    }
  }

  #checkOrder(call: Call): void {
    const { name, volume, target } = call;
    const others = [...this.#calls].filter((c) => c.volume === volume && c.isWaitedFor());
    const isInline = volume.startsWith('csi-');
    for (const other of others)
      if (collides(call, other)) this.report(ORDER, `${name} of ${volume} while ${other.name} of it is under way`);
    if (isInline) {
      if (name === 'stage' || name === 'unstage') this.report(ORDER, `${name} of ${volume}, which a pod brings along`);
      return;
    }
    if (name === 'stage' && !this.attached.has(volume)) this.report(ORDER, `${volume} is staged and not attached`);
    if (name === 'publish' && !this.staged.has(volume)) this.report(ORDER, `${volume} is published and not staged`);
    const left = name === 'unstage' ? this.publishedOf(volume) : [];
    if (left.length > 0) this.report(ORDER, `${volume} is unstaged from ${target} while it is published at ${left[0]}`);
  }
}

const sourceOf = (volume: string): string => `/dev/sim/${volume}`;

const DEVICE = new Set(['stage', 'unstage']);

const collides = (a: Call, b: Call): boolean =>
  (DEVICE.has(a.name) && DEVICE.has(b.name)) ||
  (a.name === 'unstage' && b.name === 'publish') ||
  (a.name === 'publish' && b.name === 'unstage') ||
  (a.target === b.target && a.name !== b.name);
