// logind over the system bus. Nothing here keeps state: an inhibitor is an open file, and its holder closes it.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { aborted, childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { Variant, type DBusValue } from '../lib/dbus/values.ts';
import { KubeletError } from '../lib/errors.ts';

export interface Inhibitor {
  release(): void;
}

type Method = { readonly destination: string; readonly path: string; readonly interface: string };
type Call = Method & { readonly member: string; readonly signature: string; readonly body: readonly DBusValue[] };
type Rule = {
  readonly sender: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly fromAnybody: true;
};

/** What of the system bus is needed. */
export interface LogindBus {
  property(at: Method, name: string, signal: AbortSignal): Promise<DBusValue | undefined>;
  /** Calls until aborted; rejects when the bus or the sender is lost. `onStart`: signals from now on are heard. */
  watch(
    rule: Rule,
    on: (message: { readonly body: readonly DBusValue[] }) => void,
    signal: AbortSignal,
    onStart: () => void,
  ): Promise<void>;
}

export type LogindDeps = {
  readonly bus: LogindBus;
  /** Makes a call whose answer carries an open file, and returns how to close it. */
  readonly callForFile: (call: Call, signal: AbortSignal) => Promise<() => void>;
  /** Sends a signal to the processes of a unit. */
  readonly killUnit: (unit: string, signalNumber: number, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
};

export type LogindPaths = { readonly override: string };

const MANAGER = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
} as const;
/** Who tries out a shutdown announces one in logind's place; upstream hears that, too. */
const PREPARE = {
  fromAnybody: true,
  sender: MANAGER.destination,
  path: MANAGER.path,
  interface: MANAGER.interface,
  member: 'PrepareForShutdown',
} as const;
const SIGHUP = 1;
const REREADS = 5;
const REREAD_MS = 100;

export class Logind {
  readonly #deps: LogindDeps;
  readonly #paths: LogindPaths;

  constructor(deps: LogindDeps, paths: LogindPaths = { override: '/etc/systemd/logind.conf.d/99-kubelet.conf' }) {
    this.#deps = deps;
    this.#paths = paths;
  }

  /** Makes logind grant delays of this length; rejects when it will not. */
  async allowDelay(seconds: number, signal: AbortSignal): Promise<void> {
    if ((await this.#maxDelaySeconds(signal)) >= seconds) return;
    await mkdir(dirname(this.#paths.override), { recursive: true, mode: 0o755 });
    await writeFile(this.#paths.override, `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${seconds}\n`);
    await this.#deps.killUnit('systemd-logind.service', SIGHUP, signal);
    let now = 0;
    for (let i = 0, ms = REREAD_MS; i < REREADS; i++, ms *= 2) {
      now = await this.#maxDelaySeconds(signal);
      if (now >= seconds) return;
      await this.#deps.clock.sleep(ms, signal);
    }
    throw new KubeletError(
      'unavailable',
      `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${seconds}s (ShutdownGracePeriod), current value of InhibitDelayMaxSec (${now}s) is less than requested ShutdownGracePeriod`,
    );
  }

  /** Holds shutdowns up until released, or until this process ends. */
  async inhibit(signal: AbortSignal): Promise<Inhibitor> {
    const body = ['shutdown', 'kubelet', 'Kubelet needs time to handle node shutdown', 'delay'];
    const call = { ...MANAGER, member: 'Inhibit', signature: 'ssss', body };
    return { release: await this.#deps.callForFile(call, signal) };
  }

  /** Tells of every shutdown announced (true) or called off (false). Settles when `signal` aborts or the bus is lost. */
  async watch(onPrepare: (down: boolean) => void, signal: AbortSignal): Promise<void> {
    const { bus } = this.#deps;
    const scope = childScope(signal);
    let told = false;
    const tell = (down: DBusValue | undefined): void => {
      if (typeof down !== 'boolean' || down === told) return;
      told = down;
      onPrepare(down);
    };
    const begun = Promise.withResolvers<void>();
    const watching = bus.watch(PREPARE, ({ body }) => tell(body[0]), scope.signal, begun.resolve);
    try {
      await Promise.race([begun.promise, watching, aborted(scope.signal)]);
      // One announced before anybody listened is not announced again. That there was none calls off no other.
      const announced = !signal.aborted && unwrapped(await bus.property(MANAGER, 'PreparingForShutdown', signal));
      if (announced === true) tell(true);
      await watching;
    } finally {
      scope.abort();
      scope.release();
      await watching.catch(() => undefined);
    }
  }

  async #maxDelaySeconds(signal: AbortSignal): Promise<number> {
    const value = unwrapped(await this.#deps.bus.property(MANAGER, 'InhibitDelayMaxUSec', signal));
    return typeof value === 'bigint' ? Number(value / 1000n) / 1000 : 0;
  }
}

const unwrapped = (value: DBusValue | undefined): DBusValue | undefined =>
  value instanceof Variant ? value.value : value;
