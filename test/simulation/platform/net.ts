// node:net of the simulated machine: connections to pods are answered by the simulated network; nothing else is reached.
import { EventEmitter } from 'node:events';
import real from 'node:net';
import { machine } from '../engine/machine.ts';

export const { isIP, isIPv4, isIPv6, BlockList, SocketAddress } = real;

export class Socket extends EventEmitter {
  destroyed = false;
  bytesRead = 0;
  localPort: number | undefined;
  destroy(): this {
    this.destroyed = true;
    return this;
  }
  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  setTimeout = (): this => this;
  unref = (): this => this;
  ref = (): this => this;
}

export function connect(options: { host?: string; port?: number; path?: string } | number | string): Socket {
  const socket = new Socket();
  const { scheduler, network } = machine();
  const { host = '', port = 0 } = typeof options === 'object' ? options : {};
  scheduler.after(0.2 + scheduler.latency.next(), () => {
    if (socket.destroyed) return;
    const answer = network.tcp(host, port);
    if (answer === 'silent') return;
    if (answer) return void socket.emit('connect');
    const text = `connect ECONNREFUSED ${host}:${port}`;
    socket.emit('error', Object.assign(new Error(text), { code: 'ECONNREFUSED', syscall: 'connect' }));
  });
  return socket;
}
export const createConnection = connect;

/** Takes the port and never hears of anybody. */
export class Server extends EventEmitter {
  listen(...args: unknown[]): this {
    const ready = args.find((a) => typeof a === 'function') as (() => void) | undefined;
    machine().scheduler.after(0.1, () => {
      ready?.();
      this.emit('listening');
    });
    const [path] = args;
    if (typeof path === 'string' && path.startsWith('/')) {
      const { files } = machine();
      const { inode, parent, name } = files.find(path, 'listen');
      if (inode === undefined) files.create(parent, name, 'socket', 0o755, 'open');
    }
    return this;
  }
  close(done?: () => void): this {
    machine().scheduler.after(0.1, () => {
      done?.();
      this.emit('close');
    });
    return this;
  }
  address = (): { port: number } => ({ port: 1 });
  closeIdleConnections = (): void => undefined;
  closeAllConnections = (): void => undefined;
  setSecureContext = (): void => undefined;
  unref = (): this => this;
}
export const createServer = (): Server => new Server();
