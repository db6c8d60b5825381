// The Node service: stages a volume once a node, publishes it to each pod, and takes both back. Every call may come
// twice, also after a restart of this process in between.
import { mkdir, rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  NodeRpcType,
  VolumeUsageUnit,
  type NodeExpandVolumeRequest,
  type NodeExpandVolumeResponse,
  type NodeGetCapabilitiesResponse,
  type NodeGetInfoResponse,
  type NodeGetVolumeStatsRequest,
  type NodeGetVolumeStatsResponse,
  type NodePublishVolumeRequest,
  type NodePublishVolumeResponse,
  type NodeStageVolumeRequest,
  type NodeStageVolumeResponse,
  type NodeUnpublishVolumeRequest,
  type NodeUnpublishVolumeResponse,
  type NodeUnstageVolumeRequest,
  type NodeUnstageVolumeResponse,
  type VolumeCapability,
} from '../../lib/csi-api/gen/csi.ts';
import { bytesOf } from '../../core/quantity.ts';
import { errnoOf } from '../../lib/errors.ts';
import { GrpcCode, GrpcError } from '../../lib/grpc/status.ts';
import { noVolume, required } from './controller-service.ts';
import type { VolumeDevices } from './devices.ts';
import type { ReportedCondition } from './faults.ts';
import type { Backing, StoredVolume, VolumeStore } from './volume-store.ts';

const EPHEMERAL = 'csi.storage.k8s.io/ephemeral';
const EPHEMERAL_SIZE = '64Mi';

export type NodeOptions = {
  readonly nodeId: string;
  readonly maxVolumes: number;
  readonly topology: Readonly<Record<string, string>>;
  readonly capabilities: readonly NodeRpcType[];
  readonly attach: boolean;
  /** Of ephemeral volumes. */
  readonly backing: Backing;
};

export const DEFAULT_CAPABILITIES: readonly NodeRpcType[] = [
  NodeRpcType.STAGE_UNSTAGE_VOLUME,
  NodeRpcType.VOLUME_CONDITION,
  NodeRpcType.GET_VOLUME_STATS,
  NodeRpcType.SINGLE_NODE_MULTI_WRITER,
  NodeRpcType.EXPAND_VOLUME,
];

type NodeDeps = {
  readonly store: VolumeStore;
  readonly devices: VolumeDevices;
  readonly condition: () => Promise<ReportedCondition | undefined>;
};

const flagsOf = (capability: VolumeCapability | undefined): readonly string[] => capability?.mount?.mountFlags ?? [];

export class NodeService {
  readonly #store: VolumeStore;
  readonly #devices: VolumeDevices;
  readonly #condition: NodeDeps['condition'];
  readonly #o: NodeOptions;

  constructor(deps: NodeDeps, options: NodeOptions) {
    this.#store = deps.store;
    this.#devices = deps.devices;
    this.#condition = deps.condition;
    this.#o = options;
  }

  nodeGetInfo(): Promise<NodeGetInfoResponse> {
    const { nodeId, maxVolumes, topology } = this.#o;
    const segments = Object.keys(topology).length === 0 ? {} : { accessibleTopology: { segments: { ...topology } } };
    return Promise.resolve({ nodeId, maxVolumesPerNode: maxVolumes, ...segments });
  }

