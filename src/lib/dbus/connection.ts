// One authenticated connection: calls with deadlines, signals to listeners, and the news that it is lost. It never connects
// again by itself: what was subscribed and what was missed is for its owner to settle.
import { abortable, withDeadline } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { KubeletError, messageOf } from '../errors.ts';
import { Semaphore } from '../semaphore.ts';
import { AuthClient } from './auth.ts';
import { busError } from './bus-error.ts';
import { encodeMessage, MessageStream, type Message } from './message.ts';
import { answerAsPeer } from './peer.ts';
import type { Transport } from './transport.ts';
import type { DBusValue } from './values.ts';

export type MethodCall = {
  readonly destination?: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: readonly DBusValue[];
  readonly descriptors?: readonly number[];
};

export type Reply = Pick<Message, 'body' | 'descriptors'>;

/** What a method call to us is answered with. */
export type Answer = {
  readonly signature?: string;
  readonly body?: readonly DBusValue[];
  readonly descriptors?: readonly number[];
};

export type ConnectionOptions = {
  readonly uid: number;
  /** Answers calls of others. A client has nothing to offer and refuses them. */
  readonly serve?: (call: Message) => Answer | Promise<Answer>;
};

export const DBUS = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
};
/** A system bus refuses the 129th call of a connection that waits for its answer. */
const MAX_UNANSWERED = 64;
const UNKNOWN_METHOD = 'org.freedesktop.DBus.Error.UnknownMethod';

/** A string of a reply whose signature the bus guarantees. */
export const textOf = (value: DBusValue | undefined): string => (typeof value === 'string' ? value : '');

type Pending = { readonly call: MethodCall; readonly settle: PromiseWithResolvers<Reply> };

export class Connection {
  readonly #clock: Clock;
  readonly #transport: Transport;
  readonly #options: ConnectionOptions;
  readonly #stream: MessageStream;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(message: Message) => void>();
  readonly #lost = Promise.withResolvers<Error>();
  readonly #turns = new Semaphore(MAX_UNANSWERED);
  #auth: AuthClient | undefined;
  readonly #authenticated = Promise.withResolvers<void>();
  #failure: Error | undefined;
  #serial = 0;
  #name = '';

  constructor(clock: Clock, transport: Transport, options: ConnectionOptions) {
    this.#clock = clock;
    this.#transport = transport;
    this.#options = options;
    this.#stream = new MessageStream((fd) => transport.closeDescriptor(fd));
  }

  /** Our unique name on the bus. */
  get name(): string {
    return this.#name;
  }

