// The history of templates of daemon sets and stateful sets, as `kubectl rollout history` and `undo` read it.
import { deleteObject } from '../api/deletion.ts';
import { keyOf, numberAt, recordAt, sameJson, type ApiObject, type Json } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import { systemContext } from '../seed.ts';
import { ownerReference } from './workload.ts';
import { templateHash } from './workload-pods.ts';

const STORAGE = 'apps/controllerrevisions';

/** What a rollback patches its owner with. */
const patchOf = (template: Json): Json => ({ spec: { template: { ...template, $patch: 'replace' } } });

export class Revisions {
  readonly #registry: Registry;
  /** The label that holds the hash of the template. */
  readonly #label: string;

  constructor(registry: Registry, label: string) {
    this.#registry = registry;
    this.#label = label;
  }

  of(owner: ApiObject): readonly ApiObject[] {
    return this.#registry.store
      .list(STORAGE, owner.metadata.namespace)
      .map((stored) => stored.object as ApiObject)
      .filter((object) => object.metadata.ownerReferences?.some((ref) => ref.uid === owner.metadata.uid) === true)
      .toSorted((a, b) => numberOf(a) - numberOf(b));
  }

  /** The revision of the present template: made, or made the newest again. */
  current(owner: ApiObject): ApiObject {
    const known = this.of(owner);
    const template = recordAt(owner, 'spec', 'template');
    const found = known.find((revision) => sameJson(revision['data'], patchOf(template)));
    const newest = known.at(-1);
    if (found === undefined) return this.#create(owner, template, newest === undefined ? 1 : numberOf(newest) + 1);
    if (newest === undefined || newest === found) return found;
    const { name, namespace = '' } = found.metadata;
    const revision = numberOf(newest) + 1;
    const type = resourceNamed(STORAGE);
    return this.#registry.modify(type, namespace, name, (draft) => ({ ...draft, revision }), systemContext())
      .object as ApiObject;
  }

  #create(owner: ApiObject, template: Json, revision: number): ApiObject {
    const hash = templateHash(template);
    const { name, namespace = '' } = owner.metadata;
    const key = keyOf(namespace, `${name}-${hash}`);
    // One of an owner that is gone already, and that is not collected yet.
    if (this.#registry.store.get(STORAGE, key) !== undefined)
      deleteObject(this.#registry, resourceNamed(STORAGE), namespace, `${name}-${hash}`, {}, systemContext());
    const body = {
      metadata: {
        name: `${name}-${hash}`,
        labels: { ...recordAt(template, 'metadata', 'labels'), [this.#label]: hash },
        annotations: { ...owner.metadata.annotations },
        ownerReferences: [ownerReference(owner)],
      },
      data: patchOf(structuredClone(template)),
      revision,
    };
    return this.#registry.create(resourceNamed(STORAGE), namespace, body, systemContext()).object as ApiObject;
  }

  /** Keeps what is in use and as many of the others as the owner's history may hold. */
  forgetOld(owner: ApiObject, inUse: ReadonlySet<string>): void {
    const idle = this.of(owner).filter((revision) => !inUse.has(revision.metadata.name));
    const keep = numberAt(owner, 'spec', 'revisionHistoryLimit') ?? 10;
    for (const { metadata } of idle.slice(0, Math.max(0, idle.length - keep)))
      deleteObject(
        this.#registry,
        resourceNamed(STORAGE),
        metadata.namespace ?? '',
        metadata.name,
        {},
        systemContext(),
      );
  }
}

const numberOf = (revision: ApiObject): number => numberAt(revision, 'revision') ?? 0;

/** The template a revision stands for. */
export function templateOf(revision: ApiObject): Json {
  const { $patch: _directive, ...template } = recordAt(revision, 'data', 'spec', 'template');
  return template;
}
