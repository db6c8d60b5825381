// How the devices of DRA drivers are, as their drivers last told. What was not told again in time is unknown. Kept over
// restarts in upstream's file; pure but for that.
import { goJson } from '../core/go-json.ts';
import type { Clock } from '../lib/clock.ts';
import { LatestFile, type LatestFileDeps } from '../lib/latest-file.ts';
import type { DeviceHealth } from './gen/dra-health.ts';

export type Health = 'Healthy' | 'Unhealthy' | 'Unknown';
export type KnownHealth = { readonly health: Health; readonly message: string };

type Told = KnownHealth & {
  readonly pool: string;
  readonly device: string;
  /** Wall time, for the file. */
  readonly atMs: number;
  /** Monotonic: until when that holds. */
  readonly until: number;
  readonly timeoutMs: number;
};

const WORDS: readonly Health[] = ['Unknown', 'Healthy', 'Unhealthy'];
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_MESSAGE_BYTES = 1024;
const KEEP_UNKNOWN_MS = 600_000;
/** Of one driver. */
const MAX_DEVICES = 10_000;
/** No name of a pool or device is longer. */
const MAX_NAME = 253;
const UNKNOWN: KnownHealth = { health: 'Unknown', message: '' };

export class HealthCache {
  readonly #clock: Clock;
  readonly #file: LatestFile;
  readonly #drivers = new Map<string, Map<string, Told>>();
  /** Devices were told of again, as they are in the file: only the times in it are old. */
  #refreshed = false;

  constructor(deps: LatestFileDeps, options: { readonly file: string }) {
    this.#clock = deps.clock;
    this.#file = new LatestFile(deps, { path: options.file, content: () => this.#format() });
  }

  load(): Promise<void> {
    return this.#file.load((text) => this.#parse(text));
  }

  /** For the end: the next run should see when devices were last told of. */
  close(): Promise<void> {
    if (this.#refreshed) this.#write();
    return this.#file.close();
  }

  /** Whether anything changed. Drivers repeat themselves every few seconds; only changes are written. */
  update(driver: string, devices: readonly DeviceHealth[]): boolean {
    const known = this.#drivers.get(driver) ?? new Map<string, Told>();
    this.#drivers.set(driver, known);
    const reported = new Set<string>();
    let changed = false;
    for (const { device, health, healthCheckTimeoutSeconds, message } of devices) {
      const { poolName = '', deviceName = '' } = device ?? {};
      if (poolName.length > MAX_NAME || deviceName.length > MAX_NAME) continue;
      const key = `${poolName}/${deviceName}`;
      reported.add(key);
      const timeoutMs = healthCheckTimeoutSeconds > 0 ? healthCheckTimeoutSeconds * 1000 : DEFAULT_TIMEOUT_MS;
      const told: Told = {
        pool: poolName,
        device: deviceName,
        health: WORDS[health] ?? 'Unknown',
        message: shortened(message),
        atMs: this.#clock.now(),
        until: this.#clock.monotonic() + timeoutMs,
        timeoutMs,
      };
      if (differ(known.get(key), told, this.#current(known.get(key)))) changed = true;
      // The order is that in which they were told.
      known.delete(key);
      known.set(key, told);
    }
    if (this.#forget(known)) this.#write();
    for (const [key, told] of known) {
      if (reported.has(key) || told.health === 'Unknown' || this.#current(told) === told) continue;
      known.set(key, { ...told, ...UNKNOWN, atMs: this.#clock.now() });
      changed = true;
    }
    if (changed) this.#write();
    else this.#refreshed = true;
    return changed;
  }

  /** Devices that nobody was told of for long, which are unknown either way, and the oldest beyond the bound. */
  #forget(known: Map<string, Told>): boolean {
    const before = known.size;
    const since = this.#clock.monotonic() - KEEP_UNKNOWN_MS;
    for (const [key, told] of known) if (told.until < since) known.delete(key);
    for (const key of known.keys()) {
      if (known.size <= MAX_DEVICES) break;
      known.delete(key);
    }
    return known.size < before;
  }

  clear(driver: string): boolean {
    const had = this.#drivers.delete(driver);
    if (had) this.#write();
    return had;
  }

  of(driver: string, pool: string, device: string): KnownHealth {
    return this.#current(this.#drivers.get(driver)?.get(`${pool}/${device}`));
  }

  #write(): void {
    this.#refreshed = false;
    this.#file.changed();
  }

  #current(told: Told | undefined): KnownHealth {
    if (told === undefined || this.#clock.monotonic() > told.until) return UNKNOWN;
    return told;
  }

  #format(): string {
    const drivers = [...this.#drivers].map(([driver, devices]) => [
      driver,
      {
        Devices: Object.fromEntries(
          [...devices].map(([key, told]) => [
            key,
            {
              PoolName: told.pool,
              DeviceName: told.device,
              Health: told.health,
              LastUpdated: new Date(told.atMs).toISOString(),
              HealthCheckTimeout: told.timeoutMs * 1_000_000,
              Message: told.message,
            },
          ]),
        ),
      },
    ]);
    return goJson(Object.fromEntries(drivers));
  }

  /** What is not of the right form is left out: it is told anew soon. */
  #parse(text: string): void {
    type Entry = Record<
      'PoolName' | 'DeviceName' | 'Health' | 'LastUpdated' | 'HealthCheckTimeout' | 'Message',
      unknown
    >;
    const all = JSON.parse(text) as Record<string, { Devices?: Record<string, Entry | null> | null } | null> | null;
    for (const [driver, state] of Object.entries(all ?? {})) {
      const known = new Map<string, Told>();
      for (const [key, entry] of Object.entries(state?.Devices ?? {})) {
        if (entry === null || typeof entry.PoolName !== 'string' || typeof entry.DeviceName !== 'string') continue;
        const atMs = Date.parse(String(entry.LastUpdated));
        const health = WORDS.find((word) => word === entry.Health);
        if (health === undefined || Number.isNaN(atMs)) continue;
        const nanos = entry.HealthCheckTimeout;
        const timeoutMs = typeof nanos === 'number' ? nanos / 1e6 : DEFAULT_TIMEOUT_MS;
        known.set(key, {
          pool: entry.PoolName,
          device: entry.DeviceName,
          health,
          message: typeof entry.Message === 'string' ? entry.Message : '',
          atMs,
          // A clock that was set back since makes it no younger than told now.
          until: this.#clock.monotonic() + timeoutMs - Math.max(0, this.#clock.now() - atMs),
          timeoutMs,
        });
      }
      this.#drivers.set(driver, known);
    }
  }
}

const differ = (before: Told | undefined, now: Told, shown: KnownHealth): boolean =>
  before?.timeoutMs !== now.timeoutMs || shown.health !== now.health || shown.message !== now.message;

/** At most 1024 bytes, with dots where something is missing. */
export function shortened(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  let end = MAX_MESSAGE_BYTES - 3;
  // Never in the middle of a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}...`;
}
