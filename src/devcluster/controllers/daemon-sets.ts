// Daemon sets: one pod on every node it fits, replaced one after the other when the template changes.
import type { Node } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import { matchesNode, untoleratedTaint } from '../../core/selectors.ts';
import { at, numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';
import type { Change } from '../api/store.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { Revisions } from './revisions.ts';
import { resolveCount } from './rollout.ts';
import { Workload } from './workload.ts';
import { isActive, isAvailable, isFinished, isPodReady, templateHash } from './workload-pods.ts';

const STORAGE = 'apps/daemonsets';
const HASH = 'controller-revision-hash';

const TOLERATIONS: readonly Json[] = [
  ...['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
  })),
  ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoSchedule',
  })),
];

export class DaemonSetController implements Controller {
  readonly name = 'daemon-sets';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;
  readonly #revisions: Revisions;
  readonly #wake: (key: string) => void;

  /** `wake` has a key looked at again. */
  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#wake = wake;
    this.#revisions = new Revisions(deps.registry, HASH);
    this.#workload = new Workload(deps.registry, {
      kind: 'DaemonSet',
      storage: STORAGE,
      owns: 'pods',
      component: 'daemonset-controller',
    });
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'nodes')
      return change.type === 'MODIFIED' && !placementChanged(change) ? [] : this.initialKeys();
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    const { registry } = this.#deps;
    const set = this.#workload.read(key);
    if (set === undefined) return;
    this.#workload.claim(set);
    const nodes = registry.store
      .list('nodes')
      .map((n) => n.object as ApiObject)
      .filter((n) => fits(set, n));
    const hash = templateHash(recordAt(set, 'spec', 'template'));
    if (set.metadata.deletionTimestamp === undefined) {
      const { name } = this.#revisions.current(set).metadata;
      this.#place(set, nodes, hash);
      const used = this.#workload.owned(set).map((pod) => `${set.metadata.name}-${pod.metadata.labels?.[HASH] ?? ''}`);
      this.#revisions.forgetOld(set, new Set([name, ...used]));
    }
    this.#report(key, set, nodes, hash);
  }

  #place(set: ApiObject, nodes: readonly ApiObject[], hash: string): void {
    const { clock } = this.#deps;
    const owned = this.#workload.owned(set);
    const names = new Set(nodes.map((n) => n.metadata.name));
    for (const pod of owned) if (isActive(pod) && !names.has(targetOf(pod))) this.#workload.deletePod(set, pod);
    for (const pod of owned)
      if (isFinished(pod) && pod.metadata.deletionTimestamp === undefined) this.#workload.deletePod(set, pod);
    const now = clock.now();
    const update = recordAt(set, 'spec', 'updateStrategy');
    const allowed = Math.max(1, resolveCount(at(update, 'rollingUpdate', 'maxUnavailable') ?? 1, nodes.length, true));
    const minReady = numberAt(set, 'spec', 'minReadySeconds') ?? 0;
    let unavailable = nodes.filter(
      (n) => !owned.some((p) => targetOf(p) === n.metadata.name && isActive(p) && isAvailable(p, minReady, now)),
    ).length;
    for (const node of nodes) {
      const present = owned.filter((p) => targetOf(p) === node.metadata.name && !isFinished(p));
      const active = present.filter(isActive);
      if (present.length === 0) this.#workload.createPod(set, (body) => aimed(body, node.metadata.name, hash));
      for (const extra of active.slice(1)) this.#workload.deletePod(set, extra);
      const [pod] = active;
      if (pod === undefined || pod.metadata.labels?.[HASH] === hash || textAt(update, 'type') === 'OnDelete') continue;
      const counted = !isAvailable(pod, minReady, now);
      if (!counted && unavailable >= allowed) continue;
      if (!counted) unavailable++;
      this.#workload.deletePod(set, pod);
    }
  }

  #report(key: string, set: ApiObject, nodes: readonly ApiObject[], hash: string): void {
    const { clock } = this.#deps;
    const names = new Set(nodes.map((n) => n.metadata.name));
    const pods = this.#workload.owned(set).filter((p) => isActive(p) && names.has(targetOf(p)));
    const minReady = numberAt(set, 'spec', 'minReadySeconds') ?? 0;
    const available = pods.filter((p) => isAvailable(p, minReady, clock.now())).length;
    const ready = pods.filter(isPodReady).length;
    if (available < ready) clock.after(1000, () => this.#wake(key));
    const some = (count: number): number | undefined => (count === 0 ? undefined : count);
    this.#workload.writeStatus(set, {
      currentNumberScheduled: pods.length,
      desiredNumberScheduled: nodes.length,
      numberMisscheduled: 0,
      numberReady: ready,
      numberAvailable: some(available),
      numberUnavailable: some(nodes.length - available),
      updatedNumberScheduled: some(pods.filter((p) => p.metadata.labels?.[HASH] === hash).length),
      observedGeneration: set.metadata.generation,
    });
  }
}

/** Pods are made for a node before the scheduler binds them there. */
function targetOf(pod: ApiObject): string {
  const terms = recordsAt(
    pod,
    'spec',
    'affinity',
    'nodeAffinity',
    'requiredDuringSchedulingIgnoredDuringExecution',
    'nodeSelectorTerms',
  );
  const [field] = recordsAt(terms[0], 'matchFields');
  const values = field?.['values'];
  return textAt(pod, 'spec', 'nodeName') || (Array.isArray(values) ? String(values[0]) : '');
}

function aimed(body: Json, node: string, hash: string): Json {
  const spec = recordAt(body, 'spec');
  const affinity = recordAt(spec, 'affinity');
  const nodeAffinity = recordAt(affinity, 'nodeAffinity');
  const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
  const metadata = recordAt(body, 'metadata');
  return {
    metadata: { ...metadata, labels: { ...recordAt(metadata, 'labels'), [HASH]: hash } },
    spec: {
      ...spec,
      affinity: {
        ...affinity,
        nodeAffinity: {
          ...nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
        },
      },
      tolerations: [...recordsAt(spec, 'tolerations'), ...TOLERATIONS],
    },
  };
}

function fits(set: ApiObject, node: ApiObject): boolean {
  const spec = recordAt(set, 'spec', 'template', 'spec');
  const pod = {
    metadata: { name: '' },
    spec: { ...spec, tolerations: [...recordsAt(spec, 'tolerations'), ...TOLERATIONS] },
  } as unknown as Pod;
  const target = node as unknown as Node;
  return matchesNode(pod, target) && untoleratedTaint(pod, target, ['NoSchedule', 'NoExecute']) === undefined;
}

const placementChanged = (change: Change): boolean =>
  JSON.stringify([change.now.object.metadata.labels, change.now.object['spec']]) !==
  JSON.stringify([change.before?.object.metadata.labels, change.before?.object['spec']]);
