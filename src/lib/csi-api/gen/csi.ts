// Generated from src/lib/csi-api/proto/csi.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../proto/codec.ts';
import type { Rpc } from '../../grpc/rpc.ts';

export const AccessModeType = {
  UNKNOWN: 0,
  SINGLE_NODE_WRITER: 1,
  SINGLE_NODE_READER_ONLY: 2,
  MULTI_NODE_READER_ONLY: 3,
  MULTI_NODE_SINGLE_WRITER: 4,
  MULTI_NODE_MULTI_WRITER: 5,
  SINGLE_NODE_SINGLE_WRITER: 6,
  SINGLE_NODE_MULTI_WRITER: 7,
} as const;
export type AccessModeType = (typeof AccessModeType)[keyof typeof AccessModeType];

export const PluginServiceType = {
  UNKNOWN: 0,
  CONTROLLER_SERVICE: 1,
  VOLUME_ACCESSIBILITY_CONSTRAINTS: 2,
  GROUP_CONTROLLER_SERVICE: 3,
} as const;
export type PluginServiceType = (typeof PluginServiceType)[keyof typeof PluginServiceType];

export const VolumeExpansionType = {
  UNKNOWN: 0,
  ONLINE: 1,
  OFFLINE: 2,
} as const;
export type VolumeExpansionType = (typeof VolumeExpansionType)[keyof typeof VolumeExpansionType];

export const ControllerRpcType = {
  UNKNOWN: 0,
  CREATE_DELETE_VOLUME: 1,
  PUBLISH_UNPUBLISH_VOLUME: 2,
  LIST_VOLUMES: 3,
  GET_CAPACITY: 4,
  CREATE_DELETE_SNAPSHOT: 5,
  LIST_SNAPSHOTS: 6,
  CLONE_VOLUME: 7,
  PUBLISH_READONLY: 8,
  EXPAND_VOLUME: 9,
  LIST_VOLUMES_PUBLISHED_NODES: 10,
  VOLUME_CONDITION: 11,
  GET_VOLUME: 12,
  SINGLE_NODE_MULTI_WRITER: 13,
  MODIFY_VOLUME: 14,
} as const;
export type ControllerRpcType = (typeof ControllerRpcType)[keyof typeof ControllerRpcType];

export const NodeRpcType = {
  UNKNOWN: 0,
  STAGE_UNSTAGE_VOLUME: 1,
  GET_VOLUME_STATS: 2,
  EXPAND_VOLUME: 3,
  VOLUME_CONDITION: 4,
  SINGLE_NODE_MULTI_WRITER: 5,
  VOLUME_MOUNT_GROUP: 6,
} as const;
export type NodeRpcType = (typeof NodeRpcType)[keyof typeof NodeRpcType];

export const VolumeUsageUnit = {
  UNKNOWN: 0,
  BYTES: 1,
  INODES: 2,
} as const;
export type VolumeUsageUnit = (typeof VolumeUsageUnit)[keyof typeof VolumeUsageUnit];

export type BlockVolume = {
};

export type MountVolume = {
  fsType: string;
  mountFlags: string[];
  volumeMountGroup: string;
};

export type AccessMode = {
  mode: AccessModeType;
};

export type VolumeCapability = {
  block?: BlockVolume | undefined;
  mount?: MountVolume | undefined;
  accessMode?: AccessMode | undefined;
};

export type CapacityRange = {
  requiredBytes: number;
  limitBytes: number;
};

export type Topology = {
  segments: Record<string, string>;
};

export type VolumeCondition = {
  abnormal: boolean;
  message: string;
};

export type GetPluginInfoRequest = {
};

export type GetPluginInfoResponse = {
  name: string;
  vendorVersion: string;
  manifest: Record<string, string>;
};

export type GetPluginCapabilitiesRequest = {
};

export type GetPluginCapabilitiesResponse = {
  capabilities: PluginCapability[];
};

export type PluginCapability = {
  service?: PluginService | undefined;
  volumeExpansion?: VolumeExpansion | undefined;
};

export type PluginService = {
  type: PluginServiceType;
};

export type VolumeExpansion = {
  type: VolumeExpansionType;
};

export type ProbeRequest = {
};

export type ProbeResponse = {
  ready?: BoolValue | undefined;
};

export type BoolValue = {
  value: boolean;
};

export type TopologyRequirement = {
  requisite: Topology[];
  preferred: Topology[];
};

export type Volume = {
  capacityBytes: number;
  volumeId: string;
  volumeContext: Record<string, string>;
  accessibleTopology: Topology[];
};

export type CreateVolumeRequest = {
  name: string;
  capacityRange?: CapacityRange | undefined;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  secrets: Record<string, string>;
  accessibilityRequirements?: TopologyRequirement | undefined;
  mutableParameters: Record<string, string>;
};

export type CreateVolumeResponse = {
  volume?: Volume | undefined;
};

export type DeleteVolumeRequest = {
  volumeId: string;
  secrets: Record<string, string>;
};

export type DeleteVolumeResponse = {
};

export type ControllerPublishVolumeRequest = {
  volumeId: string;
  nodeId: string;
  volumeCapability?: VolumeCapability | undefined;
  readonly: boolean;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
};

export type ControllerPublishVolumeResponse = {
  publishContext: Record<string, string>;
};

export type ControllerUnpublishVolumeRequest = {
  volumeId: string;
  nodeId: string;
  secrets: Record<string, string>;
};

export type ControllerUnpublishVolumeResponse = {
};

export type ValidateVolumeCapabilitiesRequest = {
  volumeId: string;
  volumeContext: Record<string, string>;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  secrets: Record<string, string>;
};

export type ConfirmedCapabilities = {
  volumeContext: Record<string, string>;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
};

