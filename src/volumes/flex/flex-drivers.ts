// Finds FlexVolume drivers and runs them. `vendor/name` is the program `<dir>/vendor~name/name`. It is looked at before every
// call: one that was replaced is asked again what it can do, one that is gone is missed at once. Each call is a child
// process with a deadline, without our environment.
import type { HostCommands } from '../../host/mounts/commands.ts';
import { abortable } from '../../lib/abort.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import { answerOf, type DriverAnswer, type DriverCapabilities } from './driver-answer.ts';
import { programOf, stampOf } from './driver-program.ts';

export type FlexDriversDeps = {
  /** For `init`, which answers at once. */
  readonly quick: HostCommands;
  readonly commands: HostCommands;
};

export type FlexDriversOpts = {
  /** `volumePluginDir` */
  readonly dir: string;
};

type Driver = {
  readonly path: string;
  /** Another one for another program. */
  readonly stamp: string;
  readonly can: DriverCapabilities;
  readonly unsupported: Set<string>;
};

export class FlexDrivers {
  readonly #deps: FlexDriversDeps;
  readonly #dir: string;
  readonly #known = new Map<string, Driver>();
  readonly #asked = new Map<string, Promise<Driver>>();

  constructor(deps: FlexDriversDeps, opts: FlexDriversOpts) {
    this.#deps = deps;
    this.#dir = opts.dir;
  }

  /** What the driver said it can do when it was last asked. */
  known(name: string): DriverCapabilities | undefined {
    return this.#known.get(name)?.can;
  }

  async isThere(name: string): Promise<boolean> {
    const path = programOf(this.#dir, name);
    return path !== undefined && (await stampOf(path)) !== undefined;
  }

  async capabilities(name: string, signal: AbortSignal): Promise<DriverCapabilities> {
    return (await this.#probe(name, signal)).can;
  }

  /** Undefined: the driver leaves it to us. It is not asked that again. */
  async call(
    name: string,
    command: string,
    args: readonly string[],
    signal: AbortSignal,
    options: { readonly withSecrets?: boolean } = {},
  ): Promise<Extract<DriverAnswer, { is: 'success' }> | undefined> {
    const driver = await this.#probe(name, signal);
    if (driver.unsupported.has(command)) return undefined;
    const answer = await run(this.#deps.commands, driver.path, [command, ...args], signal, options.withSecrets);
    if (answer.is === 'success') return answer;
    if (answer.is === 'failure') throw new KubeletError('unavailable', answer.message);
    driver.unsupported.add(command);
    return undefined;
  }

  async #probe(name: string, signal: AbortSignal): Promise<Driver> {
    signal.throwIfAborted();
    const path = programOf(this.#dir, name);
    const stamp = path === undefined ? undefined : await stampOf(path);
    if (path === undefined || stamp === undefined) {
      this.#known.delete(name);
      throw noPlugin(`there is no driver ${JSON.stringify(name)} in ${this.#dir}`, { driverGone: true });
    }
    const known = this.#known.get(name);
    if (known?.stamp === stamp) return known;
    const key = `${path} ${stamp}`;
    const asked = this.#asked.get(key) ?? this.#ask(name, path, stamp).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    return abortable(signal, asked);
  }

  /** For everybody who waits for it, so it ends at its own deadline only. */
  async #ask(name: string, path: string, stamp: string): Promise<Driver> {
    const { signal } = new AbortController();
    const answer = await run(this.#deps.quick, path, ['init'], signal).catch((err: unknown) => {
      throw noPlugin(messageOf(err));
    });
    if (answer.is !== 'success') throw noPlugin(answer.is === 'failure' ? answer.message : 'init: Not supported');
    const driver = { path, stamp, can: answer.can, unsupported: new Set<string>() };
    this.#known.set(name, driver);
    return driver;
  }
}

async function run(
  commands: HostCommands,
  path: string,
  args: readonly string[],
  signal: AbortSignal,
  withSecrets = false,
): Promise<DriverAnswer> {
  const [verb = ''] = args;
  try {
    return answerOf(verb, await commands.run(path, args, signal), withSecrets);
  } catch (err) {
    signal.throwIfAborted();
    const kind = isFault(err) ? err.kind : 'unavailable';
    throw new KubeletError(kind, `${verb} command failed: ${messageOf(err)}`, { cause: err });
  }
}

/** Upstream's words, and why. */
const noPlugin = (why: string, detail: Readonly<Record<string, unknown>> = {}): KubeletError =>
  new KubeletError('unavailable', `no volume plugin matched: ${why}`, { detail });
