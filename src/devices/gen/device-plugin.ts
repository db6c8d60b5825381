// Generated from src/devices/proto/device-plugin.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type DevicePluginOptions = {
  preStartRequired: boolean;
  getPreferredAllocationAvailable: boolean;
};

export type RegisterRequest = {
  version: string;
  endpoint: string;
  resourceName: string;
  options?: DevicePluginOptions | undefined;
};

export type Empty = {
};

export type ListAndWatchResponse = {
  devices: Device[];
};

export type TopologyInfo = {
  nodes: NUMANode[];
};

export type NUMANode = {
  ID: number;
};

export type Device = {
  ID: string;
  health: string;
  topology?: TopologyInfo | undefined;
};

export type PreStartContainerRequest = {
  devicesIds: string[];
};

export type PreStartContainerResponse = {
};

export type PreferredAllocationRequest = {
  containerRequests: ContainerPreferredAllocationRequest[];
};

export type ContainerPreferredAllocationRequest = {
  availableDeviceIDs: string[];
  mustIncludeDeviceIDs: string[];
  allocationSize: number;
};

export type PreferredAllocationResponse = {
  containerResponses: ContainerPreferredAllocationResponse[];
};

export type ContainerPreferredAllocationResponse = {
  deviceIDs: string[];
};

export type AllocateRequest = {
  containerRequests: ContainerAllocateRequest[];
};

export type ContainerAllocateRequest = {
  devicesIds: string[];
};

export type CDIDevice = {
  name: string;
};

export type AllocateResponse = {
  containerResponses: ContainerAllocateResponse[];
};

export type ContainerAllocateResponse = {
  envs: Record<string, string>;
  mounts: Mount[];
  devices: DeviceSpec[];
  annotations: Record<string, string>;
  cdiDevices: CDIDevice[];
};

export type Mount = {
  containerPath: string;
  hostPath: string;
  readOnly: boolean;
};

export type DeviceSpec = {
  containerPath: string;
  hostPath: string;
  permissions: string;
};

const DevicePluginOptionsFields = (): readonly FieldSpec[] => (DevicePluginOptionsTable ??= [
    { no: 1, name: 'preStartRequired', type: 'bool' },
    { no: 2, name: 'getPreferredAllocationAvailable', type: 'bool' },
  ]);
let DevicePluginOptionsTable: readonly FieldSpec[] | undefined;
export const DevicePluginOptions: MessageType<DevicePluginOptions> = { spec: { name: 'v1beta1.DevicePluginOptions', fields: DevicePluginOptionsFields } };

const RegisterRequestFields = (): readonly FieldSpec[] => (RegisterRequestTable ??= [
    { no: 1, name: 'version', type: 'string' },
    { no: 2, name: 'endpoint', type: 'string' },
    { no: 3, name: 'resourceName', type: 'string' },
    { no: 4, name: 'options', type: DevicePluginOptions.spec },
  ]);
let RegisterRequestTable: readonly FieldSpec[] | undefined;
export const RegisterRequest: MessageType<RegisterRequest> = { spec: { name: 'v1beta1.RegisterRequest', fields: RegisterRequestFields } };

const EmptyFields = (): readonly FieldSpec[] => (EmptyTable ??= [
  ]);
let EmptyTable: readonly FieldSpec[] | undefined;
export const Empty: MessageType<Empty> = { spec: { name: 'v1beta1.Empty', fields: EmptyFields } };

const ListAndWatchResponseFields = (): readonly FieldSpec[] => (ListAndWatchResponseTable ??= [
    { no: 1, name: 'devices', type: Device.spec, repeated: true },
  ]);
let ListAndWatchResponseTable: readonly FieldSpec[] | undefined;
export const ListAndWatchResponse: MessageType<ListAndWatchResponse> = { spec: { name: 'v1beta1.ListAndWatchResponse', fields: ListAndWatchResponseFields } };

const TopologyInfoFields = (): readonly FieldSpec[] => (TopologyInfoTable ??= [
    { no: 1, name: 'nodes', type: NUMANode.spec, repeated: true },
  ]);
let TopologyInfoTable: readonly FieldSpec[] | undefined;
export const TopologyInfo: MessageType<TopologyInfo> = { spec: { name: 'v1beta1.TopologyInfo', fields: TopologyInfoFields } };

const NUMANodeFields = (): readonly FieldSpec[] => (NUMANodeTable ??= [
    { no: 1, name: 'ID', type: 'int64' },
  ]);
