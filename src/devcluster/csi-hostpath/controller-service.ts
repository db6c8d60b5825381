// The Controller service: makes, removes, attaches and grows volumes. Every call may come twice and says the same.
import { statfs } from 'node:fs/promises';
import {
  ControllerRpcType,
  type ControllerExpandVolumeRequest,
  type ControllerExpandVolumeResponse,
  type ControllerGetCapabilitiesResponse,
  type ControllerPublishVolumeRequest,
  type ControllerPublishVolumeResponse,
  type ControllerUnpublishVolumeRequest,
  type ControllerUnpublishVolumeResponse,
  type CreateVolumeRequest,
  type CreateVolumeResponse,
  type DeleteVolumeRequest,
  type DeleteVolumeResponse,
  type GetCapacityResponse,
  type ListVolumesRequest,
  type ListVolumesResponse,
  type ValidateVolumeCapabilitiesRequest,
  type ValidateVolumeCapabilitiesResponse,
  type CapacityRange,
  type VolumeCapability,
} from '../../lib/csi-api/gen/csi.ts';
import { GrpcCode, GrpcError } from '../../lib/grpc/status.ts';
import type { VolumeDevices } from './devices.ts';
import type { Backing, StoredVolume, VolumeStore } from './volume-store.ts';

const DEFAULT_BYTES = 1024 ** 3;
const MAX_BYTES = 1024 ** 4;
/** The smallest image a file system fits into. */
const MIN_BYTES = 1024 ** 2;

const CAPABILITIES = [
  ControllerRpcType.CREATE_DELETE_VOLUME,
  ControllerRpcType.PUBLISH_UNPUBLISH_VOLUME,
  ControllerRpcType.LIST_VOLUMES,
  ControllerRpcType.GET_CAPACITY,
  ControllerRpcType.EXPAND_VOLUME,
  ControllerRpcType.SINGLE_NODE_MULTI_WRITER,
];

export const required = (value: string, what: string): string => {
  if (value === '') throw new GrpcError(GrpcCode.InvalidArgument, `${what} missing in request`);
  return value;
};

export const noVolume = (id: string): GrpcError => new GrpcError(GrpcCode.NotFound, `volume ${id} does not exist`);

/** The size for a range, or why there is none. */
export function sizeFor(range: CapacityRange | undefined): number {
  const { requiredBytes = 0, limitBytes = 0 } = range ?? {};
  if (requiredBytes < 0 || limitBytes < 0) throw new GrpcError(GrpcCode.InvalidArgument, 'a size cannot be negative');
  const wanted = Math.max(requiredBytes === 0 ? limitBytes || DEFAULT_BYTES : requiredBytes, MIN_BYTES);
  if (wanted > MAX_BYTES)
    throw new GrpcError(GrpcCode.OutOfRange, `requested capacity ${wanted} exceeds maximum allowed ${MAX_BYTES}`);
  if (limitBytes > 0 && wanted > limitBytes)
    throw new GrpcError(GrpcCode.OutOfRange, `no size between ${requiredBytes} and ${limitBytes}`);
  return wanted;
}

function accessOf(capabilities: readonly VolumeCapability[]): StoredVolume['access'] {
  if (capabilities.length === 0)
    throw new GrpcError(GrpcCode.InvalidArgument, 'volume capabilities missing in request');
  const block = capabilities.some((c) => c.block !== undefined);
  if (block && capabilities.some((c) => c.mount !== undefined))
    throw new GrpcError(GrpcCode.InvalidArgument, 'cannot have both block and mount access type');
  return block ? 'block' : 'mount';
}

export type ControllerOptions = {
  readonly nodeId: string;
  readonly maxVolumes: number;
  readonly directory: string;
  readonly attach: boolean;
  /** Of new volumes with a file system; block volumes are always images. */
  readonly backing: Backing;
};

export class ControllerService {
  readonly #store: VolumeStore;
  readonly #devices: VolumeDevices;
  readonly #o: ControllerOptions;

  constructor(deps: { store: VolumeStore; devices: VolumeDevices }, options: ControllerOptions) {
    this.#store = deps.store;
    this.#devices = deps.devices;
    this.#o = options;
  }

  createVolume(request: CreateVolumeRequest): Promise<CreateVolumeResponse> {
    const name = required(request.name, 'name');
    const access = accessOf(request.volumeCapabilities);
    const bytes = sizeFor(request.capacityRange);
    const backing = access === 'block' ? 'image' : this.#o.backing;
    // By name: two calls for one claim must not make two volumes.
    return this.#store.exclusive(`name ${name}`, async () => {
      const known = (await this.#store.list()).find((v) => v.name === name && !v.ephemeral);
      if (known !== undefined && (known.bytes < bytes || known.access !== access))
        throw new GrpcError(GrpcCode.AlreadyExists, `volume ${name} exists with another size or access type`);
      const volume = known ?? (await this.#store.create({ name, bytes, access, ephemeral: false, backing }));
      const made = {
        capacityBytes: volume.bytes,
        volumeId: volume.id,
        volumeContext: request.parameters,
        accessibleTopology: [],
      };
      return { volume: made };
    });
  }

