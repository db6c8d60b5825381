// Generated from src/server/proto/pods-api.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export const EventType = {
  UNSPECIFIED: 0,
  ADDED: 1,
  MODIFIED: 2,
  DELETED: 3,
  INITIAL_SYNC_COMPLETE: 4,
} as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

export type WatchPodsEvent = {
  type: EventType;
  pod: Uint8Array;
};

export type ListPodsResponse = {
  pods: Uint8Array[];
};

export type GetPodResponse = {
  pod: Uint8Array;
};

export type WatchPodsRequest = {
};

export type ListPodsRequest = {
};

export type GetPodRequest = {
  podUID: string;
};

const WatchPodsEventFields = (): readonly FieldSpec[] => (WatchPodsEventTable ??= [
    { no: 1, name: 'type', type: 'enum' },
    { no: 2, name: 'pod', type: 'bytes' },
  ]);
let WatchPodsEventTable: readonly FieldSpec[] | undefined;
export const WatchPodsEvent: MessageType<WatchPodsEvent> = { spec: { name: 'v1alpha1.WatchPodsEvent', fields: WatchPodsEventFields } };

const ListPodsResponseFields = (): readonly FieldSpec[] => (ListPodsResponseTable ??= [
    { no: 1, name: 'pods', type: 'bytes', repeated: true },
  ]);
let ListPodsResponseTable: readonly FieldSpec[] | undefined;
export const ListPodsResponse: MessageType<ListPodsResponse> = { spec: { name: 'v1alpha1.ListPodsResponse', fields: ListPodsResponseFields } };

const GetPodResponseFields = (): readonly FieldSpec[] => (GetPodResponseTable ??= [
    { no: 1, name: 'pod', type: 'bytes' },
  ]);
let GetPodResponseTable: readonly FieldSpec[] | undefined;
export const GetPodResponse: MessageType<GetPodResponse> = { spec: { name: 'v1alpha1.GetPodResponse', fields: GetPodResponseFields } };

const WatchPodsRequestFields = (): readonly FieldSpec[] => (WatchPodsRequestTable ??= [
  ]);
let WatchPodsRequestTable: readonly FieldSpec[] | undefined;
export const WatchPodsRequest: MessageType<WatchPodsRequest> = { spec: { name: 'v1alpha1.WatchPodsRequest', fields: WatchPodsRequestFields } };

const ListPodsRequestFields = (): readonly FieldSpec[] => (ListPodsRequestTable ??= [
  ]);
let ListPodsRequestTable: readonly FieldSpec[] | undefined;
export const ListPodsRequest: MessageType<ListPodsRequest> = { spec: { name: 'v1alpha1.ListPodsRequest', fields: ListPodsRequestFields } };

const GetPodRequestFields = (): readonly FieldSpec[] => (GetPodRequestTable ??= [
    { no: 1, name: 'podUID', type: 'string' },
  ]);
let GetPodRequestTable: readonly FieldSpec[] | undefined;
export const GetPodRequest: MessageType<GetPodRequest> = { spec: { name: 'v1alpha1.GetPodRequest', fields: GetPodRequestFields } };

export const Pods = {
  watchPods: { path: '/v1alpha1.Pods/WatchPods', request: WatchPodsRequest, response: WatchPodsEvent } satisfies Rpc<WatchPodsRequest, WatchPodsEvent>,
  listPods: { path: '/v1alpha1.Pods/ListPods', request: ListPodsRequest, response: ListPodsResponse } satisfies Rpc<ListPodsRequest, ListPodsResponse>,
  getPod: { path: '/v1alpha1.Pods/GetPod', request: GetPodRequest, response: GetPodResponse } satisfies Rpc<GetPodRequest, GetPodResponse>,
} as const;

