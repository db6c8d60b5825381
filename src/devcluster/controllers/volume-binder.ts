// Claims and volumes that exist find each other: class, size, access modes, selector, or an explicit name. Nothing is
// provisioned; a class with a provisioner is somebody else's work.
import type { LabelSelector } from '../../core/meta.ts';
import { compareQuantities, quantity } from '../../core/quantity.ts';
import { matchesLabelSelector } from '../../core/selectors.ts';
import { at, isJson, recordAt, textAt, textsAt, type ApiObject, type Json } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';

const CLAIMS = 'persistentvolumeclaims';
const VOLUMES = 'persistentvolumes';

/** Whether a volume that nobody has can serve a claim. */
export function satisfies(volume: ApiObject, claim: ApiObject): boolean {
  const [has, wants] = [recordAt(volume, 'spec'), recordAt(claim, 'spec')];
  const named = textAt(wants, 'volumeName');
  if (named !== '' && named !== volume.metadata.name) return false;
  if (textAt(has, 'storageClassName') !== textAt(wants, 'storageClassName')) return false;
  if ((textAt(has, 'volumeMode') || 'Filesystem') !== (textAt(wants, 'volumeMode') || 'Filesystem')) return false;
  const modes = textsAt(has, 'accessModes');
  if (!textsAt(wants, 'accessModes').every((mode) => modes.includes(mode))) return false;
  const selector = at(wants, 'selector');
  if (isJson(selector) && !matchesLabelSelector(selector as LabelSelector, volume.metadata.labels)) return false;
  const size = (object: Json, ...path: string[]): string => textAt(object, ...path) || '0';
  return (
    compareQuantities(
      quantity(size(has, 'capacity', 'storage')),
      quantity(size(wants, 'resources', 'requests', 'storage')),
    ) >= 0
  );
}

export class VolumeBinder implements Controller {
  readonly name = 'volume-binder';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return [
      ...this.#claims().map((c) => `claim ${c.metadata.namespace ?? ''}/${c.metadata.name}`),
      ...this.#volumes().map((v) => `volume ${v.metadata.name}`),
    ];
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === CLAIMS) {
      const volume = textAt(change.now.object, 'spec', 'volumeName');
      if (change.type === 'DELETED') return volume === '' ? [] : [`volume ${volume}`];
      return [`claim ${change.now.key}`];
    }
    if (change.resource !== VOLUMES) return [];
    const waiting = this.#claims().filter((c) => textAt(c, 'status', 'phase') !== 'Bound');
    const keys = waiting.map((c) => `claim ${c.metadata.namespace ?? ''}/${c.metadata.name}`);
    return change.type === 'DELETED' ? keys : [`volume ${change.now.key}`, ...keys];
  }

  reconcile(id: string): void {
    const [kind, key = ''] = id.split(' ');
    if (kind === 'claim') this.#bind(key);
    else this.#report(key);
  }

  #claims(): ApiObject[] {
    return this.#deps.registry.store.list(CLAIMS).map((c) => c.object as ApiObject);
  }

  #volumes(): ApiObject[] {
    return this.#deps.registry.store.list(VOLUMES).map((v) => v.object as ApiObject);
  }

  #bind(key: string): void {
    const claim = this.#deps.registry.store.get(CLAIMS, key)?.object as ApiObject | undefined;
    if (claim === undefined || textAt(claim, 'status', 'phase') === 'Bound') return;
    const { uid, name, namespace = '' } = claim.metadata;
    const owner = (v: ApiObject): string => textAt(v, 'spec', 'claimRef', 'uid');
    const reserved = (v: ApiObject): boolean =>
      textAt(v, 'spec', 'claimRef', 'name') === name &&
      textAt(v, 'spec', 'claimRef', 'namespace') === namespace &&
      [uid, ''].includes(owner(v));
    const free = this.#volumes().filter(
      (v) => (reserved(v) || v['spec'] === undefined || at(v, 'spec', 'claimRef') === undefined) && satisfies(v, claim),
    );
    const bySize = free.toSorted((a, b) =>
      compareQuantities(
        quantity(textAt(a, 'spec', 'capacity', 'storage') || '0'),
        quantity(textAt(b, 'spec', 'capacity', 'storage') || '0'),
      ),
    );
    const chosen = bySize.find(reserved) ?? bySize[0];
    if (chosen === undefined) return;
    const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid };
    this.#update(VOLUMES, '', chosen.metadata.name, (d) => ({ ...d, spec: { ...recordAt(d, 'spec'), claimRef } }));
    this.#update(
      VOLUMES,
      '',
      chosen.metadata.name,
      (d) => ({ ...d, status: { ...recordAt(d, 'status'), phase: 'Bound' } }),
      'status',
    );
    this.#update(CLAIMS, namespace, name, (d) => ({
      ...d,
      spec: { ...recordAt(d, 'spec'), volumeName: chosen.metadata.name },
    }));
    const status = {
      phase: 'Bound',
      accessModes: at(chosen, 'spec', 'accessModes'),
      capacity: at(chosen, 'spec', 'capacity'),
    };
    this.#update(CLAIMS, namespace, name, (d) => ({ ...d, status }), 'status');
  }

  #report(name: string): void {
    const volume = this.#deps.registry.store.get(VOLUMES, name)?.object as ApiObject | undefined;
    if (volume === undefined) return;
    const ref = recordAt(volume, 'spec', 'claimRef');
    const claim = this.#deps.registry.store.get(CLAIMS, `${textAt(ref, 'namespace')}/${textAt(ref, 'name')}`)?.object;
    const uid = textAt(ref, 'uid');
    const phase = uid === '' ? 'Available' : claim?.metadata.uid === uid ? 'Bound' : 'Released';
    if (textAt(volume, 'status', 'phase') === phase) return;
    this.#update(VOLUMES, '', name, (d) => ({ ...d, status: { ...recordAt(d, 'status'), phase } }), 'status');
  }

  #update(
    storage: string,
    namespace: string,
    name: string,
    change: (draft: ApiObject) => ApiObject,
    subresource = '',
  ): void {
    this.#deps.registry.modify(resourceNamed(storage), namespace, name, change, systemContext(), subresource);
  }
}
