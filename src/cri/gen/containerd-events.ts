// Generated from src/cri/proto/containerd-events.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type SubscribeRequest = {
  filters: string[];
};

export type Envelope = {
  namespace: string;
  topic: string;
  event?: AnyEvent | undefined;
};

export type AnyEvent = {
  typeUrl: string;
  value: Uint8Array;
};

export type ContainerRef = {
  containerId: string;
};

export type TaskExit = {
  containerId: string;
  id: string;
};

const SubscribeRequestFields = (): readonly FieldSpec[] => (SubscribeRequestTable ??= [
    { no: 1, name: 'filters', type: 'string', repeated: true },
  ]);
let SubscribeRequestTable: readonly FieldSpec[] | undefined;
export const SubscribeRequest: MessageType<SubscribeRequest> = { spec: { name: 'containerd.services.events.v1.SubscribeRequest', fields: SubscribeRequestFields } };

const EnvelopeFields = (): readonly FieldSpec[] => (EnvelopeTable ??= [
    { no: 2, name: 'namespace', type: 'string' },
    { no: 3, name: 'topic', type: 'string' },
    { no: 4, name: 'event', type: AnyEvent.spec },
  ]);
let EnvelopeTable: readonly FieldSpec[] | undefined;
export const Envelope: MessageType<Envelope> = { spec: { name: 'containerd.services.events.v1.Envelope', fields: EnvelopeFields } };

const AnyEventFields = (): readonly FieldSpec[] => (AnyEventTable ??= [
    { no: 1, name: 'typeUrl', type: 'string' },
    { no: 2, name: 'value', type: 'bytes' },
  ]);
let AnyEventTable: readonly FieldSpec[] | undefined;
export const AnyEvent: MessageType<AnyEvent> = { spec: { name: 'containerd.services.events.v1.AnyEvent', fields: AnyEventFields } };

const ContainerRefFields = (): readonly FieldSpec[] => (ContainerRefTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let ContainerRefTable: readonly FieldSpec[] | undefined;
export const ContainerRef: MessageType<ContainerRef> = { spec: { name: 'containerd.services.events.v1.ContainerRef', fields: ContainerRefFields } };

const TaskExitFields = (): readonly FieldSpec[] => (TaskExitTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'id', type: 'string' },
  ]);
let TaskExitTable: readonly FieldSpec[] | undefined;
export const TaskExit: MessageType<TaskExit> = { spec: { name: 'containerd.services.events.v1.TaskExit', fields: TaskExitFields } };

export const Events = {
  subscribe: { path: '/containerd.services.events.v1.Events/Subscribe', request: SubscribeRequest, response: Envelope } satisfies Rpc<SubscribeRequest, Envelope>,
} as const;

