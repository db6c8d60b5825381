// One error class with a kind. Adapters (gRPC, HTTP, errno) translate into a kind once, callers switch on the kind
// and never on message text. Reasons that users see in a pod's status are another thing: see core/reasons.ts.

import { cutTo } from './text.ts';

/** A text of a pod or a peer may be in a message, of any length; a message is quoted in logs, events and statuses. */
const MESSAGE_CHARACTERS = 16 * 1024;

/** A message of an error: the beginning of one that is longer than any person reads. */
export const boundedMessage = (message: string): string => cutTo(message, MESSAGE_CHARACTERS);

export type Fault =
  | 'notFound'
  | 'exists'
  | 'conflict'
  | 'invalid'
  | 'denied'
  | 'deadline'
  | 'cancelled'
  | 'unavailable'
  | 'unimplemented'
  | 'exhausted'
  | 'internal';

export type FaultOptions = {
  cause?: unknown;
  /** Machine-readable facts about the failure (a gRPC code, an HTTP status, a Retry-After). */
  detail?: Readonly<Record<string, unknown>>;
};

export class KubeletError extends Error {
  readonly kind: Fault;
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(kind: Fault, message: string, options: FaultOptions = {}) {
    super(boundedMessage(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KubeletError';
    this.kind = kind;
    this.detail = options.detail ?? {};
  }
}

export const isFault = (err: unknown, ...kinds: Fault[]): err is KubeletError =>
  err instanceof KubeletError && (kinds.length === 0 || kinds.includes(err.kind));

export const notFound = (text: string): Promise<never> => Promise.reject(new KubeletError('notFound', text));

/** For whom an absence is an answer. */
export const undefinedIfNotFound = <T>(answer: Promise<T>): Promise<T | undefined> =>
  answer.catch((err: unknown) => {
    if (isFault(err, 'notFound')) return undefined;
    throw err;
  });

/** What to show a person: the message, never a stack. */
export const messageOf = (err: unknown): string => boundedMessage(err instanceof Error ? err.message : String(err));

/** The errno code (`ENOENT`, …) of a Node system error, if it is one. */
export const errnoOf = (err: unknown): string | undefined =>
  err instanceof Error && 'code' in err && typeof err.code === 'string' ? err.code : undefined;

const UNWRITABLE = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);

/** A file system without room, or one that is read-only. */
export const isUnwritable = (err: unknown): boolean => UNWRITABLE.has(errnoOf(err) ?? '');
