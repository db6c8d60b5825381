// Connection failures in the words that people search for: those of Go's net package.
import { errnoOf, messageOf } from '../lib/errors.ts';

const CONNECT_TEXT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  EADDRNOTAVAIL: 'cannot assign requested address',
  ECONNRESET: 'connection reset by peer',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
};

export const hostPort = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

/** `dial tcp 10.0.0.1:80: connect: connection refused` */
export function dialErrorText(err: unknown, host: string, port: number): string {
  const code = errnoOf(err) ?? '';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EAI_NODATA')
    return `dial tcp: lookup ${host}: ${code === 'EAI_AGAIN' ? 'temporary failure in name resolution' : 'no such host'}`;
  const text = CONNECT_TEXT[code];
  return `dial tcp ${hostPort(host, port)}: ${text === undefined ? messageOf(err) : `connect: ${text}`}`;
}
