// Namespaces: what every one of them gets, and the emptying of those that go.
import { deleteObject } from '../api/deletion.ts';
import { recordAt, type ApiObject } from '../api/objects.ts';
import { RESOURCES, resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { ensureNamespaceContent, systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';

export class NamespaceController implements Controller {
  readonly name = 'namespaces';
  readonly #deps: ControllerDeps;
  readonly #caPem: string;

  constructor(deps: ControllerDeps, caPem: string) {
    this.#deps = deps;
    this.#caPem = caPem;
  }

  initialKeys(): readonly string[] {
    return this.#deps.registry.store.list('namespaces').map((n) => n.key);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'namespaces') return change.type === 'DELETED' ? [] : [change.now.key];
    const { namespace } = change.now.object.metadata;
    if (namespace === undefined || change.type !== 'DELETED') return [];
    const own = this.#deps.registry.store.get('namespaces', namespace)?.object.metadata;
    const restores = change.resource === 'serviceaccounts' || change.resource === 'configmaps';
    return restores || own?.deletionTimestamp !== undefined ? [namespace] : [];
  }

  reconcile(name: string): void {
    const { registry } = this.#deps;
    const namespace = registry.store.get('namespaces', name)?.object as ApiObject | undefined;
    if (namespace === undefined) return;
    if (namespace.metadata.deletionTimestamp === undefined) return ensureNamespaceContent(registry, name, this.#caPem);
    let left = 0;
    const storages = new Set(RESOURCES.filter((r) => r.namespaced).map((r) => r.storage));
    for (const storage of storages)
      for (const stored of registry.store.list(storage, name)) {
        if (stored.object.metadata.deletionTimestamp === undefined)
          deleteObject(
            registry,
            resourceNamed(storage),
            name,
            stored.object.metadata.name,
            { propagationPolicy: 'Background' },
            systemContext(),
          );
        if (registry.store.get(storage, stored.key) !== undefined) left++;
      }
    if (left > 0) return;
    const finalized = (draft: ApiObject): ApiObject => ({
      ...draft,
      spec: { ...recordAt(draft, 'spec'), finalizers: [] },
    });
    registry.modify(resourceNamed('namespaces'), '', name, finalized, systemContext(), 'finalize');
  }
}
