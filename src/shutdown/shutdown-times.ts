// When the machine last went down in order: shown in the metrics, and kept in a file over the restart that follows.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Gauge, Registry } from '../lib/metrics.ts';

/** What Go writes for no time at all. */
const NEVER = '0001-01-01T00:00:00Z';

export class ShutdownTimes {
  readonly #path: string;
  readonly #start: Gauge;
  readonly #end: Gauge;
  #startTime = NEVER;

  constructor(registry: Registry, path: string) {
    this.#path = path;
    this.#start = registry.gauge(
      'kubelet_graceful_shutdown_start_time_seconds',
      '[ALPHA] Last graceful shutdown start time since unix epoch in seconds',
    );
    this.#end = registry.gauge(
      'kubelet_graceful_shutdown_end_time_seconds',
      '[ALPHA] Last graceful shutdown end time since unix epoch in seconds',
    );
  }

  /** Shows what the shutdown before this start left behind, if anything. */
  async load(): Promise<void> {
    let text: string;
    try {
      text = await readFile(this.#path, 'utf8');
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return;
      throw err;
    }
    const { startTime, endTime } = JSON.parse(text) as { readonly startTime?: unknown; readonly endTime?: unknown };
    this.#start.set(secondsOf(startTime));
    this.#end.set(secondsOf(endTime));
  }

  /** Written at once: nobody knows whether there will be an end. */
  async started(nowMs: number): Promise<void> {
    this.#startTime = new Date(nowMs).toISOString();
    this.#start.set(nowMs / 1000);
    this.#end.set(0);
    await this.#save(NEVER);
  }

  async ended(nowMs: number): Promise<void> {
    this.#end.set(nowMs / 1000);
    await this.#save(new Date(nowMs).toISOString());
  }

  #save(endTime: string): Promise<void> {
    return writeFileAtomic(this.#path, JSON.stringify({ startTime: this.#startTime, endTime }), 0o644);
  }
}

function secondsOf(value: unknown): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return ms > 0 ? ms / 1000 : 0;
}
