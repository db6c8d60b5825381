// One HTTP request and its answer as a whole, up to a size. Settles as `openHttp` does; the deadline counts for both.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import { HttpError, openHttp, type HttpRequest, type OpenReply } from './open.ts';

export type HttpReply = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body was longer than asked for. */
  readonly cut: boolean;
};

export type WholeRequest = HttpRequest & {
  /** A longer body is cut here and the connection closed. */
  readonly maxBodyBytes: number;
};

/** Status 101 ends the exchange: nothing here speaks another protocol. */
export async function httpExchange(clock: Clock, asked: WholeRequest, signal: AbortSignal): Promise<HttpReply> {
  const begun = clock.monotonic();
  const reply = await openHttp(clock, asked, signal);
  if (reply.upgraded !== undefined) {
    reply.destroy();
    return replyOf(reply.head, Buffer.alloc(0), false);
  }
  const { deadlineMs, maxBodyBytes } = asked;
  const leftMs = deadlineMs === undefined ? undefined : deadlineMs - (clock.monotonic() - begun);
  return readReply(clock, reply, { maxBodyBytes, ...(leftMs === undefined ? {} : { deadlineMs: leftMs }) }, signal);
}

/** Reads the body of an answer and closes the connection, whatever happens. */
export function readReply(
  clock: Clock,
  { head, destroy }: OpenReply,
  { maxBodyBytes, deadlineMs }: Pick<WholeRequest, 'maxBodyBytes' | 'deadlineMs'>,
  signal: AbortSignal,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const release = (): void => {
      timer?.cancel();
      signal.removeEventListener('abort', onAbort);
      destroy();
    };
    const failed = (err: unknown): void => {
      release();
      reject(err as Error);
    };
    const onAbort = (): void => failed(signal.reason);
    const timer =
      deadlineMs === undefined
        ? undefined
        : clock.after(deadlineMs, () => failed(bodyError('deadline', 'the body did not end in time')));
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (cut: boolean): void => {
      release();
      resolve(replyOf(head, Buffer.concat(chunks).subarray(0, maxBodyBytes), cut));
    };
    head.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBodyBytes) finish(true);
    });
    head.on('end', () => finish(false));
    head.on('error', (err) => failed(bodyError('unavailable', 'unexpected EOF', err)));
    head.on('close', () => failed(bodyError('unavailable', 'unexpected EOF')));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    if (head.destroyed) failed(bodyError('unavailable', 'unexpected EOF'));
  });
}

const bodyError = (kind: 'deadline' | 'unavailable', message: string, cause?: unknown): HttpError =>
  new HttpError(kind, message, { stage: 'body', connected: true, cause });

const replyOf = (head: IncomingMessage, body: Buffer, cut: boolean): HttpReply => ({
  status: head.statusCode ?? 0,
  statusText: head.statusMessage ?? '',
  headers: head.headers,
  body,
  cut,
});
