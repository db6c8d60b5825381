// One supervised process: started, started again when it ends, stopped in order. Its output goes to a log file.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, renameSync, statSync } from 'node:fs';
import { Backoff } from '../../lib/backoff.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';

export type ChildSpec = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly logPath: string;
  readonly env?: NodeJS.ProcessEnv;
  /** How long it may take to stop before it is killed. */
  readonly patienceMs: number;
};

const MAX_LOG_BYTES = 16 * 1024 * 1024;

export class Child {
  readonly spec: ChildSpec;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #changed: () => void;
  #process: ChildProcess | undefined;
  #restarts = 0;

  /** `changed` is called when its pid changes. */
  constructor(deps: { clock: Clock; log: Logger; changed: () => void }, spec: ChildSpec) {
    this.spec = spec;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#changed = deps.changed;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Keeps it running until `signal` aborts, then stops it. */
  async run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ baseMs: 200, maxMs: 5000 });
    while (!signal.aborted) {
      const startedAt = this.#clock.monotonic();
      const code = await this.#once(signal);
      if (signal.aborted) return;
      this.#restarts++;
      const ran = this.#clock.monotonic() - startedAt;
      this.#log.warn('process ended, starting it again', { process: this.spec.name, code, ranMs: Math.round(ran) });
      await this.#clock.sleep(backoff.failed(this.#clock.monotonic()), signal);
    }
  }

  async #once(signal: AbortSignal): Promise<number | string> {
    const out = openLog(this.spec.logPath);
    const child = spawn(this.spec.command, [...this.spec.args], {
      stdio: ['ignore', out, out],
      env: this.spec.env ?? process.env,
    });
    closeSync(out);
    this.#process = child;
    this.#changed();
    let patience: Timer | undefined;
    const stop = (): void => {
      child.kill('SIGTERM');
      patience = this.#clock.after(this.spec.patienceMs, () => child.kill('SIGKILL'));
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await new Promise<number | string>((resolve) => {
        child.once('error', (err) => resolve(err.message));
        child.once('exit', (code, by) => resolve(code ?? by ?? 'unknown'));
      });
    } finally {
      signal.removeEventListener('abort', stop);
      patience?.cancel();
      this.#process = undefined;
      this.#changed();
    }
  }
}

/** A log that has grown too big makes room once, at a start. */
function openLog(path: string): number {
  try {
    if (statSync(path).size > MAX_LOG_BYTES) renameSync(path, `${path}.1`);
  } catch {
    // There is none yet.
  }
  return openSync(path, 'a', 0o600);
}
