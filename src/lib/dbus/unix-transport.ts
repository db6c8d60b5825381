// A unix stream socket of Node's. It carries no descriptors, and does not keep the process alive.
import { createConnection, type Socket } from 'node:net';
import { errnoOf, KubeletError, messageOf } from '../errors.ts';
import type { Transport, TransportEvents } from './transport.ts';

const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** Connects. Rejects with `unavailable`, or when `signal` aborts. */
export function openUnixTransport(path: string, signal: AbortSignal): Promise<Transport> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = createConnection({ path });
    const onAbort = (): void => void socket.destroy(signal.reason as Error);
    const onError = (err: Error): void => {
      signal.removeEventListener('abort', onAbort);
      reject(signal.aborted ? (signal.reason as Error) : lost(path, err));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', onError);
    socket.once('connect', () => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError);
      resolve(new UnixTransport(socket, path));
    });
  });
}

class UnixTransport implements Transport {
  readonly passesDescriptors = false;
  readonly #socket: Socket;
  readonly #path: string;

  constructor(socket: Socket, path: string) {
    this.#socket = socket;
    this.#path = path;
    socket.unref();
    // Before `start`, an error only shows there.
    socket.on('error', () => undefined);
  }

  start(events: TransportEvents): void {
    const socket = this.#socket;
    let why: Error = new KubeletError('unavailable', `${shown(this.#path)}: the connection was closed`);
    socket.on('error', (err) => (why = lost(this.#path, err)));
    socket.on('data', (chunk: Buffer) => events.data(chunk, []));
    socket.once('close', () => events.closed(why));
    if (socket.closed) events.closed(why);
  }

  write(data: Buffer, descriptors: readonly number[]): void {
    if (descriptors.length > 0) throw new KubeletError('unimplemented', 'this connection passes no descriptors');
    if (this.#socket.writableLength + data.length > MAX_WAITING_BYTES)
      throw new KubeletError('unavailable', `${shown(this.#path)}: the other end does not read`);
    this.#socket.write(data);
  }

  closeDescriptor(): void {
    // None ever arrives.
  }

  close(): void {
    this.#socket.destroy();
  }
}

const shown = (path: string): string => path.replace('\0', '@');

const lost = (path: string, err: Error): KubeletError =>
  new KubeletError('unavailable', `${shown(path)}: ${messageOf(err)}`, { cause: err, detail: { errno: errnoOf(err) } });