export type ValidateVolumeCapabilitiesResponse = {
  confirmed?: ConfirmedCapabilities | undefined;
  message: string;
};

export type ListVolumesRequest = {
  maxEntries: number;
  startingToken: string;
};

export type VolumeStatus = {
  publishedNodeIds: string[];
  volumeCondition?: VolumeCondition | undefined;
};

export type ListVolumesEntry = {
  volume?: Volume | undefined;
  status?: VolumeStatus | undefined;
};

export type ListVolumesResponse = {
  entries: ListVolumesEntry[];
  nextToken: string;
};

export type GetCapacityRequest = {
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  accessibleTopology?: Topology | undefined;
};

export type GetCapacityResponse = {
  availableCapacity: number;
};

export type ControllerGetCapabilitiesRequest = {
};

export type ControllerGetCapabilitiesResponse = {
  capabilities: ControllerServiceCapability[];
};

export type ControllerServiceCapability = {
  rpc?: ControllerRpc | undefined;
};

export type ControllerRpc = {
  type: ControllerRpcType;
};

export type ControllerExpandVolumeRequest = {
  volumeId: string;
  capacityRange?: CapacityRange | undefined;
  secrets: Record<string, string>;
  volumeCapability?: VolumeCapability | undefined;
};

export type ControllerExpandVolumeResponse = {
  capacityBytes: number;
  nodeExpansionRequired: boolean;
};

export type NodeStageVolumeRequest = {
  volumeId: string;
  publishContext: Record<string, string>;
  stagingTargetPath: string;
  volumeCapability?: VolumeCapability | undefined;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
};

export type NodeStageVolumeResponse = {
};

export type NodeUnstageVolumeRequest = {
  volumeId: string;
  stagingTargetPath: string;
};

export type NodeUnstageVolumeResponse = {
};

export type NodePublishVolumeRequest = {
  volumeId: string;
  publishContext: Record<string, string>;
  stagingTargetPath: string;
  targetPath: string;
  volumeCapability?: VolumeCapability | undefined;
  readonly: boolean;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
};

export type NodePublishVolumeResponse = {
};

export type NodeUnpublishVolumeRequest = {
  volumeId: string;
  targetPath: string;
};

export type NodeUnpublishVolumeResponse = {
};

export type NodeGetVolumeStatsRequest = {
  volumeId: string;
  volumePath: string;
  stagingTargetPath: string;
};

export type NodeGetVolumeStatsResponse = {
  usage: VolumeUsage[];
  volumeCondition?: VolumeCondition | undefined;
};

export type VolumeUsage = {
  available: number;
  total: number;
  used: number;
  unit: VolumeUsageUnit;
};

export type NodeExpandVolumeRequest = {
  volumeId: string;
  volumePath: string;
  capacityRange?: CapacityRange | undefined;
  stagingTargetPath: string;
  volumeCapability?: VolumeCapability | undefined;
  secrets: Record<string, string>;
};

export type NodeExpandVolumeResponse = {
  capacityBytes: number;
};

export type NodeGetCapabilitiesRequest = {
};

export type NodeGetCapabilitiesResponse = {
  capabilities: NodeServiceCapability[];
};

export type NodeServiceCapability = {
  rpc?: NodeRpc | undefined;
};

export type NodeRpc = {
  type: NodeRpcType;
};

export type NodeGetInfoRequest = {
};

export type NodeGetInfoResponse = {
  nodeId: string;
  maxVolumesPerNode: number;
  accessibleTopology?: Topology | undefined;
};

const BlockVolumeFields = (): readonly FieldSpec[] => (BlockVolumeTable ??= [
  ]);
let BlockVolumeTable: readonly FieldSpec[] | undefined;
export const BlockVolume: MessageType<BlockVolume> = { spec: { name: 'csi.v1.BlockVolume', fields: BlockVolumeFields } };

const MountVolumeFields = (): readonly FieldSpec[] => (MountVolumeTable ??= [
    { no: 1, name: 'fsType', type: 'string' },
    { no: 2, name: 'mountFlags', type: 'string', repeated: true },
    { no: 3, name: 'volumeMountGroup', type: 'string' },
  ]);
let MountVolumeTable: readonly FieldSpec[] | undefined;
export const MountVolume: MessageType<MountVolume> = { spec: { name: 'csi.v1.MountVolume', fields: MountVolumeFields } };

const AccessModeFields = (): readonly FieldSpec[] => (AccessModeTable ??= [
    { no: 1, name: 'mode', type: 'enum' },
  ]);
let AccessModeTable: readonly FieldSpec[] | undefined;
export const AccessMode: MessageType<AccessMode> = { spec: { name: 'csi.v1.AccessMode', fields: AccessModeFields } };

const VolumeCapabilityFields = (): readonly FieldSpec[] => (VolumeCapabilityTable ??= [
    { no: 1, name: 'block', type: BlockVolume.spec },
    { no: 2, name: 'mount', type: MountVolume.spec },
    { no: 3, name: 'accessMode', type: AccessMode.spec },
  ]);
let VolumeCapabilityTable: readonly FieldSpec[] | undefined;
export const VolumeCapability: MessageType<VolumeCapability> = { spec: { name: 'csi.v1.VolumeCapability', fields: VolumeCapabilityFields } };

const CapacityRangeFields = (): readonly FieldSpec[] => (CapacityRangeTable ??= [
    { no: 1, name: 'requiredBytes', type: 'int64' },
    { no: 2, name: 'limitBytes', type: 'int64' },
  ]);
let CapacityRangeTable: readonly FieldSpec[] | undefined;
export const CapacityRange: MessageType<CapacityRange> = { spec: { name: 'csi.v1.CapacityRange', fields: CapacityRangeFields } };