let NUMANodeTable: readonly FieldSpec[] | undefined;
export const NUMANode: MessageType<NUMANode> = { spec: { name: 'v1beta1.NUMANode', fields: NUMANodeFields } };

const DeviceFields = (): readonly FieldSpec[] => (DeviceTable ??= [
    { no: 1, name: 'ID', type: 'string' },
    { no: 2, name: 'health', type: 'string' },
    { no: 3, name: 'topology', type: TopologyInfo.spec },
  ]);
let DeviceTable: readonly FieldSpec[] | undefined;
export const Device: MessageType<Device> = { spec: { name: 'v1beta1.Device', fields: DeviceFields } };

const PreStartContainerRequestFields = (): readonly FieldSpec[] => (PreStartContainerRequestTable ??= [
    { no: 1, name: 'devicesIds', type: 'string', repeated: true },
  ]);
let PreStartContainerRequestTable: readonly FieldSpec[] | undefined;
export const PreStartContainerRequest: MessageType<PreStartContainerRequest> = { spec: { name: 'v1beta1.PreStartContainerRequest', fields: PreStartContainerRequestFields } };

const PreStartContainerResponseFields = (): readonly FieldSpec[] => (PreStartContainerResponseTable ??= [
  ]);
let PreStartContainerResponseTable: readonly FieldSpec[] | undefined;
export const PreStartContainerResponse: MessageType<PreStartContainerResponse> = { spec: { name: 'v1beta1.PreStartContainerResponse', fields: PreStartContainerResponseFields } };

const PreferredAllocationRequestFields = (): readonly FieldSpec[] => (PreferredAllocationRequestTable ??= [
    { no: 1, name: 'containerRequests', type: ContainerPreferredAllocationRequest.spec, repeated: true },
  ]);
let PreferredAllocationRequestTable: readonly FieldSpec[] | undefined;
export const PreferredAllocationRequest: MessageType<PreferredAllocationRequest> = { spec: { name: 'v1beta1.PreferredAllocationRequest', fields: PreferredAllocationRequestFields } };

const ContainerPreferredAllocationRequestFields = (): readonly FieldSpec[] => (ContainerPreferredAllocationRequestTable ??= [
    { no: 1, name: 'availableDeviceIDs', type: 'string', repeated: true },
    { no: 2, name: 'mustIncludeDeviceIDs', type: 'string', repeated: true },
    { no: 3, name: 'allocationSize', type: 'int32' },
  ]);
let ContainerPreferredAllocationRequestTable: readonly FieldSpec[] | undefined;
export const ContainerPreferredAllocationRequest: MessageType<ContainerPreferredAllocationRequest> = { spec: { name: 'v1beta1.ContainerPreferredAllocationRequest', fields: ContainerPreferredAllocationRequestFields } };

const PreferredAllocationResponseFields = (): readonly FieldSpec[] => (PreferredAllocationResponseTable ??= [
    { no: 1, name: 'containerResponses', type: ContainerPreferredAllocationResponse.spec, repeated: true },
  ]);
let PreferredAllocationResponseTable: readonly FieldSpec[] | undefined;
export const PreferredAllocationResponse: MessageType<PreferredAllocationResponse> = { spec: { name: 'v1beta1.PreferredAllocationResponse', fields: PreferredAllocationResponseFields } };

const ContainerPreferredAllocationResponseFields = (): readonly FieldSpec[] => (ContainerPreferredAllocationResponseTable ??= [
    { no: 1, name: 'deviceIDs', type: 'string', repeated: true },
  ]);
let ContainerPreferredAllocationResponseTable: readonly FieldSpec[] | undefined;
export const ContainerPreferredAllocationResponse: MessageType<ContainerPreferredAllocationResponse> = { spec: { name: 'v1beta1.ContainerPreferredAllocationResponse', fields: ContainerPreferredAllocationResponseFields } };

const AllocateRequestFields = (): readonly FieldSpec[] => (AllocateRequestTable ??= [
    { no: 1, name: 'containerRequests', type: ContainerAllocateRequest.spec, repeated: true },
  ]);
let AllocateRequestTable: readonly FieldSpec[] | undefined;
export const AllocateRequest: MessageType<AllocateRequest> = { spec: { name: 'v1beta1.AllocateRequest', fields: AllocateRequestFields } };

