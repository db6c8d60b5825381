// A thin HTTPS client for tests of API servers: requests, watches as lists of events.
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { parse } from 'yaml';
import { until } from '../../harness/until.ts';

export type Json = { [key: string]: unknown };
export type Reply = { status: number; headers: IncomingMessage['headers']; body: Json; text: string };
export type WatchEvent = { type: string; object: Json };

type Kubeconfig = {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { 'client-certificate-data'?: string; 'client-key-data'?: string; token?: string } }[];
};

const decode = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : Buffer.from(text, 'base64').toString();

export const dig = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<string | number, unknown> | undefined)?.[key], value);

export class ApiClient {
  readonly url: string;
  readonly #agent: Agent;
  readonly #token: string | undefined;

  constructor(
    url: string,
    options: { ca: string; cert?: string | undefined; key?: string | undefined; token?: string | undefined },
  ) {
    this.url = url;
    this.#token = options.token;
    const { ca, cert, key } = options;
    this.#agent = new Agent({
      ca,
      keepAlive: true,
      maxSockets: 64,
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  }

  static fromKubeconfig(text: string): ApiClient {
    const config = parse(text) as Kubeconfig;
    const cluster = config.clusters[0]?.cluster;
    const user = config.users[0]?.user;
    return new ApiClient(cluster?.server ?? '', {
      ca: decode(cluster?.['certificate-authority-data']) ?? '',
      cert: decode(user?.['client-certificate-data']),
      key: decode(user?.['client-key-data']),
      token: user?.token,
    });
  }

  async request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const response = await this.open(method, path, body, headers);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const isJson = (response.headers['content-type'] ?? '').startsWith('application/json');
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text,
      body: isJson ? (JSON.parse(text) as Json) : {},
    };
  }

  open(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const payload =
      body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest(
        `${this.url}${path}`,
        {
          method,
          agent: this.#agent,
          headers: {
            accept: 'application/json',
            ...(payload === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': String(payload.length) }),
            ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
            ...headers,
          },
        },
        resolve,
      );
      outgoing.once('error', reject);
      outgoing.end(payload);
    });
  }

  get = (path: string, headers?: Record<string, string>): Promise<Reply> =>
    this.request('GET', path, undefined, headers);
  post = (path: string, body: unknown): Promise<Reply> => this.request('POST', path, body);
  put = (path: string, body: unknown): Promise<Reply> => this.request('PUT', path, body);
  delete = (path: string, body?: unknown): Promise<Reply> => this.request('DELETE', path, body);
  strategic = (path: string, body: unknown): Promise<Reply> =>
    this.request('PATCH', path, body, { 'content-type': 'application/strategic-merge-patch+json' });
  merge = (path: string, body: unknown): Promise<Reply> =>
    this.request('PATCH', path, body, { 'content-type': 'application/merge-patch+json' });
  jsonPatch = (path: string, body: unknown): Promise<Reply> =>
    this.request('PATCH', path, body, { 'content-type': 'application/json-patch+json' });

  async watch(path: string): Promise<Watch> {
    return new Watch(await this.open('GET', path));
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Collects the events of one watch. */
export class Watch {
  /** One event a line, as they came; parsed only when somebody looks. */
  readonly lines: string[] = [];
  readonly #parsed: WatchEvent[] = [];
  readonly status: number;
  ended = false;
  readonly #response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    let rest = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') this.lines.push(line);
    });
    const end = (): void => {
      this.ended = true;
    };
    response.once('end', end);
    response.once('close', end);
    response.on('error', end);
  }

  get events(): readonly WatchEvent[] {
    for (const line of this.lines.slice(this.#parsed.length)) this.#parsed.push(JSON.parse(line) as WatchEvent);
    return this.#parsed;
  }

  /** Waits until `check` holds; fails when it is too late, or when the watch ends, with what was seen. */
  async until(
    check: (events: readonly WatchEvent[]) => boolean,
    what = 'the expected events',
  ): Promise<readonly WatchEvent[]> {
    await until(what, () => check(this.events) || this.ended).catch(() => undefined);
    if (check(this.events)) return this.events;
    const seen = this.events.map((e) => [e.type, dig(e.object, 'metadata', 'name')]);
    throw new Error(`no ${what}; seen: ${JSON.stringify(seen)}`);
  }

  close(): void {
    this.#response.destroy();
  }
}