const TopologyFields = (): readonly FieldSpec[] => (TopologyTable ??= [
    { no: 1, name: 'segments', type: 'map' },
  ]);
let TopologyTable: readonly FieldSpec[] | undefined;
export const Topology: MessageType<Topology> = { spec: { name: 'csi.v1.Topology', fields: TopologyFields } };

const VolumeConditionFields = (): readonly FieldSpec[] => (VolumeConditionTable ??= [
    { no: 1, name: 'abnormal', type: 'bool' },
    { no: 2, name: 'message', type: 'string' },
  ]);
let VolumeConditionTable: readonly FieldSpec[] | undefined;
export const VolumeCondition: MessageType<VolumeCondition> = { spec: { name: 'csi.v1.VolumeCondition', fields: VolumeConditionFields } };

const GetPluginInfoRequestFields = (): readonly FieldSpec[] => (GetPluginInfoRequestTable ??= [
  ]);
let GetPluginInfoRequestTable: readonly FieldSpec[] | undefined;
export const GetPluginInfoRequest: MessageType<GetPluginInfoRequest> = { spec: { name: 'csi.v1.GetPluginInfoRequest', fields: GetPluginInfoRequestFields } };

const GetPluginInfoResponseFields = (): readonly FieldSpec[] => (GetPluginInfoResponseTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'vendorVersion', type: 'string' },
    { no: 3, name: 'manifest', type: 'map' },
  ]);
let GetPluginInfoResponseTable: readonly FieldSpec[] | undefined;
export const GetPluginInfoResponse: MessageType<GetPluginInfoResponse> = { spec: { name: 'csi.v1.GetPluginInfoResponse', fields: GetPluginInfoResponseFields } };

const GetPluginCapabilitiesRequestFields = (): readonly FieldSpec[] => (GetPluginCapabilitiesRequestTable ??= [
  ]);
let GetPluginCapabilitiesRequestTable: readonly FieldSpec[] | undefined;
export const GetPluginCapabilitiesRequest: MessageType<GetPluginCapabilitiesRequest> = { spec: { name: 'csi.v1.GetPluginCapabilitiesRequest', fields: GetPluginCapabilitiesRequestFields } };

const GetPluginCapabilitiesResponseFields = (): readonly FieldSpec[] => (GetPluginCapabilitiesResponseTable ??= [
    { no: 1, name: 'capabilities', type: PluginCapability.spec, repeated: true },
  ]);
let GetPluginCapabilitiesResponseTable: readonly FieldSpec[] | undefined;
export const GetPluginCapabilitiesResponse: MessageType<GetPluginCapabilitiesResponse> = { spec: { name: 'csi.v1.GetPluginCapabilitiesResponse', fields: GetPluginCapabilitiesResponseFields } };

const PluginCapabilityFields = (): readonly FieldSpec[] => (PluginCapabilityTable ??= [
    { no: 1, name: 'service', type: PluginService.spec },
    { no: 2, name: 'volumeExpansion', type: VolumeExpansion.spec },
  ]);
let PluginCapabilityTable: readonly FieldSpec[] | undefined;
export const PluginCapability: MessageType<PluginCapability> = { spec: { name: 'csi.v1.PluginCapability', fields: PluginCapabilityFields } };

const PluginServiceFields = (): readonly FieldSpec[] => (PluginServiceTable ??= [
    { no: 1, name: 'type', type: 'enum' },
  ]);
let PluginServiceTable: readonly FieldSpec[] | undefined;
export const PluginService: MessageType<PluginService> = { spec: { name: 'csi.v1.PluginService', fields: PluginServiceFields } };

const VolumeExpansionFields = (): readonly FieldSpec[] => (VolumeExpansionTable ??= [
    { no: 1, name: 'type', type: 'enum' },
  ]);
let VolumeExpansionTable: readonly FieldSpec[] | undefined;
export const VolumeExpansion: MessageType<VolumeExpansion> = { spec: { name: 'csi.v1.VolumeExpansion', fields: VolumeExpansionFields } };

const ProbeRequestFields = (): readonly FieldSpec[] => (ProbeRequestTable ??= [
  ]);
let ProbeRequestTable: readonly FieldSpec[] | undefined;
export const ProbeRequest: MessageType<ProbeRequest> = { spec: { name: 'csi.v1.ProbeRequest', fields: ProbeRequestFields } };

const ProbeResponseFields = (): readonly FieldSpec[] => (ProbeResponseTable ??= [
    { no: 1, name: 'ready', type: BoolValue.spec },
  ]);
let ProbeResponseTable: readonly FieldSpec[] | undefined;
export const ProbeResponse: MessageType<ProbeResponse> = { spec: { name: 'csi.v1.ProbeResponse', fields: ProbeResponseFields } };

const BoolValueFields = (): readonly FieldSpec[] => (BoolValueTable ??= [
    { no: 1, name: 'value', type: 'bool' },
  ]);
let BoolValueTable: readonly FieldSpec[] | undefined;
export const BoolValue: MessageType<BoolValue> = { spec: { name: 'csi.v1.BoolValue', fields: BoolValueFields } };

const TopologyRequirementFields = (): readonly FieldSpec[] => (TopologyRequirementTable ??= [
    { no: 1, name: 'requisite', type: Topology.spec, repeated: true },
    { no: 2, name: 'preferred', type: Topology.spec, repeated: true },
  ]);
let TopologyRequirementTable: readonly FieldSpec[] | undefined;
export const TopologyRequirement: MessageType<TopologyRequirement> = { spec: { name: 'csi.v1.TopologyRequirement', fields: TopologyRequirementFields } };

