// node:http and node:https of the simulated machine: requests go to the simulated network, servers hear of nobody.
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { machine, type HttpAnswer } from '../engine/machine.ts';

export { Server, createServer } from './net.ts';

type Options = { host?: string; port?: number; path?: string; method?: string };

export class ClientRequest extends EventEmitter {
  destroyed = false;
  socket: { localPort: number } | undefined;
  readonly #o: Options;

  constructor(options: Options) {
    super();
    this.#o = options;
  }

  end(): this {
    const { scheduler, network } = machine();
    scheduler.after(0.5 + 2 * scheduler.latency.next(), () => {
      if (this.destroyed) return;
      const { host = '', port = 0, path = '/' } = this.#o;
      const answer = network.http(host, port, path);
      if (answer === 'silent') return;
      if (answer === 'refused') {
        const text = `connect ECONNREFUSED ${host}:${port}`;
        this.emit('error', Object.assign(new Error(text), { code: 'ECONNREFUSED', syscall: 'connect' }));
        return;
      }
      this.socket = { localPort: 40_000 };
      this.emit('response', new Reply(answer));
    });
    return this;
  }
  write = (): boolean => true;
  setHeader = (): void => undefined;
  destroy(): this {
    this.destroyed = true;
    return this;
  }
}

/** An answer that is all there: as much of a stream as its readers use. Probes read thousands of them in an hour. */
class Reply extends EventEmitter {
  readonly statusCode: number;
  readonly statusMessage = '';
  readonly headers = {};
  readonly destroyed = false;
  readonly #body: string;

  constructor({ status, body }: HttpAnswer) {
    super();
    this.statusCode = status;
    this.#body = body;
  }

  /** It flows from the moment on at which somebody listens for data. */
  override on(name: string, listener: (...args: never[]) => void): this {
    if (name === 'data') process.nextTick(() => this.#flow());
    return super.on(name, listener as (...args: unknown[]) => void);
  }

  #flow(): void {
    if (this.#body !== '') this.emit('data', Buffer.from(this.#body));
    this.emit('end');
    this.emit('close');
  }
}

export const request = (options: Options): ClientRequest => new ClientRequest(options);
export const get = request;
export class Agent {
  destroy = (): void => undefined;
}
export class IncomingMessage extends Readable {}
export class ServerResponse extends EventEmitter {}
export const STATUS_CODES: Record<number, string> = {};
export const validateHeaderName = (): void => undefined;
export const validateHeaderValue = (): void => undefined;

// oxlint-disable-next-line import/no-default-export -- as Node has it
export default { request, Agent };
