// What exec, attach and port-forward requests ask for, read from their query. Pure.
import type { IncomingMessage } from 'node:http';
import { KubeletError } from '../../lib/errors.ts';

export type StreamOptions = {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
};

/** A terminal has one output: with `tty` there is no stderr of its own. */
export function streamOptions(query: URLSearchParams): StreamOptions {
  const on = (name: string): boolean => query.get(name) === '1';
  const tty = on('tty');
  const options = { stdin: on('input'), stdout: on('output'), stderr: on('error') && !tty, tty };
  if (!options.stdin && !options.stdout && !options.stderr)
    throw new KubeletError('invalid', 'you must specify at least 1 of stdin, stdout, stderr');
  return options;
}

const listOf = (header: string | string[] | undefined): string[] =>
  String(header ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');

const wantsUpgrade = ({ headers }: IncomingMessage): boolean =>
  listOf(headers.connection).some((word) => word.toLowerCase() === 'upgrade');

export const isWebSocket = (request: IncomingMessage): boolean =>
  wantsUpgrade(request) && request.headers.upgrade?.toLowerCase() === 'websocket';

export const subprotocolsOf = ({ headers }: IncomingMessage): readonly string[] =>
  listOf(headers['sec-websocket-protocol']);

export const CLOSING_PROTOCOL = 'v5.channel.k8s.io';
const TUNNEL_PREFIX = 'SPDY/3.1+';

/** The subprotocol under which a WebSocket carries SPDY, if the client offers one. */
export const tunnelProtocolOf = (request: IncomingMessage): string | undefined =>
  isWebSocket(request) ? subprotocolsOf(request).find((p) => p.startsWith(TUNNEL_PREFIX)) : undefined;

export const tunnelled = (protocol: string): string => protocol.slice(TUNNEL_PREFIX.length);

/** Ports come in the query only over plain WebSocket; SPDY clients name one per stream. */
export function forwardedPorts(request: IncomingMessage, query: URLSearchParams): readonly number[] {
  if (!isWebSocket(request) || tunnelProtocolOf(request) !== undefined) return [];
  const given = query.getAll('port');
  if (given.length === 0) throw new KubeletError('invalid', 'query parameter "port" is required');
  return given.flatMap((text) => {
    if (text === '') throw new KubeletError('invalid', 'query parameter "port" cannot be empty');
    return text.split(',').map((part) => portOf(part, text));
  });
}

function portOf(part: string, text: string): number {
  const why = !/^\d+$/.test(part) ? 'invalid syntax' : Number(part) > 65535 ? 'value out of range' : undefined;
  if (why !== undefined)
    throw new KubeletError(
      'invalid',
      `unable to parse ${JSON.stringify(text)} as a port: strconv.ParseUint: parsing ${JSON.stringify(part)}: ${why}`,
    );
  if (Number(part) < 1) throw new KubeletError('invalid', `port ${JSON.stringify(text)} must be > 0`);
  return Number(part);
}
