// The other half of a stream: an upgrade request to the address the runtime gave. Redirects are never followed.
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { KubeletError } from '../../lib/errors.ts';

export type Dialled =
  | { readonly upgraded: true; readonly head: IncomingMessage; readonly socket: Duplex; readonly first: Buffer }
  | { readonly upgraded: false; readonly head: IncomingMessage };

export type DialRequest = {
  readonly url: string;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
};

const ANSWER_WITHIN_MS = 30_000;

/** Rejects when the runtime cannot be reached or does not answer. */
export function dialRuntime(
  clock: Clock,
  { url, method, headers }: DialRequest,
  signal: AbortSignal,
): Promise<Dialled> {
  const target = new URL(url);
  if (target.protocol !== 'http:' && target.protocol !== 'https:')
    return Promise.reject(new KubeletError('internal', 'the runtime gave no usable address for the stream'));
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(target, { method, headers, agent: false });
    const timer = clock.after(ANSWER_WITHIN_MS, () =>
      outgoing.destroy(new KubeletError('deadline', 'the runtime did not answer the stream request')),
    );
    const stop = (): void => void outgoing.destroy(new KubeletError('cancelled', 'cancelled'));
    const settled = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', stop);
    };
    signal.addEventListener('abort', stop, { once: true });
    outgoing.once('error', (err) => {
      settled();
      reject(new KubeletError('unavailable', err.message, { cause: err }));
    });
    outgoing.once('upgrade', (head, socket, first) => {
      settled();
      if (socket instanceof Socket) socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      resolve({ upgraded: true, head, socket, first });
    });
    outgoing.once('response', (head) => {
      settled();
      head.on('error', () => head.destroy());
      resolve({ upgraded: false, head });
    });
    outgoing.end();
  });
}
