// Opens one connection to the API server: through a proxy where there is one, with TLS, within a bound. What it rejects
// with says whether anybody was there at all.
import http from 'node:http';
import https from 'node:https';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { ClusterAccess, TlsIdentity } from './kubeconfig.ts';
import { hostOf, portOf } from './proxy.ts';

export type DialOptions = {
  readonly server: URL;
  readonly access: Pick<ClusterAccess, 'ca' | 'insecure' | 'tlsServerName'>;
  readonly proxy: URL | undefined;
  readonly tls: TlsIdentity | undefined;
  /** Application protocols in order of preference. */
  readonly protocols: readonly string[];
  readonly timeoutMs: number;
};

/** An open connection and the protocol the server chose for it; empty when it chose none. */
export type Dialed = { readonly socket: Socket; readonly protocol: string };

const TCP_KEEPALIVE_MS = 15_000;
/** Nobody listens there, or cannot be reached: trying again costs the server nothing. */
const ABSENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNRESET',
]);

export async function dial(clock: Clock, o: DialOptions, signal: AbortSignal): Promise<Dialed> {
  signal.throwIfAborted();
  const scope = childScope(signal);
  const late = new KubeletError('unavailable', `no connection to ${o.server.host} in ${o.timeoutMs}ms`);
  const timer = clock.after(o.timeoutMs, () => scope.abort(late));
  try {
    const plain = o.proxy === undefined ? await direct(o.server, scope.signal) : await tunnel(o.proxy, o, scope.signal);
    plain.setNoDelay(true);
    plain.setKeepAlive(true, TCP_KEEPALIVE_MS);
    if (o.server.protocol === 'http:') return { socket: plain, protocol: '' };
    return await secured(plain, o, scope.signal);
  } catch (err) {
    if (isFault(err) || signal.aborted) throw err;
    const errno = errnoOf(err);
    const absent = errno !== undefined && ABSENT.has(errno);
    const detail = { ...(errno === undefined ? {} : { errno }), ...(absent ? { absent } : {}) };
    throw new KubeletError('unavailable', messageOf(err), { detail });
  } finally {
    timer.cancel();
    scope.release();
  }
}

const direct = (url: URL, signal: AbortSignal): Promise<Socket> =>
  ready(connectTcp({ host: hostOf(url), port: portOf(url) }), 'connect', signal);

async function secured(socket: Socket, o: DialOptions, signal: AbortSignal): Promise<Dialed> {
  const { ca, insecure, tlsServerName } = o.access;
  const host = hostOf(o.server);
  const name = tlsServerName ?? (isIP(host) === 0 ? host : undefined);
  const secure = connectTls({
    socket,
    host,
    ...(name === undefined ? {} : { servername: name }),
    ...(ca === undefined ? {} : { ca }),
    ...(o.tls === undefined ? {} : { cert: o.tls.cert, key: o.tls.key }),
    rejectUnauthorized: !insecure,
    minVersion: 'TLSv1.2',
    ALPNProtocols: [...o.protocols],
  });
  await ready(secure, 'secureConnect', signal);
  return { socket: secure, protocol: secure.alpnProtocol === false ? '' : (secure.alpnProtocol ?? '') };
}

/** Settles with the event, an error, the end of the socket or the signal, whichever comes first. */
function ready<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      signal.removeEventListener('abort', onAbort);
      socket.off(event, onReady).off('error', fail).off('close', onClose);
    };
    const onReady = (): void => {
      settle();
      resolve(socket);
    };
    const fail = (err: unknown): void => {
      settle();
      socket.on('error', () => undefined).destroy();
      reject(err instanceof Error ? err : new Error(String(err)));
    };
    const onClose = (): void => fail(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }));
    const onAbort = (): void => fail(signal.reason);
    socket.once(event, onReady).once('error', fail).once('close', onClose);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

function tunnel(proxy: URL, o: DialOptions, signal: AbortSignal): Promise<Socket> {
  const host = hostOf(o.server);
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${portOf(o.server)}`;
  const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const send = proxy.protocol === 'https:' ? https.request : http.request;
  return new Promise((resolve, reject) => {
    const request = send({
      method: 'CONNECT',
      host: hostOf(proxy),
      port: Number(proxy.port) || portOf(proxy),
      path: target,
      agent: false,
      signal,
      headers: {
        Host: target,
        ...(login === ':' ? {} : { 'Proxy-Authorization': `Basic ${Buffer.from(login).toString('base64')}` }),
      },
    });
    const refuse = (code: number | undefined): void =>
      reject(new KubeletError('unavailable', `the proxy ${proxy.host} answered ${code ?? 'nothing'} for ${target}`));
    request.once('connect', (response, socket: Socket) => {
      if (response.statusCode === 200) return resolve(socket);
      socket.on('error', () => undefined).destroy();
      refuse(response.statusCode);
    });
    request.once('response', (response) => {
      response.destroy();
      refuse(response.statusCode);
    });
    request.on('error', (err) => reject(signal.aborted && signal.reason instanceof Error ? signal.reason : err));
    request.once('close', () => refuse(undefined));
    request.end();
  });
}
