// Generated from src/probes/proto/health.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export const ServingStatus = {
  UNKNOWN: 0,
  SERVING: 1,
  NOT_SERVING: 2,
  SERVICE_UNKNOWN: 3,
} as const;
export type ServingStatus = (typeof ServingStatus)[keyof typeof ServingStatus];

export type HealthCheckRequest = {
  service: string;
};

export type HealthCheckResponse = {
  status: ServingStatus;
};

const HealthCheckRequestFields = (): readonly FieldSpec[] => (HealthCheckRequestTable ??= [
    { no: 1, name: 'service', type: 'string' },
  ]);
let HealthCheckRequestTable: readonly FieldSpec[] | undefined;
export const HealthCheckRequest: MessageType<HealthCheckRequest> = { spec: { name: 'grpc.health.v1.HealthCheckRequest', fields: HealthCheckRequestFields } };

const HealthCheckResponseFields = (): readonly FieldSpec[] => (HealthCheckResponseTable ??= [
    { no: 1, name: 'status', type: 'enum' },
  ]);
let HealthCheckResponseTable: readonly FieldSpec[] | undefined;
export const HealthCheckResponse: MessageType<HealthCheckResponse> = { spec: { name: 'grpc.health.v1.HealthCheckResponse', fields: HealthCheckResponseFields } };

export const Health = {
  check: { path: '/grpc.health.v1.Health/Check', request: HealthCheckRequest, response: HealthCheckResponse } satisfies Rpc<HealthCheckRequest, HealthCheckResponse>,
} as const;

