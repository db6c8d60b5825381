// `kube/http2-connection.ts` without sockets: exchanges go to the simulated API server, answers come back as streams.
import { Readable } from 'node:stream';
import { KubeletError } from '../../../src/lib/errors.ts';
import { LostExchange, toError, type Outgoing, type Reply } from '../../../src/kube/exchange.ts';
import { readableBody } from '../../../src/kube/readable-body.ts';
import { machine } from '../engine/machine.ts';

const ROOM = 250;
/** A silent server answers new connections as little, so the old ones stand until they are given up. */
const PING_MS = 18_000;

export class Http2Connection {
  onEnd: () => void = () => undefined;
  onClose: () => void = () => undefined;
  onSilent: () => void = () => undefined;
  readonly isSilent = false;
  readonly #under = new Map<Readable, { readonly out: Outgoing; readonly fail: (err: Error) => void }>();
  readonly #broken = (): void => this.#lost();
  readonly #owner = machine().scheduler.owner;
  #closing = false;
  #served = 0;

  static async open(): Promise<Http2Connection> {
    const connection = new Http2Connection();
    machine().network.api.broken.on('broken', connection.#broken);
    return Promise.resolve(connection);
  }

  ask(): void {}

  get closing(): boolean {
    return this.#closing;
  }

  get active(): number {
    return this.#under.size;
  }

  get room(): number {
    return this.#closing ? 0 : ROOM - this.#under.size;
  }

  exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    const { scheduler, network } = machine();
    const { owner, world } = scheduler;
    const reused = this.#served > 0;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(toError(signal.reason));
      if (this.#closing) return reject(new LostExchange(new Error('closed'), 'unprocessed'));
      let stop: () => void = () => undefined;
      const body = new Readable({ read: () => undefined, destroy: (err, done) => (over(), done(err)) });
      const fail = (err: Error): void => {
        reject(signal.aborted ? toError(signal.reason) : new LostExchange(err, reused ? 'reused' : 'unknown'));
        body.destroy(err);
      };
      body.on('error', () => undefined);
      const over = (): void => {
        if (!this.#under.delete(body)) return;
        signal.removeEventListener('abort', onAbort);
        scheduler.after(0.5, () => stop(), world);
      };
      const onAbort = (): void => fail(toError(signal.reason));
      signal.addEventListener('abort', onAbort, { once: true });
      this.#under.set(body, { out, fail });
      let last = 0;
      const back = (work: () => void): void => {
        if (network.api.reach() === 'silent') return;
        last = Math.max(last, scheduler.monotonic() + 0.5 + scheduler.latency.next());
        scheduler.after(last - scheduler.monotonic(), () => this.#under.has(body) && work(), owner);
      };
      scheduler.after(
        0.5 + scheduler.latency.next(),
        () => {
          if (!this.#under.has(body) || network.api.reach() === 'silent') return;
          stop = network.api.serve(
            {
              method: out.method,
              path: out.path,
              headers: out.headers,
              ...(out.body === undefined ? {} : { body: out.body }),
            },
            {
              head: (status, headers) =>
                back(() => {
                  this.#served++;
                  resolve({ status, header: (name) => headers[name], body: readableBody(body) });
                }),
              write: (chunk) => back(() => body.push(chunk)),
              end: () => back(() => body.push(null)),
              fail: (err) => back(() => fail(err)),
            },
          );
        },
        world,
      );
    });
  }

  retire(reason: Error): void {
    this.#end();
    for (const [body, { out }] of this.#under) if (out.stream !== undefined) body.destroy(reason);
    this.#close();
  }

  destroy(reason: Error): void {
    this.#end();
    for (const { fail } of Array.from(this.#under.values())) fail(reason);
    this.#close();
  }

  /** The other side reset the connection, or is silent for so long that a ping gets no answer. */
  #lost(): void {
    if (this.#closing) return;
    const isSilent = machine().network.api.reach() === 'silent';
    const reason = new KubeletError('unavailable', isSilent ? 'no answer to a ping' : 'read ECONNRESET');
    machine().scheduler.after(isSilent ? PING_MS : 0.5, () => this.destroy(reason), this.#owner);
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.onEnd();
  }

  #close(): void {
    machine().network.api.broken.off('broken', this.#broken);
    this.onClose();
  }
}
