// Stateful sets: pods with names and claims of their own, made and replaced in order.
import type { OwnerReference } from '../../core/meta.ts';
import { messageOf } from '../../lib/errors.ts';
import { deleteObject } from '../api/deletion.ts';
import {
  at,
  keyOf,
  numberAt,
  recordAt,
  recordsAt,
  sameJson,
  textAt,
  type ApiObject,
  type Json,
} from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { claimVolumes } from '../api/strategies/stateful-set.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { Revisions, templateOf } from './revisions.ts';
import { nextSteps, ordinalOf, type Member, type StatefulWish } from './stateful-plan.ts';
import { podBody, Workload } from './workload.ts';
import { isAvailable, isFinished, isPodReady } from './workload-pods.ts';

const STORAGE = 'apps/statefulsets';
const CLAIMS = 'persistentvolumeclaims';
const REVISION = 'controller-revision-hash';
const POD_NAME = 'statefulset.kubernetes.io/pod-name';
const POD_INDEX = 'apps.kubernetes.io/pod-index';

type Owner = { -readonly [K in keyof OwnerReference]: OwnerReference[K] };
type Scene = { readonly set: ApiObject; readonly current: ApiObject; readonly update: ApiObject };

export class StatefulSetController implements Controller {
  readonly name = 'stateful-sets';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;
  readonly #revisions: Revisions;
  readonly #wake: (key: string) => void;

  /** `wake` has a key looked at again. */
  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#wake = wake;
    this.#revisions = new Revisions(deps.registry, 'controller.kubernetes.io/hash');
    this.#workload = new Workload(deps.registry, {
      kind: 'StatefulSet',
      storage: STORAGE,
      owns: 'pods',
      component: 'statefulset-controller',
    });
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    const set = this.#workload.read(key);
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return;
    this.#workload.claim(set, (pod) => ordinalOf(set.metadata.name, pod.metadata.name) !== undefined);
    const update = this.#revisions.current(set);
    const name = textAt(set, 'status', 'currentRevision');
    const current = this.#revisions.of(set).find((r) => r.metadata.name === name) ?? update;
    const scene = { set, current, update };
    this.#keepClaims(set);
    try {
      for (const step of nextSteps(wishOf(scene), this.#members(set)))
        if (step.do === 'create') this.#create(scene, step.ordinal, step.old);
        else this.#delete(set, step.ordinal);
    } finally {
      this.#report(key, scene);
    }
  }

  #pods(set: ApiObject): readonly ApiObject[] {
    return this.#workload.owned(set).filter((pod) => ordinalOf(set.metadata.name, pod.metadata.name) !== undefined);
  }

  #members(set: ApiObject): Member[] {
    const now = this.#deps.clock.now();
    const minReady = numberAt(set, 'spec', 'minReadySeconds') ?? 0;
    return this.#pods(set).map((pod) => ({
      ordinal: ordinalOf(set.metadata.name, pod.metadata.name) ?? 0,
      revision: pod.metadata.labels?.[REVISION] ?? '',
      state:
        pod.metadata.deletionTimestamp !== undefined
          ? 'deleting'
          : isFinished(pod)
            ? 'finished'
            : isAvailable(pod, minReady, now)
              ? 'available'
              : 'pending',
    }));
  }

  #create(scene: Scene, ordinal: number, old: boolean): void {
    const { set } = scene;
    const revision = old ? scene.current : scene.update;
    const { namespace = '' } = set.metadata;
    const name = `${set.metadata.name}-${ordinal}`;
    const about = `Pod ${name} in StatefulSet ${set.metadata.name}`;
    try {
      this.#createClaims(set, ordinal);
      const body = memberBody(set, templateOf(revision), ordinal, revision.metadata.name);
      this.#deps.registry.create(resourceNamed('pods'), namespace, body, systemContext());
    } catch (err) {
      const message = `Create ${about} failed error: ${messageOf(err)}`;
      this.#workload.tell(set, { type: 'Warning', reason: 'FailedCreate', message });
      throw err;
    }
    const message = `Create ${about} successful`;
    this.#workload.tell(set, { type: 'Normal', reason: 'SuccessfulCreate', message });
  }

  #createClaims(set: ApiObject, ordinal: number): void {
    const { registry } = this.#deps;
    const { namespace = '', name } = set.metadata;
    for (const template of recordsAt(set, 'spec', 'volumeClaimTemplates')) {
      const claim = claimName(set, textAt(template, 'metadata', 'name'), ordinal);
      if (registry.store.get(CLAIMS, keyOf(namespace, claim)) !== undefined) continue;
      const { labels, annotations } = recordAt(template, 'metadata');
      const selected = recordAt(set, 'spec', 'selector', 'matchLabels');
      const metadata = {
        name: claim,
        labels: { ...(labels as Json | undefined), ...selected },
        ...(annotations === undefined ? {} : { annotations }),
      };
      const body = { metadata, spec: structuredClone(recordAt(template, 'spec')) };
      registry.create(resourceNamed(CLAIMS), namespace, body, systemContext());
      const message = `Create Claim ${claim} Pod ${name}-${ordinal} in StatefulSet ${name} success`;
      this.#workload.tell(set, { type: 'Normal', reason: 'SuccessfulCreate', message });
    }
  }

  /** By its retention policy a claim goes with the set, or with a pod that is one too many: then these own it. */
  #keepClaims(set: ApiObject): void {
    const { registry } = this.#deps;
    const { namespace = '' } = set.metadata;
    const policy = recordAt(set, 'spec', 'persistentVolumeClaimRetentionPolicy');
    const { start, end } = rangeOf(set);
    for (const pod of this.#pods(set)) {
      const ordinal = ordinalOf(set.metadata.name, pod.metadata.name) ?? 0;
      const condemned = ordinal < start || ordinal >= end;
      const owners = [
        ...(policy['whenDeleted'] === 'Delete' && !condemned ? [referenceTo(set)] : []),
        ...(policy['whenScaled'] === 'Delete' && condemned ? [referenceTo(pod)] : []),
      ];
      for (const template of recordsAt(set, 'spec', 'volumeClaimTemplates')) {
        const name = claimName(set, textAt(template, 'metadata', 'name'), ordinal);
        const found = registry.store.get(CLAIMS, keyOf(namespace, name))?.object;
        if (found === undefined || found.metadata.deletionTimestamp !== undefined) continue;
        const before = found.metadata.ownerReferences ?? [];
        const ours = new Set([set.metadata.uid, pod.metadata.uid]);
        const wanted = [...before.filter((ref) => !ours.has(ref.uid)), ...owners];
        if (sameJson(before, wanted)) continue;
        const change = (draft: ApiObject): ApiObject => {
          draft.metadata.ownerReferences = wanted;
          return draft;
        };
        registry.modify(resourceNamed(CLAIMS), namespace, name, change, systemContext());
      }
    }
  }

  #delete(set: ApiObject, ordinal: number): void {
    const { name, namespace = '' } = set.metadata;
    deleteObject(this.#deps.registry, resourceNamed('pods'), namespace, `${name}-${ordinal}`, {}, systemContext());
    const message = `Delete Pod ${name}-${ordinal} in StatefulSet ${name} successful`;
    this.#workload.tell(set, { type: 'Normal', reason: 'SuccessfulDelete', message });
  }

  #report(key: string, { current, update }: Scene): void {
    const set = this.#workload.read(key);
    if (set === undefined) return;
    const { clock } = this.#deps;
    const minReady = numberAt(set, 'spec', 'minReadySeconds') ?? 0;
    const pods = this.#pods(set);
    const ready = pods.filter(isPodReady);
    const available = ready.filter((pod) => isAvailable(pod, minReady, clock.now()));
    if (available.length < ready.length) clock.after(1000, () => this.#wake(key));
    const at = (revision: string): number =>
      pods.filter((p) => p.metadata.deletionTimestamp === undefined && p.metadata.labels?.[REVISION] === revision)
        .length;
    const wanted = numberAt(set, 'spec', 'replicas') ?? 1;
    const updated = at(update.metadata.name);
    const rolled =
      textAt(set, 'spec', 'updateStrategy', 'type') === 'RollingUpdate' &&
      [updated, ready.length, pods.length].every((count) => count === wanted);
    const now = rolled ? update : current;
    const some = (count: number): number | undefined => (count === 0 ? undefined : count);
    this.#workload.writeStatus(set, {
      observedGeneration: set.metadata.generation,
      replicas: pods.length,
      readyReplicas: some(ready.length),
      availableReplicas: available.length,
      currentReplicas: some(at(now.metadata.name)),
      updatedReplicas: some(updated),
      currentRevision: now.metadata.name,
      updateRevision: update.metadata.name,
      collisionCount: 0,
    });
    const inUse = [now, update].map((r) => r.metadata.name);
    this.#revisions.forgetOld(set, new Set([...inUse, ...pods.map((p) => p.metadata.labels?.[REVISION] ?? '')]));
  }
}

