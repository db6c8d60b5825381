// One kind of workload: which changes concern it, what its objects own, how pods come from its template and go, its status.
// What all workload controllers do alike; what they decide is in their own files.
import type { LabelSelector } from '../../core/meta.ts';
import { matchesLabelSelector } from '../../core/selectors.ts';
import { deleteObject } from '../api/deletion.ts';
import { generatedName } from '../api/names.ts';
import { keyOf, recordAt, sameJson, type ApiObject, type Json, type Meta } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import { recordEvent, type EventText } from './events.ts';
import { isFinished } from './workload-pods.ts';

export type WorkloadKind = {
  readonly kind: string;
  readonly storage: string;
  /** Where what it owns is kept. */
  readonly owns: string;
  /** Who signs its events. */
  readonly component: string;
};

const controllerOf = (object: ApiObject): { kind: string; name: string; uid: string } | undefined =>
  (object.metadata.ownerReferences ?? []).find((ref) => ref.controller === true);

export const ownerReference = (owner: ApiObject): Json => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** A pod of `owner` without a name. */
export function podBody(owner: ApiObject, template: Json): { readonly metadata: Json; readonly spec: Json } {
  const metadata = recordAt(template, 'metadata');
  return {
    metadata: {
      ...(metadata['labels'] === undefined ? {} : { labels: { ...recordAt(metadata, 'labels') } }),
      ...(metadata['annotations'] === undefined ? {} : { annotations: { ...recordAt(metadata, 'annotations') } }),
      ...(metadata['finalizers'] === undefined ? {} : { finalizers: metadata['finalizers'] }),
      ownerReferences: [ownerReference(owner)],
    },
    spec: structuredClone(recordAt(template, 'spec')),
  };
}

export class Workload {
  readonly #registry: Registry;
  readonly #kind: WorkloadKind;

  constructor(registry: Registry, kind: WorkloadKind) {
    this.#registry = registry;
    this.#kind = kind;
  }

  keys(): readonly string[] {
    return this.#registry.store.list(this.#kind.storage).map((stored) => stored.key);
  }

  /** The objects a change of themselves or of something they own concerns. */
  keysOf(change: Change): readonly string[] {
    if (change.resource === this.#kind.storage) return change.type === 'DELETED' ? [] : [change.now.key];
    if (change.resource !== this.#kind.owns) return [];
    const keys = new Set<string>();
    for (const stored of [change.now, change.before]) {
      const owner = stored === undefined ? undefined : controllerOf(stored.object as ApiObject);
      if (owner?.kind === this.#kind.kind) keys.add(keyOf(change.now.object.metadata.namespace, owner.name));
    }
    return [...keys];
  }

  read(key: string): ApiObject | undefined {
    return this.#registry.store.get(this.#kind.storage, key)?.object as ApiObject | undefined;
  }

  owned(owner: ApiObject): ApiObject[] {
    return this.#registry.store
      .list(this.#kind.owns, owner.metadata.namespace)
      .map((stored) => stored.object as ApiObject)
      .filter((object) => controllerOf(object)?.uid === owner.metadata.uid);
  }

  /** Takes in what is nobody's and fits the owner's selector, lets go of what does not fit it any more. */
  claim(owner: ApiObject, isMember: (object: ApiObject) => boolean = () => true): void {
    const { uid, namespace = '', deletionTimestamp } = owner.metadata;
    if (deletionTimestamp !== undefined) return;
    const selector = recordAt(owner, 'spec', 'selector') as LabelSelector;
    for (const stored of this.#registry.store.list(this.#kind.owns, namespace)) {
      const object = stored.object as ApiObject;
      if (object.metadata.deletionTimestamp !== undefined || isFinished(object)) continue;
      const controller = controllerOf(object);
      const fits = matchesLabelSelector(selector, object.metadata.labels) && isMember(object);
      if (controller === undefined ? !fits : fits || controller.uid !== uid) continue;
      const change = (draft: ApiObject): ApiObject => {
        const others = (draft.metadata.ownerReferences ?? []).filter((ref) => ref.uid !== uid);
        const references = fits ? [...others, ownerReference(owner)] : others;
        return { ...draft, metadata: { ...draft.metadata, ownerReferences: references } as Meta };
      };
      this.#registry.modify(resourceNamed(this.#kind.owns), namespace, object.metadata.name, change, systemContext());
    }
  }

  tell(owner: ApiObject, event: EventText): void {
    recordEvent(this.#registry, this.#kind.component, owner, event);
  }

  /** A pod from the owner's template; `adjust` may still change its body. */
  createPod(owner: ApiObject, adjust: (body: Json) => Json = (b) => b): void {
    const generateName = `${owner.metadata.name}-`;
    const name = generatedName(generateName);
    const { metadata, spec } = podBody(owner, recordAt(owner, 'spec', 'template'));
    const body = { metadata: { name, generateName, ...metadata }, spec };
    try {
      this.#registry.create(resourceNamed('pods'), owner.metadata.namespace ?? '', adjust(body), systemContext());
    } catch (err) {
      const message = `Error creating: ${err instanceof Error ? err.message : String(err)}`;
      this.tell(owner, { type: 'Warning', reason: 'FailedCreate', message });
      throw err;
    }
    this.tell(owner, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${name}` });
  }

  deletePod(owner: ApiObject, pod: ApiObject): void {
    const { name, namespace = '' } = pod.metadata;
    deleteObject(this.#registry, resourceNamed('pods'), namespace, name, {}, systemContext());
    this.tell(owner, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted pod: ${name}` });
  }

  /** Writes the status when it differs; keys set to undefined are left out. */
  writeStatus(owner: ApiObject, status: Json): void {
    const wanted = Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined));
    if (sameJson(recordAt(owner, 'status'), wanted)) return;
    const { name, namespace = '' } = owner.metadata;
    this.#registry.modify(
      resourceNamed(this.#kind.storage),
      namespace,
      name,
      (draft) => ({ ...draft, status: wanted }),
      systemContext(),
      'status',
    );
  }
}
