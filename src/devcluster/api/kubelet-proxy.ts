// The way to the kubelet's port: logs, exec, attach, port-forward, and plain HTTP through node, pod and service proxies. Upgrades
// (SPDY, WebSocket) are spliced byte for byte: the kubelet speaks both.
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../lib/clock.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { httpExchange } from '../../lib/http/exchange.ts';
import { ApiError, badRequest, internal, notFound, unavailable } from './api-error.ts';
import { sendError, type Exchange } from './exchange.ts';
import { keyOf, numberAt, recordsAt, textAt, type ApiObject } from './objects.ts';
import type { Credential } from './pki/pki.ts';
import { resourceNamed, type ResourceType } from './resources.ts';
import { serviceTarget } from './service-target.ts';
import type { ObjectStore } from './store.ts';

type Target = { readonly secure: boolean; readonly host: string; readonly port: number; readonly path: string };

const HOP_HEADERS = new Set([
  'host',
  'authorization',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
]);
const FETCH_TIMEOUT_MS = 10_000;
const MAX_FETCHED_BYTES = 64 * 1024 * 1024;

export class KubeletProxy {
  readonly #store: ObjectStore;
  readonly #client: Credential;
  readonly #agent: Agent;
  readonly #closing = new AbortController();

  /** The kubelet's serving certificate is its own affair (it may be self-signed): as by default upstream, not checked. */
  constructor(store: ObjectStore, client: Credential) {
    this.#store = store;
    this.#client = client;
    this.#agent = new Agent({
      cert: client.certificatePem,
      key: client.keyPem,
      rejectUnauthorized: false,
      keepAlive: true,
      maxFreeSockets: 4,
    });
  }

  close(): void {
    this.#closing.abort(new KubeletError('cancelled', 'the server is being closed'));
    this.#agent.destroy();
  }

  /** A GET to the kubelet of `node`, read whole. */
  async fetch(node: string, path: string): Promise<{ status: number; body: string }> {
    const { host, port, path: asked } = this.#kubelet(node, path);
    const { certificatePem: cert, keyPem: key } = this.#client;
    const reply = await httpExchange(
      systemClock,
      {
        target: { scheme: 'https', host, port, path: asked },
        headers: {},
        verifyCertificate: false,
        client: { cert, key },
        deadlineMs: FETCH_TIMEOUT_MS,
        maxBodyBytes: MAX_FETCHED_BYTES,
      },
      this.#closing.signal,
    );
    if (reply.cut) throw new KubeletError('exhausted', `the answer is larger than ${MAX_FETCHED_BYTES} bytes`);
    return { status: reply.status, body: reply.body.toString() };
  }

  serve(exchange: Exchange, type: ResourceType): Promise<void> {
    const target = this.#target(exchange, type);
    const { request, response, info } = exchange;
    if (info.subresource === 'proxy' && info.rest === '' && ['GET', 'HEAD'].includes(request.method ?? '')) {
      // Relative links in what comes back must stay below the proxy.
      response.writeHead(301, { location: `${info.path}/${suffix(exchange.query)}` }).end();
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const headers = forwarded(request);
      const outgoing = this.#request(target, { method: request.method ?? 'GET', headers });
      response.once('close', () => {
        outgoing.destroy();
        resolve();
      });
      outgoing.once('error', (err) => {
        if (!response.headersSent) sendError(response, dialError(target, err));
        else response.destroy();
        resolve();
      });
      // Nobody asked for another protocol; without this the answer would be waited for without end.
      outgoing.once('upgrade', () => outgoing.destroy(new Error('the kubelet switched protocols')));
      outgoing.once('response', (incoming: IncomingMessage) => {
        void answer(incoming, exchange, target).then(resolve);
      });
      request.pipe(outgoing);
    });
  }

  /** Splices an upgraded connection. The kubelet's answer, good or bad, goes back as it is. */
  upgrade(exchange: Omit<Exchange, 'response'>, type: ResourceType, client: Duplex, head: Buffer): void {
    const target = this.#target(exchange, type);
    const { request } = exchange;
    const headers = { ...forwarded(request), connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' };
    const outgoing = this.#request(target, { method: request.method ?? 'GET', headers, agent: false });
    client.once('error', () => outgoing.destroy());
    client.once('close', () => outgoing.destroy());
    outgoing.once('error', (err) => refuseUpgrade(client, dialError(target, err)));
    outgoing.once('response', (incoming: IncomingMessage) => {
      client.write(statusLine(incoming));
      incoming.pipe(client);
    });
    outgoing.once('upgrade', (incoming: IncomingMessage, kubelet: Duplex, first: Buffer) => {
      client.write(statusLine(incoming));
      if (first.length > 0) client.write(first);
      if (head.length > 0) kubelet.write(head);
      splice(client, kubelet);
    });
    outgoing.end();
  }

  #request(target: Target, options: RequestOptions): ReturnType<typeof httpsRequest> {
    const common = { ...options, host: target.host, port: target.port, path: target.path };
    if (!target.secure) return httpRequest(common);
    const { cert, key } = this.#agent.options;
    const tls = { cert, key, rejectUnauthorized: false, servername: '' };
    return httpsRequest({ ...common, ...tls, ...(options.agent === false ? {} : { agent: this.#agent }) });
  }

  #target(exchange: Pick<Exchange, 'info' | 'query'>, type: ResourceType): Target {
    const { info, query } = exchange;
    if (type.storage === 'nodes') {
      const { scheme, name, port } = schemeNamePort(info.name);
      const kubelet = this.#kubelet(name, `${info.rest}${suffix(query)}`);
      const other = port !== '' && Number(port) !== kubelet.port;
      return other ? { ...kubelet, port: Number(port), secure: scheme === 'https' } : kubelet;
    }
    if (type.storage === 'services') return this.#service(info.namespace, info.name, `${info.rest}${suffix(query)}`);
    const plain = { scheme: '', name: info.name, port: '' };
    const { scheme, name: podName, port } = info.subresource === 'proxy' ? schemeNamePort(info.name) : plain;
    const stored = this.#store.get('pods', keyOf(info.namespace, podName));
    if (stored === undefined) throw notFound(type, podName);
    const pod = stored.object as ApiObject;
    if (info.subresource === 'proxy')
      return { ...podTarget(pod, port, `${info.rest}${suffix(query)}`), secure: scheme === 'https' };
    const node = textAt(pod, 'spec', 'nodeName');
    if (node === '') throw badRequest(`pod ${podName} does not have a host assigned`);
    return this.#kubelet(node, kubeletPath(pod, info.subresource, query));
  }

  #service(namespace: string, id: string, path: string): Target {
    const { scheme, name, port } = schemeNamePort(id);
    const key = keyOf(namespace, name);
    const [service, endpoints] = ['services', 'endpoints'].map((storage) => this.#store.get(storage, key)?.object);
    const target = serviceTarget({ name, port, service, endpoints }, systemClock.random());
    return { ...target, path, secure: scheme === 'https' };
  }

  #kubelet(node: string, path: string): Target {
    const object = this.#store.get('nodes', node)?.object;
    if (object === undefined) throw notFound(resourceNamed('nodes'), node);
    const addresses = recordsAt(object, 'status', 'addresses');
    const found = ['InternalIP', 'ExternalIP', 'Hostname']
      .map((t) => addresses.find((a) => a['type'] === t))
      .find((a) => a !== undefined);
    if (found === undefined) throw internal(`no preferred addresses found; known addresses: []`);
    const port = numberAt(object, 'status', 'daemonEndpoints', 'kubeletEndpoint', 'Port') ?? 10250;
    return { secure: true, host: textAt(found, 'address'), port, path };
  }
}

const suffix = (query: URLSearchParams): string => (query.size === 0 ? '' : `?${query.toString()}`);

/** `name`, `name:port` or `scheme:name:port`. */
function schemeNamePort(id: string): { scheme: string; name: string; port: string } {
  const parts = id.split(':');
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  if (parts.length > 3 || name === '' || !['', 'http', 'https'].includes(scheme))
    throw badRequest(`invalid proxy request ${JSON.stringify(id)}`);
  return { scheme, name, port };
}

function podTarget(pod: ApiObject, port: string, path: string): Omit<Target, 'secure'> {
  const host = textAt(pod, 'status', 'podIP');
  if (host === '') throw badRequest(`pod ${pod.metadata.name} has no IP address`);
  const ports = recordsAt(pod, 'spec', 'containers').flatMap((c) => recordsAt(c, 'ports'));
  const named = ports.find((p) => p['name'] === port);
  const number = Number(port) || numberAt(named ?? ports[0], 'containerPort') || 80;
  return { host, port: number, path };
}

/** Which container is meant when none is named: the annotated default, or the only one. */
function containerOf(pod: ApiObject, query: URLSearchParams, what: string): string {
  const names = (list: string): string[] => recordsAt(pod, 'spec', list).map((c) => textAt(c, 'name'));
  const main = names('containers');
  const all = [...main, ...names('initContainers'), ...names('ephemeralContainers')];
  const asked = query.get('container') ?? '';
  const name = pod.metadata.name;
  if (asked !== '') {
    if (!all.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`);
    return asked;
  }
  if (main.length === 1) return main[0] ?? '';
  const annotated = pod.metadata.annotations?.['kubectl.kubernetes.io/default-container'] ?? '';
  if (what !== 'log' && all.includes(annotated)) return annotated;
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${main.join(' ')}]`);
}

const LOG_OPTIONS = [
  'follow',
  'previous',
  'timestamps',
  'sinceSeconds',
  'sinceTime',
  'tailLines',
  'limitBytes',
  'stream',
];

function kubeletPath(pod: ApiObject, subresource: string, query: URLSearchParams): string {
  const { name, namespace = '' } = pod.metadata;
  if (subresource === 'portforward') {
    const ports = query.getAll('ports');
    return `/portForward/${namespace}/${name}${ports.length === 0 ? '' : `?port=${ports.join(',')}`}`;
  }
  const container = containerOf(pod, query, subresource);
  const out = new URLSearchParams();
  if (subresource === 'log') {
    for (const key of LOG_OPTIONS) if (query.has(key)) out.set(key, query.get(key) ?? '');
    return `/containerLogs/${namespace}/${name}/${container}${suffix(out)}`;
  }
  const flag = (theirs: string, ours: string, byDefault: boolean): void => {
    const value = query.get(theirs);
    if (value === null ? byDefault : value === 'true' || value === '1') out.set(ours, '1');
  };
  flag('stdin', 'input', false);
  flag('stdout', 'output', true);
  flag('stderr', 'error', true);
  flag('tty', 'tty', false);
  for (const part of query.getAll('command')) out.append('command', part);
  return `/${subresource}/${namespace}/${name}/${container}${suffix(out)}`;
}

function forwarded(request: IncomingMessage): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !name.startsWith(':') && !HOP_HEADERS.has(name) && name !== 'upgrade')
      headers[name] = value;
  return headers;
}