  deleteVolume({ volumeId }: DeleteVolumeRequest): Promise<DeleteVolumeResponse> {
    required(volumeId, 'volume ID');
    return this.#store.exclusive(volumeId, async () => {
      if ((await this.#store.get(volumeId)) === undefined) return {};
      const inUse =
        (await this.#devices.loopsOf(this.#store.imageOf(volumeId))).length > 0 ||
        (await this.#devices.isBound(this.#store.filesOf(volumeId)));
      if (inUse) throw new GrpcError(GrpcCode.FailedPrecondition, `volume ${volumeId} is still in use`);
      await this.#store.remove(volumeId);
      return {};
    });
  }

  controllerPublishVolume(request: ControllerPublishVolumeRequest): Promise<ControllerPublishVolumeResponse> {
    const { volumeId, nodeId } = request;
    required(volumeId, 'volume ID');
    required(nodeId, 'node ID');
    if (request.volumeCapability === undefined)
      throw new GrpcError(GrpcCode.InvalidArgument, 'volume capability missing in request');
    if (nodeId !== this.#o.nodeId)
      throw new GrpcError(GrpcCode.NotFound, `not matching node ID ${nodeId} to hosted node ID ${this.#o.nodeId}`);
    return this.#store.exclusive(volumeId, async () => {
      const volume = await this.#store.get(volumeId);
      if (volume === undefined) throw noVolume(volumeId);
      if (volume.publishedTo.includes(nodeId)) return { publishContext: {} };
      const attached = (await this.#store.list()).filter((v) => v.publishedTo.includes(nodeId));
      if (this.#o.maxVolumes > 0 && attached.length >= this.#o.maxVolumes)
        throw new GrpcError(GrpcCode.ResourceExhausted, `node ${nodeId} has ${attached.length} volumes already`);
      await this.#store.setPublished(volume, [...volume.publishedTo, nodeId]);
      return { publishContext: {} };
    });
  }

  controllerUnpublishVolume(request: ControllerUnpublishVolumeRequest): Promise<ControllerUnpublishVolumeResponse> {
    const { volumeId, nodeId } = request;
    required(volumeId, 'volume ID');
    return this.#store.exclusive(volumeId, async () => {
      const volume = await this.#store.get(volumeId);
      if (volume === undefined) return {};
      const rest = volume.publishedTo.filter((n) => nodeId !== '' && n !== nodeId);
      await this.#store.setPublished(volume, rest);
      return {};
    });
  }

  controllerExpandVolume(request: ControllerExpandVolumeRequest): Promise<ControllerExpandVolumeResponse> {
    const { volumeId } = request;
    required(volumeId, 'volume ID');
    if (request.capacityRange === undefined)
      throw new GrpcError(GrpcCode.InvalidArgument, 'capacity range missing in request');
    const bytes = sizeFor(request.capacityRange);
    return this.#store.exclusive(volumeId, async () => {
      const volume = await this.#store.get(volumeId);
      if (volume === undefined) throw noVolume(volumeId);
      const grown = await this.#store.grow(volume, bytes);
      return { capacityBytes: grown.bytes, nodeExpansionRequired: true };
    });
  }

  async validateVolumeCapabilities(
    request: ValidateVolumeCapabilitiesRequest,
  ): Promise<ValidateVolumeCapabilitiesResponse> {
    const volume = await this.#store.get(required(request.volumeId, 'volume ID'));
    if (volume === undefined) throw noVolume(request.volumeId);
    const { volumeCapabilities, volumeContext, parameters } = request;
    if (accessOf(volumeCapabilities) !== volume.access)
      return { message: `the volume has access type ${volume.access}` };
    return { confirmed: { volumeContext, volumeCapabilities, parameters }, message: '' };
  }

  async listVolumes({ maxEntries, startingToken }: ListVolumesRequest): Promise<ListVolumesResponse> {
    const all = (await this.#store.list()).filter((v) => !v.ephemeral);
    const start = startingToken === '' ? 0 : Number(startingToken);
    if (!Number.isInteger(start) || start < 0 || start > all.length)
      throw new GrpcError(GrpcCode.Aborted, `starting token ${startingToken} is not valid`);
    const end = maxEntries > 0 ? Math.min(start + maxEntries, all.length) : all.length;
    return {
      entries: all.slice(start, end).map((v) => ({
        volume: { capacityBytes: v.bytes, volumeId: v.id, volumeContext: {}, accessibleTopology: [] },
        status: { publishedNodeIds: [...v.publishedTo] },
      })),
      nextToken: end < all.length ? String(end) : '',
    };
  }

  async getCapacity(): Promise<GetCapacityResponse> {
    const { bavail, bsize } = await statfs(this.#o.directory);
    return { availableCapacity: bavail * bsize };
  }

  controllerGetCapabilities(): Promise<ControllerGetCapabilitiesResponse> {
    const offered = CAPABILITIES.filter((c) => this.#o.attach || c !== ControllerRpcType.PUBLISH_UNPUBLISH_VOLUME);
    return Promise.resolve({ capabilities: offered.map((type) => ({ rpc: { type } })) });
  }
}
