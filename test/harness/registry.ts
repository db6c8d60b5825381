// A small image registry on loopback (plain HTTP, optional basic auth), so that pulls can be tried on a real runtime
// without the internet. Serves the images given to it, counts requests, can be slow or broken.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../src/lib/clock.ts';
import { busyboxImage, type BuiltImage, type ImageVariant } from '../../src/devcluster/containerd/image.ts';

export type RegistryOptions = { readonly username?: string; readonly password?: string };

export class TestRegistry {
  readonly #o: RegistryOptions;
  readonly #server: Server;
  readonly #blobs = new Map<string, { data: Buffer; mediaType: string }>();
  readonly #tags = new Map<string, string>();
  /** `GET /v2/…` lines, in order. */
  readonly requests: string[] = [];
  /** Delay before every answer. */
  delayMs = 0;
  /** How fast blobs are sent, all of them together; as fast as it goes where absent. */
  bytesPerSecond: number | undefined;
  /** Bytes of blobs handed to the network so far. */
  sentBytes = 0;
  #budgetAt = 0;
  /** Answers everything with this status instead. */
  failWith: number | undefined;

  constructor(options: RegistryOptions = {}) {
    this.#o = options;
    this.#server = createServer((req, res) => void this.#answer(req, res));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** `127.0.0.1:port`, what image names begin with. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Makes `<host>/<name>:<tag>` available. Returns the full reference. */
  add(name: string, tag: string, variant: Omit<ImageVariant, 'ref'> = {}): string {
    const ref = `${this.host}/${name}:${tag}`;
    this.serve(`${name}:${tag}`, busyboxImage({ ...variant, ref }));
    return ref;
  }

  /** Makes `<host>/<path>` available, which ends with a tag. */
  serve(path: string, { blobs, manifest }: BuiltImage): void {
    for (const blob of blobs) this.#put(blob.data, blob.mediaType);
    this.#tags.set(path, this.#put(manifest, 'application/vnd.oci.image.manifest.v1+json'));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #put(data: Buffer, mediaType: string): string {
    const digest = `sha256:${createHash('sha256').update(data).digest('hex')}`;
    this.#blobs.set(digest, { data, mediaType });
    return digest;
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? '';
    this.requests.push(`${req.method} ${path}`);
    if (this.delayMs > 0) await systemClock.sleep(this.delayMs, new AbortController().signal);
    if (this.failWith !== undefined) return void res.writeHead(this.failWith).end();
    if (!this.#allowed(req))
      return void res.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end('{"errors":[]}');
    const manifest = /^\/v2\/(.+)\/manifests\/([^/?]+)/.exec(path);
    const blob = /^\/v2\/.+\/blobs\/([^/?]+)/.exec(path);
    const digest =
      blob?.[1] ??
      (manifest?.[2]?.startsWith('sha256:') ? manifest[2] : this.#tags.get(`${manifest?.[1]}:${manifest?.[2]}`));
    if (path === '/v2/') return void res.writeHead(200).end('{}');
    const found = digest === undefined ? undefined : this.#blobs.get(digest);
    if (found === undefined || digest === undefined) return void res.writeHead(404).end('{"errors":[]}');
    const headers = {
      'content-type': found.mediaType,
      'content-length': found.data.length,
      'docker-content-digest': digest,
    };
    res.writeHead(200, headers);
    if (req.method === 'HEAD' || this.bytesPerSecond === undefined)
      return void res.end(req.method === 'HEAD' ? undefined : found.data);
    await this.#sendSlowly(res, found.data, this.bytesPerSecond);
  }

  /** In small pieces, each at its moment: what came late is not made up for. */
  async #sendSlowly(res: ServerResponse, data: Buffer, bytesPerSecond: number): Promise<void> {
    const { signal } = new AbortController();
    const piece = Math.ceil(bytesPerSecond / 20);
    for (let at = 0; at < data.length && !res.destroyed; at += piece) {
      const part = data.subarray(at, at + piece);
      const now = systemClock.monotonic();
      this.#budgetAt = Math.max(this.#budgetAt, now) + (part.length / bytesPerSecond) * 1000;
      await systemClock.sleep(this.#budgetAt - now, signal);
      this.sentBytes += part.length;
      await new Promise((resolve) => res.write(part, resolve));
    }
    res.end();
  }

  #allowed(req: IncomingMessage): boolean {
    const { username, password } = this.#o;
    if (username === undefined) return true;
    const wanted = `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
    return req.headers.authorization === wanted;
  }
}
