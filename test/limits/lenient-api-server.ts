// An API server that takes everything: objects are stored and watched as the bytes they came as, without a rule about them, so
// that the agent meets what no validation stopped. It keeps what the agent says: statuses, events, leases.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mergeSchemaOf } from '../../src/devcluster/api/merge-schema.ts';
import { strategicMerge } from '../../src/devcluster/api/strategic-merge.ts';
import { jsonBytes } from './values.ts';

type Json = Record<string, unknown>;
type Stored = { readonly object: Json; readonly bytes: Buffer; readonly version: number };
type Watch = { readonly collection: string; readonly only: string | undefined; readonly to: ServerResponse };

/** `/api/v1/namespaces/ns/pods/name/status?…`, in its parts. */
const PATH =
  /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/[^/]))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;

export class LenientApiServer {
  readonly events: string[] = [];
  /** Pods with a warning. */
  readonly warned = new Set<string>();
  /** When leases were renewed. */
  readonly renewals: number[] = [];
  /** What a token request is answered with. */
  token = 'token';
  /** Instead of the object at a path: what surfaces that are answers of the API server give. */
  readonly answers = new Map<string, Buffer>();
  onPod: (name: string, status: Json | undefined) => void = () => undefined;
  readonly #collections = new Map<string, Map<string, Stored>>();
  readonly #watches = new Set<Watch>();
  readonly #server: Server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
  #version = 1;

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Creates or replaces. `key`: `namespace/name`, or `/name`. */
  put(collection: string, key: string, object: Json): void {
    const had = this.#of(collection).get(key);
    const version = ++this.#version;
    const metadata = { ...(object['metadata'] as Json), resourceVersion: String(version) };
    const whole = { ...object, metadata };
    const stored = { object: whole, bytes: jsonBytes(whole), version };
    this.#of(collection).set(key, stored);
    this.#tell(collection, key, had === undefined ? 'ADDED' : 'MODIFIED', stored.bytes);
  }

  change(collection: string, key: string, change: (object: Json) => Json): void {
    const had = this.#of(collection).get(key);
    if (had !== undefined) this.put(collection, key, change(had.object));
  }

  remove(collection: string, key: string): void {
    const had = this.#of(collection).get(key);
    if (!this.#of(collection).delete(key) || had === undefined) return;
    this.#version++;
    this.#tell(collection, key, 'DELETED', had.bytes);
  }

  get(collection: string, key: string): Json | undefined {
    return this.#of(collection).get(key)?.object;
  }

  /** What the agent said of pods. */
  statuses(): string {
    return [...this.#of('/api/v1/pods').values()]
      .map(({ object }) => JSON.stringify(object['status'] ?? null))
      .join('\n');
  }

  /** Whatever it is, to everybody who watches. */
  slip(collection: string, object: unknown): void {
    this.#tell(collection, undefined, 'ADDED', jsonBytes(object));
  }

  #of(collection: string): Map<string, Stored> {
    let found = this.#collections.get(collection);
    if (found === undefined) this.#collections.set(collection, (found = new Map()));
    return found;
  }

  #tell(collection: string, key: string | undefined, type: string, bytes: Buffer): void {
    for (const watch of this.#watches)
      if (watch.collection === collection && (watch.only === undefined || watch.only === key?.split('/')[1]))
        watch.to.write(line(type, bytes));
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://x');
    const [, base = '', namespace = '', plural = '', name, subresource] = PATH.exec(url.pathname) ?? [];
    const body = await bodyOf(incoming);
    const collection = `${base}/${plural}`;
    const key = `${namespace}/${name === undefined ? '' : decodeURIComponent(name)}`;
    const answer = this.answers.get(url.pathname);
    if (answer !== undefined) return send(outgoing, 200, answer);
    if (incoming.method === 'GET' && name === undefined) return this.#listOrWatch(collection, namespace, url, outgoing);
    if (collection.endsWith('reviews'))
      return send(outgoing, 201, { ...body, status: { allowed: true, authenticated: true } });
    if (subresource === 'token')
      return send(outgoing, 201, {
        ...body,
        status: { token: this.token, expirationTimestamp: '2099-01-01T00:00:00Z' },
      });
    if (plural === 'events') {
      this.#event(body);
      return send(outgoing, 201, body);
    }
    if (plural === 'leases') this.renewals.push(performance.now());
    if (incoming.method === 'POST') return this.#create(collection, namespace, body, outgoing);
    const had = this.#of(collection).get(key);
    if (had === undefined) return send(outgoing, 404, NOT_FOUND);
    this.#one(incoming.method ?? '', collection, key, had, body, subresource);
    send(outgoing, 200, this.#of(collection).get(key)?.bytes ?? had.bytes);
  }

  #event(body: Json): void {
    this.events.push(JSON.stringify(body));
    const { name } = (body['involvedObject'] ?? {}) as { readonly name?: string };
    if (body['type'] === 'Warning' && name !== undefined) this.warned.add(name);
  }

  #create(collection: string, namespace: string, body: Json, outgoing: ServerResponse): void {
    const metadata = body['metadata'] as Json;
    const name = String(metadata['name']);
    if (this.get(collection, `${namespace}/${name}`) !== undefined)
      return send(outgoing, 409, { ...NOT_FOUND, reason: 'AlreadyExists', code: 409 });
    const made = { ...metadata, ...(namespace === '' ? {} : { namespace }), uid: `uid-${this.#version}` };
    this.put(collection, `${namespace}/${name}`, { ...body, metadata: made });
    send(outgoing, 201, this.get(collection, `${namespace}/${name}`) ?? {});
  }

