// A node whose lease is not renewed is not ready: says so on the node and on its pods. Pods bound to a node that does
// not exist any more are removed, since nobody else can.
import { apiTime, parseTimeMs } from '../../core/time.ts';
import { deleteObject } from '../api/deletion.ts';
import { recordAt, recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { recordEvent } from './events.ts';

const GRACE_MS = 50_000;
const ORPHAN_MS = 40_000;
const HEALTH = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

export class NodeHealth implements Controller {
  readonly name = 'node-health';
  readonly #deps: ControllerDeps;
  readonly #wake: (key: string) => void;
  readonly #startedAt: number;
  readonly #watched = new Set<string>();
  /** When a node with pods was first found missing. */
  readonly #gone = new Map<string, number>();

  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#wake = wake;
    this.#startedAt = deps.clock.now();
  }

  initialKeys(): readonly string[] {
    return this.#deps.registry.store.list('nodes').map((n) => n.key);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'nodes') return [change.now.key];
    if (change.resource !== 'pods' || change.type === 'DELETED') return [];
    const node = textAt(change.now.object, 'spec', 'nodeName');
    return node !== '' && this.#deps.registry.store.get('nodes', node) === undefined ? [node] : [];
  }

  reconcile(name: string): void {
    const { registry, clock } = this.#deps;
    const node = registry.store.get('nodes', name)?.object as ApiObject | undefined;
    if (node === undefined) return this.#removeOrphans(name);
    this.#gone.delete(name);
    const left = this.#lastSeen(node) + GRACE_MS - clock.now();
    if (left <= 0) this.#markUnknown(node);
    if (this.#watched.has(name)) return;
    this.#watched.add(name);
    clock.after(left > 0 ? left : 10_000, () => {
      this.#watched.delete(name);
      this.#wake(name);
    });
  }

  #lastSeen(node: ApiObject): number {
    const lease = this.#deps.registry.store.get('coordination.k8s.io/leases', `kube-node-lease/${node.metadata.name}`);
    const beats = recordsAt(node, 'status', 'conditions').map((c) =>
      parseTimeMs(textAt(c, 'lastHeartbeatTime') || undefined),
    );
    return Math.max(this.#startedAt, parseTimeMs(textAt(lease?.object, 'spec', 'renewTime') || undefined), ...beats);
  }

  #markUnknown(node: ApiObject): void {
    const { registry, clock } = this.#deps;
    const conditions = recordsAt(node, 'status', 'conditions');
    const ready = conditions.find((c) => c['type'] === 'Ready');
    if (ready === undefined || ready['status'] === 'Unknown') return;
    const now = apiTime(clock.now());
    const unknown = (condition: Json): Json =>
      HEALTH.includes(textAt(condition, 'type'))
        ? {
            ...condition,
            status: 'Unknown',
            reason: 'NodeStatusUnknown',
            message: 'Kubelet stopped posting node status.',
            lastTransitionTime: now,
          }
        : condition;
    const mark = (draft: ApiObject): ApiObject => ({
      ...draft,
      status: { ...recordAt(draft, 'status'), conditions: conditions.map(unknown) },
    });
    registry.modify(resourceNamed('nodes'), '', node.metadata.name, mark, systemContext(), 'status');
    recordEvent(registry, 'node-controller', node, {
      type: 'Normal',
      reason: 'NodeNotReady',
      message: `Node ${node.metadata.name} status is now: NodeNotReady`,
    });
    for (const stored of registry.store.list('pods'))
      if (textAt(stored.object, 'spec', 'nodeName') === node.metadata.name)
        this.#unready(stored.object as ApiObject, now);
  }

  #unready(pod: ApiObject, now: string): void {
    const conditions = recordsAt(pod, 'status', 'conditions');
    if (!conditions.some((c) => c['type'] === 'Ready' && c['status'] === 'True')) return;
    const { name, namespace = '' } = pod.metadata;
    const change = (c: Json): Json => (c['type'] === 'Ready' ? { ...c, status: 'False', lastTransitionTime: now } : c);
    const mark = (draft: ApiObject): ApiObject => ({
      ...draft,
      status: { ...recordAt(draft, 'status'), conditions: conditions.map(change) },
    });
    this.#deps.registry.modify(resourceNamed('pods'), namespace, name, mark, systemContext(), 'status');
  }

  /** A node may only be away for a moment: a kubelet that registers again keeps its pods. */
  #removeOrphans(node: string): void {
    const { registry, clock } = this.#deps;
    const orphans = registry.store.list('pods').filter((p) => textAt(p.object, 'spec', 'nodeName') === node);
    if (orphans.length === 0) return;
    for (const stored of orphans) {
      const { name, namespace = '', creationTimestamp } = stored.object.metadata;
      const since = Math.max(this.#startedAt, parseTimeMs(creationTimestamp), this.#goneSince(node));
      if (clock.now() - since >= ORPHAN_MS)
        deleteObject(registry, resourceNamed('pods'), namespace, name, { gracePeriodSeconds: 0 }, systemContext());
    }
    if (this.#watched.has(node)) return;
    this.#watched.add(node);
    clock.after(ORPHAN_MS, () => {
      this.#watched.delete(node);
      this.#wake(node);
    });
  }

  #goneSince(node: string): number {
    let since = this.#gone.get(node);
    if (since === undefined) this.#gone.set(node, (since = this.#deps.clock.now()));
    return since;
  }
}
