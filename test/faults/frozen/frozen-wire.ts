// The way from one kubelet to its API server, which can freeze: connections stay open and are taken, and no byte passes.
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';

export class FrozenWire {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #server: net.Server;
  #frozen = false;

  /** `target` is the API server's port on this machine. */
  constructor(target: number) {
    this.#target = target;
    this.#server = net.createServer((near) => this.#join(near));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  freeze(): void {
    this.#frozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  thaw(): void {
    this.#frozen = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #join(near: Socket): void {
    const far = net.connect(this.#target, '127.0.0.1');
    const pass = (from: Socket, to: Socket): void => {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk) => void to.write(chunk));
      from.on('error', () => from.destroy());
      from.once('end', () => to.end());
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#frozen) from.pause();
    };
    pass(near, far);
    pass(far, near);
  }
}