const VolumeFields = (): readonly FieldSpec[] => (VolumeTable ??= [
    { no: 1, name: 'capacityBytes', type: 'int64' },
    { no: 2, name: 'volumeId', type: 'string' },
    { no: 3, name: 'volumeContext', type: 'map' },
    { no: 5, name: 'accessibleTopology', type: Topology.spec, repeated: true },
  ]);
let VolumeTable: readonly FieldSpec[] | undefined;
export const Volume: MessageType<Volume> = { spec: { name: 'csi.v1.Volume', fields: VolumeFields } };

const CreateVolumeRequestFields = (): readonly FieldSpec[] => (CreateVolumeRequestTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'capacityRange', type: CapacityRange.spec },
    { no: 3, name: 'volumeCapabilities', type: VolumeCapability.spec, repeated: true },
    { no: 4, name: 'parameters', type: 'map' },
    { no: 5, name: 'secrets', type: 'map' },
    { no: 7, name: 'accessibilityRequirements', type: TopologyRequirement.spec },
    { no: 8, name: 'mutableParameters', type: 'map' },
  ]);
let CreateVolumeRequestTable: readonly FieldSpec[] | undefined;
export const CreateVolumeRequest: MessageType<CreateVolumeRequest> = { spec: { name: 'csi.v1.CreateVolumeRequest', fields: CreateVolumeRequestFields } };

const CreateVolumeResponseFields = (): readonly FieldSpec[] => (CreateVolumeResponseTable ??= [
    { no: 1, name: 'volume', type: Volume.spec },
  ]);
let CreateVolumeResponseTable: readonly FieldSpec[] | undefined;
export const CreateVolumeResponse: MessageType<CreateVolumeResponse> = { spec: { name: 'csi.v1.CreateVolumeResponse', fields: CreateVolumeResponseFields } };

const DeleteVolumeRequestFields = (): readonly FieldSpec[] => (DeleteVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'secrets', type: 'map' },
  ]);
let DeleteVolumeRequestTable: readonly FieldSpec[] | undefined;
export const DeleteVolumeRequest: MessageType<DeleteVolumeRequest> = { spec: { name: 'csi.v1.DeleteVolumeRequest', fields: DeleteVolumeRequestFields } };

const DeleteVolumeResponseFields = (): readonly FieldSpec[] => (DeleteVolumeResponseTable ??= [
  ]);
let DeleteVolumeResponseTable: readonly FieldSpec[] | undefined;
export const DeleteVolumeResponse: MessageType<DeleteVolumeResponse> = { spec: { name: 'csi.v1.DeleteVolumeResponse', fields: DeleteVolumeResponseFields } };

const ControllerPublishVolumeRequestFields = (): readonly FieldSpec[] => (ControllerPublishVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'nodeId', type: 'string' },
    { no: 3, name: 'volumeCapability', type: VolumeCapability.spec },
    { no: 4, name: 'readonly', type: 'bool' },
    { no: 5, name: 'secrets', type: 'map' },
    { no: 6, name: 'volumeContext', type: 'map' },
  ]);
let ControllerPublishVolumeRequestTable: readonly FieldSpec[] | undefined;
export const ControllerPublishVolumeRequest: MessageType<ControllerPublishVolumeRequest> = { spec: { name: 'csi.v1.ControllerPublishVolumeRequest', fields: ControllerPublishVolumeRequestFields } };

const ControllerPublishVolumeResponseFields = (): readonly FieldSpec[] => (ControllerPublishVolumeResponseTable ??= [
    { no: 1, name: 'publishContext', type: 'map' },
  ]);
let ControllerPublishVolumeResponseTable: readonly FieldSpec[] | undefined;
export const ControllerPublishVolumeResponse: MessageType<ControllerPublishVolumeResponse> = { spec: { name: 'csi.v1.ControllerPublishVolumeResponse', fields: ControllerPublishVolumeResponseFields } };

const ControllerUnpublishVolumeRequestFields = (): readonly FieldSpec[] => (ControllerUnpublishVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'nodeId', type: 'string' },
    { no: 3, name: 'secrets', type: 'map' },
  ]);
let ControllerUnpublishVolumeRequestTable: readonly FieldSpec[] | undefined;
export const ControllerUnpublishVolumeRequest: MessageType<ControllerUnpublishVolumeRequest> = { spec: { name: 'csi.v1.ControllerUnpublishVolumeRequest', fields: ControllerUnpublishVolumeRequestFields } };

const ControllerUnpublishVolumeResponseFields = (): readonly FieldSpec[] => (ControllerUnpublishVolumeResponseTable ??= [
  ]);
let ControllerUnpublishVolumeResponseTable: readonly FieldSpec[] | undefined;
export const ControllerUnpublishVolumeResponse: MessageType<ControllerUnpublishVolumeResponse> = { spec: { name: 'csi.v1.ControllerUnpublishVolumeResponse', fields: ControllerUnpublishVolumeResponseFields } };

const ValidateVolumeCapabilitiesRequestFields = (): readonly FieldSpec[] => (ValidateVolumeCapabilitiesRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'volumeContext', type: 'map' },
    { no: 3, name: 'volumeCapabilities', type: VolumeCapability.spec, repeated: true },
    { no: 4, name: 'parameters', type: 'map' },
    { no: 5, name: 'secrets', type: 'map' },
  ]);
let ValidateVolumeCapabilitiesRequestTable: readonly FieldSpec[] | undefined;
export const ValidateVolumeCapabilitiesRequest: MessageType<ValidateVolumeCapabilitiesRequest> = { spec: { name: 'csi.v1.ValidateVolumeCapabilitiesRequest', fields: ValidateVolumeCapabilitiesRequestFields } };

