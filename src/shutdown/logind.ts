// logind, which is asked through the programs systemd brings along. Nothing here keeps state but the two children.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { toolEnvironment } from '../lib/child-environment.ts';
import { aborted, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';

/** Where the system bus is, if not in its usual place. */
const BUS = ['DBUS_SYSTEM_BUS_ADDRESS'];

export interface Inhibitor {
  release(): void;
}

export type LogindPaths = { readonly override: string };

const MANAGER = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'] as const;
/** Everybody may send signals on the system bus: only logind's own counts. */
const MATCH =
  "type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1',member='PrepareForShutdown'";
/** A bus that does not answer: the part tries again later, and the agent can stop meanwhile. */
const ANSWER_MS = 10_000;
const REREADS = 5;
const REREAD_MS = 100;

export class Logind {
  readonly #clock: Clock;
  readonly #paths: LogindPaths;

  constructor(clock: Clock, paths: LogindPaths = { override: '/etc/systemd/logind.conf.d/99-kubelet.conf' }) {
    this.#clock = clock;
    this.#paths = paths;
  }

  /** Makes logind grant delays of this length; rejects when it will not. */
  async allowDelay(seconds: number, signal: AbortSignal): Promise<void> {
    if ((await this.#maxDelaySeconds(signal)) >= seconds) return;
    await mkdir(dirname(this.#paths.override), { recursive: true, mode: 0o755 });
    await writeFile(this.#paths.override, `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${seconds}\n`);
    await this.#output('systemctl', ['kill', '--signal=HUP', 'systemd-logind.service'], signal);
    let now = 0;
    for (let i = 0, ms = REREAD_MS; i < REREADS; i++, ms *= 2) {
      now = await this.#maxDelaySeconds(signal);
      if (now >= seconds) return;
      await this.#clock.sleep(ms, signal);
    }
    throw new KubeletError(
      'unavailable',
      `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${seconds}s (ShutdownGracePeriod), current value of InhibitDelayMaxSec (${now}s) is less than requested ShutdownGracePeriod`,
    );
  }

  /** Holds shutdowns up until released. */
  async inhibit(signal: AbortSignal): Promise<Inhibitor> {
    const why = 'Kubelet needs time to handle node shutdown';
    const holder = ['sh', '-c', 'echo held; exec cat'];
    const options = ['--what=shutdown', '--who=kubelet', `--why=${why}`, '--mode=delay'];
    // It ends with its standard input, and so with this process, however that ends.
    const child = spawn('systemd-inhibit', [...options, ...holder], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: toolEnvironment(BUS),
    });
    child.stdin.on('error', () => undefined);
    await withDeadline(this.#clock, signal, ANSWER_MS, async (own) => {
      const held = new Promise<boolean>((resolve, reject) => {
        child.stdout.once('data', () => resolve(true));
        child.once('error', reject);
        child.once('exit', () => reject(new KubeletError('unavailable', 'logind grants no inhibitor')));
      });
      if ((await Promise.race([held, aborted(own)])) === true) return;
      held.catch(() => undefined); // nobody waits for it any more
      // It waits for the bus and would not look at its standard input.
      child.kill('SIGKILL');
      own.throwIfAborted();
    });
    return { release: () => void child.stdin.end() };
  }

  /** Tells of every shutdown announced (true) or called off (false). Settles when `signal` aborts or the bus is lost. */
  async watch(onPrepare: (down: boolean) => void, signal: AbortSignal): Promise<void> {
    const child = spawn('busctl', ['monitor', '--system', '--json=short', `--match=${MATCH}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: toolEnvironment(BUS),
    });
    const ended = endOf('busctl', child);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const down = prepareIn(line);
      if (down !== undefined) onPrepare(down);
    });
    const stop = (): void => void child.kill();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.race([ended, aborted(signal)]);
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  async #maxDelaySeconds(signal: AbortSignal): Promise<number> {
    const text = await this.#output('busctl', ['get-property', '--system', ...MANAGER, 'InhibitDelayMaxUSec'], signal);
    return Number(/^t (\d+)/.exec(text)?.[1] ?? 0) / 1e6;
  }

  #output(command: string, args: readonly string[], signal: AbortSignal): Promise<string> {
    return withDeadline(this.#clock, signal, ANSWER_MS, (own) => output(command, args, own));
  }
}

/** Whether a line of the monitor announces a shutdown, calls one off, or neither. */
export function prepareIn(line: string): boolean | undefined {
  try {
    const message = JSON.parse(line) as { member?: string; payload?: { data?: unknown[] } };
    const [down] = message.payload?.data ?? [];
    return message.member === 'PrepareForShutdown' && typeof down === 'boolean' ? down : undefined;
  } catch {
    // A greeting or half a line.
    return undefined;
  }
}

const endOf = (name: string, child: ChildProcess): Promise<never> =>
  new Promise((_, reject) => {
    child.once('error', (err) => reject(new KubeletError('unavailable', `${name}: ${messageOf(err)}`, { cause: err })));
    child.once('exit', (code) => reject(new KubeletError('unavailable', `${name} ended with ${code}`)));
  });

async function output(command: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const env = toolEnvironment(BUS);
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], signal, killSignal: 'SIGKILL', env });
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data.toString()));
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new KubeletError('unavailable', `${command} ended with ${code}`)),
    );
  });
  return text;
}
