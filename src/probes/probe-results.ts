// The result that counts, by probe type and container instance. Written by the probe manager only.
import type { ContainerId } from '../core/ids.ts';
import type { ProbeResult, ProbeType } from './probe-state.ts';

export class ProbeResults {
  readonly #byType: Record<ProbeType, Map<string, ProbeResult>> = {
    startup: new Map(),
    readiness: new Map(),
    liveness: new Map(),
  };

  startup(id: ContainerId): ProbeResult | undefined {
    return this.#byType.startup.get(id);
  }

  readiness(id: ContainerId): ProbeResult | undefined {
    return this.#byType.readiness.get(id);
  }

  liveness(id: ContainerId): ProbeResult | undefined {
    return this.#byType.liveness.get(id);
  }

  /** True when this is news. */
  set(type: ProbeType, id: ContainerId, result: ProbeResult): boolean {
    const results = this.#byType[type];
    if (results.get(id) === result) return false;
    results.set(id, result);
    return true;
  }

  remove(type: ProbeType, id: string): void {
    this.#byType[type].delete(id);
  }
}