const ConfirmedCapabilitiesFields = (): readonly FieldSpec[] => (ConfirmedCapabilitiesTable ??= [
    { no: 1, name: 'volumeContext', type: 'map' },
    { no: 2, name: 'volumeCapabilities', type: VolumeCapability.spec, repeated: true },
    { no: 3, name: 'parameters', type: 'map' },
  ]);
let ConfirmedCapabilitiesTable: readonly FieldSpec[] | undefined;
export const ConfirmedCapabilities: MessageType<ConfirmedCapabilities> = { spec: { name: 'csi.v1.ConfirmedCapabilities', fields: ConfirmedCapabilitiesFields } };

const ValidateVolumeCapabilitiesResponseFields = (): readonly FieldSpec[] => (ValidateVolumeCapabilitiesResponseTable ??= [
    { no: 1, name: 'confirmed', type: ConfirmedCapabilities.spec },
    { no: 2, name: 'message', type: 'string' },
  ]);
let ValidateVolumeCapabilitiesResponseTable: readonly FieldSpec[] | undefined;
export const ValidateVolumeCapabilitiesResponse: MessageType<ValidateVolumeCapabilitiesResponse> = { spec: { name: 'csi.v1.ValidateVolumeCapabilitiesResponse', fields: ValidateVolumeCapabilitiesResponseFields } };

const ListVolumesRequestFields = (): readonly FieldSpec[] => (ListVolumesRequestTable ??= [
    { no: 1, name: 'maxEntries', type: 'int32' },
    { no: 2, name: 'startingToken', type: 'string' },
  ]);
let ListVolumesRequestTable: readonly FieldSpec[] | undefined;
export const ListVolumesRequest: MessageType<ListVolumesRequest> = { spec: { name: 'csi.v1.ListVolumesRequest', fields: ListVolumesRequestFields } };

const VolumeStatusFields = (): readonly FieldSpec[] => (VolumeStatusTable ??= [
    { no: 1, name: 'publishedNodeIds', type: 'string', repeated: true },
    { no: 2, name: 'volumeCondition', type: VolumeCondition.spec },
  ]);
let VolumeStatusTable: readonly FieldSpec[] | undefined;
export const VolumeStatus: MessageType<VolumeStatus> = { spec: { name: 'csi.v1.VolumeStatus', fields: VolumeStatusFields } };

const ListVolumesEntryFields = (): readonly FieldSpec[] => (ListVolumesEntryTable ??= [
    { no: 1, name: 'volume', type: Volume.spec },
    { no: 2, name: 'status', type: VolumeStatus.spec },
  ]);
let ListVolumesEntryTable: readonly FieldSpec[] | undefined;
export const ListVolumesEntry: MessageType<ListVolumesEntry> = { spec: { name: 'csi.v1.ListVolumesEntry', fields: ListVolumesEntryFields } };

const ListVolumesResponseFields = (): readonly FieldSpec[] => (ListVolumesResponseTable ??= [
    { no: 1, name: 'entries', type: ListVolumesEntry.spec, repeated: true },
    { no: 2, name: 'nextToken', type: 'string' },
  ]);
let ListVolumesResponseTable: readonly FieldSpec[] | undefined;
export const ListVolumesResponse: MessageType<ListVolumesResponse> = { spec: { name: 'csi.v1.ListVolumesResponse', fields: ListVolumesResponseFields } };

const GetCapacityRequestFields = (): readonly FieldSpec[] => (GetCapacityRequestTable ??= [
    { no: 1, name: 'volumeCapabilities', type: VolumeCapability.spec, repeated: true },
    { no: 2, name: 'parameters', type: 'map' },
    { no: 3, name: 'accessibleTopology', type: Topology.spec },
  ]);
let GetCapacityRequestTable: readonly FieldSpec[] | undefined;
export const GetCapacityRequest: MessageType<GetCapacityRequest> = { spec: { name: 'csi.v1.GetCapacityRequest', fields: GetCapacityRequestFields } };

const GetCapacityResponseFields = (): readonly FieldSpec[] => (GetCapacityResponseTable ??= [
    { no: 1, name: 'availableCapacity', type: 'int64' },
  ]);
let GetCapacityResponseTable: readonly FieldSpec[] | undefined;
export const GetCapacityResponse: MessageType<GetCapacityResponse> = { spec: { name: 'csi.v1.GetCapacityResponse', fields: GetCapacityResponseFields } };

const ControllerGetCapabilitiesRequestFields = (): readonly FieldSpec[] => (ControllerGetCapabilitiesRequestTable ??= [
  ]);
let ControllerGetCapabilitiesRequestTable: readonly FieldSpec[] | undefined;
export const ControllerGetCapabilitiesRequest: MessageType<ControllerGetCapabilitiesRequest> = { spec: { name: 'csi.v1.ControllerGetCapabilitiesRequest', fields: ControllerGetCapabilitiesRequestFields } };

const ControllerGetCapabilitiesResponseFields = (): readonly FieldSpec[] => (ControllerGetCapabilitiesResponseTable ??= [
    { no: 1, name: 'capabilities', type: ControllerServiceCapability.spec, repeated: true },
  ]);
let ControllerGetCapabilitiesResponseTable: readonly FieldSpec[] | undefined;
export const ControllerGetCapabilitiesResponse: MessageType<ControllerGetCapabilitiesResponse> = { spec: { name: 'csi.v1.ControllerGetCapabilitiesResponse', fields: ControllerGetCapabilitiesResponseFields } };

const ControllerServiceCapabilityFields = (): readonly FieldSpec[] => (ControllerServiceCapabilityTable ??= [
    { no: 1, name: 'rpc', type: ControllerRpc.spec },
  ]);
