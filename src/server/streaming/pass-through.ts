// SPDY and plain WebSocket: the client's upgrade request goes to the runtime as it came, its answer comes back as it is,
// and then bytes flow. After a refused upgrade the connection is closed: nothing may follow on it.
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { TOKEN_PROTOCOL } from '../authenticators.ts';
import { lingeringEnd } from '../lingering-end.ts';
import { reply } from '../replies.ts';
import type { Exchange } from '../router.ts';
import { dialRuntime } from './runtime-dial.ts';
import { splice } from './splice.ts';

export type StreamDeps = { readonly clock: Clock; readonly idleMs: number };

/** The caller's credentials are for us, not for the runtime. */
const NOT_FORWARDED = new Set(['host', 'authorization', 'content-length', 'transfer-encoding', 'cookie']);

export function forwardedHeaders(request: IncomingMessage): OutgoingHttpHeaders {
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
  if (!dialled.upgraded) return passAnswer(dialled.head, socket);
  socket.write(headText(dialled.head, false));
  if (dialled.first.length > 0) socket.write(dialled.first);
  if (upgrade.head.length > 0) dialled.socket.write(upgrade.head);
  await splice(socket, dialled.socket, deps, stop);
}

/** The runtime's own answer to an upgrade it does not want, and then the end. */
export function passAnswer(head: IncomingMessage, socket: Duplex): void {
  socket.write(headText(head, true));
  head.once('close', () => lingeringEnd(socket));
  head.pipe(socket, { end: false });
}

/** A body is passed on decoded and ends with the connection, so its framing headers do not hold any more. */
function headText(head: IncomingMessage, closing: boolean): string {
  const lines = [`HTTP/1.1 ${head.statusCode ?? 502} ${head.statusMessage ?? ''}`];
  for (let i = 0; i + 1 < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i] ?? '';
    if (closing && ['transfer-encoding', 'connection', 'keep-alive'].includes(name.toLowerCase())) continue;
    lines.push(`${name}: ${head.rawHeaders[i + 1] ?? ''}`);
  }
  if (closing) lines.push('Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n`;
}
