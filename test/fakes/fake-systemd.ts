// systemd and logind as far as a kubelet speaks to them, on a real bus: units as a map, jobs that end with a signal,
// inhibitors as the other end of a pipe.
import { closeSync, constants, mkdirSync, openSync, readSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { errnoOf, KubeletError } from '../../src/lib/errors.ts';
import type { Answer, Connection } from '../../src/lib/dbus/connection.ts';
import type { Message } from '../../src/lib/dbus/message.ts';
import { Variant, type DBusValue } from '../../src/lib/dbus/values.ts';
import type { MessageBus } from '../harness/message-bus.ts';

const SYSTEMD = { path: '/org/freedesktop/systemd1', interface: 'org.freedesktop.systemd1.Manager' };
const LOGIND = { path: '/org/freedesktop/login1', interface: 'org.freedesktop.login1.Manager' };

export type Asked = readonly [method: string, ...values: DBusValue[]];

export class FakeSystemd {
  readonly asked: Asked[] = [];
  readonly units = new Set<string>();
  /** How the next jobs end. */
  result = 'done';
  version = '252.39-1~deb12u1';
  /** Jobs that are never finished. */
  hang = false;
  #connection: Connection | undefined;
  #jobs = 0;

  async open(bus: MessageBus): Promise<this> {
    this.#connection = await bus.serve('org.freedesktop.systemd1', (call) => this.#serve(call));
    return this;
  }

  /** Is told the cgroup of every unit that is started. */
  makeSlice: (cgroup: string) => Promise<unknown> = () => Promise.resolve();

  /** KillUnit with SIGHUP is how logind is told to read its configuration again. */
  onReload: () => void = () => undefined;

  async #serve({ member = '', body }: Message): Promise<Answer> {
    this.asked.push([member, ...body]);
    const unit = body[0] as string;
    if (member === 'Subscribe' || member === 'SetUnitProperties') return {};
    if (member === 'Get') return { signature: 'v', body: [new Variant('s', this.version)] };
    if (member === 'KillUnit') {
      this.onReload();
      return {};
    }
    if (member === 'StopUnit') this.units.delete(unit);
    else if (member === 'StartTransientUnit' || member === 'StartUnit') {
      this.units.add(unit);
      await this.makeSlice(sliceCgroup(unit));
    } else throw new KubeletError('unimplemented', member);
    const number = ++this.#jobs;
    const job = `${SYSTEMD.path}/job/${number}`;
    if (!this.hang)
      setImmediate(() =>
        this.#connection?.emit({
          ...SYSTEMD,
          member: 'JobRemoved',
          signature: 'uoss',
          body: [number, job, unit, this.result],
        }),
      );
    return { signature: 'o', body: [job] };
  }
}

/** `a-b.slice` lies in `a.slice`. */
function sliceCgroup(unit: string): string {
  const parts = unit.replace(/\.slice$/, '').split('-');
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('-')}.slice`).join('');
}

export class FakeLogind {
  readonly asked: Asked[] = [];
  maxDelaySeconds = 5;
  preparing = false;
  #connection: Connection | undefined;
  #dir = '';
  /** Our ends of the inhibitors handed out. */
  readonly #held: number[] = [];

  async open(bus: MessageBus): Promise<this> {
    this.#dir = join(bus.dir, 'inhibit');
    mkdirSync(this.#dir, { recursive: true });
    this.#connection = await bus.serve('org.freedesktop.login1', (call) => this.#serve(call));
    return this;
  }

  announce(down: boolean): void {
    this.preparing = down;
    this.#connection?.emit({ ...LOGIND, member: 'PrepareForShutdown', signature: 'b', body: [down] });
  }

  /** Inhibitors that somebody still holds: the pipe has not ended. */
  get inhibitors(): number {
    return this.#held.filter((fd) => !hasEnded(fd)).length;
  }

  /** Inhibitors handed out since the beginning. */
  get granted(): number {
    return this.#held.length;
  }

  close(): void {
    for (const fd of this.#held) closeSync(fd);
  }

  #serve({ member = '', body }: Message): Answer {
    this.asked.push([member, ...body]);
    if (member === 'Get') return { signature: 'v', body: [this.#property(body[1] as string)] };
    if (member === 'Inhibit') return this.#inhibit();
    throw new KubeletError('unimplemented', member);
  }

  #property(name: string): Variant {
    return name === 'InhibitDelayMaxUSec'
      ? new Variant('t', BigInt(this.maxDelaySeconds) * 1_000_000n)
      : new Variant('b', this.preparing);
  }

  #inhibit(): Answer {
    const path = join(this.#dir, `${this.#held.length}.ref`);
    execFileSync('mkfifo', [path]);
    const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const theirs = openSync(path, 'w');
    rmSync(path);
    this.#held.push(reading);
    // The message has its own copy once it is sent.
    setImmediate(() => closeSync(theirs));
    return { signature: 'h', body: [0], descriptors: [theirs] };
  }
}

/** End of file means that every writer closed it; "try again" that one is there. */
function hasEnded(fd: number): boolean {
  try {
    return readSync(fd, Buffer.alloc(1)) === 0;
  } catch (err) {
    if (errnoOf(err) === 'EAGAIN') return false;
    throw err;
  }
}
