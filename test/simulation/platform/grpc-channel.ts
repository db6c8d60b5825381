// `lib/grpc/channel.ts` without sockets: a call goes to the listener of its socket path, both ways as messages of their own
// that take their time. What a caller sees of deadlines, aborts and broken connections is as with the real one.
import type { CallOptions, ChannelOptions } from '../../../src/lib/grpc/channel.ts';
import type { Rpc } from '../../../src/lib/grpc/rpc.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import { machine } from '../engine/machine.ts';
import { passOn } from './messages.ts';

const LATENCY_MS = 0.3;
const LEAST_MS = LATENCY_MS / 2;

export class GrpcChannel {
  readonly #clock: Clock;
  readonly #o: ChannelOptions;
  readonly #under = new Set<(err: Error) => void>();
  #connected = false;

  constructor(clock: Clock, options: ChannelOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      machine().scheduler.after(LATENCY_MS, () => {
        if (this.#listener() === undefined) return reject(this.#refused());
        this.#connected = true;
        resolve();
      });
    });
  }

  async unary<Req, Res>(rpc: Rpc<Req, Res>, request: Req, options: CallOptions): Promise<Res> {
    let answer: Res | undefined;
    await this.#call(rpc, request, options, (message) => (answer = message));
    if (answer === undefined)
      throw new GrpcError(GrpcCode.Internal, `${rpc.path}: no answer before the end of the stream`);
    return answer;
  }

  serverStream<Req, Res>(
    rpc: Rpc<Req, Res>,
    request: Req,
    options: CallOptions,
    onMessage: (message: Res) => void,
  ): Promise<void> {
    return this.#call(rpc, request, options, onMessage);
  }

  close(): void {
    for (const fail of this.#under) fail(new GrpcError(GrpcCode.Unavailable, 'connection closed'));
  }

  #listener() {
    const { target } = this.#o;
    return 'socketPath' in target ? machine().sockets.get(target.socketPath) : undefined;
  }

  #refused(): GrpcError {
    const { target } = this.#o;
    const where = 'socketPath' in target ? target.socketPath : `${target.host}:${target.port}`;
    return new GrpcError(GrpcCode.Unavailable, `connection error: connect ECONNREFUSED ${where}`);
  }

  #call<Req, Res>(rpc: Rpc<Req, Res>, request: Req, o: CallOptions, onMessage: (message: Res) => void): Promise<void> {
    o.signal.throwIfAborted();
    const { scheduler } = machine();
    const { owner, world } = scheduler;
    const sent = passOn(rpc.request, request);
    const gone = new AbortController();
    return new Promise((resolve, reject) => {
      let isOver = false;
      const finish = (err?: Error): void => {
        if (isOver) return;
        isOver = true;
        timer?.cancel();
        o.signal.removeEventListener('abort', onAbort);
        this.#under.delete(finish);
        listener?.ended.off('end', broken);
        if (err === undefined) return resolve();
        // The server hears of it when the news has travelled, and before any call that is made after it.
        scheduler.after(LEAST_MS, () => gone.abort(err), world);
        reject(err);
      };
      const onAbort = (): void => finish(reasonOf(o.signal));
      const timer =
        o.deadlineMs === undefined
          ? undefined
          : this.#clock.after(o.deadlineMs, () =>
              finish(new GrpcError(GrpcCode.DeadlineExceeded, 'context deadline exceeded')),
            );
      o.signal.addEventListener('abort', onAbort, { once: true });
      this.#under.add(finish);
      const listener = this.#listener();
      const broken = (): void => {
        scheduler.after(LATENCY_MS, () => this.#lost(finish, rpc.path), owner);
      };
      const delay = (): number => LEAST_MS + LATENCY_MS * scheduler.latency.next();
      if (listener === undefined) {
        scheduler.after(delay(), () => finish(this.#refused()));
        return;
      }
      this.#connected = true;
      listener.ended.once('end', broken);
      // Messages of one stream keep their order.
      let last = 0;
      const back = (work: () => void): void => {
        last = Math.max(last, scheduler.monotonic() + delay());
        scheduler.after(last - scheduler.monotonic(), () => !isOver && work(), owner);
      };
      scheduler.after(
        delay(),
        () => {
          // Nobody takes a call any more that was on its way when the server ended.
          if (isOver || this.#listener() !== listener) return;
          listener
            .call(rpc.path, sent, (message) => back(() => onMessage(message as Res)), gone.signal)
            .then(
              () => back(() => finish()),
              (err: Error) => back(() => finish(err)),
            );
        },
        world,
      );
    });
  }

  #lost(finish: (err: Error) => void, path: string): void {
    finish(new GrpcError(GrpcCode.Unavailable, `${path}: the connection ended before the answer did`));
    if (!this.#connected) return;
    this.#connected = false;
    this.#o.onDisconnect?.();
  }
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new GrpcError(GrpcCode.Canceled, 'context canceled');

export { grpcTimeout } from './grpc-timeout.ts';
