// What broke a gRPC call without a status of the server, as a status: the two tables of gRPC's HTTP/2 mapping, grpc-go's texts.
// Pure.
import { STATUS_CODES } from 'node:http';
import { ErrorCode, errorName } from '../http2/protocol-error.ts';
import { GrpcCode, GrpcError } from './status.ts';

const OF_RESET: Readonly<Record<number, GrpcCode>> = {
  [ErrorCode.None]: GrpcCode.Internal,
  [ErrorCode.Protocol]: GrpcCode.Internal,
  [ErrorCode.Internal]: GrpcCode.Internal,
  [ErrorCode.FlowControl]: GrpcCode.Internal,
  [ErrorCode.SettingsTimeout]: GrpcCode.Internal,
  [ErrorCode.StreamClosed]: GrpcCode.Internal,
  [ErrorCode.FrameSize]: GrpcCode.Internal,
  [ErrorCode.RefusedStream]: GrpcCode.Unavailable,
  [ErrorCode.Cancel]: GrpcCode.Canceled,
  [ErrorCode.Compression]: GrpcCode.Internal,
  [ErrorCode.Connect]: GrpcCode.Internal,
  [ErrorCode.EnhanceYourCalm]: GrpcCode.ResourceExhausted,
  [ErrorCode.InadequateSecurity]: GrpcCode.PermissionDenied,
  [ErrorCode.Http11Required]: GrpcCode.Internal,
};

const OF_HTTP_STATUS: Readonly<Record<number, GrpcCode>> = {
  400: GrpcCode.Internal,
  401: GrpcCode.Unauthenticated,
  403: GrpcCode.PermissionDenied,
  404: GrpcCode.Unimplemented,
  429: GrpcCode.Unavailable,
  502: GrpcCode.Unavailable,
  503: GrpcCode.Unavailable,
  504: GrpcCode.Unavailable,
};

/** `what` is what is wrong with the stream, where that was found here. */
export const resetError = (code: number, what?: string): GrpcError =>
  new GrpcError(
    OF_RESET[code] ?? GrpcCode.Unknown,
    what ?? `stream terminated by RST_STREAM with error code: ${errorName(code)}`,
  );

export const httpStatusError = (status: number): GrpcError =>
  new GrpcError(
    OF_HTTP_STATUS[status] ?? GrpcCode.Unknown,
    `unexpected HTTP status code received from server: ${status} (${STATUS_CODES[status] ?? ''})`,
  );
