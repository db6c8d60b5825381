// A CSI driver on the simulated machine: stages by a mount, publishes by another, keeps no state but the mounts. It checks
// what it is asked for: whoever calls it in the wrong order is reported.
import type { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Rpc } from '../../../src/lib/grpc/rpc.ts';
import { Node, NodeRpcType, VolumeUsageUnit } from '../../../src/lib/csi-api/gen/csi.ts';
import { BlockDevices } from './block-devices.ts';
import { DriverCalls, type About, type Call } from './driver-calls.ts';
import { DriverProcesses } from './driver-processes.ts';
import { makeDirs } from './host.ts';
import type { World } from './world.ts';

export const DRIVER = 'sim.csi';
/** Hands out devices, and grows its volumes. */
export const BLOCK_DRIVER = 'block.csi';
const CAPABILITIES = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'] as const;

type Verb = 'stage' | 'unstage' | 'publish' | 'unpublish' | 'expand';
/** The volume and where. */
type Place = About & { readonly target: string; readonly bytes?: number };
type VolumeCall = Call<Verb, Place>;

export type Report = (invariant: string, text: string) => void;

const ORDER = 'volumes in order';

export class CsiDriver {
  readonly #world: World;
  readonly #name: string;
  /** Paths by volume. */
  readonly #staging = new Map<string, string>();
  readonly calls: DriverCalls<Verb, Place>;
  readonly processes: DriverProcesses;
  readonly blocks: BlockDevices;
  /** How large volumes are on this node. */
  readonly bytes = new Map<string, number>();
  /** Volumes that are attached to the node. */
  readonly attached = new Set<string>();
  report: Report = () => undefined;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.calls = new DriverCalls(world);
    const serve = (server: GrpcServer): void => this.#serve(server);
    this.processes = new DriverProcesses(world, { type: 'CSIPlugin', name, supportedVersions: ['1.0.0'], serve });
    this.blocks = new BlockDevices(world);
  }

  /** Its process ends; what is mounted stays. */
  stop(isKilled: boolean): void {
    this.processes.stop(isKilled);
    this.calls.end();
  }

  /** The machine was switched off. */
  forget(): void {
    this.processes.stop(true);
    this.calls.forget();
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
      key: volumeId,
      target: stagingTargetPath,
    }));
    this.#add(server, Node.nodeUnstageVolume, 'unstage', ({ volumeId, stagingTargetPath }) => ({
      key: volumeId,
      target: stagingTargetPath,
    }));
    this.#add(server, Node.nodePublishVolume, 'publish', ({ volumeId, targetPath }) => ({
      key: volumeId,
      target: targetPath,
    }));
    this.#add(server, Node.nodeUnpublishVolume, 'unpublish', ({ volumeId, targetPath }) => ({
      key: volumeId,
      target: targetPath,
    }));
    this.#add(server, Node.nodeExpandVolume, 'expand', ({ volumeId, volumePath, capacityRange }) => ({
      key: volumeId,
      target: volumePath,
      bytes: capacityRange?.requiredBytes ?? 0,
    }));
  }

  #add<Req, Res>(server: GrpcServer, rpc: Rpc<Req, Res>, verb: Verb, about: (request: Req) => Place): void {
    server.unary(rpc, async (request, gone) => {
      await this.#call(verb, about(request), gone);
      return {} as Res;
    });
  }

  #call(verb: Verb, place: Place, gone: AbortSignal): Promise<void> {
    this.#world.trace(`csi ${verb} ${place.key} ${place.target}`);
    const call = this.calls.of(verb, place, gone);
    this.#checkOrder(call);
    return this.calls.carryOut([call], () => {
      try {
        this.#act(call);
      } catch (err) {
        throw new GrpcError(GrpcCode.Internal, (err as Error).message);
      }
    });
  }

  #act({ verb, key: volume, target, bytes = 0 }: VolumeCall): void {
    const { files } = this.#world;
    if (verb === 'expand') return void this.bytes.set(volume, Math.max(bytes, this.bytes.get(volume) ?? 0));
    if (verb === 'stage') this.#staging.set(volume, target);
    if (isBlock(volume)) return this.blocks.act(verb, volume, target);
    const isMounted = this.isMounted(target);
    if (verb === 'stage') {
      if (!isMounted) files.mountFs(files.makeFs('ext4', this.#sourceOf(volume)), target);
    } else if (verb === 'publish') {
      if (isMounted) return;
      makeDirs(files, target);
      const staging = this.staged.get(volume);
      if (staging === undefined) files.mountFs(files.makeFs('ext4', this.#sourceOf(volume)), target);
      else files.bind(staging, target);
    } else {
      if (isMounted) files.unmount(target);
      if (verb === 'unpublish' && files.find(target, 'rmdir').inode !== undefined) files.rmdir(target);
    }
  }

  #checkOrder(call: VolumeCall): void {
    const { verb, key: volume, target } = call;
    const isInline = volume.startsWith('csi-');
    for (const other of this.calls.waitedFor(volume))
      if (collides(call, other, isInline))
        this.report(ORDER, `${verb} of ${volume} while ${other.verb} of it is under way`);
    if (isInline) {
      if (verb === 'stage' || verb === 'unstage') this.report(ORDER, `${verb} of ${volume}, which a pod brings along`);
      return;
    }
    if (verb === 'stage' && !this.attached.has(volume)) this.report(ORDER, `${volume} is staged and not attached`);
    if (verb === 'publish' && !this.staged.has(volume)) this.report(ORDER, `${volume} is published and not staged`);
    if (verb === 'expand' && !this.staged.has(volume)) this.report(ORDER, `${volume} is grown and not staged`);
    if (verb === 'expand' && !this.publishedOf(volume).includes(target))
      this.report(ORDER, `${volume} is grown at ${target}, where it is not published`);
    const left = verb === 'unstage' ? this.publishedOf(volume) : [];
    if (left.length > 0) this.report(ORDER, `${volume} is unstaged from ${target} while it is published at ${left[0]}`);
  }
}

const isBlock = (volume: string): boolean => volume.startsWith('handle-block-');

/** One call for a volume at a time is what drivers are promised. */
const collides = (a: VolumeCall, b: VolumeCall, isInline: boolean): boolean =>
  !isInline || (a.target === b.target && a.verb !== b.verb);
