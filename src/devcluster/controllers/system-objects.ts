// Makes the system's namespaces and the service of the API server anew when they were deleted: `kubectl delete all --all`
// takes the service along.
import type { Change } from '../api/store.ts';
import { KUBERNETES_SERVICE, SYSTEM_NAMESPACES } from '../seed.ts';
import type { Controller } from './controller.ts';

const KEY = 'system';

export class SystemObjects implements Controller {
  readonly name = 'system-objects';
  readonly #seed: () => void;

  /** `seed` makes what is missing. */
  constructor(seed: () => void) {
    this.#seed = seed;
  }

  initialKeys(): readonly string[] {
    return [];
  }

  keysOf({ type, resource, now }: Change): readonly string[] {
    const isOurs =
      (resource === 'namespaces' && SYSTEM_NAMESPACES.includes(now.key)) ||
      (resource === 'services' && now.key === KUBERNETES_SERVICE);
    return type === 'DELETED' && isOurs ? [KEY] : [];
  }

  reconcile(): void {
    this.#seed();
  }
}
