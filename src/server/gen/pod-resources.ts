// Generated from src/server/proto/pod-resources.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type AllocatableResourcesRequest = {
};

export type AllocatableResourcesResponse = {
  devices: ContainerDevices[];
  cpuIds: number[];
  memory: ContainerMemory[];
};

export type ListPodResourcesRequest = {
};

export type ListPodResourcesResponse = {
  podResources: PodResources[];
};

export type PodResources = {
  name: string;
  namespace: string;
  containers: ContainerResources[];
};

export type ContainerResources = {
  name: string;
  devices: ContainerDevices[];
  cpuIds: number[];
  memory: ContainerMemory[];
  dynamicResources: DynamicResource[];
};

export type ContainerMemory = {
  memoryType: string;
  size: number;
  topology?: TopologyInfo | undefined;
};

export type ContainerDevices = {
  resourceName: string;
  deviceIds: string[];
  topology?: TopologyInfo | undefined;
};

export type TopologyInfo = {
  nodes: NUMANode[];
};

export type NUMANode = {
  ID: number;
};

export type DynamicResource = {
  claimName: string;
  claimNamespace: string;
  claimResources: ClaimResource[];
};

export type ClaimResource = {
  cdiDevices: CDIDevice[];
  driverName: string;
  poolName: string;
  deviceName: string;
  shareId: string;
};

export type CDIDevice = {
  name: string;
};

export type GetPodResourcesRequest = {
  podName: string;
  podNamespace: string;
};

export type GetPodResourcesResponse = {
  podResources?: PodResources | undefined;
};

const AllocatableResourcesRequestFields = (): readonly FieldSpec[] => (AllocatableResourcesRequestTable ??= [
  ]);
let AllocatableResourcesRequestTable: readonly FieldSpec[] | undefined;
export const AllocatableResourcesRequest: MessageType<AllocatableResourcesRequest> = { spec: { name: 'v1.AllocatableResourcesRequest', fields: AllocatableResourcesRequestFields } };

const AllocatableResourcesResponseFields = (): readonly FieldSpec[] => (AllocatableResourcesResponseTable ??= [
    { no: 1, name: 'devices', type: ContainerDevices.spec, repeated: true },
    { no: 2, name: 'cpuIds', type: 'int64', repeated: true },
    { no: 3, name: 'memory', type: ContainerMemory.spec, repeated: true },
  ]);
let AllocatableResourcesResponseTable: readonly FieldSpec[] | undefined;
export const AllocatableResourcesResponse: MessageType<AllocatableResourcesResponse> = { spec: { name: 'v1.AllocatableResourcesResponse', fields: AllocatableResourcesResponseFields } };

const ListPodResourcesRequestFields = (): readonly FieldSpec[] => (ListPodResourcesRequestTable ??= [
  ]);
let ListPodResourcesRequestTable: readonly FieldSpec[] | undefined;
export const ListPodResourcesRequest: MessageType<ListPodResourcesRequest> = { spec: { name: 'v1.ListPodResourcesRequest', fields: ListPodResourcesRequestFields } };

const ListPodResourcesResponseFields = (): readonly FieldSpec[] => (ListPodResourcesResponseTable ??= [
    { no: 1, name: 'podResources', type: PodResources.spec, repeated: true },
  ]);
let ListPodResourcesResponseTable: readonly FieldSpec[] | undefined;
export const ListPodResourcesResponse: MessageType<ListPodResourcesResponse> = { spec: { name: 'v1.ListPodResourcesResponse', fields: ListPodResourcesResponseFields } };

const PodResourcesFields = (): readonly FieldSpec[] => (PodResourcesTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'namespace', type: 'string' },
    { no: 3, name: 'containers', type: ContainerResources.spec, repeated: true },
  ]);
let PodResourcesTable: readonly FieldSpec[] | undefined;
export const PodResources: MessageType<PodResources> = { spec: { name: 'v1.PodResources', fields: PodResourcesFields } };

const ContainerResourcesFields = (): readonly FieldSpec[] => (ContainerResourcesTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'devices', type: ContainerDevices.spec, repeated: true },
    { no: 3, name: 'cpuIds', type: 'int64', repeated: true },
    { no: 4, name: 'memory', type: ContainerMemory.spec, repeated: true },
    { no: 5, name: 'dynamicResources', type: DynamicResource.spec, repeated: true },
  ]);
let ContainerResourcesTable: readonly FieldSpec[] | undefined;
export const ContainerResources: MessageType<ContainerResources> = { spec: { name: 'v1.ContainerResources', fields: ContainerResourcesFields } };

const ContainerMemoryFields = (): readonly FieldSpec[] => (ContainerMemoryTable ??= [
    { no: 1, name: 'memoryType', type: 'string' },
    { no: 2, name: 'size', type: 'uint64' },
    { no: 3, name: 'topology', type: TopologyInfo.spec },
  ]);
