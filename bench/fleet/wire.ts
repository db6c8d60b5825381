// Between one kubelet and the API server: passes bytes on, counts them and the connections, and can be cut.
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';

export type Traffic = {
  readonly open: number;
  readonly opened: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
};

export class Wire {
  readonly #target: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #server: net.Server | undefined;
  #opened = 0;
  #up = 0;
  #down = 0;
  port = 0;

  /** `target` is the API server's port on this machine. */
  constructor(target: number) {
    this.#target = target;
  }

  async start(): Promise<void> {
    const server = net.createServer((near) => this.#join(near));
    this.#server = server;
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.port = (server.address() as AddressInfo).port;
  }

  /** As when the server's machine is gone: connections break, new ones are refused. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await closed;
  }

  get traffic(): Traffic {
    return { open: this.#pairs.size, opened: this.#opened, bytesUp: this.#up, bytesDown: this.#down };
  }

  #join(near: Socket): void {
    const far = net.connect(this.#target, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    this.#opened++;
    const end = (): void => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) socket.setNoDelay(true).on('error', end).once('close', end);
    near.on('data', (chunk) => (this.#up += chunk.length));
    far.on('data', (chunk) => (this.#down += chunk.length));
    near.pipe(far);
    far.pipe(near);
  }
}
