// Mirror pods: what the API server shows of static pods. Created and recreated here, deleted only here, and only if they
// carry the mirror annotation and the UID we know.
import type { Node } from '../core/node.ts';
import {
  CONFIG_HASH,
  CONFIG_MIRROR,
  isMirrorPod,
  isStaticPod,
  namespaceOf,
  podKey,
  type Pod,
  type PodStatus,
} from '../core/pod.ts';
import { PODS, type Resource, type Where } from '../kube/resources.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

type Named = Where & { readonly name: string };
export interface MirrorClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  delete(
    resource: Resource<unknown>,
    where: Named,
    options: { gracePeriodSeconds?: number; preconditions?: { uid: string } },
    signal: AbortSignal,
  ): Promise<void>;
}

export type MirrorPodsDeps = {
  client: MirrorClient;
  mirrorOf: (pod: Pod) => Pod | undefined;
  /** Our own Node, if the API server has one. */
  node: () => Node | undefined;
  log: Logger;
};

export class MirrorPods {
  readonly #deps: MirrorPodsDeps;

  constructor(deps: MirrorPodsDeps) {
    this.#deps = deps;
  }

  /** Makes the mirror of a static pod what it should be. Fails when the server does; the next sync tries again. */
  async reconcile(pod: Pod, signal: AbortSignal): Promise<void> {
    const { mirrorOf, node, log } = this.#deps;
    const mirror = mirrorOf(pod);
    if (mirror !== undefined) {
      if (mirror.metadata.deletionTimestamp === undefined && hashOf(mirror) === staticHash(pod)) return;
      log.info('mirror pod is deleted or out of date, replacing it', { pod: podKey(mirror) });
      if (!(await this.delete(mirror, signal))) return;
    }
    const owner = node();
    if (owner === undefined || owner.metadata.deletionTimestamp !== undefined) return;
    await this.#create(pod, owner, signal);
  }

  /** What is shown of a static pod, if this is its mirror and up to date. */
  statusOf(pod: Pod, mirror: Pod | undefined): PodStatus | undefined {
    if (!isStaticPod(pod) || mirror === undefined || !isMirrorPod(mirror)) return undefined;
    return hashOf(mirror) === staticHash(pod) ? mirror.status : undefined;
  }

  /** Deletes mirrors whose static pods are gone. One that fails does not keep the others. */
  async removeAll(mirrors: readonly Pod[], signal: AbortSignal): Promise<void> {
    for (const mirror of mirrors) {
      try {
        await this.delete(mirror, signal);
      } catch (err) {
        signal.throwIfAborted();
        this.#deps.log.warn('failed to delete mirror pod', { pod: podKey(mirror), err });
      }
    }
  }

  /** True when this very mirror was deleted now. */
  async delete(mirror: Pod, signal: AbortSignal): Promise<boolean> {
    const { uid } = mirror.metadata;
    if (!isMirrorPod(mirror) || uid === undefined) return false;
    const where = { namespace: namespaceOf(mirror), name: mirror.metadata.name };
    try {
      await this.#deps.client.delete(PODS, where, { gracePeriodSeconds: 0, preconditions: { uid } }, signal);
      return true;
    } catch (err) {
      if (isFault(err, 'notFound', 'conflict')) return false;
      throw err;
    }
  }

  async #create(pod: Pod, node: Node, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const namespace = namespaceOf(pod);
    try {
      await client.create(PODS, { namespace }, mirrorFor(pod, node), signal);
    } catch (err) {
      if (!isFault(err, 'exists')) throw err;
      const existing = await client.get(PODS, { namespace, name: pod.metadata.name }, signal);
      if (hashOf(existing) === staticHash(pod)) return;
      throw new KubeletError('exists', `another pod named ${podKey(pod)} exists, no mirror pod can be created`, {
        cause: err,
      });
    }
  }
}

const hashOf = (mirror: Pod): string | undefined => mirror.metadata.annotations?.[CONFIG_MIRROR];
const staticHash = (pod: Pod): string => pod.metadata.annotations?.[CONFIG_HASH] ?? pod.metadata.uid ?? '';

/** The object to post: the static pod without what the API server assigns. Exported for its test. */
function mirrorFor(pod: Pod, node: Node): Pod {
  const { name, labels, annotations } = pod.metadata;
  const owner = {
    apiVersion: 'v1',
    kind: 'Node',
    name: node.metadata.name,
    uid: node.metadata.uid ?? '',
    controller: true,
  };
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name,
      namespace: namespaceOf(pod),
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [CONFIG_MIRROR]: staticHash(pod) },
      ownerReferences: [owner],
    },
    spec: pod.spec,
  };
}
