// Holds back the deletion of claims that pods use and of volumes that claims have: removes the protection finalizer when
// nobody does any more.
import { textAt, type ApiObject } from '../../api/objects.ts';
import type { Change } from '../../api/store.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../../api/strategies/storage.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import {
  all,
  claimNamesOf,
  CLAIMS,
  find,
  isDeleting,
  keyOfObject,
  update,
  VOLUMES,
  withoutFinalizer,
} from './objects.ts';

export class VolumeProtection implements Controller {
  readonly name = 'volume-protection';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return [CLAIMS, VOLUMES].flatMap((s) => all(this.#deps.registry, s).map((o) => `${s} ${keyOfObject(o)}`));
  }

  keysOf(change: Change): readonly string[] {
    const object = change.now.object as ApiObject;
    if (change.resource === 'pods')
      return change.type === 'DELETED'
        ? claimNamesOf(object).map((name) => `${CLAIMS} ${object.metadata.namespace ?? ''}/${name}`)
        : [];
    if (change.resource !== CLAIMS && change.resource !== VOLUMES) return [];
    return change.type !== 'DELETED' && isDeleting(object) ? [`${change.resource} ${change.now.key}`] : [];
  }

  reconcile(id: string): void {
    const { registry } = this.#deps;
    const [storage = '', key = ''] = id.split(' ');
    const object = find(registry, storage, key);
    if (object === undefined || !isDeleting(object)) return;
    const finalizer = storage === CLAIMS ? CLAIM_PROTECTION : VOLUME_PROTECTION;
    if (!(object.metadata.finalizers ?? []).includes(finalizer)) return;
    const inUse = storage === CLAIMS ? this.#hasPod(object) : textAt(object, 'status', 'phase') === 'Bound';
    if (!inUse) update(registry, storage, object, (d) => withoutFinalizer(d, finalizer));
  }

  /** A pod that has no node yet has no use of it. */
  #hasPod({ metadata: { name, namespace } }: ApiObject): boolean {
    return this.#deps.registry.store
      .list('pods', namespace ?? '')
      .map((p) => p.object as ApiObject)
      .some((pod) => textAt(pod, 'spec', 'nodeName') !== '' && claimNamesOf(pod).includes(name));
  }
}
