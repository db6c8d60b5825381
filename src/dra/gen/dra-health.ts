// Generated from src/dra/proto/dra-health.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type NodeWatchResourcesRequest = {
};

export type NodeWatchResourcesResponse = {
  devices: DeviceHealth[];
};

export type DeviceHealth = {
  device?: DeviceIdentifier | undefined;
  health: number;
  lastUpdatedTime: number;
  healthCheckTimeoutSeconds: number;
  message: string;
};

export type DeviceIdentifier = {
  poolName: string;
  deviceName: string;
};

const NodeWatchResourcesRequestFields = (): readonly FieldSpec[] => (NodeWatchResourcesRequestTable ??= [
  ]);
let NodeWatchResourcesRequestTable: readonly FieldSpec[] | undefined;
export const NodeWatchResourcesRequest: MessageType<NodeWatchResourcesRequest> = { spec: { name: 'v1alpha1.NodeWatchResourcesRequest', fields: NodeWatchResourcesRequestFields } };

const NodeWatchResourcesResponseFields = (): readonly FieldSpec[] => (NodeWatchResourcesResponseTable ??= [
    { no: 1, name: 'devices', type: DeviceHealth.spec, repeated: true },
  ]);
let NodeWatchResourcesResponseTable: readonly FieldSpec[] | undefined;
export const NodeWatchResourcesResponse: MessageType<NodeWatchResourcesResponse> = { spec: { name: 'v1alpha1.NodeWatchResourcesResponse', fields: NodeWatchResourcesResponseFields } };

const DeviceHealthFields = (): readonly FieldSpec[] => (DeviceHealthTable ??= [
    { no: 1, name: 'device', type: DeviceIdentifier.spec },
    { no: 2, name: 'health', type: 'int32' },
    { no: 3, name: 'lastUpdatedTime', type: 'int64' },
    { no: 4, name: 'healthCheckTimeoutSeconds', type: 'int64' },
    { no: 5, name: 'message', type: 'string' },
  ]);
let DeviceHealthTable: readonly FieldSpec[] | undefined;
export const DeviceHealth: MessageType<DeviceHealth> = { spec: { name: 'v1alpha1.DeviceHealth', fields: DeviceHealthFields } };

const DeviceIdentifierFields = (): readonly FieldSpec[] => (DeviceIdentifierTable ??= [
    { no: 1, name: 'poolName', type: 'string' },
    { no: 2, name: 'deviceName', type: 'string' },
  ]);
let DeviceIdentifierTable: readonly FieldSpec[] | undefined;
export const DeviceIdentifier: MessageType<DeviceIdentifier> = { spec: { name: 'v1alpha1.DeviceIdentifier', fields: DeviceIdentifierFields } };

export const DRAResourceHealth = {
  nodeWatchResources: { path: '/v1alpha1.DRAResourceHealth/NodeWatchResources', request: NodeWatchResourcesRequest, response: NodeWatchResourcesResponse } satisfies Rpc<NodeWatchResourcesRequest, NodeWatchResourcesResponse>,
} as const;

