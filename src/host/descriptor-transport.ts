// A unix socket on which open files travel with the bytes (SCM_RIGHTS), which Node's sockets would drop. Node tells of no
// foreign descriptor that it became readable, so it is looked at in short intervals: for single calls, not for a connection
// that lives long.
import { closeSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { OpenTransport } from '../lib/dbus/bus.ts';
import type { Transport, TransportEvents } from '../lib/dbus/transport.ts';
import { connectUnixStream, receiveWithDescriptors, sendWithDescriptors } from './libc.ts';

const BUFFER_BYTES = 64 * 1024;
const MIN_WAIT_MS = 1;
const MAX_WAIT_MS = 20;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

export const descriptorTransport =
  (clock: Clock): OpenTransport =>
  async (path, signal) => {
    signal.throwIfAborted();
    return new DescriptorTransport(clock, connected(path));
  };

function connected(path: string): number {
  try {
    return connectUnixStream(path);
  } catch (err) {
    if (isFault(err, 'unimplemented')) throw err;
    throw new KubeletError('unavailable', `${path.replace('\0', '@')}: ${messageOf(err)}`, { cause: err });
  }
}

type Outgoing = { readonly data: Buffer; readonly descriptors: readonly number[] };

class DescriptorTransport implements Transport {
  readonly passesDescriptors = true;
  readonly #clock: Clock;
  readonly #fd: number;
  readonly #stop = new AbortController();
  readonly #waiting: Outgoing[] = [];
  #events: TransportEvents | undefined;

  constructor(clock: Clock, fd: number) {
    this.#clock = clock;
    this.#fd = fd;
  }

  start(events: TransportEvents): void {
    this.#events = events;
    void this.#pump();
  }

  write(data: Buffer, descriptors: readonly number[]): void {
    if (this.#stop.signal.aborted) throw new KubeletError('unavailable', 'the socket is closed');
    const bytes = this.#waiting.reduce((sum, one) => sum + one.data.length, data.length);
    if (bytes > MAX_WAITING_BYTES) throw new KubeletError('unavailable', 'the other end does not read');
    this.#waiting.push({ data, descriptors });
    this.#flush();
  }

  closeDescriptor(fd: number): void {
    closeSync(fd);
  }

  close(): void {
    this.#end(new KubeletError('unavailable', 'the socket was closed'));
  }

  async #pump(): Promise<void> {
    const { signal } = this.#stop;
    for (let waitMs = MIN_WAIT_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
      this.#flush();
      if (this.#receive()) waitMs = MIN_WAIT_MS;
      await this.#clock.sleep(waitMs, signal);
    }
  }

  /** Whether anything was there. */
  #receive(): boolean {
    let any = false;
    while (!this.#stop.signal.aborted) {
      const buffer = Buffer.alloc(BUFFER_BYTES);
      const got = this.#attempt(() => receiveWithDescriptors(this.#fd, buffer));
      if (got === undefined) break;
      any = true;
      if (got.length === 0) this.#end(new KubeletError('unavailable', 'the other end closed the connection'));
      else this.#events?.data(buffer.subarray(0, got.length), got.descriptors);
    }
    return any;
  }

  #flush(): void {
    for (let next = this.#waiting[0]; next !== undefined && !this.#stop.signal.aborted; next = this.#waiting[0]) {
      const { data, descriptors } = next;
      const sent = this.#attempt(() => sendWithDescriptors(this.#fd, data, descriptors));
      if (sent === undefined) return;
      // The files went with the first byte.
      if (sent < data.length) this.#waiting[0] = { data: data.subarray(sent), descriptors: [] };
      else this.#waiting.shift();
    }
  }

  /** Undefined where it would have to wait; any other failure ends the connection. */
  #attempt<T>(op: () => T): T | undefined {
    try {
      return op();
    } catch (err) {
      if (!isFault(err, 'conflict'))
        this.#end(new KubeletError('unavailable', `D-Bus socket: ${messageOf(err)}`, { cause: err }));
      return undefined;
    }
  }

  #end(why: Error): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    closeSync(this.#fd);
    this.#events?.closed(why);
  }
}
