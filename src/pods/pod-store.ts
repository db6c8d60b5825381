// What should run on this node: every pod of every source, and the mirror pods that stand for static pods in the API.
// Written only by pod-changes.ts; read by everybody.
import type { PodUid } from '../core/ids.ts';
import { fullName, isMirrorPod, uidOf, type Pod } from '../core/pod.ts';

export class PodStore {
  readonly #pods = new Map<PodUid, Pod>();
  readonly #mirrors = new Map<PodUid, Pod>();
  readonly #byName = new Map<string, PodUid>();
  readonly #mirrorByName = new Map<string, PodUid>();

  set(pod: Pod): void {
    const uid = uidOf(pod);
    const [pods, names] = isMirrorPod(pod) ? [this.#mirrors, this.#mirrorByName] : [this.#pods, this.#byName];
    pods.set(uid, pod);
    names.set(fullName(pod), uid);
  }

  delete(pod: Pod): void {
    const uid = uidOf(pod);
    const [pods, names] = isMirrorPod(pod) ? [this.#mirrors, this.#mirrorByName] : [this.#pods, this.#byName];
    pods.delete(uid);
    if (names.get(fullName(pod)) === uid) names.delete(fullName(pod));
  }

  get(uid: PodUid): Pod | undefined {
    return this.#pods.get(uid);
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  /** Pods without mirrors, in order of arrival. */
  all(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  mirrors(): readonly Pod[] {
    return [...this.#mirrors.values()];
  }

  byFullName(name: string): Pod | undefined {
    const uid = this.#byName.get(name);
    return uid === undefined ? undefined : this.#pods.get(uid);
  }

  mirrorOf(pod: Pod): Pod | undefined {
    const uid = this.#mirrorByName.get(fullName(pod));
    return uid === undefined ? undefined : this.#mirrors.get(uid);
  }

  /** The static pod a mirror stands for. */
  staticOf(mirror: Pod): Pod | undefined {
    return this.byFullName(fullName(mirror));
  }

  /** Callers may name a static pod by its mirror's UID. */
  translate(uid: PodUid): PodUid {
    const mirror = this.#mirrors.get(uid);
    const owner = mirror === undefined ? undefined : this.staticOf(mirror);
    return owner === undefined ? uid : uidOf(owner);
  }
}
