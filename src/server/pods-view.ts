// What the routes ask about pods, and how a request's words become a pod, a container or a sandbox.
import { podUid, type PodUid } from '../core/ids.ts';
import { fullName, type Pod, type PodStatus } from '../core/pod.ts';
import type { ObservedContainer, ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import { KubeletError } from '../lib/errors.ts';

export interface PodsView {
  /** Without mirror pods, each with its latest status. */
  all(): readonly Pod[];
  byName(namespace: string, name: string): Pod | undefined;
  /** A mirror's UID becomes that of the static pod it stands for. */
  translate(uid: string): PodUid;
}

export interface ObservedPods {
  get(uid: PodUid): PodSnapshot | undefined;
  all(): readonly PodSnapshot[];
  /** Read anew, after this call. */
  refresh(uid: PodUid, signal: AbortSignal): Promise<PodSnapshot>;
}

export type KnownPodsDeps = {
  readonly store: {
    all(): readonly Pod[];
    byFullName(name: string): Pod | undefined;
    translate(uid: PodUid): PodUid;
  };
  readonly statuses: { statusOf(uid: PodUid): PodStatus | undefined };
};

/** The pods the kubelet knows. One without a status of ours is shown as it came. */
export class KnownPods implements PodsView {
  readonly #deps: KnownPodsDeps;
  /** Each with the status it had when it was last asked for. */
  readonly #shown = new WeakMap<Pod, Pod>();

  constructor(deps: KnownPodsDeps) {
    this.#deps = deps;
  }

  all(): readonly Pod[] {
    return this.#deps.store.all().map((pod) => this.#withStatus(pod));
  }

  byName(namespace: string, name: string): Pod | undefined {
    const found = this.#deps.store.byFullName(fullName({ metadata: { name, namespace } }));
    return found === undefined ? undefined : this.#withStatus(found);
  }

  translate(uid: string): PodUid {
    return this.#deps.store.translate(podUid(uid));
  }

  #withStatus(pod: Pod): Pod {
    const status = this.#deps.statuses.statusOf(podUid(pod.metadata.uid ?? ''));
    if (status === undefined) return pod;
    let shown = this.#shown.get(pod);
    if (shown?.status !== status) this.#shown.set(pod, (shown = { ...pod, status }));
    return shown;
  }
}

export class PodFinder {
  readonly #pods: PodsView;
  readonly #observed: ObservedPods;

  constructor(pods: PodsView, observed: ObservedPods) {
    this.#pods = pods;
    this.#observed = observed;
  }

  pod(namespace: string, name: string): Pod | undefined {
    return this.#pods.byName(namespace, name);
  }

  /** The running container of that name; `uid` as the caller gave it, which may be a mirror's. */
  async container(pod: Pod, uid: string | undefined, name: string, signal: AbortSignal): Promise<ObservedContainer> {
    const running = (s: PodSnapshot | undefined): ObservedContainer | undefined =>
      s?.containers.find((c) => c.name === name && c.state === 'running');
    const found = await this.#seen(pod, uid, running, signal);
    if (found === undefined) throw new KubeletError('internal', `container not found (${JSON.stringify(name)})`);
    return found;
  }

  async sandbox(pod: Pod, signal: AbortSignal): Promise<ObservedSandbox> {
    const found = await this.#seen(pod, undefined, (s) => s?.sandboxes.find((x) => x.ready), signal);
    if (found === undefined)
      throw new KubeletError(
        'internal',
        `pod not found (${JSON.stringify(`${pod.metadata.name}_${pod.metadata.namespace ?? ''}`)})`,
      );
    return found;
  }

  /** A container may have started this very moment: before saying no, the runtime is asked once more. */
  async #seen<T>(
    pod: Pod,
    asked: string | undefined,
    pick: (snapshot: PodSnapshot | undefined) => T | undefined,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const uid = this.#pods.translate(pod.metadata.uid ?? '');
    if (asked !== undefined && asked !== '' && this.#pods.translate(asked) !== uid) return undefined;
    return pick(this.#observed.get(uid)) ?? pick(await this.#observed.refresh(uid, signal));
  }
}
