// HTTP replies and socket failures as KubeletError kinds. Callers switch on the kind, `isGone` is the one extra question.
import type { Status } from '../core/meta.ts';
import { errnoOf, isFault, KubeletError, messageOf, type Fault } from '../lib/errors.ts';

const KIND_OF: Readonly<Record<number, Fault>> = {
  400: 'invalid',
  401: 'denied',
  403: 'denied',
  404: 'notFound',
  405: 'unimplemented',
  406: 'unimplemented',
  408: 'deadline',
  409: 'conflict',
  410: 'invalid',
  413: 'invalid',
  415: 'unimplemented',
  422: 'invalid',
  429: 'exhausted',
  502: 'unavailable',
  503: 'unavailable',
  504: 'deadline',
};

const kindOf = (code: number, reason: string | undefined): Fault => {
  if (reason === 'AlreadyExists') return 'exists';
  if (reason === 'ServerTimeout' || reason === 'Timeout') return 'deadline';
  return KIND_OF[code] ?? 'internal';
};

const TOO_LARGE = 'ResourceVersionTooLarge';
const MAX_PLAIN_BODY = 1024;

const asStatus = (body: string): Status | undefined => {
  try {
    const parsed = JSON.parse(body) as Status | null;
    return parsed !== null && typeof parsed === 'object' && parsed.kind === 'Status' ? parsed : undefined;
  } catch {
    return undefined; // a proxy's HTML page or plain text: the caller shows it as it is
  }
};

/** The error for an answer that is not a success. `what` is `GET /api/v1/…`, without the query. */
export function replyError(what: string, code: number, body: string, retryAfterSeconds?: number): KubeletError {
  const status = asStatus(body);
  const plain = body.trim().slice(0, MAX_PLAIN_BODY);
  const message = status?.message ?? (plain === '' ? `${what}: the server answered ${code}` : plain);
  return new KubeletError(kindOf(code, status?.reason), message, {
    detail: {
      status: code,
      ...(status?.reason === undefined ? {} : { reason: status.reason }),
      ...(status?.details === undefined ? {} : { details: status.details }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  });
}

/** The error for a Status object inside a watch stream. */
export const statusError = (status: Status): KubeletError =>
  new KubeletError(kindOf(status.code ?? 500, status.reason), status.message ?? 'the watch reported an error', {
    detail: {
      status: status.code ?? 500,
      ...(status.reason === undefined ? {} : { reason: status.reason }),
      ...(status.details === undefined ? {} : { details: status.details }),
    },
  });

/** The error for a request that got no answer. An abort keeps its own reason. */
export function transportError(what: string, err: unknown, signal: AbortSignal): Error {
  if (signal.aborted) {
    return signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', String(signal.reason));
  }
  if (isFault(err)) return err;
  const errno = errnoOf(err);
  // No cause: the message has its text, and a log line would show it twice.
  return new KubeletError('unavailable', `${what}: ${messageOf(err)}`, {
    detail: errno === undefined ? {} : { errno },
  });
}

/** The resource version asked for is no longer served. */
export const isGone = (err: unknown): boolean =>
  isFault(err) &&
  (err.detail['status'] === 410 || err.detail['reason'] === 'Expired' || err.detail['reason'] === 'Gone');

/** How the node authorizer and the NodeRestriction plugin refuse what is a pod's while their caches do not have the pod yet. */
const NOT_ON_NODE_YET =
  /node requested token bound to a pod scheduled on a different node|no relationship found between node/;

/** The server may not know yet that the pod is on this node: told by text, as both refusals are plain Forbidden. */
export function isPodNotYetKnown(err: unknown): boolean {
  if (!isFault(err, 'denied', 'notFound')) return false;
  if (err.kind === 'denied') return NOT_ON_NODE_YET.test(err.message);
  return (err.detail['details'] as Status['details'])?.['kind'] === 'pods';
}

/** The server has not got as far as the resource version asked for: it lags behind, or its storage was restored. */
export const isTooLargeVersion = (err: unknown): boolean => {
  const details = isFault(err) ? (err.detail['details'] as Status['details']) : undefined;
  const causes: unknown = details?.['causes'];
  return Array.isArray(causes) && causes.some((c: { reason?: unknown } | null) => c?.reason === TOO_LARGE);
};

/** As a server says it that has not come so far yet. */
export const tooLargeVersion = (message: string): KubeletError =>
  new KubeletError('conflict', message, { detail: { details: { causes: [{ reason: TOO_LARGE }] } } });

/** True when the request never got an answer from an API server. */
export const isUnreachable = (err: unknown): boolean =>
  isFault(err, 'unavailable', 'deadline') && err.detail['status'] === undefined;

/** True when nobody was there to take the request: trying again costs no server anything. */
export const isAbsent = (err: unknown): boolean => isUnreachable(err) && isFault(err) && err.detail['absent'] === true;

/** True when a watch was refused for want of a stream; see `ClientOptions.optionalWatches`. */
export const isNoRoom = (err: unknown): boolean => isFault(err, 'exhausted') && err.detail['noRoom'] === true;

/** How long a server that does not answer is waited for where there is something known from before to go on with. */
export const OFFLINE_AFTER_MS = 5000;

export const retryAfterMs = (err: unknown): number | undefined => {
  const seconds = isFault(err) ? err.detail['retryAfterSeconds'] : undefined;
  return typeof seconds === 'number' ? seconds * 1000 : undefined;
};
