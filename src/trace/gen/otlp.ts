// Generated from src/trace/proto/otlp.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type AnyValue = {
  stringValue: string;
};

export type KeyValue = {
  key: string;
  value?: AnyValue | undefined;
};

export type Resource = {
  attributes: KeyValue[];
};

export type InstrumentationScope = {
  name: string;
  version: string;
};

export type Status = {
  message: string;
  code: number;
};

export type Span = {
  traceId: Uint8Array;
  spanId: Uint8Array;
  parentSpanId: Uint8Array;
  name: string;
  kind: number;
  startTimeUnixNano: bigint;
  endTimeUnixNano: bigint;
  attributes: KeyValue[];
  status?: Status | undefined;
};

export type ScopeSpans = {
  scope?: InstrumentationScope | undefined;
  spans: Span[];
};

export type ResourceSpans = {
  resource?: Resource | undefined;
  scopeSpans: ScopeSpans[];
};

export type ExportTraceServiceRequest = {
  resourceSpans: ResourceSpans[];
};

export type ExportTraceServiceResponse = {
};

const AnyValueFields = (): readonly FieldSpec[] => (AnyValueTable ??= [
    { no: 1, name: 'stringValue', type: 'string' },
  ]);
let AnyValueTable: readonly FieldSpec[] | undefined;
export const AnyValue: MessageType<AnyValue> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.AnyValue', fields: AnyValueFields } };

const KeyValueFields = (): readonly FieldSpec[] => (KeyValueTable ??= [
    { no: 1, name: 'key', type: 'string' },
    { no: 2, name: 'value', type: AnyValue.spec },
  ]);
let KeyValueTable: readonly FieldSpec[] | undefined;
export const KeyValue: MessageType<KeyValue> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.KeyValue', fields: KeyValueFields } };

const ResourceFields = (): readonly FieldSpec[] => (ResourceTable ??= [
    { no: 1, name: 'attributes', type: KeyValue.spec, repeated: true },
  ]);
let ResourceTable: readonly FieldSpec[] | undefined;
export const Resource: MessageType<Resource> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.Resource', fields: ResourceFields } };

const InstrumentationScopeFields = (): readonly FieldSpec[] => (InstrumentationScopeTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'version', type: 'string' },
  ]);
let InstrumentationScopeTable: readonly FieldSpec[] | undefined;
export const InstrumentationScope: MessageType<InstrumentationScope> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.InstrumentationScope', fields: InstrumentationScopeFields } };

const StatusFields = (): readonly FieldSpec[] => (StatusTable ??= [
    { no: 2, name: 'message', type: 'string' },
    { no: 3, name: 'code', type: 'int32' },
  ]);
let StatusTable: readonly FieldSpec[] | undefined;
export const Status: MessageType<Status> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.Status', fields: StatusFields } };

const SpanFields = (): readonly FieldSpec[] => (SpanTable ??= [
    { no: 1, name: 'traceId', type: 'bytes' },
    { no: 2, name: 'spanId', type: 'bytes' },
    { no: 4, name: 'parentSpanId', type: 'bytes' },
    { no: 5, name: 'name', type: 'string' },
    { no: 6, name: 'kind', type: 'int32' },
    { no: 7, name: 'startTimeUnixNano', type: 'fixed64' },
    { no: 8, name: 'endTimeUnixNano', type: 'fixed64' },
    { no: 9, name: 'attributes', type: KeyValue.spec, repeated: true },
    { no: 15, name: 'status', type: Status.spec },
  ]);
let SpanTable: readonly FieldSpec[] | undefined;
export const Span: MessageType<Span> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.Span', fields: SpanFields } };

const ScopeSpansFields = (): readonly FieldSpec[] => (ScopeSpansTable ??= [
    { no: 1, name: 'scope', type: InstrumentationScope.spec },
    { no: 2, name: 'spans', type: Span.spec, repeated: true },
  ]);
let ScopeSpansTable: readonly FieldSpec[] | undefined;
export const ScopeSpans: MessageType<ScopeSpans> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.ScopeSpans', fields: ScopeSpansFields } };

const ResourceSpansFields = (): readonly FieldSpec[] => (ResourceSpansTable ??= [
    { no: 1, name: 'resource', type: Resource.spec },
    { no: 2, name: 'scopeSpans', type: ScopeSpans.spec, repeated: true },
  ]);
let ResourceSpansTable: readonly FieldSpec[] | undefined;
export const ResourceSpans: MessageType<ResourceSpans> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.ResourceSpans', fields: ResourceSpansFields } };

const ExportTraceServiceRequestFields = (): readonly FieldSpec[] => (ExportTraceServiceRequestTable ??= [
    { no: 1, name: 'resourceSpans', type: ResourceSpans.spec, repeated: true },
  ]);
let ExportTraceServiceRequestTable: readonly FieldSpec[] | undefined;
export const ExportTraceServiceRequest: MessageType<ExportTraceServiceRequest> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest', fields: ExportTraceServiceRequestFields } };

const ExportTraceServiceResponseFields = (): readonly FieldSpec[] => (ExportTraceServiceResponseTable ??= [
  ]);
let ExportTraceServiceResponseTable: readonly FieldSpec[] | undefined;
export const ExportTraceServiceResponse: MessageType<ExportTraceServiceResponse> = { spec: { name: 'opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse', fields: ExportTraceServiceResponseFields } };

export const TraceService = {
  export: { path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export', request: ExportTraceServiceRequest, response: ExportTraceServiceResponse } satisfies Rpc<ExportTraceServiceRequest, ExportTraceServiceResponse>,
} as const;

