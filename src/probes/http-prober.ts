// An HTTP probe is healthy on 200–399. Redirects are followed on the same host only: a container must not send its node
// elsewhere. Certificates are not checked, connections are not kept, at most 10 KiB of the answer are read.
import { isIP } from 'node:net';
import type { HttpGetAction } from '../core/pod.ts';
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, messageOf } from '../lib/errors.ts';
import { httpExchange, type HttpReply } from '../lib/http/exchange.ts';
import type { HeaderFields } from '../lib/http/header-fields.ts';
import { HttpError, type HttpTarget } from '../lib/http/open.ts';
import { MAX_REDIRECTS, redirectTarget } from '../lib/http/redirects.ts';
import type { NameLookup } from '../lib/name-lookup.ts';
import { dialErrorText, hostPort } from './net-errors.ts';
import { httpsExchange } from './https-exchange.ts';
import { BrokenAnswer, hostOf, MAX_OUTPUT_BYTES, portOf, type Answer, type Prober } from './prober.ts';
import { upTo } from '../lib/text.ts';

const LATE_BODY = 'context deadline exceeded (Client.Timeout or context cancellation while reading body)';

export const httpProber =
  (clock: Clock, names: NameLookup, userAgent: string): Prober =>
  async ({ probe, container, podIp, timeoutMs }, signal) => {
    const action = probe.httpGet ?? { port: 0 };
    const headers = headersOf(action, userAgent);
    const until = clock.monotonic() + timeoutMs;
    let url = urlOf(action, portOf(action.port, container), podIp);
    for (let hops = 0; ; hops++) {
      const outcome = await exchange({ clock, names }, url, headers, until - clock.monotonic(), signal);
      if (typeof outcome === 'string') return failure(`Get "${textOf(url)}": ${outcome}`);
      const next = redirectTarget(url, outcome);
      if (next === undefined || next.host !== url.host) return judge(outcome);
      url = next;
      if (hops + 1 === MAX_REDIRECTS) return failure(`Get "${textOf(url)}": stopped after 10 redirects`);
    }
  };

const failure = (output: string): Answer => ({ result: 'failure', output });

function judge({ status, body: bytes }: HttpReply): Answer {
  const body = bytes.toString('utf8');
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`);
  if (status < 300) return { result: 'success', output: body };
  return { result: 'warning', output: `Probe terminated redirects, Response body: ${body}` };
}

function urlOf(action: HttpGetAction, port: number, podIp: string): HttpTarget {
  return {
    scheme: action.scheme?.toUpperCase() === 'HTTPS' ? 'https' : 'http',
    host: hostOf(action.host, podIp),
    port,
    path: escapedPath(action.path ?? '/'),
  };
}

function escapedPath(path: string): string {
  const plain = upTo(path, '#').replace(/(?:[^\x21-\x7e]|["<>\\^`{|}])+/gu, percentEncoded);
  return plain.startsWith('/') || plain === '' ? plain : `/${plain}`;
}

const ESCAPES = Array.from({ length: 256 }, (_, byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`);

function percentEncoded(text: string): string {
  let out = '';
  for (const byte of Buffer.from(text, 'utf8')) out += ESCAPES[byte];
  return out;
}

const textOf = (url: HttpTarget): string => `${url.scheme}://${hostPort(url.host, url.port)}${url.path}`;

/** The probe's own headers; `Host` is passed on, an empty `Accept` leaves it out. */
function headersOf(action: HttpGetAction, userAgent: string): HeaderFields {
  const headers = Object.create(null) as Record<string, string | string[]>;
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
async function exchange(
  { clock, names }: { readonly clock: Clock; readonly names: NameLookup },
  target: HttpTarget,
  headers: HeaderFields,
  leftMs: number,
  signal: AbortSignal,
): Promise<HttpReply | string> {
  const limits = { deadlineMs: leftMs, maxBodyBytes: MAX_OUTPUT_BYTES };
  const scope = isIP(target.host) === 0 ? childScope(signal) : undefined;
  const named = scope === undefined ? {} : { lookup: names.until(scope.signal) };
  const asked = { target, headers, verifyCertificate: false, lenient: true, ...named, ...limits };
  try {
    return await (target.scheme === 'https' ? httpsExchange : httpExchange)(clock, asked, signal);
  } catch (err) {
    if (!(err instanceof HttpError)) throw err;
    if (err.stage === 'request') return `net/http: ${err.message}`;
    const isLate = err.kind === 'deadline';
    if (err.stage === 'body') throw new BrokenAnswer(err.kind, isLate ? LATE_BODY : err.message, { cause: err });
    if (isLate) return 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
    return requestErrorText(err.cause ?? err, target, err.connected);
  } finally {
    scope?.abort();
    scope?.release();
  }
}

function requestErrorText(err: unknown, url: HttpTarget, connected: boolean): string {
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
