// Between a kubelet and its API server: passes everything on, and slips objects of the test's choice into the kubelet's
// pod watch, as a server gone mad (or a damaged store behind it) would.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parse } from 'yaml';

type Target = { readonly port: number; readonly ca: string; readonly cert: string; readonly key: string };
type Kubeconfig = {
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
};

export class ApiTamper {
  readonly #server: Server;
  readonly #watches = new Set<ServerResponse>();
  #slipped: object[] = [];
  #target: Target | undefined;

  constructor() {
    this.#server = createServer((incoming, outgoing) => this.#pass(incoming, outgoing));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** A kubeconfig that leads here, for a kubelet that would use `real`. */
  kubeconfig(real: string, apiPort: number): string {
    const { users, clusters } = parse(real) as Kubeconfig;
    const plain = (field: string | undefined): string => Buffer.from(field ?? '', 'base64').toString('utf8');
    this.#target = {
      port: apiPort,
      ca: plain(clusters[0]?.cluster['certificate-authority-data']),
      cert: plain(users[0]?.user['client-certificate-data']),
      key: plain(users[0]?.user['client-key-data']),
    };
    const { port } = this.#server.address() as AddressInfo;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: 'c', user: {} }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    });
  }

  /** Objects that every pod watch gets, the open ones now, later ones at their beginning. */
  slip(objects: readonly object[]): void {
    this.#slipped.push(...objects);
    for (const watch of this.#watches) for (const object of objects) watch.write(lineOf(object));
  }

  /** Ends the open watches: the kubelet comes back and gets everything again. */
  breakWatches(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  async stop(): Promise<void> {
    this.#slipped = [];
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method, url = '/', headers } = incoming;
    const target = this.#target;
    if (target === undefined) return void outgoing.writeHead(503).end();
    const { port, ca, cert, key } = target;
    const onward = request(
      { host: '127.0.0.1', port, ca, cert, key, method, path: url, headers: { ...headers, host: `127.0.0.1:${port}` } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        if (isPodWatch(url)) this.#follow(outgoing);
        answer.pipe(outgoing);
        answer.on('error', () => outgoing.destroy());
      },
    );
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }

  #follow(watch: ServerResponse): void {
    this.#watches.add(watch);
    watch.on('close', () => this.#watches.delete(watch));
    for (const object of this.#slipped) watch.write(lineOf(object));
  }
}

const lineOf = (object: object): string => `${JSON.stringify({ type: 'ADDED', object })}\n`;
const isPodWatch = (url: string): boolean => url.startsWith('/api/v1/pods?') && /[?&]watch=(true|1)/.test(url);
