// systemd's units: a job is asked for, and its end is told by a signal. Without the signal a caller would have to poll.
import { abortable, withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Bus } from '../../lib/dbus/bus.ts';
import { textOf, type Connection } from '../../lib/dbus/connection.ts';
import type { Message } from '../../lib/dbus/message.ts';
import { Variant, type DBusValue } from '../../lib/dbus/values.ts';
import { isFault, KubeletError } from '../../lib/errors.ts';

export type UnitProperty = readonly [name: string, value: Variant];

const MANAGER = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
} as const;
const JOB_REMOVED = {
  sender: MANAGER.destination,
  path: MANAGER.path,
  interface: MANAGER.interface,
  member: 'JobRemoved',
};
const CALL_MS = 10_000;
const JOB_MS = 30_000;

export class UnitManager {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #jobs = new WeakMap<Connection, Promise<Jobs>>();

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /** systemd's, as a number. Undefined where it does not tell. */
  async version(signal: AbortSignal): Promise<number | undefined> {
    const value = await this.#bus.property(MANAGER, 'Version', signal);
    const digits = /\d+/.exec(textOf(value instanceof Variant ? value.value : value))?.[0];
    return digits === undefined ? undefined : Number(digits);
  }

  /** Rejects with `exists` when systemd knows the unit already. */
  startTransient(unit: string, properties: readonly UnitProperty[], signal: AbortSignal): Promise<void> {
    return this.#job('StartTransientUnit', 'ssa(sv)a(sa(sv))', [unit, 'replace', properties, []], signal);
  }

  start(unit: string, signal: AbortSignal): Promise<void> {
    return this.#job('StartUnit', 'ss', [unit, 'replace'], signal);
  }

  /** Rejects with `notFound` for a unit systemd does not know. */
  stop(unit: string, signal: AbortSignal): Promise<void> {
    return this.#job('StopUnit', 'ss', [unit, 'replace'], signal);
  }

  /** Until the next boot. */
  async setProperties(unit: string, properties: readonly UnitProperty[], signal: AbortSignal): Promise<void> {
    const body = [unit, true, properties];
    await this.#bus.call({ ...MANAGER, member: 'SetUnitProperties', signature: 'sba(sv)', body }, signal, CALL_MS);
  }

  /** Sends a signal to all processes of a unit. */
  async kill(unit: string, signalNumber: number, signal: AbortSignal): Promise<void> {
    const body = [unit, 'all', signalNumber];
    await this.#bus.call({ ...MANAGER, member: 'KillUnit', signature: 'ssi', body }, signal, CALL_MS);
  }

  async #job(member: string, signature: string, body: readonly DBusValue[], signal: AbortSignal): Promise<void> {
    const connection = await this.#bus.connection(signal);
    const jobs = await abortable(signal, this.#jobsOf(connection));
    const result = await jobs.during(async () => {
      const reply = await connection.call({ ...MANAGER, member, signature, body }, CALL_MS, signal);
      const job = textOf(reply.body[0]);
      return withDeadline(this.#clock, signal, JOB_MS, (own) => jobs.removed(job, own));
    });
    if (result !== 'done')
      throw new KubeletError('unavailable', `systemd: ${member} ${textOf(body[0])} ended as ${result}`);
  }

  /** Once per connection; tried again after a failure. */
  #jobsOf(connection: Connection): Promise<Jobs> {
    const known = this.#jobs.get(connection);
    if (known !== undefined) return known;
    const made = this.#subscribe(connection);
    this.#jobs.set(connection, made);
    made.catch(() => this.#jobs.delete(connection));
    return made;
  }

  async #subscribe(connection: Connection): Promise<Jobs> {
    // Shared by all callers, so that none of them can abort it; each call in it has its deadline.
    const never = new AbortController().signal;
    const jobs = new Jobs();
    const { ownerLost, end } = await this.#bus.subscribe(connection, JOB_REMOVED, (m) => jobs.onRemoved(m), never);
    // systemd that begins anew (daemon-reexec) knows its subscribers; one that left the bus does not.
    void Promise.race([ownerLost, connection.lost]).then((why) => {
      jobs.lose(why);
      end();
      this.#jobs.delete(connection);
    });
    await connection.call({ ...MANAGER, member: 'Subscribe' }, CALL_MS, never).catch((err: unknown) => {
      if (!isFault(err, 'exists')) throw err;
    });
    return jobs;
  }
}

/** Results of jobs. The signal may come before the reply that names the job, so they are kept while anybody asks. */
class Jobs {
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();
  readonly #finished = new Map<string, string>();
  #lost: Error | undefined;
  #asking = 0;

  /** Signals no longer arrive. */
  lose(why: Error): void {
    this.#lost = why;
    for (const { reject } of this.#waiting.values()) reject(why);
  }

  onRemoved({ body }: Message): void {
    const [, job, , result] = body;
    if (typeof job !== 'string' || typeof result !== 'string') return;
    const waiting = this.#waiting.get(job);
    if (waiting !== undefined) waiting.resolve(result);
    else if (this.#asking > 0) this.#finished.set(job, result);
  }

  async during<T>(ask: () => Promise<T>): Promise<T> {
    this.#asking++;
    try {
      return await ask();
    } finally {
      if (--this.#asking === 0) this.#finished.clear();
    }
  }

  async removed(job: string, signal: AbortSignal): Promise<string> {
    const known = this.#finished.get(job);
    if (known !== undefined) return known;
    if (this.#lost !== undefined) throw this.#lost;
    const waiting = Promise.withResolvers<string>();
    this.#waiting.set(job, waiting);
    try {
      return await abortable(signal, waiting.promise);
    } finally {
      this.#waiting.delete(job);
    }
  }
}
