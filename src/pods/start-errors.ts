// Why containers could not be started, for their waiting state. Bounded; forgotten when the container starts.
import type { PodUid } from '../core/ids.ts';
import { Lru } from '../lib/lru.ts';

export type StartError = { readonly reason: string; readonly message: string };

const MAX_ENTRIES = 1000;

export class StartErrors {
  readonly #errors = new Lru<string, StartError>(MAX_ENTRIES);

  set(uid: PodUid, container: string, error: StartError): void {
    this.#errors.set(`${uid}_${container}`, error);
  }

  clear(uid: PodUid, container: string): void {
    this.#errors.delete(`${uid}_${container}`);
  }

  get(uid: PodUid, container: string): StartError | undefined {
    return this.#errors.get(`${uid}_${container}`);
  }
}
