// The bus as its users see it: one connection made on the first call and again after it was lost, shared by all. A lost
// connection fails what is under way; whoever watches signals begins anew and looks again at the state.
import { abortable, withDeadline } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { isFault, KubeletError } from '../errors.ts';
import { socketPaths, SYSTEM_BUS_ADDRESS } from './address.ts';
import { Connection, DBUS, textOf, type MethodCall, type Reply } from './connection.ts';
import { matches, ruleText, type MatchRule } from './match-rule.ts';
import type { Message } from './message.ts';
import type { Transport } from './transport.ts';
import { openUnixTransport } from './unix-transport.ts';

export type OpenTransport = (path: string, signal: AbortSignal) => Promise<Transport>;

export type BusOptions = {
  readonly address?: string | undefined;
  /** How long connecting, authentication and hello may take together. */
  readonly connectMs?: number;
  readonly callMs?: number;
  readonly open?: OpenTransport;
  readonly uid?: number;
};

const CONNECT_MS = 5000;
const CALL_MS = 10_000;

export class Bus {
  readonly #clock: Clock;
  readonly #options: BusOptions;
  #connecting: Promise<Connection> | undefined;

  constructor(clock: Clock, options: BusOptions = {}) {
    this.#clock = clock;
    this.#options = options;
  }

  async call(call: MethodCall, signal: AbortSignal, deadlineMs = this.#options.callMs ?? CALL_MS): Promise<Reply> {
    const connection = await this.connection(signal);
    return connection.call(call, deadlineMs, signal);
  }

  async property(at: Omit<MethodCall, 'member' | 'body' | 'signature'>, name: string, signal: AbortSignal) {
    const { body } = await this.call(
      {
        ...at,
        interface: 'org.freedesktop.DBus.Properties',
        member: 'Get',
        signature: 'ss',
        body: [at.interface, name],
      },
      signal,
    );
    return body[0];
  }

  /** The connection of now; made if there is none. Everybody who asks meanwhile waits for the same one. */
  async connection(signal: AbortSignal): Promise<Connection> {
    this.#connecting ??= this.#connect();
    return abortable(signal, this.#connecting);
  }

  /**
   * Hears signals until `signal` aborts; rejects when the connection or its sender is lost. `onStart` is told once the bus
   * delivers: what happened before has to be read.
   */
  async watch(
    rule: MatchRule,
    on: (message: Message) => void,
    signal: AbortSignal,
    onStart?: () => void,
  ): Promise<void> {
    const connection = await this.connection(signal);
    const subscription = await this.subscribe(connection, rule, on, signal);
    try {
      onStart?.();
      const gone = Promise.race([connection.lost, subscription.ownerLost]);
      throw await abortable(signal, gone);
    } catch (err) {
      if (!signal.aborted) throw err;
    } finally {
      subscription.end();
    }
  }

  /** As `watch`, on a given connection, until ended. */
  async subscribe(
    connection: Connection,
    rule: MatchRule,
    on: (message: Message) => void,
    signal: AbortSignal,
  ): Promise<{ readonly ownerLost: Promise<Error>; end(): void }> {
    const callMs = this.#options.callMs ?? CALL_MS;
    const ownerLost = Promise.withResolvers<Error>();
    const changes: MatchRule = { ...DBUS_SENDER, member: 'NameOwnerChanged', arg0: rule.sender };
    let owner: string | undefined = rule.sender.startsWith(':') ? rule.sender : undefined;
    const stopListening = connection.listen((message) => {
      if (matches(rule, message, owner)) on(message);
      else if (matches(changes, message, DBUS.destination) && message.body[2] !== owner)
        ownerLost.resolve(new KubeletError('unavailable', `${rule.sender} left the bus`));
    });
    const ask = (member: string, text: string): Promise<Reply> =>
      connection.call({ ...DBUS, member, signature: 's', body: [text] }, callMs, signal);
    const rules = [ruleText(changes), ruleText(rule)];
    const end = (): void => {
      stopListening();
      if (connection.isLost) return;
      for (const text of rules)
        connection
          .call({ ...DBUS, member: 'RemoveMatch', signature: 's', body: [text] }, callMs, new AbortController().signal)
          .catch(() => undefined); // at worst signals arrive that nobody hears
    };
    try {
      for (const text of rules) await ask('AddMatch', text);
      owner ??= textOf((await ask('GetNameOwner', rule.sender)).body[0]);
    } catch (err) {
      end();
      throw err;
    }
    return { ownerLost: ownerLost.promise, end };
  }

  async close(): Promise<void> {
    const connecting = this.#connecting;
    this.#connecting = undefined;
    await connecting?.then((connection) => connection.close()).catch(() => undefined);
  }

  #connect(): Promise<Connection> {
    const { address, connectMs, open, uid } = this.#options;
    const attempt = (async () => {
      const paths = socketPaths(address ?? SYSTEM_BUS_ADDRESS);
      const never = new AbortController().signal;
      const connection = await withDeadline(this.#clock, never, connectMs ?? CONNECT_MS, (signal) =>
        openFirst(this.#clock, paths, open ?? openUnixTransport, uid ?? process.getuid?.() ?? 0, signal),
      );
      void connection.lost.then(() => this.#forget(attempt));
      return connection;
    })();
    attempt.catch(() => this.#forget(attempt));
    return attempt;
  }

  #forget(attempt: Promise<Connection>): void {
    if (this.#connecting === attempt) this.#connecting = undefined;
  }
}

const DBUS_SENDER = { sender: DBUS.destination, path: DBUS.path, interface: DBUS.interface };

/** The first address that answers; the error is that of the last. */
async function openFirst(
  clock: Clock,
  paths: readonly string[],
  open: OpenTransport,
  uid: number,
  signal: AbortSignal,
): Promise<Connection> {
  let last: unknown = new KubeletError('unavailable', 'no D-Bus address');
  for (const path of paths) {
    try {
      const connection = new Connection(clock, await open(path, signal), { uid });
      await connection.open(signal);
      return connection;
    } catch (err) {
      if (signal.aborted || isFault(err, 'denied')) throw err;
      last = err;
    }
  }
  throw last;
}