function rangeOf(set: ApiObject): { readonly start: number; readonly end: number } {
  const start = numberAt(set, 'spec', 'ordinals', 'start') ?? 0;
  return { start, end: start + (numberAt(set, 'spec', 'replicas') ?? 1) };
}

function wishOf({ set, update }: Scene): StatefulWish {
  const { start, end } = rangeOf(set);
  return {
    start,
    replicas: end - start,
    ordered: textAt(set, 'spec', 'podManagementPolicy') !== 'Parallel',
    rolling: textAt(set, 'spec', 'updateStrategy', 'type') !== 'OnDelete',
    partition: numberAt(set, 'spec', 'updateStrategy', 'rollingUpdate', 'partition') ?? 0,
    revision: update.metadata.name,
  };
}

const claimName = (set: ApiObject, template: string, ordinal: number): string =>
  `${template}-${set.metadata.name}-${ordinal}`;

const referenceTo = ({ apiVersion, kind, metadata }: ApiObject): Owner => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
  controller: true,
});

function memberBody(set: ApiObject, template: Json, ordinal: number, revision: string): Json {
  const name = `${set.metadata.name}-${ordinal}`;
  const { metadata, spec } = podBody(set, template);
  const volumes = claimVolumes(set, (claim) => claimName(set, claim, ordinal));
  const claimed = new Set(volumes.map((v) => v.name));
  const own = recordsAt(spec, 'volumes').filter((v) => !claimed.has(textAt(v, 'name')));
  const service = at(set, 'spec', 'serviceName');
  return {
    metadata: {
      ...metadata,
      name,
      labels: { ...recordAt(metadata, 'labels'), [POD_NAME]: name, [POD_INDEX]: String(ordinal), [REVISION]: revision },
    },
    spec: {
      ...spec,
      hostname: name,
      ...(typeof service === 'string' && service !== '' ? { subdomain: service } : {}),
      ...(volumes.length + own.length === 0 ? {} : { volumes: [...volumes, ...own] }),
    },
  };
}
