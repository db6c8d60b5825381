// A CSI driver on the simulated machine: stages by a mount, publishes by another, keeps no state but the mounts. It checks
// what it is asked for: whoever calls it in the wrong order is reported.
import { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Rpc } from '../../../src/lib/grpc/rpc.ts';
import { Node, NodeRpcType, VolumeUsageUnit } from '../../../src/lib/csi-api/gen/csi.ts';
import { Registration } from '../../../src/lib/csi-api/gen/pluginregistration.ts';
import { BlockDevices } from './block-devices.ts';
import { makeDirs } from './host.ts';
import type { World } from './world.ts';

export const DRIVER = 'sim.csi';
/** Hands out devices, and grows its volumes. */
export const BLOCK_DRIVER = 'block.csi';
const REGISTRY = '/var/lib/kubelet/plugins_registry';
const AGAIN_MS = 5000;
const CAPABILITIES = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'] as const;

type Verb = 'stage' | 'unstage' | 'publish' | 'unpublish' | 'expand';
/** What a call is about. */
type About = { readonly volume: string; readonly target: string; readonly bytes?: number };

/** A call under way that its caller still waits for. */
type Call = About & {
  readonly name: Verb;
  readonly isWaitedFor: () => boolean;
};

export type Report = (invariant: string, text: string) => void;

const ORDER = 'volumes in order';

