// The configuration that changes while the process runs. Parts that can follow a change subscribe; the rest never learn.
import type { KubeletConfig } from './config-fields.ts';
import { applyLive, diffConfig, type ConfigDiff } from './reload.ts';

export type ConfigListener = (config: KubeletConfig, changed: readonly string[]) => void;

export class ConfigUpdates {
  #current: KubeletConfig;
  #published: KubeletConfig;
  readonly #listeners = new Set<ConfigListener>();

  /** `published` is the configuration as it was read, before what follows from it was filled in. */
  constructor(config: KubeletConfig, published: KubeletConfig = config) {
    this.#current = config;
    this.#published = published;
  }

  /** What /configz shows, apart from values found out later (cgroup driver, certificate files). */
  get published(): KubeletConfig {
    return this.#published;
  }

  /** What is in force now. */
  get current(): KubeletConfig {
    return this.#current;
  }

  /** `fn` hears of every change of a live field. Returns the way to stop listening. */
  subscribe(fn: ConfigListener): () => void {
    this.#listeners.add(fn);
    return () => void this.#listeners.delete(fn);
  }

  /** Takes over what can change live and says what else differs. */
  offer(next: KubeletConfig): ConfigDiff {
    const diff = diffConfig(this.#current, next);
    if (diff.live.length > 0) {
      this.#current = applyLive(this.#current, next);
      this.#published = applyLive(this.#published, next);
      for (const fn of this.#listeners) fn(this.#current, diff.live);
    }
    return diff;
  }
}
