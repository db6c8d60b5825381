// Why containers could not be started, for their waiting state. Forgotten when the container starts or its pod is over.
import type { PodUid } from '../core/ids.ts';

export type StartError = { readonly reason: string; readonly message: string };

export class StartErrors {
  readonly #errors = new Map<PodUid, Map<string, StartError>>();

  set(uid: PodUid, container: string, error: StartError): void {
    const ofPod = this.#errors.get(uid) ?? new Map<string, StartError>();
    this.#errors.set(uid, ofPod.set(container, error));
  }

  clear(uid: PodUid, container: string): void {
    this.#errors.get(uid)?.delete(container);
  }

  get(uid: PodUid, container: string): StartError | undefined {
    return this.#errors.get(uid)?.get(container);
  }

  forget(uid: PodUid): void {
    this.#errors.delete(uid);
  }
}
