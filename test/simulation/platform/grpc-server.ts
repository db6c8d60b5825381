// `lib/grpc/server.ts` without sockets: it listens by putting itself under its path.
import { EventEmitter } from 'node:events';
import { messageOf } from '../../../src/lib/errors.ts';
import { GrpcMethods } from '../../../src/lib/grpc/methods.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import { later, machine, type Listener } from '../engine/machine.ts';
import { passOn } from './messages.ts';

export class GrpcServer extends GrpcMethods {
  #listener: Listener | undefined;
  #path = '';
  #owner = machine().scheduler.owner;

  async listen(socketPath: string): Promise<void> {
    await later(0.1, () => {
      const { files, sockets } = machine();
      const { inode, parent, name } = files.find(socketPath, 'bind');
      if (inode === undefined) files.create(parent, name, 'socket', 0o755, 'open');
      this.#path = socketPath;
      this.#owner = machine().scheduler.owner;
      this.#listener = { ended: new EventEmitter().setMaxListeners(0), call: (...args) => this.#take(...args) };
      sockets.set(socketPath, this.#listener);
    });
  }

  async close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    if (listener === undefined) return;
    if (machine().sockets.get(this.#path) === listener) machine().sockets.delete(this.#path);
    listener.ended.emit('end');
    await later(0.1, () => undefined);
  }

  /** What the agent serves is an event of the agent; nobody answers for one that is dead. */
  #take(...args: Parameters<Listener['call']>): Promise<void> {
    const owner = this.#owner;
    const { scheduler } = machine();
    if (owner === scheduler.world) return this.#serve(...args);
    if (!owner.alive) return Promise.reject(new GrpcError(GrpcCode.Unavailable, `connect ECONNREFUSED ${this.#path}`));
    return new Promise((resolve, reject) => {
      scheduler.after(0, () => void this.#serve(...args).then(resolve, reject), owner);
    });
  }

  async #serve(path: string, request: unknown, send: (message: unknown) => void, gone: AbortSignal): Promise<void> {
    const handler = this.handlerOf(path);
    try {
      await handler.run(request, gone, (message) => {
        send(passOn(handler.rpc.response, message));
        return 0;
      });
    } catch (err) {
      throw err instanceof GrpcError ? err : new GrpcError(GrpcCode.Unknown, messageOf(err));
    }
  }
}