  nodeGetCapabilities(): Promise<NodeGetCapabilitiesResponse> {
    return Promise.resolve({ capabilities: this.#o.capabilities.map((type) => ({ rpc: { type } })) });
  }

  nodeStageVolume(request: NodeStageVolumeRequest): Promise<NodeStageVolumeResponse> {
    const { volumeId, stagingTargetPath: target, volumeCapability } = request;
    required(volumeId, 'volume ID');
    required(target, 'staging target path');
    return this.#store.exclusive(volumeId, async () => {
      const volume = await this.#fitting(volumeId, volumeCapability);
      this.#checkAttached(volume);
      const image = this.#store.imageOf(volumeId);
      if (volume.access === 'block') await this.#devices.attachLoop(image);
      else if ((await this.#devices.mountAt(target)) === undefined) {
        await mkdir(target, { recursive: true, mode: 0o750 });
        await this.#mountVolume(volume, target, volumeCapability, false);
      }
      return {};
    });
  }

  nodeUnstageVolume(request: NodeUnstageVolumeRequest): Promise<NodeUnstageVolumeResponse> {
    const { volumeId, stagingTargetPath } = request;
    required(volumeId, 'volume ID');
    required(stagingTargetPath, 'staging target path');
    return this.#store.exclusive(volumeId, async () => {
      await this.#devices.unmount(stagingTargetPath);
      const volume = await this.#store.get(volumeId);
      if (volume?.access === 'block') await this.#devices.detachLoops(this.#store.imageOf(volumeId));
      return {};
    });
  }

  nodePublishVolume(request: NodePublishVolumeRequest): Promise<NodePublishVolumeResponse> {
    const { volumeId, targetPath } = request;
    required(volumeId, 'volume ID');
    required(targetPath, 'target path');
    return this.#store.exclusive(volumeId, async () => {
      if (request.volumeContext[EPHEMERAL] === 'true') await this.#publishEphemeral(request);
      else {
        const volume = await this.#fitting(volumeId, request.volumeCapability);
        if ((await this.#devices.mountAt(targetPath)) !== undefined) return {};
        if (volume.access === 'block') await this.#publishBlock(request);
        else await this.#publishMount(request);
      }
      return {};
    });
  }

  nodeUnpublishVolume(request: NodeUnpublishVolumeRequest): Promise<NodeUnpublishVolumeResponse> {
    const { volumeId, targetPath } = request;
    required(volumeId, 'volume ID');
    required(targetPath, 'target path');
    return this.#store.exclusive(volumeId, async () => {
      await this.#devices.unmount(targetPath);
      await removeTarget(targetPath);
      const volume = await this.#store.get(volumeId);
      if (volume?.ephemeral === true) await this.#store.remove(volumeId);
      if (volume?.access === 'block' && !this.#stages) await this.#devices.detachLoops(this.#store.imageOf(volumeId));
      return {};
    });
  }

  nodeExpandVolume(request: NodeExpandVolumeRequest): Promise<NodeExpandVolumeResponse> {
    const { volumeId, volumePath } = request;
    required(volumeId, 'volume ID');
    required(volumePath, 'volume path');
    return this.#store.exclusive(volumeId, async () => {
      const volume = await this.#existing(volumeId);
      const wanted = request.capacityRange?.requiredBytes ?? 0;
      if (wanted > volume.bytes)
        throw new GrpcError(GrpcCode.OutOfRange, `the volume has ${volume.bytes} bytes, ${wanted} are required`);
      const mount = await this.#devices.mountAt(volumePath);
      if (mount === undefined) throw new GrpcError(GrpcCode.NotFound, `volume ${volumeId} is not at ${volumePath}`);
      await this.#devices.refreshLoops(this.#store.imageOf(volumeId));
      if (volume.access === 'mount' && volume.backing === 'image') await this.#devices.growFileSystem(mount);
      return { capacityBytes: volume.bytes };
    });
  }

  async nodeGetVolumeStats(request: NodeGetVolumeStatsRequest): Promise<NodeGetVolumeStatsResponse> {
    const { volumeId, volumePath } = request;
    required(volumeId, 'volume ID');
    required(volumePath, 'volume path');
    const volume = await this.#existing(volumeId);
    const isMounted = (await this.#devices.mountAt(volumePath)) !== undefined;
    if (!isMounted && !(await isDevice(volumePath)))
      throw new GrpcError(GrpcCode.NotFound, `volume ${volumeId} is not at ${volumePath}`);
    const volumeCondition = (await this.#condition()) ?? { abnormal: false, message: 'volume is healthy' };
    return { usage: await this.#usage(volume, volumePath), volumeCondition };
  }

  async #usage(volume: StoredVolume, path: string): Promise<NodeGetVolumeStatsResponse['usage']> {
    if (volume.access === 'block') return [usage(0, volume.bytes, 0, VolumeUsageUnit.BYTES)];
    const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(path);
    if (volume.backing === 'image')
      return [
        usage(bavail * bsize, blocks * bsize, (blocks - bfree) * bsize, VolumeUsageUnit.BYTES),
        usage(ffree, files, files - ffree, VolumeUsageUnit.INODES),
      ];
    // What is in the directory, measured against the size that was asked for and what the disk still has.
    const used = await this.#devices.usageOf(this.#store.filesOf(volume.id));
    const available = Math.max(0, Math.min(volume.bytes - used.bytes, bavail * bsize));
    return [
      usage(available, volume.bytes, used.bytes, VolumeUsageUnit.BYTES),
      usage(ffree, files, used.files, VolumeUsageUnit.INODES),
    ];
  }

  get #stages(): boolean {
    return this.#o.capabilities.includes(NodeRpcType.STAGE_UNSTAGE_VOLUME);
  }

  async #existing(volumeId: string): Promise<StoredVolume> {
    const volume = await this.#store.get(volumeId);
    if (volume === undefined) throw noVolume(volumeId);
    return volume;
  }

  async #fitting(volumeId: string, capability: VolumeCapability | undefined): Promise<StoredVolume> {
    if (capability === undefined) throw new GrpcError(GrpcCode.InvalidArgument, 'volume capability missing in request');
    const volume = await this.#existing(volumeId);
    if ((capability.block === undefined ? 'mount' : 'block') !== volume.access)
      throw new GrpcError(GrpcCode.InvalidArgument, `cannot use a ${volume.access} volume as the other kind`);
    return volume;
  }

  #checkAttached(volume: StoredVolume): void {
    if (!this.#o.attach || volume.publishedTo.includes(this.#o.nodeId)) return;
    throw new GrpcError(GrpcCode.FailedPrecondition, `volume ${volume.id} is not attached to node ${this.#o.nodeId}`);
  }

  async #publishMount(request: NodePublishVolumeRequest): Promise<void> {
    const { stagingTargetPath, targetPath, readonly, volumeCapability, volumeId } = request;
    if (!this.#stages) return this.#mountAtTarget(request);
    required(stagingTargetPath, 'staging target path');
    if ((await this.#devices.mountAt(stagingTargetPath)) === undefined)
      throw new GrpcError(GrpcCode.FailedPrecondition, `volume ${volumeId} is not staged at ${stagingTargetPath}`);
    await mkdir(targetPath, { recursive: true, mode: 0o750 });
    await this.#devices.bind(stagingTargetPath, targetPath, readonly, flagsOf(volumeCapability));
  }

  async #publishBlock({ volumeId, targetPath, readonly }: NodePublishVolumeRequest): Promise<void> {
    const image = this.#store.imageOf(volumeId);
    const device = this.#stages ? (await this.#devices.loopsOf(image))[0] : await this.#devices.attachLoop(image);
    if (device === undefined) throw new GrpcError(GrpcCode.FailedPrecondition, `volume ${volumeId} is not staged`);
    await mkdir(dirname(targetPath), { recursive: true, mode: 0o750 });
    await writeFile(targetPath, '', { flag: 'a', mode: 0o660 });
    await this.#devices.bind(device, targetPath, readonly, []);
  }

  async #publishEphemeral(request: NodePublishVolumeRequest): Promise<void> {
    const { volumeId, targetPath, volumeCapability, volumeContext } = request;
    if (volumeCapability?.block !== undefined)
      throw new GrpcError(GrpcCode.InvalidArgument, 'an ephemeral volume has a file system');
    if ((await this.#devices.mountAt(targetPath)) !== undefined) return;
    const bytes = bytesOf(volumeContext['size'] ?? EPHEMERAL_SIZE);
    const { backing } = this.#o;
    if ((await this.#store.get(volumeId)) === undefined)
      await this.#store.create({ name: volumeId, bytes, access: 'mount', ephemeral: true, backing }, volumeId);
    await this.#mountAtTarget(request);
  }

  /** Without a staging step: the volume itself at the target. */
  async #mountAtTarget({ volumeId, targetPath, volumeCapability, readonly }: NodePublishVolumeRequest): Promise<void> {
    await mkdir(targetPath, { recursive: true, mode: 0o750 });
    await this.#mountVolume(await this.#existing(volumeId), targetPath, volumeCapability, readonly);
  }

  async #mountVolume(
    volume: StoredVolume,
    target: string,
    capability: VolumeCapability | undefined,
    readonly: boolean,
  ): Promise<void> {
    const flags = flagsOf(capability);
    if (volume.backing === 'directory')
      return this.#devices.bind(this.#store.filesOf(volume.id), target, readonly, flags);
    const fsType = capability?.mount?.fsType ?? '';
    const all = readonly ? [...flags, 'ro'] : flags;
    await this.#devices.mountImage(this.#store.imageOf(volume.id), target, fsType, all);
  }
}

async function removeTarget(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return;
    if (errnoOf(err) !== 'ENOTDIR') throw err;
    await rm(path);
  }
}

const isDevice = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isBlockDevice() === true;

const usage = (
  available: number,
  total: number,
  used: number,
  unit: VolumeUsageUnit,
): NodeGetVolumeStatsResponse['usage'][number] => ({ available, total, used, unit });
