// The configuration that changes while the process runs. A part that can follow a change says for which fields; a changed
// field that nobody follows waits for a restart, and is reported so.
import type { KubeletConfig } from './config-fields.ts';
import { applyLive, diffConfig, LIVE_FIELDS, type ConfigDiff } from './reload.ts';

export type ConfigListener = (config: KubeletConfig) => void;

export class ConfigUpdates {
  #current: KubeletConfig;
  #published: KubeletConfig;
  readonly #listeners = new Map<ConfigListener, readonly string[]>();

  /** `published` is the configuration as it was read, before what follows from it was filled in. */
  constructor(config: KubeletConfig, published: KubeletConfig = config) {
    this.#current = config;
    this.#published = published;
  }

  /** What is in force now. */
  get current(): KubeletConfig {
    return this.#current;
  }

  /** What /configz shows, apart from values found out later (cgroup driver, certificate files). */
  get published(): KubeletConfig {
    return this.#published;
  }

  /** `fn` hears when one of `fields` changes; they must be among LIVE_FIELDS. Returns the way to stop listening. */
  subscribe(fields: readonly string[], fn: ConfigListener): () => void {
    const fixed = fields.find((field) => !LIVE_FIELDS.has(field));
    if (fixed !== undefined) throw new Error(`${fixed} cannot change while the kubelet runs`);
    this.#listeners.set(fn, fields);
    return () => void this.#listeners.delete(fn);
  }

  /** Options that read the configuration in force at every use, so that they follow a change of `fields`. */
  live<T>(fields: readonly string[], read: (updates: Pick<ConfigUpdates, 'current'>) => T): T {
    this.subscribe(fields, () => undefined);
    return read(this);
  }

  /** Takes over what somebody follows and says what else differs. */
  offer(next: KubeletConfig): ConfigDiff {
    const followed = new Set([...this.#listeners.values()].flat());
    const diff = diffConfig(this.#current, next, followed);
    if (diff.live.length === 0) return diff;
    this.#current = applyLive(this.#current, next, diff.live);
    this.#published = applyLive(this.#published, next, diff.live);
    for (const [fn, fields] of this.#listeners)
      if (fields.some((field) => diff.live.includes(field))) fn(this.#current);
    return diff;
  }
}
