// gRPC status codes, and their translation into our fault kinds: done once, here.
import { KubeletError, type Fault } from '../errors.ts';

export const GrpcCode = {
  OK: 0,
  Canceled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const;
export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];
export type GrpcCodeName = keyof typeof GrpcCode;

const FAULTS: Record<GrpcCodeName, Fault> = {
  OK: 'internal',
  Canceled: 'cancelled',
  Unknown: 'internal',
  InvalidArgument: 'invalid',
  DeadlineExceeded: 'deadline',
  NotFound: 'notFound',
  AlreadyExists: 'exists',
  PermissionDenied: 'denied',
  ResourceExhausted: 'exhausted',
  FailedPrecondition: 'conflict',
  Aborted: 'conflict',
  OutOfRange: 'invalid',
  Unimplemented: 'unimplemented',
  Internal: 'internal',
  Unavailable: 'unavailable',
  DataLoss: 'internal',
  Unauthenticated: 'denied',
};

const NAMES = new Map<number, GrpcCodeName>(
  (Object.keys(GrpcCode) as GrpcCodeName[]).map((name) => [GrpcCode[name], name]),
);

/** An RPC's failure. `message` is the bare description; `fullText` is what Go prints. */
export class GrpcError extends KubeletError {
  readonly code: GrpcCode;
  readonly codeName: GrpcCodeName;

  constructor(code: number, description: string, cause?: unknown) {
    const codeName = NAMES.get(code) ?? 'Unknown';
    super(FAULTS[codeName], description, { cause, detail: { grpcCode: codeName } });
    this.name = 'GrpcError';
    this.code = GrpcCode[codeName];
    this.codeName = codeName;
  }

  get fullText(): string {
    return `rpc error: code = ${this.codeName} desc = ${this.message}`;
  }
}

/** `rpc error: code = … desc = …` for RPC failures, the plain message for everything else. */
export const fullErrorText = (err: unknown): string =>
  err instanceof GrpcError ? err.fullText : err instanceof Error ? err.message : String(err);