  get isLost(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves with the reason once the connection is gone. */
  get lost(): Promise<Error> {
    return this.#lost.promise;
  }

  /** Authenticates and says hello to the bus. After a failure the connection is closed. */
  async open(signal: AbortSignal): Promise<void> {
    const auth = new AuthClient(this.#options.uid, this.#transport.passesDescriptors);
    this.#auth = auth;
    // Nobody may be waiting when it fails.
    this.#authenticated.promise.catch(() => undefined);
    this.#transport.start({ data: (chunk, fds) => this.#onData(chunk, fds), closed: (why) => this.#fail(why) });
    try {
      this.#transport.write(Buffer.from(auth.greeting(), 'latin1'), []);
      await abortable(signal, this.#authenticated.promise);
      const { body } = await this.#send({ ...DBUS, member: 'Hello' }, signal);
      this.#name = textOf(body[0]);
    } catch (err) {
      this.close();
      throw err;
    }
  }

  /** Rejects with the error of the reply, `deadline`, or `unavailable` when the connection is lost. */
  call(call: MethodCall, deadlineMs: number, signal: AbortSignal): Promise<Reply> {
    return withDeadline(this.#clock, signal, deadlineMs, (own) =>
      this.#turns.run(own, () => this.#send(call, own)),
    ).catch((err: unknown) => {
      if (err instanceof KubeletError && err.kind === 'deadline' && err.detail['dbusError'] === undefined)
        throw new KubeletError('deadline', `${call.member}: ${err.message}`, { cause: err });
      throw err;
    });
  }

  /** Sends a signal: to everybody who wants it, or to `destination` alone. */
  emit(signal: Omit<MethodCall, 'descriptors'>): void {
    if (this.#failure !== undefined) throw this.#failure;
    const message = { body: [], ...signal, kind: 'signal' as const, serial: this.#nextSerial(), descriptors: [] };
    this.#transport.write(encodeMessage(message), []);
  }

  /** Hears every signal. Returns how to stop. */
  listen(onSignal: (message: Message) => void): () => void {
    this.#listeners.add(onSignal);
    return () => void this.#listeners.delete(onSignal);
  }

  close(): void {
    this.#fail(new KubeletError('unavailable', 'the D-Bus connection was closed'));
    this.#transport.close();
  }

  async #send(call: MethodCall, signal: AbortSignal): Promise<Reply> {
    if (this.#failure !== undefined) throw this.#failure;
    const serial = this.#nextSerial();
    const settle = Promise.withResolvers<Reply>();
    const descriptors = call.descriptors ?? [];
    const message = encodeMessage({ ...call, kind: 'call', serial, body: call.body ?? [], descriptors });
    this.#transport.write(message, descriptors);
    this.#pending.set(serial, { call, settle });
    try {
      return await abortable(signal, settle.promise);
    } finally {
      // A reply that comes later finds nobody, and its descriptors are closed.
      this.#pending.delete(serial);
    }
  }

  #nextSerial(): number {
    this.#serial = this.#serial === 0xffff_ffff ? 1 : this.#serial + 1;
    return this.#serial;
  }

  #onData(chunk: Buffer, descriptors: readonly number[]): void {
    try {
      const rest = this.#auth === undefined ? chunk : this.#authenticate(this.#auth, chunk);
      if (rest.length === 0 && descriptors.length === 0) return;
      for (const message of this.#stream.push(rest, descriptors)) this.#dispatch(message);
    } catch (err) {
      this.#break(err);
    }
  }

  #break(err: unknown): void {
    this.#fail(err instanceof Error ? err : new Error(messageOf(err)));
    this.#transport.close();
  }

  #authenticate(auth: AuthClient, chunk: Buffer): Buffer {
    const { send, rest } = auth.receive(chunk);
    if (send !== '') this.#transport.write(Buffer.from(send, 'latin1'), []);
    if (rest === undefined) return Buffer.alloc(0);
    this.#auth = undefined;
    this.#authenticated.resolve();
    return rest;
  }

  #dispatch(message: Message): void {
    switch (message.kind) {
      case 'call':
        return this.#answer(message);
      case 'signal':
        for (const listener of this.#listeners) listener(message);
        return this.#release(message);
      case 'return':
      case 'error':
        return this.#reply(message);
      default:
        return message.kind satisfies never;
    }
  }

  #reply(message: Message): void {
    const pending = this.#pending.get(message.replySerial ?? 0);
    if (message.kind === 'error' || pending === undefined) this.#release(message);
    if (message.kind === 'error') pending?.settle.reject(busError(pending.call.member, message));
    else pending?.settle.resolve(message);
    // Not before: the caller takes it out a moment later, and must not be settled twice.
    this.#pending.delete(message.replySerial ?? 0);
  }

  #answer(call: Message): void {
    const { serve } = this.#options;
    const to = { replySerial: call.serial, ...(call.sender === undefined ? {} : { destination: call.sender }) };
    const respond = (message: Omit<Message, 'serial' | 'replySerial'>): void => {
      if (call.noReply === true || this.#failure !== undefined) return;
      const whole = { ...message, ...to, serial: this.#nextSerial() };
      this.#transport.write(encodeMessage(whole), whole.descriptors);
    };
    const refuse = (text: string): void =>
      respond({ kind: 'error', error: UNKNOWN_METHOD, signature: 's', body: [text], descriptors: [] });
    const answer = answerAsPeer(call) ?? serve?.(call);
    if (answer === undefined) {
      this.#release(call);
      return refuse('this is a client');
    }
    Promise.resolve(answer)
      .then((given) => respond({ kind: 'return', body: [], descriptors: [], ...given }))
      .catch((err: unknown) => refuse(messageOf(err)))
      .finally(() => this.#release(call))
      .catch((err: unknown) => this.#break(err)); // the other end does not read
  }

  #release(message: Message): void {
    for (const fd of message.descriptors) this.#transport.closeDescriptor(fd);
  }

  #fail(why: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = why;
    this.#stream.end();
    this.#authenticated.reject(why);
    for (const { settle } of this.#pending.values()) settle.reject(why);
    this.#pending.clear();
    this.#lost.resolve(why);
  }
}