export class CsiDriver {
  readonly #world: World;
  readonly #name: string;
  readonly #folder: string;
  readonly #sockets: readonly [string, string];
  readonly #calls = new Set<Call>();
  readonly #busy = new Set<string>();
  readonly #slow = new Set<() => void>();
  /** Paths by volume. */
  readonly #staging = new Map<string, string>();
  #servers: GrpcServer[] = [];
  #generation = 0;
  readonly blocks: BlockDevices;
  /** How large volumes are on this node. */
  readonly bytes = new Map<string, number>();
  /** Volumes that are attached to the node. */
  readonly attached = new Set<string>();
  report: Report = () => undefined;
  /** Runs before a call has any effect; a throw is its answer. */
  before: (name: string) => void = () => undefined;
  /** Runs when it had its effect. */
  after: (name: string) => void = () => undefined;
  slownessMs = 0;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.#folder = `/var/lib/kubelet/plugins/${name}`;
    this.#sockets = [`${this.#folder}/csi.sock`, `${REGISTRY}/${name}-reg.sock`];
    this.blocks = new BlockDevices(world);
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
      return { type: 'CSIPlugin', name: this.#name, endpoint: this.#sockets[0], supportedVersions: ['1.0.0'] };
    });
    registration.unary(Registration.notifyRegistrationStatus, async () => ({}));
    for (const path of [this.#folder, REGISTRY]) makeDirs(this.#world.files, path);
    for (const path of this.#sockets) this.#unlink(path);
    await node.listen(this.#sockets[0]);
    await registration.listen(this.#sockets[1]);
  }

  /** Its process ends; what is mounted stays. `isKilled`: its sockets stay as well. */
  stop(isKilled: boolean): void {
    this.#generation++;
    for (const server of this.#servers) void server.close();
    this.#servers = [];
    this.#busy.clear();
    if (isKilled) return;
    try {
      for (const path of this.#sockets) this.#unlink(path);
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

  get name(): string {
    return this.#name;
  }

  isMounted(path: string): boolean {
    return this.#world.files.mounts.some((m) => m.target === path);
  }

  /** Volumes with their paths. */
  get staged(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#staging].filter(([volume, path]) =>
        isBlock(volume) ? this.blocks.isStaged(volume) : this.isMounted(path),
      ),
    );
  }

  /** Target paths that a volume is mounted at. */
  publishedOf(volume: string): readonly string[] {
    if (isBlock(volume)) return this.blocks.bindsOf(volume).filter((target) => target.includes('/publish/'));
    return this.#targets(this.#sourceOf(volume));
  }

  get published(): readonly string[] {
    return this.#targets(this.#sourceOf(''));
  }

  #targets(source: string): readonly string[] {
    return this.#world.files.mounts
      .filter((m) => m.fs.source.startsWith(source) && m.target.includes('/pods/') && m.target.endsWith('/mount'))
      .filter((m) => source === this.#sourceOf('') || m.fs.source === source)
      .map((m) => m.target);
  }

  #sourceOf(volume: string): string {
    return `/dev/${this.#name.split('.')[0]}/${volume}`;
  }

  get #capabilities(): readonly (keyof typeof NodeRpcType)[] {
    return this.#name === BLOCK_DRIVER ? [...CAPABILITIES, 'EXPAND_VOLUME'] : CAPABILITIES;
  }

  #serve(server: GrpcServer): void {
    server.unary(Node.nodeGetInfo, async () => ({ nodeId: 'n1', maxVolumesPerNode: 0 }) as never);
    server.unary(Node.nodeGetCapabilities, async () => ({
      capabilities: this.#capabilities.map((name) => ({ rpc: { type: NodeRpcType[name] } })),
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
    this.#add(server, Node.nodeExpandVolume, 'expand', ({ volumeId, volumePath, capacityRange }) => ({
      volume: volumeId,
      target: volumePath,
      bytes: capacityRange?.requiredBytes ?? 0,
    }));
  }

  #add<Req, Res>(server: GrpcServer, rpc: Rpc<Req, Res>, name: Verb, about: (request: Req) => About): void {
    server.unary(rpc, async (request, gone) => {
      await this.#call(name, about(request), gone);
      return {} as Res;
    });
  }

  async #call(name: Verb, about: About, gone: AbortSignal): Promise<void> {
    const { agent, trace } = this.#world;
    trace.call(this.#world, `csi ${name} ${about.volume} ${about.target}`);
    const { starts } = agent;
    const isWaitedFor = (): boolean => !gone.aborted && agent.starts === starts && agent.isRunning;
    const call: Call = { ...about, name, isWaitedFor };
    this.#checkOrder(call);
    this.#calls.add(call);
    try {
      await this.#carryOut(call);
    } finally {
      this.#calls.delete(call);
    }
  }

  async #carryOut(call: Call): Promise<void> {
    const { name, volume } = call;
    const { scheduler } = this.#world;
    const generation = this.#generation;
    if (this.#busy.has(volume)) throw new GrpcError(GrpcCode.Aborted, `an operation on ${volume} is under way`);
    this.before(name);
    this.#busy.add(volume);
    await this.#pass(this.slownessMs > 0 ? this.slownessMs * scheduler.latency.next() : 20 * scheduler.latency.next());
    if (generation !== this.#generation) throw new GrpcError(GrpcCode.Unavailable, 'the driver has ended');
    this.#busy.delete(volume);
    try {
      this.#act(call);
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

  #act({ name, volume, target, bytes = 0 }: Call): void {
    const { files } = this.#world;
    if (name === 'expand') return void this.bytes.set(volume, Math.max(bytes, this.bytes.get(volume) ?? 0));
    if (name === 'stage') this.#staging.set(volume, target);
    if (isBlock(volume)) return this.blocks.act(name, volume, target);
    const isMounted = this.isMounted(target);
    if (name === 'stage') {
      if (!isMounted) files.mountFs(files.makeFs('ext4', this.#sourceOf(volume)), target);
    } else if (name === 'publish') {
      if (isMounted) return;
      makeDirs(files, target);
      const staging = this.staged.get(volume);
      if (staging === undefined) files.mountFs(files.makeFs('ext4', this.#sourceOf(volume)), target);
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
      if (collides(call, other, isInline))
        this.report(ORDER, `${name} of ${volume} while ${other.name} of it is under way`);
    if (isInline) {
      if (name === 'stage' || name === 'unstage') this.report(ORDER, `${name} of ${volume}, which a pod brings along`);
      return;
    }
    if (name === 'stage' && !this.attached.has(volume)) this.report(ORDER, `${volume} is staged and not attached`);
    if (name === 'publish' && !this.staged.has(volume)) this.report(ORDER, `${volume} is published and not staged`);
    if (name === 'expand' && !this.staged.has(volume)) this.report(ORDER, `${volume} is grown and not staged`);
    if (name === 'expand' && !this.publishedOf(volume).includes(target))
      this.report(ORDER, `${volume} is grown at ${target}, where it is not published`);
    const left = name === 'unstage' ? this.publishedOf(volume) : [];
    if (left.length > 0) this.report(ORDER, `${volume} is unstaged from ${target} while it is published at ${left[0]}`);
  }
}

const isBlock = (volume: string): boolean => volume.startsWith('handle-block-');

/** One call for a volume at a time is what drivers are promised. */
const collides = (a: Call, b: Call, isInline: boolean): boolean =>
  !isInline || (a.target === b.target && a.name !== b.name);