let ContainerMemoryTable: readonly FieldSpec[] | undefined;
export const ContainerMemory: MessageType<ContainerMemory> = { spec: { name: 'v1.ContainerMemory', fields: ContainerMemoryFields } };

const ContainerDevicesFields = (): readonly FieldSpec[] => (ContainerDevicesTable ??= [
    { no: 1, name: 'resourceName', type: 'string' },
    { no: 2, name: 'deviceIds', type: 'string', repeated: true },
    { no: 3, name: 'topology', type: TopologyInfo.spec },
  ]);
let ContainerDevicesTable: readonly FieldSpec[] | undefined;
export const ContainerDevices: MessageType<ContainerDevices> = { spec: { name: 'v1.ContainerDevices', fields: ContainerDevicesFields } };

const TopologyInfoFields = (): readonly FieldSpec[] => (TopologyInfoTable ??= [
    { no: 1, name: 'nodes', type: NUMANode.spec, repeated: true },
  ]);
let TopologyInfoTable: readonly FieldSpec[] | undefined;
export const TopologyInfo: MessageType<TopologyInfo> = { spec: { name: 'v1.TopologyInfo', fields: TopologyInfoFields } };

const NUMANodeFields = (): readonly FieldSpec[] => (NUMANodeTable ??= [
    { no: 1, name: 'ID', type: 'int64' },
  ]);
let NUMANodeTable: readonly FieldSpec[] | undefined;
export const NUMANode: MessageType<NUMANode> = { spec: { name: 'v1.NUMANode', fields: NUMANodeFields } };

const DynamicResourceFields = (): readonly FieldSpec[] => (DynamicResourceTable ??= [
    { no: 2, name: 'claimName', type: 'string' },
    { no: 3, name: 'claimNamespace', type: 'string' },
    { no: 4, name: 'claimResources', type: ClaimResource.spec, repeated: true },
  ]);
let DynamicResourceTable: readonly FieldSpec[] | undefined;
export const DynamicResource: MessageType<DynamicResource> = { spec: { name: 'v1.DynamicResource', fields: DynamicResourceFields } };

const ClaimResourceFields = (): readonly FieldSpec[] => (ClaimResourceTable ??= [
    { no: 1, name: 'cdiDevices', type: CDIDevice.spec, repeated: true },
    { no: 2, name: 'driverName', type: 'string' },
    { no: 3, name: 'poolName', type: 'string' },
    { no: 4, name: 'deviceName', type: 'string' },
    { no: 5, name: 'shareId', type: 'string' },
  ]);
let ClaimResourceTable: readonly FieldSpec[] | undefined;
export const ClaimResource: MessageType<ClaimResource> = { spec: { name: 'v1.ClaimResource', fields: ClaimResourceFields } };

const CDIDeviceFields = (): readonly FieldSpec[] => (CDIDeviceTable ??= [
    { no: 1, name: 'name', type: 'string' },
  ]);
let CDIDeviceTable: readonly FieldSpec[] | undefined;
export const CDIDevice: MessageType<CDIDevice> = { spec: { name: 'v1.CDIDevice', fields: CDIDeviceFields } };

const GetPodResourcesRequestFields = (): readonly FieldSpec[] => (GetPodResourcesRequestTable ??= [
    { no: 1, name: 'podName', type: 'string' },
    { no: 2, name: 'podNamespace', type: 'string' },
  ]);
let GetPodResourcesRequestTable: readonly FieldSpec[] | undefined;
export const GetPodResourcesRequest: MessageType<GetPodResourcesRequest> = { spec: { name: 'v1.GetPodResourcesRequest', fields: GetPodResourcesRequestFields } };

const GetPodResourcesResponseFields = (): readonly FieldSpec[] => (GetPodResourcesResponseTable ??= [
    { no: 1, name: 'podResources', type: PodResources.spec },
  ]);
let GetPodResourcesResponseTable: readonly FieldSpec[] | undefined;
export const GetPodResourcesResponse: MessageType<GetPodResourcesResponse> = { spec: { name: 'v1.GetPodResourcesResponse', fields: GetPodResourcesResponseFields } };

export const PodResourcesLister = {
  list: { path: '/v1.PodResourcesLister/List', request: ListPodResourcesRequest, response: ListPodResourcesResponse } satisfies Rpc<ListPodResourcesRequest, ListPodResourcesResponse>,
  getAllocatableResources: { path: '/v1.PodResourcesLister/GetAllocatableResources', request: AllocatableResourcesRequest, response: AllocatableResourcesResponse } satisfies Rpc<AllocatableResourcesRequest, AllocatableResourcesResponse>,
  get: { path: '/v1.PodResourcesLister/Get', request: GetPodResourcesRequest, response: GetPodResourcesResponse } satisfies Rpc<GetPodResourcesRequest, GetPodResourcesResponse>,
} as const;

