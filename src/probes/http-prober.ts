// An HTTP probe is healthy on 200–399. Redirects are followed on the same host only: a container must not send its node
// elsewhere. Certificates are not checked, connections are not kept, at most 10 KiB of the answer are read.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { HttpGetAction } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import { dialErrorText, hostPort } from './net-errors.ts';
import { hostOf, MAX_OUTPUT_BYTES, portOf, type Answer, type Prober } from './prober.ts';

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

type Url = { readonly scheme: string; readonly host: string; readonly port: number; readonly path: string };
type Headers = Readonly<Record<string, string | string[]>>;
type Reply = { readonly status: number; readonly location: string | undefined; readonly body: string };

export const httpProber =
  (clock: Clock, userAgent: string): Prober =>
  async ({ probe, container, podIp, timeoutMs }, signal) => {
    const action = probe.httpGet ?? { port: 0 };
    const headers = headersOf(action, userAgent);
    const until = clock.monotonic() + timeoutMs;
    let url = urlOf(action, portOf(action.port, container), podIp);
    for (let hops = 0; ; hops++) {
      const outcome = await exchange(clock, url, headers, until - clock.monotonic(), signal);
      if (typeof outcome === 'string') return failure(`Get "${textOf(url)}": ${outcome}`);
      const next = REDIRECTS.has(outcome.status) ? redirectOf(url, outcome.location) : undefined;
      if (next === undefined || next.host !== url.host) return judge(outcome);
      url = next;
      if (hops + 1 === MAX_REDIRECTS) return failure(`Get "${textOf(url)}": stopped after 10 redirects`);
    }
  };

const failure = (output: string): Answer => ({ result: 'failure', output });

function judge({ status, body }: Reply): Answer {
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`);
  if (status < 300) return { result: 'success', output: body };
  return { result: 'warning', output: `Probe terminated redirects, Response body: ${body}` };
}

function urlOf(action: HttpGetAction, port: number, podIp: string): Url {
  return {
    scheme: (action.scheme ?? 'HTTP').toLowerCase(),
    host: hostOf(action.host, podIp),
    port,
    path: escapedPath(action.path ?? '/'),
  };
}

function escapedPath(path: string): string {
  const plain = path.replace(/#.*$/s, '').replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, (c) => encodeURIComponent(c));
  return plain.startsWith('/') || plain === '' ? plain : `/${plain}`;
}

const textOf = (url: Url): string => `${url.scheme}://${hostPort(url.host, url.port)}${url.path}`;

function redirectOf(from: Url, location: string | undefined): Url | undefined {
  if (location === undefined || !URL.canParse(location, textOf(from))) return undefined;
  const to = new URL(location, textOf(from));
  const scheme = to.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https') return undefined;
  const port = to.port === '' ? (scheme === 'https' ? 443 : 80) : Number(to.port);
  return { scheme, host: to.hostname.replace(/^\[(.*)\]$/, '$1'), port, path: to.pathname + to.search };
}

/** The probe's own headers; `Host` is passed on, an empty `Accept` leaves it out. */
function headersOf(action: HttpGetAction, userAgent: string): Headers {
  const headers: Record<string, string | string[]> = {};
  for (const { name, value } of action.httpHeaders ?? []) {
    const key = name.toLowerCase();
    const old = headers[key];
    headers[key] = old === undefined ? value : [old, value].flat();
  }
  headers['user-agent'] ??= userAgent;
  headers['accept'] ??= '*/*';
  if (headers['accept'] === '') delete headers['accept'];
  if (Array.isArray(headers['host'])) headers['host'] = headers['host'][0] ?? '';
  if (headers['host'] === '') delete headers['host'];
  return headers;
}

/** The reply, or in words why there is none. Rejects when a reply began and could not be read. */
function exchange(
  clock: Clock,
  url: Url,
  headers: Headers,
  leftMs: number,
  signal: AbortSignal,
): Promise<Reply | string> {
  return new Promise((resolve, reject) => {
    let replied = false;
    let settled = false;
    const settle = (fn: () => void): void => {
      if (settled) return;
      settled = true;
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      request.destroy();
      fn();
    };
    const onAbort = (): void => settle(() => reject(signal.reason as Error));
    const timer = clock.after(leftMs, () =>
      settle(() =>
        replied
          ? reject(
              new KubeletError(
                'deadline',
                'context deadline exceeded (Client.Timeout or context cancellation while reading body)',
              ),
            )
          : resolve('context deadline exceeded (Client.Timeout exceeded while awaiting headers)'),
      ),
    );
    const send = url.scheme === 'https' ? httpsRequest : httpRequest;
    const request = send(optionsOf(url, headers));
    request.on('response', (response) => {
      replied = true;
      readBody(
        response,
        (body) => settle(() => resolve(replyOf(response, body))),
        (err) => settle(() => reject(err)),
      );
    });
    request.on('error', (err) =>
      settle(() => resolve(requestErrorText(err, url, request.socket?.localPort !== undefined))),
    );
    signal.addEventListener('abort', onAbort, { once: true });
    request.end();
  });
}

const optionsOf = (url: Url, headers: Headers): RequestOptions & { readonly autoSelectFamily: boolean } => ({
  host: url.host,
  port: url.port,
  path: url.path || '/',
  headers,
  agent: false,
  autoSelectFamily: false,
  rejectUnauthorized: false,
  maxHeaderSize: 64 * 1024,
});

const replyOf = (response: IncomingMessage, body: string): Reply => ({
  status: response.statusCode ?? 0,
  location: response.headers.location,
  body,
});

function readBody(response: IncomingMessage, done: (body: string) => void, failed: (err: Error) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = (): void => done(Buffer.concat(chunks).subarray(0, MAX_OUTPUT_BYTES).toString('utf8'));
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MAX_OUTPUT_BYTES) finish();
  });
  response.on('end', finish);
  response.on('error', () => failed(new KubeletError('unavailable', 'unexpected EOF')));
}

function requestErrorText(err: Error, url: Url, connected: boolean): string {
  const code = errnoOf(err) ?? '';
  if (code === 'ECONNRESET' && connected)
    return messageOf(err) === 'socket hang up'
      ? 'EOF'
      : `read tcp ${hostPort(url.host, url.port)}: read: connection reset by peer`;
  if (messageOf(err) === 'socket hang up') return 'EOF';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) {
    return /wrong version number|packet length too long|http request/i.test(messageOf(err))
      ? 'http: server gave HTTP response to HTTPS client'
      : `remote error: tls: ${messageOf(err)}`;
  }
  if (code.startsWith('HPE_')) return `net/http: HTTP/1.x transport connection broken: malformed HTTP response`;
  return dialErrorText(err, url.host, url.port);
}