/** Errors of the kubelet come as plain text; clients of the API want a Status. */
async function answer(incoming: IncomingMessage, exchange: Exchange, target: Target): Promise<void> {
  const { response, info } = exchange;
  const code = incoming.statusCode ?? 502;
  if (info.subresource === 'log' && code >= 400) {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString().trim();
    sendError(response, kubeletRefusal(code, text, target));
    return;
  }
  response.statusCode = code;
  for (const [name, value] of Object.entries(incoming.headers))
    if (value !== undefined && !HOP_HEADERS.has(name)) response.setHeader(name, value);
  response.flushHeaders();
  await new Promise<void>((resolve) => {
    incoming.once('error', () => response.destroy());
    response.once('close', resolve);
    response.once('finish', resolve);
    incoming.pipe(response);
  });
}

function kubeletRefusal(code: number, text: string, target: Target): ApiError {
  if (code === 400) return badRequest(text);
  if (code === 404)
    return new ApiError(
      404,
      'NotFound',
      `the server could not find the requested resource ( pods/log ${target.path})`,
      {},
    );
  return internal(text === '' ? `the kubelet answered ${code}` : text);
}

const dialError = (target: Target, err: Error): ApiError =>
  target.secure
    ? internal(`error dialing backend: dial tcp ${target.host}:${target.port}: ${messageOf(err)}`)
    : unavailable(`error trying to reach service: ${messageOf(err)}`);

function statusLine(incoming: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${incoming.statusCode ?? 502} ${incoming.statusMessage ?? ''}`];
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    const name = incoming.rawHeaders[i] ?? '';
    if (incoming.statusCode !== 101 && ['transfer-encoding', 'connection'].includes(name.toLowerCase())) continue;
    lines.push(`${name}: ${incoming.rawHeaders[i + 1] ?? ''}`);
  }
  if (incoming.statusCode !== 101) lines.push('Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n`;
}

export function refuseUpgrade(client: Duplex, error: ApiError): void {
  if (client.destroyed) return;
  const body = JSON.stringify(error.status());
  client.end(
    `HTTP/1.1 ${error.code} ${error.reason}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function splice(a: Duplex, b: Duplex): void {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  a.once('error', end);
  b.once('error', end);
  a.once('close', end);
  b.once('close', end);
  a.pipe(b);
  b.pipe(a);
}