let ControllerServiceCapabilityTable: readonly FieldSpec[] | undefined;
export const ControllerServiceCapability: MessageType<ControllerServiceCapability> = { spec: { name: 'csi.v1.ControllerServiceCapability', fields: ControllerServiceCapabilityFields } };

const ControllerRpcFields = (): readonly FieldSpec[] => (ControllerRpcTable ??= [
    { no: 1, name: 'type', type: 'enum' },
  ]);
let ControllerRpcTable: readonly FieldSpec[] | undefined;
export const ControllerRpc: MessageType<ControllerRpc> = { spec: { name: 'csi.v1.ControllerRpc', fields: ControllerRpcFields } };

const ControllerExpandVolumeRequestFields = (): readonly FieldSpec[] => (ControllerExpandVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'capacityRange', type: CapacityRange.spec },
    { no: 3, name: 'secrets', type: 'map' },
    { no: 4, name: 'volumeCapability', type: VolumeCapability.spec },
  ]);
let ControllerExpandVolumeRequestTable: readonly FieldSpec[] | undefined;
export const ControllerExpandVolumeRequest: MessageType<ControllerExpandVolumeRequest> = { spec: { name: 'csi.v1.ControllerExpandVolumeRequest', fields: ControllerExpandVolumeRequestFields } };

const ControllerExpandVolumeResponseFields = (): readonly FieldSpec[] => (ControllerExpandVolumeResponseTable ??= [
    { no: 1, name: 'capacityBytes', type: 'int64' },
    { no: 2, name: 'nodeExpansionRequired', type: 'bool' },
  ]);
let ControllerExpandVolumeResponseTable: readonly FieldSpec[] | undefined;
export const ControllerExpandVolumeResponse: MessageType<ControllerExpandVolumeResponse> = { spec: { name: 'csi.v1.ControllerExpandVolumeResponse', fields: ControllerExpandVolumeResponseFields } };

const NodeStageVolumeRequestFields = (): readonly FieldSpec[] => (NodeStageVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'publishContext', type: 'map' },
    { no: 3, name: 'stagingTargetPath', type: 'string' },
    { no: 4, name: 'volumeCapability', type: VolumeCapability.spec },
    { no: 5, name: 'secrets', type: 'map' },
    { no: 6, name: 'volumeContext', type: 'map' },
  ]);
let NodeStageVolumeRequestTable: readonly FieldSpec[] | undefined;
export const NodeStageVolumeRequest: MessageType<NodeStageVolumeRequest> = { spec: { name: 'csi.v1.NodeStageVolumeRequest', fields: NodeStageVolumeRequestFields } };

const NodeStageVolumeResponseFields = (): readonly FieldSpec[] => (NodeStageVolumeResponseTable ??= [
  ]);
let NodeStageVolumeResponseTable: readonly FieldSpec[] | undefined;
export const NodeStageVolumeResponse: MessageType<NodeStageVolumeResponse> = { spec: { name: 'csi.v1.NodeStageVolumeResponse', fields: NodeStageVolumeResponseFields } };

const NodeUnstageVolumeRequestFields = (): readonly FieldSpec[] => (NodeUnstageVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'stagingTargetPath', type: 'string' },
  ]);
let NodeUnstageVolumeRequestTable: readonly FieldSpec[] | undefined;
export const NodeUnstageVolumeRequest: MessageType<NodeUnstageVolumeRequest> = { spec: { name: 'csi.v1.NodeUnstageVolumeRequest', fields: NodeUnstageVolumeRequestFields } };

const NodeUnstageVolumeResponseFields = (): readonly FieldSpec[] => (NodeUnstageVolumeResponseTable ??= [
  ]);
let NodeUnstageVolumeResponseTable: readonly FieldSpec[] | undefined;
export const NodeUnstageVolumeResponse: MessageType<NodeUnstageVolumeResponse> = { spec: { name: 'csi.v1.NodeUnstageVolumeResponse', fields: NodeUnstageVolumeResponseFields } };

const NodePublishVolumeRequestFields = (): readonly FieldSpec[] => (NodePublishVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'publishContext', type: 'map' },
    { no: 3, name: 'stagingTargetPath', type: 'string' },
    { no: 4, name: 'targetPath', type: 'string' },
    { no: 5, name: 'volumeCapability', type: VolumeCapability.spec },
    { no: 6, name: 'readonly', type: 'bool' },
    { no: 7, name: 'secrets', type: 'map' },
    { no: 8, name: 'volumeContext', type: 'map' },
  ]);
let NodePublishVolumeRequestTable: readonly FieldSpec[] | undefined;
export const NodePublishVolumeRequest: MessageType<NodePublishVolumeRequest> = { spec: { name: 'csi.v1.NodePublishVolumeRequest', fields: NodePublishVolumeRequestFields } };

const NodePublishVolumeResponseFields = (): readonly FieldSpec[] => (NodePublishVolumeResponseTable ??= [
  ]);
let NodePublishVolumeResponseTable: readonly FieldSpec[] | undefined;
export const NodePublishVolumeResponse: MessageType<NodePublishVolumeResponse> = { spec: { name: 'csi.v1.NodePublishVolumeResponse', fields: NodePublishVolumeResponseFields } };

const NodeUnpublishVolumeRequestFields = (): readonly FieldSpec[] => (NodeUnpublishVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'targetPath', type: 'string' },
  ]);
let NodeUnpublishVolumeRequestTable: readonly FieldSpec[] | undefined;
export const NodeUnpublishVolumeRequest: MessageType<NodeUnpublishVolumeRequest> = { spec: { name: 'csi.v1.NodeUnpublishVolumeRequest', fields: NodeUnpublishVolumeRequestFields } };

