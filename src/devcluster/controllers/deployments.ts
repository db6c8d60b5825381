// Deployments: one replica set per template, and the way from the old ones to the new one.
import { apiTime } from '../../core/time.ts';
import { deleteObject } from '../api/deletion.ts';
import { at, numberAt, recordAt, recordsAt, sameJson, textAt, type ApiObject, type Json } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { limitsOf, nextSizes, type SetSize } from './rollout.ts';
import { ownerReference, Workload } from './workload.ts';
import { templateHash, withCondition } from './workload-pods.ts';

const STORAGE = 'apps/deployments';
const SETS = 'apps/replicasets';
const HASH = 'pod-template-hash';
const REVISION = 'deployment.kubernetes.io/revision';

const revisionOf = (object: ApiObject): number => Number(object.metadata.annotations?.[REVISION] ?? 0);
const sizeOf = (set: ApiObject): SetSize => ({
  name: set.metadata.name,
  replicas: numberAt(set, 'spec', 'replicas') ?? 0,
  available: numberAt(set, 'status', 'availableReplicas') ?? 0,
});
const total = (sets: readonly ApiObject[], ...path: string[]): number =>
  sets.reduce((sum, s) => sum + (numberAt(s, ...path) ?? 0), 0);

export class DeploymentController implements Controller {
  readonly name = 'deployments';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#workload = new Workload(deps.registry, {
      kind: 'Deployment',
      storage: STORAGE,
      owns: SETS,
      component: 'deployment-controller',
    });
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    const deployment = this.#workload.read(key);
    if (deployment === undefined) return;
    if (deployment.metadata.deletionTimestamp !== undefined) return this.#report(deployment);
    this.#workload.claim(deployment);
    const paused = at(deployment, 'spec', 'paused') === true;
    const fresh = this.#current(deployment) ?? (paused ? undefined : this.#createSet(deployment));
    if (fresh !== undefined && !paused) {
      this.#numberRevision(deployment, fresh);
      this.#roll(deployment, fresh);
      this.#forgetOld(deployment, fresh);
    } else if (fresh !== undefined) this.#resize(deployment, fresh, numberAt(deployment, 'spec', 'replicas') ?? 1);
    this.#report(this.#workload.read(key) ?? deployment);
  }

  #sets(deployment: ApiObject): ApiObject[] {
    return this.#workload.owned(deployment);
  }

  /** The set made from the present template, whatever its hash was called then. */
  #current(deployment: ApiObject): ApiObject | undefined {
    const template = recordAt(deployment, 'spec', 'template');
    return this.#sets(deployment).find((set) => sameJson(withoutHash(recordAt(set, 'spec', 'template')), template));
  }

  #createSet(deployment: ApiObject): ApiObject {
    const template = recordAt(deployment, 'spec', 'template');
    const hash = templateHash(template);
    const name = `${deployment.metadata.name}-${hash}`;
    const labels = { ...recordAt(template, 'metadata', 'labels'), [HASH]: hash };
    const selector = recordAt(deployment, 'spec', 'selector');
    const minReady = numberAt(deployment, 'spec', 'minReadySeconds');
    const body = {
      metadata: {
        name,
        labels,
        ownerReferences: [ownerReference(deployment)],
        annotations: { ...deployment.metadata.annotations },
      },
      spec: {
        replicas: 0,
        ...(minReady === undefined ? {} : { minReadySeconds: minReady }),
        selector: { ...selector, matchLabels: { ...recordAt(selector, 'matchLabels'), [HASH]: hash } },
        template: { ...structuredClone(template), metadata: { ...recordAt(template, 'metadata'), labels } },
      },
    };
    const made = this.#deps.registry.create(
      resourceNamed(SETS),
      deployment.metadata.namespace ?? '',
      body,
      systemContext(),
    );
    return made.object as ApiObject;
  }

  #numberRevision(deployment: ApiObject, fresh: ApiObject): void {
    const highest = Math.max(
      0,
      ...this.#sets(deployment)
        .filter((s) => s.metadata.uid !== fresh.metadata.uid)
        .map(revisionOf),
    );
    const revision = String(Math.max(highest + 1, revisionOf(fresh)));
    this.#annotate(SETS, fresh, revision);
    this.#annotate(STORAGE, deployment, revision);
  }

  #annotate(storage: string, object: ApiObject, revision: string): void {
    if (object.metadata.annotations?.[REVISION] === revision) return;
    const { name, namespace = '' } = object.metadata;
    this.#deps.registry.modify(
      resourceNamed(storage),
      namespace,
      name,
      (draft) => {
        draft.metadata.annotations = { ...draft.metadata.annotations, [REVISION]: revision };
        return draft;
      },
      systemContext(),
    );
  }

  #roll(deployment: ApiObject, fresh: ApiObject): void {
    const wanted = numberAt(deployment, 'spec', 'replicas') ?? 1;
    const old = this.#sets(deployment).filter((s) => s.metadata.uid !== fresh.metadata.uid);
    if (textAt(deployment, 'spec', 'strategy', 'type') === 'Recreate') {
      for (const set of old) this.#resize(deployment, set, 0);
      const running = total(old, 'status', 'replicas');
      if (running === 0) this.#resize(deployment, fresh, wanted);
      return;
    }
    const rolling = recordAt(deployment, 'spec', 'strategy', 'rollingUpdate');
    const limits = limitsOf(rolling['maxSurge'], rolling['maxUnavailable'], wanted);
    const sizes = nextSizes(
      wanted,
      sizeOf(fresh),
      old.toSorted((a, b) => revisionOf(a) - revisionOf(b)).map(sizeOf),
      limits,
    );
    this.#resize(deployment, fresh, sizes.fresh);
    for (const set of old) this.#resize(deployment, set, sizes.old.get(set.metadata.name) ?? 0);
  }

  #resize(deployment: ApiObject, set: ApiObject, replicas: number): void {
    const before = numberAt(set, 'spec', 'replicas') ?? 0;
    if (before === replicas) return;
    const { name, namespace = '' } = set.metadata;
    this.#deps.registry.modify(
      resourceNamed(SETS),
      namespace,
      name,
      (draft) => ({ ...draft, spec: { ...recordAt(draft, 'spec'), replicas } }),
      systemContext(),
    );
    const message = `Scaled ${replicas > before ? 'up' : 'down'} replica set ${name} from ${before} to ${replicas}`;
    this.#workload.tell(deployment, { type: 'Normal', reason: 'ScalingReplicaSet', message });
  }

  #forgetOld(deployment: ApiObject, fresh: ApiObject): void {
    const keep = numberAt(deployment, 'spec', 'revisionHistoryLimit') ?? 10;
    const idle = this.#sets(deployment)
      .filter(
        (s) =>
          s.metadata.uid !== fresh.metadata.uid &&
          total([s], 'spec', 'replicas') === 0 &&
          total([s], 'status', 'replicas') === 0,
      )
      .toSorted((a, b) => revisionOf(a) - revisionOf(b));
    for (const set of idle.slice(0, Math.max(0, idle.length - keep)))
      deleteObject(
        this.#deps.registry,
        resourceNamed(SETS),
        set.metadata.namespace ?? '',
        set.metadata.name,
        {},
        systemContext(),
      );
  }

  #report(deployment: ApiObject): void {
    const sets = this.#sets(deployment);
    const fresh = this.#current(deployment);
    const wanted = numberAt(deployment, 'spec', 'replicas') ?? 1;
    const [replicas, ready, available] = ['replicas', 'readyReplicas', 'availableReplicas'].map((f) =>
      total(sets, 'status', f),
    );
    const updated = fresh === undefined ? 0 : total([fresh], 'status', 'replicas');
    const some = (count: number | undefined): number | undefined => (count === 0 ? undefined : count);
    const rolling = recordAt(deployment, 'spec', 'strategy', 'rollingUpdate');
    const least = wanted - limitsOf(rolling['maxSurge'], rolling['maxUnavailable'], wanted).maxUnavailable;
    const now = apiTime(this.#deps.clock.now());
    const complete = updated === wanted && replicas === wanted && available === wanted;
    let conditions = withCondition(
      recordsAt(deployment, 'status', 'conditions'),
      availability((available ?? 0) >= least),
      now,
    );
    conditions = withCondition(conditions, progress(fresh?.metadata.name ?? '', complete), now);
    this.#workload.writeStatus(deployment, {
      observedGeneration: deployment.metadata.generation,
      replicas: some(replicas),
      updatedReplicas: some(updated),
      readyReplicas: some(ready),
      availableReplicas: some(available),
      unavailableReplicas: some(Math.max(0, Math.max(wanted, replicas ?? 0) - (available ?? 0))),
      conditions,
    });
  }
}

const availability = (yes: boolean): Json =>
  yes
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      };

const progress = (set: string, complete: boolean): Json => ({
  type: 'Progressing',
  status: 'True',
  reason: complete ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
  message: complete ? `ReplicaSet "${set}" has successfully progressed.` : `ReplicaSet "${set}" is progressing.`,
});

function withoutHash(template: Json): Json {
  const { [HASH]: _hash, ...labels } = recordAt(template, 'metadata', 'labels');
  const metadata = { ...recordAt(template, 'metadata'), labels };
  return { ...template, metadata };
}
