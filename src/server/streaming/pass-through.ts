// SPDY and plain WebSocket: the client's upgrade request goes to the runtime as it came, its answer comes back as it is,
// and then bytes flow. After a refused upgrade the connection is closed: nothing may follow on it.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { readReply } from '../../lib/http/exchange.ts';
import type { HeaderFields } from '../../lib/http/header-fields.ts';
import type { OpenReply } from '../../lib/http/open.ts';
import { TOKEN_PROTOCOL } from '../authenticators.ts';
import { lingeringEnd } from '../lingering-end.ts';
import { reply } from '../replies.ts';
import type { Exchange } from '../router.ts';
import { dialRuntime } from './runtime-dial.ts';
import { splice } from './splice.ts';

export type StreamDeps = { readonly clock: Clock; readonly idleMs: number };

/** The caller's credentials are for us, not for the runtime. */
const NOT_FORWARDED = new Set(['host', 'authorization', 'content-length', 'transfer-encoding', 'cookie']);

export function forwardedHeaders(request: IncomingMessage): HeaderFields {
  const headers: Record<string, string[]> = {};
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const name = (request.rawHeaders[i] ?? '').toLowerCase();
    const value = request.rawHeaders[i + 1] ?? '';
    if (name === 'sec-websocket-protocol') addAll(headers, name, withoutToken(value));
    else if (!NOT_FORWARDED.has(name)) addAll(headers, name, value);
  }
  return headers;
}

const addAll = (headers: Record<string, string[]>, name: string, value: string): void => {
  if (value !== '') (headers[name] ??= []).push(value);
};

/** Browsers can show a token only as a subprotocol. */
const withoutToken = (protocols: string): string =>
  protocols
    .split(',')
    .map((p) => p.trim())
    .filter((p) => !p.startsWith(TOKEN_PROTOCOL))
    .join(', ');

export async function passThrough(deps: StreamDeps, exchange: Exchange, url: string): Promise<void> {
  const { request, response, upgrade, signal, stop } = exchange;
  if (upgrade === undefined) return reply(response, 500, 'Upgrade request required\n', { nosniff: true });
  const dialled = await dialRuntime(
    deps.clock,
    { url, method: request.method ?? 'GET', headers: forwardedHeaders(request) },
    signal,
  );
  const { socket } = upgrade;
  response.detachSocket(socket as Socket);
  if (dialled.upgraded === undefined) return passAnswer(deps.clock, dialled, socket, signal);
  const { socket: runtime, first } = dialled.upgraded;
  socket.write(headText(dialled.head, false));
  if (first.length > 0) socket.write(first);
  if (upgrade.head.length > 0) runtime.write(upgrade.head);
  await splice(socket, runtime, deps, stop);
}

const MAX_ANSWER_BYTES = 1024 * 1024;
const ANSWER_WITHIN_MS = 30_000;
const NO_REDIRECTS = 'the backend attempted to redirect this request, which is not permitted\n';

/** The runtime's own answer to an upgrade it does not want, and then the end. A redirect is not passed on: the client
 * would repeat its request, credentials included, wherever the runtime says (CVE-2020-8559). */
export async function passAnswer(clock: Clock, reply: OpenReply, socket: Duplex, signal: AbortSignal): Promise<void> {
  const { head } = reply;
  const status = head.statusCode ?? 502;
  try {
    if (status >= 300 && status < 400) {
      reply.destroy();
      socket.write(
        `HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${NO_REDIRECTS}`,
      );
      return;
    }
    const { body } = await readReply(
      clock,
      reply,
      { maxBodyBytes: MAX_ANSWER_BYTES, deadlineMs: ANSWER_WITHIN_MS },
      signal,
    );
    socket.write(headText(head, true));
    socket.write(body);
  } catch {
    // The runtime broke off: the client sees the connection end without an answer, which is what happened.
  } finally {
    lingeringEnd(socket);
  }
}

/** A body is passed on decoded and ends with the connection, so its framing headers do not hold any more. */
function headText(head: IncomingMessage, closing: boolean): string {
  const lines = [`HTTP/1.1 ${head.statusCode ?? 502} ${head.statusMessage ?? ''}`];
  for (let i = 0; i + 1 < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i] ?? '';
    if (closing && ['transfer-encoding', 'content-length', 'connection', 'keep-alive'].includes(name.toLowerCase()))
      continue;
    lines.push(`${name}: ${head.rawHeaders[i + 1] ?? ''}`);
  }
  if (closing) lines.push('Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n`;
}
