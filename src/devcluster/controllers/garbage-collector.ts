// Owner references: what has lost its last owner is deleted. Foreground deletion waits for dependents that block it,
// orphaning cuts them loose first.
import type { OwnerReference } from '../../core/meta.ts';
import { deleteObject, FOREGROUND, ORPHAN } from '../api/deletion.ts';
import { keyOf, type ApiObject } from '../api/objects.ts';
import { resourceNamed, resourceOfKind } from '../api/resources.ts';
import type { Change, StoredObject } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';

type Dependent = { readonly storage: string; readonly key: string };

export class GarbageCollector implements Controller {
  readonly name = 'garbage-collector';
  readonly #deps: ControllerDeps;
  /** Owner UID → what names it as owner. */
  readonly #dependents = new Map<string, Map<string, Dependent>>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    const { store } = this.#deps.registry;
    const keys: string[] = [];
    for (const storage of store.resources())
      for (const stored of store.list(storage)) {
        this.#index(storage, stored.object as ApiObject, stored.key);
        if ((stored.object.metadata.ownerReferences ?? []).length > 0) keys.push(`${storage} ${stored.key}`);
        if (waits(stored.object as ApiObject)) keys.push(`${storage} ${stored.key}`);
      }
    return keys;
  }

  keysOf(change: Change): readonly string[] {
    const object = change.now.object as ApiObject;
    const own = `${change.resource} ${change.now.key}`;
    const uid = object.metadata.uid ?? '';
    if (change.before !== undefined) this.#forget(change.before.object as ApiObject, own);
    if (change.type === 'DELETED') {
      const dependents = [...(this.#dependents.get(uid)?.keys() ?? [])];
      return [...dependents, ...this.#owners(object)];
    }
    this.#index(change.resource, object, change.now.key);
    const owned = (object.metadata.ownerReferences ?? []).length > 0 && change.type === 'ADDED';
    return owned || waits(object) ? [own] : [];
  }

  /** Owners that may be waiting for this dependent to go. */
  #owners(object: ApiObject): string[] {
    return (object.metadata.ownerReferences ?? []).flatMap((ref) => {
      const type = resourceOfKind(ref.apiVersion, ref.kind);
      return type === undefined
        ? []
        : [`${type.storage} ${keyOf(type.namespaced ? object.metadata.namespace : '', ref.name)}`];
    });
  }

  #index(storage: string, object: ApiObject, key: string): void {
    for (const ref of object.metadata.ownerReferences ?? []) {
      let found = this.#dependents.get(ref.uid);
      if (found === undefined) this.#dependents.set(ref.uid, (found = new Map()));
      found.set(`${storage} ${key}`, { storage, key });
    }
  }

  #forget(object: ApiObject, id: string): void {
    for (const ref of object.metadata.ownerReferences ?? []) {
      const found = this.#dependents.get(ref.uid);
      found?.delete(id);
      if (found?.size === 0) this.#dependents.delete(ref.uid);
    }
  }

  reconcile(id: string): void {
    const at = id.indexOf(' ');
    const storage = id.slice(0, at);
    const stored = this.#deps.registry.store.get(storage, id.slice(at + 1));
    if (stored === undefined) return;
    if (waits(stored.object as ApiObject)) this.#finish(storage, stored);
    else this.#collect(storage, stored);
  }

  #collect(storage: string, stored: StoredObject): void {
    const { ownerReferences: owners = [], name, namespace = '', uid, deletionTimestamp } = stored.object.metadata;
    if (owners.length === 0 || deletionTimestamp !== undefined) return;
    if (owners.some((ref) => this.#exists(ref, namespace))) return;
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    deleteObject(
      this.#deps.registry,
      resourceNamed(storage),
      namespace,
      name,
      { propagationPolicy: 'Background', ...preconditions },
      systemContext(),
    );
  }

  /** Owners of kinds this server does not know are not ours to judge. */
  #exists(ref: OwnerReference, namespace: string): boolean {
    const type = resourceOfKind(ref.apiVersion, ref.kind);
    if (type === undefined) return true;
    const found = this.#deps.registry.store.get(type.storage, keyOf(type.namespaced ? namespace : '', ref.name));
    return found !== undefined && found.object.metadata.uid === ref.uid;
  }

  #finish(storage: string, stored: StoredObject): void {
    const { registry } = this.#deps;
    const { uid = '', name, namespace = '', finalizers = [] } = stored.object.metadata;
    const dependents = [...(this.#dependents.get(uid)?.values() ?? [])];
    if (finalizers.includes(ORPHAN)) {
      for (const dependent of dependents) this.#cutLoose(dependent, uid);
      return this.#removeFinalizer(storage, namespace, name, ORPHAN);
    }
    let blocked = false;
    for (const { storage: kind, key } of dependents) {
      const object = registry.store.get(kind, key)?.object as ApiObject | undefined;
      if (object === undefined) continue;
      const ref = object.metadata.ownerReferences?.find((r) => r.uid === uid);
      if (object.metadata.deletionTimestamp === undefined)
        deleteObject(
          registry,
          resourceNamed(kind),
          object.metadata.namespace ?? '',
          object.metadata.name,
          { propagationPolicy: 'Foreground' },
          systemContext(),
        );
      if (ref?.blockOwnerDeletion === true && registry.store.get(kind, key) !== undefined) blocked = true;
    }
    if (!blocked) this.#removeFinalizer(storage, namespace, name, FOREGROUND);
  }

  #cutLoose({ storage, key }: Dependent, owner: string): void {
    const { registry } = this.#deps;
    const object = registry.store.get(storage, key)?.object;
    if (object === undefined) return;
    const { name, namespace = '' } = object.metadata;
    registry.modify(
      resourceNamed(storage),
      namespace,
      name,
      (draft) => {
        const rest = (draft.metadata.ownerReferences ?? []).filter((r) => r.uid !== owner);
        if (rest.length > 0) draft.metadata.ownerReferences = rest;
        else delete draft.metadata.ownerReferences;
        return draft;
      },
      systemContext(),
    );
  }

  #removeFinalizer(storage: string, namespace: string, name: string, finalizer: string): void {
    this.#deps.registry.modify(
      resourceNamed(storage),
      namespace,
      name,
      (draft) => {
        const rest = (draft.metadata.finalizers ?? []).filter((f) => f !== finalizer);
        if (rest.length > 0) draft.metadata.finalizers = rest;
        else delete draft.metadata.finalizers;
        return draft;
      },
      systemContext(),
    );
  }
}

const waits = (object: ApiObject): boolean =>
  object.metadata.deletionTimestamp !== undefined &&
  (object.metadata.finalizers ?? []).some((f) => f === FOREGROUND || f === ORPHAN);