const NodeUnpublishVolumeResponseFields = (): readonly FieldSpec[] => (NodeUnpublishVolumeResponseTable ??= [
  ]);
let NodeUnpublishVolumeResponseTable: readonly FieldSpec[] | undefined;
export const NodeUnpublishVolumeResponse: MessageType<NodeUnpublishVolumeResponse> = { spec: { name: 'csi.v1.NodeUnpublishVolumeResponse', fields: NodeUnpublishVolumeResponseFields } };

const NodeGetVolumeStatsRequestFields = (): readonly FieldSpec[] => (NodeGetVolumeStatsRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'volumePath', type: 'string' },
    { no: 3, name: 'stagingTargetPath', type: 'string' },
  ]);
let NodeGetVolumeStatsRequestTable: readonly FieldSpec[] | undefined;
export const NodeGetVolumeStatsRequest: MessageType<NodeGetVolumeStatsRequest> = { spec: { name: 'csi.v1.NodeGetVolumeStatsRequest', fields: NodeGetVolumeStatsRequestFields } };

const NodeGetVolumeStatsResponseFields = (): readonly FieldSpec[] => (NodeGetVolumeStatsResponseTable ??= [
    { no: 1, name: 'usage', type: VolumeUsage.spec, repeated: true },
    { no: 2, name: 'volumeCondition', type: VolumeCondition.spec },
  ]);
let NodeGetVolumeStatsResponseTable: readonly FieldSpec[] | undefined;
export const NodeGetVolumeStatsResponse: MessageType<NodeGetVolumeStatsResponse> = { spec: { name: 'csi.v1.NodeGetVolumeStatsResponse', fields: NodeGetVolumeStatsResponseFields } };

const VolumeUsageFields = (): readonly FieldSpec[] => (VolumeUsageTable ??= [
    { no: 1, name: 'available', type: 'int64' },
    { no: 2, name: 'total', type: 'int64' },
    { no: 3, name: 'used', type: 'int64' },
    { no: 4, name: 'unit', type: 'enum' },
  ]);
let VolumeUsageTable: readonly FieldSpec[] | undefined;
export const VolumeUsage: MessageType<VolumeUsage> = { spec: { name: 'csi.v1.VolumeUsage', fields: VolumeUsageFields } };

const NodeExpandVolumeRequestFields = (): readonly FieldSpec[] => (NodeExpandVolumeRequestTable ??= [
    { no: 1, name: 'volumeId', type: 'string' },
    { no: 2, name: 'volumePath', type: 'string' },
    { no: 3, name: 'capacityRange', type: CapacityRange.spec },
    { no: 4, name: 'stagingTargetPath', type: 'string' },
    { no: 5, name: 'volumeCapability', type: VolumeCapability.spec },
    { no: 6, name: 'secrets', type: 'map' },
  ]);
let NodeExpandVolumeRequestTable: readonly FieldSpec[] | undefined;
export const NodeExpandVolumeRequest: MessageType<NodeExpandVolumeRequest> = { spec: { name: 'csi.v1.NodeExpandVolumeRequest', fields: NodeExpandVolumeRequestFields } };

const NodeExpandVolumeResponseFields = (): readonly FieldSpec[] => (NodeExpandVolumeResponseTable ??= [
    { no: 1, name: 'capacityBytes', type: 'int64' },
  ]);
let NodeExpandVolumeResponseTable: readonly FieldSpec[] | undefined;
export const NodeExpandVolumeResponse: MessageType<NodeExpandVolumeResponse> = { spec: { name: 'csi.v1.NodeExpandVolumeResponse', fields: NodeExpandVolumeResponseFields } };

const NodeGetCapabilitiesRequestFields = (): readonly FieldSpec[] => (NodeGetCapabilitiesRequestTable ??= [
  ]);
let NodeGetCapabilitiesRequestTable: readonly FieldSpec[] | undefined;
export const NodeGetCapabilitiesRequest: MessageType<NodeGetCapabilitiesRequest> = { spec: { name: 'csi.v1.NodeGetCapabilitiesRequest', fields: NodeGetCapabilitiesRequestFields } };

const NodeGetCapabilitiesResponseFields = (): readonly FieldSpec[] => (NodeGetCapabilitiesResponseTable ??= [
    { no: 1, name: 'capabilities', type: NodeServiceCapability.spec, repeated: true },
  ]);
let NodeGetCapabilitiesResponseTable: readonly FieldSpec[] | undefined;
export const NodeGetCapabilitiesResponse: MessageType<NodeGetCapabilitiesResponse> = { spec: { name: 'csi.v1.NodeGetCapabilitiesResponse', fields: NodeGetCapabilitiesResponseFields } };

const NodeServiceCapabilityFields = (): readonly FieldSpec[] => (NodeServiceCapabilityTable ??= [
    { no: 1, name: 'rpc', type: NodeRpc.spec },
  ]);
let NodeServiceCapabilityTable: readonly FieldSpec[] | undefined;
export const NodeServiceCapability: MessageType<NodeServiceCapability> = { spec: { name: 'csi.v1.NodeServiceCapability', fields: NodeServiceCapabilityFields } };

const NodeRpcFields = (): readonly FieldSpec[] => (NodeRpcTable ??= [
    { no: 1, name: 'type', type: 'enum' },
  ]);
let NodeRpcTable: readonly FieldSpec[] | undefined;
export const NodeRpc: MessageType<NodeRpc> = { spec: { name: 'csi.v1.NodeRpc', fields: NodeRpcFields } };

const NodeGetInfoRequestFields = (): readonly FieldSpec[] => (NodeGetInfoRequestTable ??= [
  ]);
