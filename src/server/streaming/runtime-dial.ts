// The other half of a stream: an upgrade request to the address the runtime gave. Redirects are never followed.
import { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { HeaderFields } from '../../lib/http/header-fields.ts';
import { openHttp, type OpenReply } from '../../lib/http/open.ts';
import { targetOf } from '../../lib/http/redirects.ts';

export type DialRequest = {
  readonly url: string;
  readonly method: string;
  /** As they came in with the client's request. */
  readonly headers: HeaderFields;
};

const ANSWER_WITHIN_MS = 30_000;

/** Rejects when the runtime cannot be reached or does not answer. */
export async function dialRuntime(
  clock: Clock,
  { url, method, headers }: DialRequest,
  signal: AbortSignal,
): Promise<OpenReply> {
  const target = URL.canParse(url) ? targetOf(new URL(url)) : undefined;
  if (target === undefined) throw new KubeletError('internal', 'the runtime gave no usable address for the stream');
  const reply = await openHttp(
    clock,
    { target, method, headers, headerText: 'latin1', verifyCertificate: true, deadlineMs: ANSWER_WITHIN_MS },
    signal,
  );
  const socket = reply.upgraded?.socket;
  if (socket instanceof Socket) socket.setNoDelay(true);
  return reply;
}
