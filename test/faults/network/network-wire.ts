// The way from one kubelet to its API server, as networks are: connections freeze or break, bytes come late or slowly.
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { systemClock } from '../../../src/lib/clock.ts';

type Pair = { readonly near: Socket; readonly far: Socket };

export class NetworkWire {
  /** Each way, for every byte. */
  delayMs = 0;
  /** For all connections together, each way. */
  bytesPerSecond = Infinity;
  /** Of all connections, towards the API server and back. */
  readonly bytes = { up: 0, down: 0 };
  readonly #target: number;
  readonly #pairs = new Set<Pair>();
  readonly #server: net.Server;
  readonly #freeAt = { up: 0, down: 0 };
  #isFrozen = false;

  constructor(target: number) {
    this.#target = target;
    this.#server = net.createServer({ allowHalfOpen: true }, (near) => this.#join(near));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** `standing`: connections made later work. */
  freeze(what: 'standing' | 'all'): void {
    this.#isFrozen = what === 'all';
    for (const { near, far } of this.#pairs) [near, far].forEach((socket) => socket.pause());
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const { near, far } of this.#pairs) [near, far].forEach((socket) => socket.resume());
  }

  resetAll(): void {
    for (const pair of this.#pairs) reset(pair);
  }

  /** `choice` from 0 to 1. */
  resetOne(choice: number): void {
    const pairs = [...this.#pairs];
    const pair = pairs[Math.floor(choice * pairs.length)];
    if (pair !== undefined) reset(pair);
  }

  /** The kubelet hears the end, and what it sends still arrives. */
  halfClose(): void {
    for (const { near, far } of this.#pairs) {
      far.pause();
      near.end();
    }
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const { near, far } of this.#pairs) [near, far].forEach((socket) => socket.destroy());
    await closed;
  }

  #join(near: Socket): void {
    const far = net.connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    const pair = { near, far };
    this.#pairs.add(pair);
    this.#pass(near, far, 'up');
    this.#pass(far, near, 'down');
    for (const socket of [near, far])
      socket.once('close', () => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
  }

  #pass(from: Socket, to: Socket, way: 'up' | 'down'): void {
    from.setNoDelay(true);
    from.on('error', () => from.destroy());
    from.on('data', (chunk: Buffer) => {
      this.bytes[way] += chunk.length;
      this.#later(way, chunk.length, () => to.writable && to.write(chunk));
    });
    from.once('end', () => this.#later(way, 0, () => to.end()));
    if (this.#isFrozen) from.pause();
  }

  #later(way: 'up' | 'down', bytes: number, fn: () => void): void {
    const now = performance.now();
    const from = Math.max(now, this.#freeAt[way]);
    this.#freeAt[way] = from + (bytes / this.bytesPerSecond) * 1000;
    const waitMs = this.#freeAt[way] + this.delayMs - now;
    if (waitMs <= 0) fn();
    else systemClock.after(waitMs, fn);
  }
}

function reset({ near, far }: Pair): void {
  near.resetAndDestroy();
  far.destroy();
}