let NodeGetInfoRequestTable: readonly FieldSpec[] | undefined;
export const NodeGetInfoRequest: MessageType<NodeGetInfoRequest> = { spec: { name: 'csi.v1.NodeGetInfoRequest', fields: NodeGetInfoRequestFields } };

const NodeGetInfoResponseFields = (): readonly FieldSpec[] => (NodeGetInfoResponseTable ??= [
    { no: 1, name: 'nodeId', type: 'string' },
    { no: 2, name: 'maxVolumesPerNode', type: 'int64' },
    { no: 3, name: 'accessibleTopology', type: Topology.spec },
  ]);
let NodeGetInfoResponseTable: readonly FieldSpec[] | undefined;
export const NodeGetInfoResponse: MessageType<NodeGetInfoResponse> = { spec: { name: 'csi.v1.NodeGetInfoResponse', fields: NodeGetInfoResponseFields } };

export const Identity = {
  getPluginInfo: { path: '/csi.v1.Identity/GetPluginInfo', request: GetPluginInfoRequest, response: GetPluginInfoResponse } satisfies Rpc<GetPluginInfoRequest, GetPluginInfoResponse>,
  getPluginCapabilities: { path: '/csi.v1.Identity/GetPluginCapabilities', request: GetPluginCapabilitiesRequest, response: GetPluginCapabilitiesResponse } satisfies Rpc<GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse>,
  probe: { path: '/csi.v1.Identity/Probe', request: ProbeRequest, response: ProbeResponse } satisfies Rpc<ProbeRequest, ProbeResponse>,
} as const;

export const Controller = {
  createVolume: { path: '/csi.v1.Controller/CreateVolume', request: CreateVolumeRequest, response: CreateVolumeResponse } satisfies Rpc<CreateVolumeRequest, CreateVolumeResponse>,
  deleteVolume: { path: '/csi.v1.Controller/DeleteVolume', request: DeleteVolumeRequest, response: DeleteVolumeResponse } satisfies Rpc<DeleteVolumeRequest, DeleteVolumeResponse>,
  controllerPublishVolume: { path: '/csi.v1.Controller/ControllerPublishVolume', request: ControllerPublishVolumeRequest, response: ControllerPublishVolumeResponse } satisfies Rpc<ControllerPublishVolumeRequest, ControllerPublishVolumeResponse>,
  controllerUnpublishVolume: { path: '/csi.v1.Controller/ControllerUnpublishVolume', request: ControllerUnpublishVolumeRequest, response: ControllerUnpublishVolumeResponse } satisfies Rpc<ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse>,
  validateVolumeCapabilities: { path: '/csi.v1.Controller/ValidateVolumeCapabilities', request: ValidateVolumeCapabilitiesRequest, response: ValidateVolumeCapabilitiesResponse } satisfies Rpc<ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse>,
  listVolumes: { path: '/csi.v1.Controller/ListVolumes', request: ListVolumesRequest, response: ListVolumesResponse } satisfies Rpc<ListVolumesRequest, ListVolumesResponse>,
  getCapacity: { path: '/csi.v1.Controller/GetCapacity', request: GetCapacityRequest, response: GetCapacityResponse } satisfies Rpc<GetCapacityRequest, GetCapacityResponse>,
  controllerGetCapabilities: { path: '/csi.v1.Controller/ControllerGetCapabilities', request: ControllerGetCapabilitiesRequest, response: ControllerGetCapabilitiesResponse } satisfies Rpc<ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse>,
  controllerExpandVolume: { path: '/csi.v1.Controller/ControllerExpandVolume', request: ControllerExpandVolumeRequest, response: ControllerExpandVolumeResponse } satisfies Rpc<ControllerExpandVolumeRequest, ControllerExpandVolumeResponse>,
} as const;

export const Node = {
  nodeStageVolume: { path: '/csi.v1.Node/NodeStageVolume', request: NodeStageVolumeRequest, response: NodeStageVolumeResponse } satisfies Rpc<NodeStageVolumeRequest, NodeStageVolumeResponse>,
  nodeUnstageVolume: { path: '/csi.v1.Node/NodeUnstageVolume', request: NodeUnstageVolumeRequest, response: NodeUnstageVolumeResponse } satisfies Rpc<NodeUnstageVolumeRequest, NodeUnstageVolumeResponse>,
  nodePublishVolume: { path: '/csi.v1.Node/NodePublishVolume', request: NodePublishVolumeRequest, response: NodePublishVolumeResponse } satisfies Rpc<NodePublishVolumeRequest, NodePublishVolumeResponse>,
  nodeUnpublishVolume: { path: '/csi.v1.Node/NodeUnpublishVolume', request: NodeUnpublishVolumeRequest, response: NodeUnpublishVolumeResponse } satisfies Rpc<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>,
  nodeGetVolumeStats: { path: '/csi.v1.Node/NodeGetVolumeStats', request: NodeGetVolumeStatsRequest, response: NodeGetVolumeStatsResponse } satisfies Rpc<NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse>,
  nodeExpandVolume: { path: '/csi.v1.Node/NodeExpandVolume', request: NodeExpandVolumeRequest, response: NodeExpandVolumeResponse } satisfies Rpc<NodeExpandVolumeRequest, NodeExpandVolumeResponse>,
  nodeGetCapabilities: { path: '/csi.v1.Node/NodeGetCapabilities', request: NodeGetCapabilitiesRequest, response: NodeGetCapabilitiesResponse } satisfies Rpc<NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse>,
  nodeGetInfo: { path: '/csi.v1.Node/NodeGetInfo', request: NodeGetInfoRequest, response: NodeGetInfoResponse } satisfies Rpc<NodeGetInfoRequest, NodeGetInfoResponse>,
} as const;