const ContainerAllocateRequestFields = (): readonly FieldSpec[] => (ContainerAllocateRequestTable ??= [
    { no: 1, name: 'devicesIds', type: 'string', repeated: true },
  ]);
let ContainerAllocateRequestTable: readonly FieldSpec[] | undefined;
export const ContainerAllocateRequest: MessageType<ContainerAllocateRequest> = { spec: { name: 'v1beta1.ContainerAllocateRequest', fields: ContainerAllocateRequestFields } };

const CDIDeviceFields = (): readonly FieldSpec[] => (CDIDeviceTable ??= [
    { no: 1, name: 'name', type: 'string' },
  ]);
let CDIDeviceTable: readonly FieldSpec[] | undefined;
export const CDIDevice: MessageType<CDIDevice> = { spec: { name: 'v1beta1.CDIDevice', fields: CDIDeviceFields } };

const AllocateResponseFields = (): readonly FieldSpec[] => (AllocateResponseTable ??= [
    { no: 1, name: 'containerResponses', type: ContainerAllocateResponse.spec, repeated: true },
  ]);
let AllocateResponseTable: readonly FieldSpec[] | undefined;
export const AllocateResponse: MessageType<AllocateResponse> = { spec: { name: 'v1beta1.AllocateResponse', fields: AllocateResponseFields } };

const ContainerAllocateResponseFields = (): readonly FieldSpec[] => (ContainerAllocateResponseTable ??= [
    { no: 1, name: 'envs', type: 'map' },
    { no: 2, name: 'mounts', type: Mount.spec, repeated: true },
    { no: 3, name: 'devices', type: DeviceSpec.spec, repeated: true },
    { no: 4, name: 'annotations', type: 'map' },
    { no: 5, name: 'cdiDevices', type: CDIDevice.spec, repeated: true },
  ]);
let ContainerAllocateResponseTable: readonly FieldSpec[] | undefined;
export const ContainerAllocateResponse: MessageType<ContainerAllocateResponse> = { spec: { name: 'v1beta1.ContainerAllocateResponse', fields: ContainerAllocateResponseFields } };

const MountFields = (): readonly FieldSpec[] => (MountTable ??= [
    { no: 1, name: 'containerPath', type: 'string' },
    { no: 2, name: 'hostPath', type: 'string' },
    { no: 3, name: 'readOnly', type: 'bool' },
  ]);
let MountTable: readonly FieldSpec[] | undefined;
export const Mount: MessageType<Mount> = { spec: { name: 'v1beta1.Mount', fields: MountFields } };

const DeviceSpecFields = (): readonly FieldSpec[] => (DeviceSpecTable ??= [
    { no: 1, name: 'containerPath', type: 'string' },
    { no: 2, name: 'hostPath', type: 'string' },
    { no: 3, name: 'permissions', type: 'string' },
  ]);
let DeviceSpecTable: readonly FieldSpec[] | undefined;
export const DeviceSpec: MessageType<DeviceSpec> = { spec: { name: 'v1beta1.DeviceSpec', fields: DeviceSpecFields } };

export const Registration = {
  register: { path: '/v1beta1.Registration/Register', request: RegisterRequest, response: Empty } satisfies Rpc<RegisterRequest, Empty>,
} as const;

export const DevicePlugin = {
  getDevicePluginOptions: { path: '/v1beta1.DevicePlugin/GetDevicePluginOptions', request: Empty, response: DevicePluginOptions } satisfies Rpc<Empty, DevicePluginOptions>,
  listAndWatch: { path: '/v1beta1.DevicePlugin/ListAndWatch', request: Empty, response: ListAndWatchResponse } satisfies Rpc<Empty, ListAndWatchResponse>,
  getPreferredAllocation: { path: '/v1beta1.DevicePlugin/GetPreferredAllocation', request: PreferredAllocationRequest, response: PreferredAllocationResponse } satisfies Rpc<PreferredAllocationRequest, PreferredAllocationResponse>,
  allocate: { path: '/v1beta1.DevicePlugin/Allocate', request: AllocateRequest, response: AllocateResponse } satisfies Rpc<AllocateRequest, AllocateResponse>,
  preStartContainer: { path: '/v1beta1.DevicePlugin/PreStartContainer', request: PreStartContainerRequest, response: PreStartContainerResponse } satisfies Rpc<PreStartContainerRequest, PreStartContainerResponse>,
} as const;