  #one(method: string, collection: string, key: string, had: Stored, body: Json, subresource = ''): void {
    if (method === 'PUT') return this.put(collection, key, body);
    if (method === 'DELETE') {
      this.remove(collection, key);
      if (collection.endsWith('/pods')) this.onPod(key, undefined);
    }
    if (method !== 'PATCH') return;
    const kind = collection.endsWith('/pods') ? 'Pod' : collection.endsWith('/nodes') ? 'Node' : '';
    // Without what the patch says nothing of: the rest of the object stays as it was, raw parts included.
    const part = subresource === 'status' ? { status: had.object['status'] ?? {} } : had.object;
    const patched = strategicMerge(part, { ...body, metadata: undefined }, mergeSchemaOf(kind)) as Json;
    const { metadata } = had.object;
    this.put(collection, key, { ...had.object, ...patched, metadata });
    if (kind === 'Pod') this.onPod(key, patched['status'] as Json);
  }

  #listOrWatch(collection: string, namespace: string, url: URL, outgoing: ServerResponse): void {
    const only = /metadata\.name=([^,]+)/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
    const all = [...this.#of(collection)].filter(
      ([key]) =>
        (namespace === '' || key.startsWith(`${namespace}/`)) && (only === undefined || key.endsWith(`/${only}`)),
    );
    const metadata = { resourceVersion: String(this.#version) };
    if (!/^(?:1|true)$/.test(url.searchParams.get('watch') ?? '')) {
      const items = Buffer.concat(all.flatMap(([, { bytes }], i) => (i === 0 ? [bytes] : [Buffer.from(','), bytes])));
      const head = Buffer.from(`{"metadata":${JSON.stringify(metadata)},"items":[`);
      return send(outgoing, 200, Buffer.concat([head, items, Buffer.from(']}')]));
    }
    outgoing.writeHead(200, { 'Content-Type': 'application/json' });
    outgoing.flushHeaders();
    const since = Number(url.searchParams.get('resourceVersion') ?? 0);
    const initial = url.searchParams.get('sendInitialEvents') === 'true';
    for (const [, { bytes, version }] of all) if (initial || version > since) outgoing.write(line('ADDED', bytes));
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    if (initial) outgoing.write(line('BOOKMARK', jsonBytes({ metadata: { ...metadata, annotations } })));
    const watch = { collection, only, to: outgoing };
    this.#watches.add(watch);
    outgoing.on('close', () => this.#watches.delete(watch));
  }
}

const NOT_FOUND = { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: 'not found' };

const line = (type: string, bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`{"type":"${type}","object":`), bytes, Buffer.from('}\n')]);

function send(outgoing: ServerResponse, code: number, body: object | Buffer): void {
  outgoing.writeHead(code, { 'Content-Type': 'application/json' });
  outgoing.end(Buffer.isBuffer(body) ? body : jsonBytes(body));
}

async function bodyOf(incoming: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? {} : (JSON.parse(text) as Json);
}
