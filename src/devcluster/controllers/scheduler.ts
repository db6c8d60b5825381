// Binds pods that have no node yet. A pod that does not fit gets the reason as condition and event and is tried again
// whenever a node or a pod changes.
import type { Node } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import { apiTime } from '../../core/time.ts';
import { keyOf, recordAt, recordsAt, textAt, type ApiObject } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { bindPod } from '../api/subresources.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { recordEvent } from './events.ts';
import { reasonsAgainst, unschedulableMessage } from './scheduling.ts';
import {
  all,
  CLAIMS,
  CLASSES,
  CSI_NODES,
  find,
  SELECTED_NODE,
  update,
  VOLUMES,
  withAnnotations,
} from './volumes/objects.ts';
import { claimsOfPod, exceedsLimits, volumesReach, type ClaimsOfPod } from './volumes/scheduling.ts';

const isFinished = (pod: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
const asPod = (object: ApiObject): Pod => object as unknown as Pod;

export class Scheduler implements Controller {
  readonly name = 'scheduler';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return this.#pending();
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'nodes') return schedulingChanged(change) ? this.#pending() : [];
    if (change.resource === CLAIMS || change.resource === CLASSES || change.resource === CSI_NODES)
      return this.#pending();
    if (change.resource !== 'pods') return [];
    const pod = change.now.object as ApiObject;
    if (change.type !== 'DELETED' && textAt(pod, 'spec', 'nodeName') === '') return [change.now.key];
    const freed =
      change.type === 'DELETED' || (isFinished(pod) && !isFinished((change.before?.object ?? pod) as ApiObject));
    return freed ? this.#pending() : [];
  }

  #pending(): string[] {
    return this.#deps.registry.store
      .list('pods')
      .filter((p) => textAt(p.object, 'spec', 'nodeName') === '' && !isFinished(p.object as ApiObject))
      .map((p) => p.key);
  }

  reconcile(key: string): void {
    const { registry } = this.#deps;
    const pod = registry.store.get('pods', key)?.object as ApiObject | undefined;
    if (pod === undefined || textAt(pod, 'spec', 'nodeName') !== '' || pod.metadata.deletionTimestamp !== undefined)
      return;
    if (textAt(pod, 'spec', 'schedulerName') !== 'default-scheduler' || isFinished(pod)) return;
    if (recordsAt(pod, 'spec', 'schedulingGates').length > 0)
      return this.#setCondition(pod, 'SchedulingGated', 'Scheduling is blocked due to non-empty scheduling gates');
    const claims = this.#claims(pod);
    const nodes = registry.store.list('nodes').map((n) => n.object as unknown as Node);
    if ('problem' in claims)
      return this.#refuse(pod, `0/${nodes.length} nodes are available: ${claims.problem}. not found`);
    const reasons: string[] = [];
    for (const node of nodes) {
      const against = [
        ...(volumesReach(claims.volumes, node) ? [] : ['node(s) had volume node affinity conflict']),
        ...(this.#hasRoomFor(claims.volumes, node.metadata.name) ? [] : ['node(s) exceed max volume count']),
        ...reasonsAgainst(asPod(pod), node, this.#podsOn(node.metadata.name)),
      ];
      if (against.length === 0) return this.#place(pod, node.metadata.name, claims.waiting);
      reasons.push(...against);
    }
    this.#refuse(pod, unschedulableMessage(nodes.length, reasons));
  }

  /** Claims that wait for a consumer are bound for this node first; their change brings the pod here again. */
  #place(pod: ApiObject, node: string, waiting: readonly ApiObject[]): void {
    const { registry } = this.#deps;
    const { name, namespace = '', uid } = pod.metadata;
    for (const claim of waiting)
      if (claim.metadata.annotations?.[SELECTED_NODE] !== node)
        update(registry, CLAIMS, claim, (d) => withAnnotations(d, { [SELECTED_NODE]: node }));
    if (waiting.length > 0) return;
    bindPod(
      registry,
      namespace,
      name,
      { metadata: { name, uid }, target: { kind: 'Node', name: node } },
      systemContext(),
    );
    recordEvent(registry, 'default-scheduler', pod, {
      type: 'Normal',
      reason: 'Scheduled',
      message: `Successfully assigned ${keyOf(namespace, name)} to ${node}`,
    });
  }

  #refuse(pod: ApiObject, message: string): void {
    const before = recordsAt(pod, 'status', 'conditions').find((c) => c['type'] === 'PodScheduled');
    if (before?.['message'] === message) return;
    this.#setCondition(pod, 'Unschedulable', message);
    recordEvent(this.#deps.registry, 'default-scheduler', pod, {
      type: 'Warning',
      reason: 'FailedScheduling',
      message,
    });
  }

  #claims(pod: ApiObject): ClaimsOfPod {
    const { registry } = this.#deps;
    return claimsOfPod(pod, {
      claim: (key) => find(registry, CLAIMS, key),
      volume: (name) => find(registry, VOLUMES, name),
      storageClass: (name) => find(registry, CLASSES, name),
      pods: () => all(registry, 'pods'),
    });
  }

  #hasRoomFor(volumes: readonly ApiObject[], node: string): boolean {
    if (volumes.length === 0) return true;
    const { registry } = this.#deps;
    const present = this.#podsOn(node).flatMap((pod) => {
      const claims = this.#claims(pod as unknown as ApiObject);
      return 'problem' in claims ? [] : claims.volumes;
    });
    return !exceedsLimits(volumes, present, find(registry, CSI_NODES, node));
  }

  #podsOn(node: string): Pod[] {
    return this.#deps.registry.store
      .list('pods')
      .map((p) => p.object as ApiObject)
      .filter((p) => textAt(p, 'spec', 'nodeName') === node && !isFinished(p))
      .map(asPod);
  }

  #setCondition(pod: ApiObject, reason: string, message: string): void {
    const { name, namespace = '' } = pod.metadata;
    const now = apiTime(this.#deps.clock.now());
    this.#deps.registry.modify(
      resourceNamed('pods'),
      namespace,
      name,
      (draft) => {
        const status = recordAt(draft, 'status');
        const conditions = recordsAt(status, 'conditions');
        const old = conditions.find((c) => c['type'] === 'PodScheduled');
        const since = old?.['status'] === 'False' ? old['lastTransitionTime'] : now;
        const condition = {
          type: 'PodScheduled',
          status: 'False',
          reason,
          message,
          lastProbeTime: null,
          lastTransitionTime: since,
        };
        const others = conditions.filter((c) => c['type'] !== 'PodScheduled');
        return { ...draft, status: { ...status, conditions: [...others, condition] } };
      },
      systemContext(),
      'status',
    );
  }
}

/** Heartbeats change nothing about where pods fit. */
function schedulingChanged(change: Change): boolean {
  const shape = (object: ApiObject | undefined): string =>
    JSON.stringify([
      object?.metadata.labels,
      recordAt(object, 'spec'),
      recordAt(object, 'status', 'allocatable'),
      recordsAt(object, 'status', 'conditions').find((c) => c['type'] === 'Ready')?.['status'],
    ]);
  return (
    change.before === undefined || shape(change.now.object as ApiObject) !== shape(change.before.object as ApiObject)
  );
}
