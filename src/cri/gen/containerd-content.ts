// Generated from src/cri/proto/containerd-content.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export type Timestamp = {
  seconds: number;
  nanos: number;
};

export type ContentInfo = {
  digest: string;
  size: number;
  createdAt?: Timestamp | undefined;
  labels: Record<string, string>;
};

export type InfoRequest = {
  digest: string;
};

export type InfoResponse = {
  info?: ContentInfo | undefined;
};

export type ListContentRequest = {
  filters: string[];
};

export type ListContentResponse = {
  info: ContentInfo[];
};

export type ReadContentRequest = {
  digest: string;
  offset: number;
  size: number;
};

export type ReadContentResponse = {
  offset: number;
  data: Uint8Array;
};

export type ListStatusesRequest = {
  filters: string[];
};

export type ListStatusesResponse = {
  statuses: IngestStatus[];
};

export type IngestStatus = {
  ref: string;
  offset: number;
  total: number;
  expected: string;
};

const TimestampFields = (): readonly FieldSpec[] => (TimestampTable ??= [
    { no: 1, name: 'seconds', type: 'int64' },
    { no: 2, name: 'nanos', type: 'int32' },
  ]);
let TimestampTable: readonly FieldSpec[] | undefined;
export const Timestamp: MessageType<Timestamp> = { spec: { name: 'containerd.services.content.v1.Timestamp', fields: TimestampFields } };

const ContentInfoFields = (): readonly FieldSpec[] => (ContentInfoTable ??= [
    { no: 1, name: 'digest', type: 'string' },
    { no: 2, name: 'size', type: 'int64' },
    { no: 3, name: 'createdAt', type: Timestamp.spec },
    { no: 5, name: 'labels', type: 'map' },
  ]);
let ContentInfoTable: readonly FieldSpec[] | undefined;
export const ContentInfo: MessageType<ContentInfo> = { spec: { name: 'containerd.services.content.v1.ContentInfo', fields: ContentInfoFields } };

const InfoRequestFields = (): readonly FieldSpec[] => (InfoRequestTable ??= [
    { no: 1, name: 'digest', type: 'string' },
  ]);
let InfoRequestTable: readonly FieldSpec[] | undefined;
export const InfoRequest: MessageType<InfoRequest> = { spec: { name: 'containerd.services.content.v1.InfoRequest', fields: InfoRequestFields } };

const InfoResponseFields = (): readonly FieldSpec[] => (InfoResponseTable ??= [
    { no: 1, name: 'info', type: ContentInfo.spec },
  ]);
let InfoResponseTable: readonly FieldSpec[] | undefined;
export const InfoResponse: MessageType<InfoResponse> = { spec: { name: 'containerd.services.content.v1.InfoResponse', fields: InfoResponseFields } };

const ListContentRequestFields = (): readonly FieldSpec[] => (ListContentRequestTable ??= [
    { no: 1, name: 'filters', type: 'string', repeated: true },
  ]);
let ListContentRequestTable: readonly FieldSpec[] | undefined;
export const ListContentRequest: MessageType<ListContentRequest> = { spec: { name: 'containerd.services.content.v1.ListContentRequest', fields: ListContentRequestFields } };

const ListContentResponseFields = (): readonly FieldSpec[] => (ListContentResponseTable ??= [
    { no: 1, name: 'info', type: ContentInfo.spec, repeated: true },
  ]);
let ListContentResponseTable: readonly FieldSpec[] | undefined;
export const ListContentResponse: MessageType<ListContentResponse> = { spec: { name: 'containerd.services.content.v1.ListContentResponse', fields: ListContentResponseFields } };

const ReadContentRequestFields = (): readonly FieldSpec[] => (ReadContentRequestTable ??= [
    { no: 1, name: 'digest', type: 'string' },
    { no: 2, name: 'offset', type: 'int64' },
    { no: 3, name: 'size', type: 'int64' },
  ]);
let ReadContentRequestTable: readonly FieldSpec[] | undefined;
export const ReadContentRequest: MessageType<ReadContentRequest> = { spec: { name: 'containerd.services.content.v1.ReadContentRequest', fields: ReadContentRequestFields } };

const ReadContentResponseFields = (): readonly FieldSpec[] => (ReadContentResponseTable ??= [
    { no: 1, name: 'offset', type: 'int64' },
    { no: 2, name: 'data', type: 'bytes' },
  ]);
let ReadContentResponseTable: readonly FieldSpec[] | undefined;
export const ReadContentResponse: MessageType<ReadContentResponse> = { spec: { name: 'containerd.services.content.v1.ReadContentResponse', fields: ReadContentResponseFields } };

const ListStatusesRequestFields = (): readonly FieldSpec[] => (ListStatusesRequestTable ??= [
    { no: 1, name: 'filters', type: 'string', repeated: true },
  ]);
let ListStatusesRequestTable: readonly FieldSpec[] | undefined;
export const ListStatusesRequest: MessageType<ListStatusesRequest> = { spec: { name: 'containerd.services.content.v1.ListStatusesRequest', fields: ListStatusesRequestFields } };

const ListStatusesResponseFields = (): readonly FieldSpec[] => (ListStatusesResponseTable ??= [
    { no: 1, name: 'statuses', type: IngestStatus.spec, repeated: true },
  ]);
let ListStatusesResponseTable: readonly FieldSpec[] | undefined;
export const ListStatusesResponse: MessageType<ListStatusesResponse> = { spec: { name: 'containerd.services.content.v1.ListStatusesResponse', fields: ListStatusesResponseFields } };

const IngestStatusFields = (): readonly FieldSpec[] => (IngestStatusTable ??= [
    { no: 3, name: 'ref', type: 'string' },
    { no: 4, name: 'offset', type: 'int64' },
    { no: 5, name: 'total', type: 'int64' },
    { no: 6, name: 'expected', type: 'string' },
  ]);
let IngestStatusTable: readonly FieldSpec[] | undefined;
export const IngestStatus: MessageType<IngestStatus> = { spec: { name: 'containerd.services.content.v1.IngestStatus', fields: IngestStatusFields } };

export const Content = {
  info: { path: '/containerd.services.content.v1.Content/Info', request: InfoRequest, response: InfoResponse } satisfies Rpc<InfoRequest, InfoResponse>,
  list: { path: '/containerd.services.content.v1.Content/List', request: ListContentRequest, response: ListContentResponse } satisfies Rpc<ListContentRequest, ListContentResponse>,
  read: { path: '/containerd.services.content.v1.Content/Read', request: ReadContentRequest, response: ReadContentResponse } satisfies Rpc<ReadContentRequest, ReadContentResponse>,
  listStatuses: { path: '/containerd.services.content.v1.Content/ListStatuses', request: ListStatusesRequest, response: ListStatusesResponse } satisfies Rpc<ListStatusesRequest, ListStatusesResponse>,
} as const;

