// Generated from src/dra/proto/dra-plugin.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type NodePrepareResourcesRequest = {
  claims: Claim[];
};

export type NodePrepareResourcesResponse = {
  claims: PreparedEntry[];
};

export type PreparedEntry = {
  key: string;
  value?: NodePrepareResourceResponse | undefined;
};

export type NodePrepareResourceResponse = {
  devices: Device[];
  error: string;
};

export type Device = {
  requestNames: string[];
  poolName: string;
  deviceName: string;
  cdiDeviceIds: string[];
  shareId: string;
};

export type NodeUnprepareResourcesRequest = {
  claims: Claim[];
};

export type NodeUnprepareResourcesResponse = {
  claims: UnpreparedEntry[];
};

export type UnpreparedEntry = {
  key: string;
  value?: NodeUnprepareResourceResponse | undefined;
};

export type NodeUnprepareResourceResponse = {
  error: string;
};

export type Claim = {
  namespace: string;
  uid: string;
  name: string;
};

const NodePrepareResourcesRequestFields = (): readonly FieldSpec[] => (NodePrepareResourcesRequestTable ??= [
    { no: 1, name: 'claims', type: Claim.spec, repeated: true },
  ]);
let NodePrepareResourcesRequestTable: readonly FieldSpec[] | undefined;
export const NodePrepareResourcesRequest: MessageType<NodePrepareResourcesRequest> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodePrepareResourcesRequest', fields: NodePrepareResourcesRequestFields } };

const NodePrepareResourcesResponseFields = (): readonly FieldSpec[] => (NodePrepareResourcesResponseTable ??= [
    { no: 1, name: 'claims', type: PreparedEntry.spec, repeated: true },
  ]);
let NodePrepareResourcesResponseTable: readonly FieldSpec[] | undefined;
export const NodePrepareResourcesResponse: MessageType<NodePrepareResourcesResponse> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodePrepareResourcesResponse', fields: NodePrepareResourcesResponseFields } };

const PreparedEntryFields = (): readonly FieldSpec[] => (PreparedEntryTable ??= [
    { no: 1, name: 'key', type: 'string' },
    { no: 2, name: 'value', type: NodePrepareResourceResponse.spec },
  ]);
let PreparedEntryTable: readonly FieldSpec[] | undefined;
export const PreparedEntry: MessageType<PreparedEntry> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.PreparedEntry', fields: PreparedEntryFields } };

const NodePrepareResourceResponseFields = (): readonly FieldSpec[] => (NodePrepareResourceResponseTable ??= [
    { no: 1, name: 'devices', type: Device.spec, repeated: true },
    { no: 2, name: 'error', type: 'string' },
  ]);
let NodePrepareResourceResponseTable: readonly FieldSpec[] | undefined;
export const NodePrepareResourceResponse: MessageType<NodePrepareResourceResponse> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodePrepareResourceResponse', fields: NodePrepareResourceResponseFields } };

const DeviceFields = (): readonly FieldSpec[] => (DeviceTable ??= [
    { no: 1, name: 'requestNames', type: 'string', repeated: true },
    { no: 2, name: 'poolName', type: 'string' },
    { no: 3, name: 'deviceName', type: 'string' },
    { no: 4, name: 'cdiDeviceIds', type: 'string', repeated: true },
    { no: 5, name: 'shareId', type: 'string' },
  ]);
let DeviceTable: readonly FieldSpec[] | undefined;
export const Device: MessageType<Device> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.Device', fields: DeviceFields } };

const NodeUnprepareResourcesRequestFields = (): readonly FieldSpec[] => (NodeUnprepareResourcesRequestTable ??= [
    { no: 1, name: 'claims', type: Claim.spec, repeated: true },
  ]);
let NodeUnprepareResourcesRequestTable: readonly FieldSpec[] | undefined;
export const NodeUnprepareResourcesRequest: MessageType<NodeUnprepareResourcesRequest> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodeUnprepareResourcesRequest', fields: NodeUnprepareResourcesRequestFields } };

const NodeUnprepareResourcesResponseFields = (): readonly FieldSpec[] => (NodeUnprepareResourcesResponseTable ??= [
    { no: 1, name: 'claims', type: UnpreparedEntry.spec, repeated: true },
  ]);
let NodeUnprepareResourcesResponseTable: readonly FieldSpec[] | undefined;
export const NodeUnprepareResourcesResponse: MessageType<NodeUnprepareResourcesResponse> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodeUnprepareResourcesResponse', fields: NodeUnprepareResourcesResponseFields } };

const UnpreparedEntryFields = (): readonly FieldSpec[] => (UnpreparedEntryTable ??= [
    { no: 1, name: 'key', type: 'string' },
    { no: 2, name: 'value', type: NodeUnprepareResourceResponse.spec },
  ]);
let UnpreparedEntryTable: readonly FieldSpec[] | undefined;
export const UnpreparedEntry: MessageType<UnpreparedEntry> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.UnpreparedEntry', fields: UnpreparedEntryFields } };

const NodeUnprepareResourceResponseFields = (): readonly FieldSpec[] => (NodeUnprepareResourceResponseTable ??= [
    { no: 1, name: 'error', type: 'string' },
  ]);
let NodeUnprepareResourceResponseTable: readonly FieldSpec[] | undefined;
export const NodeUnprepareResourceResponse: MessageType<NodeUnprepareResourceResponse> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.NodeUnprepareResourceResponse', fields: NodeUnprepareResourceResponseFields } };

const ClaimFields = (): readonly FieldSpec[] => (ClaimTable ??= [
    { no: 1, name: 'namespace', type: 'string' },
    { no: 2, name: 'uid', type: 'string' },
    { no: 3, name: 'name', type: 'string' },
  ]);
let ClaimTable: readonly FieldSpec[] | undefined;
export const Claim: MessageType<Claim> = { spec: { name: 'k8s.io.kubelet.pkg.apis.dra.v1.Claim', fields: ClaimFields } };

export const DRAPlugin = {
  nodePrepareResources: { path: '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources', request: NodePrepareResourcesRequest, response: NodePrepareResourcesResponse } satisfies Rpc<NodePrepareResourcesRequest, NodePrepareResourcesResponse>,
  nodeUnprepareResources: { path: '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources', request: NodeUnprepareResourcesRequest, response: NodeUnprepareResourcesResponse } satisfies Rpc<NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse>,
} as const;

