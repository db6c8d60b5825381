// Lists: selection, pages, versions. A paged list is one snapshot: its later pages come from the state of the first,
// held for a while.
import { ApiError, badRequest, gone } from './api-error.ts';
import type { ApiObject } from './objects.ts';
import type { ListMeta } from './forms.ts';
import type { ResourceType } from './resources.ts';
import type { RequestInfo } from './request-info.ts';
import { fieldSelector, labelSelector } from './selectors.ts';
import type { ObjectStore, StoredObject } from './store.ts';

export type Selection = {
  readonly namespace: string | undefined;
  readonly matches: ((object: ApiObject) => boolean) | undefined;
};

export function selectionOf(type: ResourceType, info: RequestInfo, query: URLSearchParams): Selection {
  for (const term of info.fieldTerms)
    if (type.fields[term.field] === undefined)
      throw badRequest(
        `Unable to find "${type.group}/${type.version}, Resource=${type.resource}" that match label selector "${query.get('labelSelector') ?? ''}", field selector "${query.get('fieldSelector') ?? ''}": field label not supported: ${term.field}`,
      );
  const byLabel = labelSelector(query.get('labelSelector') ?? '');
  const byField = fieldSelector(info.fieldTerms, (field, object) => type.fields[field]?.(object));
  const namespace = type.namespaced && info.namespace !== '' ? info.namespace : undefined;
  if (byLabel === undefined && byField === undefined) return { namespace, matches: undefined };
  return {
    namespace,
    matches: (object) =>
      (byField === undefined || byField(object)) && (byLabel === undefined || byLabel(object.metadata.labels)),
  };
}

export function select(store: ObjectStore, storage: string, selection: Selection): readonly StoredObject[] {
  const all = store.list(storage, selection.namespace);
  const { matches } = selection;
  return matches === undefined ? all : all.filter((stored) => matches(stored.object as ApiObject));
}

const MAX_SNAPSHOTS = 64;

export type Page = { readonly items: readonly StoredObject[]; readonly meta: ListMeta };

/** Remembers the rest of lists that were asked for in pages. */
export class Pager {
  readonly #snapshots = new Map<string, { revision: number; items: readonly StoredObject[] }>();
  #count = 0;

  page(store: ObjectStore, storage: string, selection: Selection, query: URLSearchParams): Page {
    const limit = Number(query.get('limit') ?? 0) || 0;
    const token = query.get('continue') ?? '';
    if (token !== '') return this.#next(token, limit, query);
    checkVersion(store, query);
    const items = select(store, storage, selection);
    return this.#cut(items, store.revision, limit, 0);
  }

  #next(token: string, limit: number, query: URLSearchParams): Page {
    const version = query.get('resourceVersion') ?? '';
    if (version !== '' && version !== '0')
      throw badRequest('specifying resource version is not allowed when using continue');
    const match = /^([0-9]+)\.([0-9]+)$/.exec(Buffer.from(token, 'base64url').toString());
    if (match === null) throw badRequest('continue key is not valid: the continue token is malformed');
    const snapshot = this.#snapshots.get(match[1] ?? '');
    if (snapshot === undefined)
      throw gone(
        'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
      );
    return this.#cut(snapshot.items, snapshot.revision, limit, Number(match[2]), match[1]);
  }

  #cut(items: readonly StoredObject[], revision: number, limit: number, from: number, id?: string): Page {
    const resourceVersion = String(revision);
    const end = limit > 0 ? from + limit : items.length;
    const shown = from === 0 && end >= items.length ? items : items.slice(from, end);
    if (end >= items.length) return { items: shown, meta: { resourceVersion } };
    const snapshot = id ?? this.#keep(items, revision);
    const next = Buffer.from(`${snapshot}.${end}`).toString('base64url');
    return { items: shown, meta: { resourceVersion, continue: next, remainingItemCount: items.length - end } };
  }

  #keep(items: readonly StoredObject[], revision: number): string {
    const id = String(++this.#count);
    this.#snapshots.set(id, { items, revision });
    const oldest = this.#snapshots.keys().next().value;
    if (this.#snapshots.size > MAX_SNAPSHOTS && oldest !== undefined) this.#snapshots.delete(oldest);
    return id;
  }

  /** Forgets all snapshots: tokens handed out before are answered with 410. */
  forget(): void {
    this.#snapshots.clear();
  }
}

export function parseVersion(text: string): number {
  if (!/^\d+$/.test(text))
    throw new ApiError(
      400,
      'BadRequest',
      `Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`,
    );
  return Number(text);
}

function checkVersion(store: ObjectStore, query: URLSearchParams): void {
  const text = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  if (match !== '' && match !== 'Exact' && match !== 'NotOlderThan')
    throw badRequest(
      `resourceVersionMatch: Unsupported value: "${match}": supported values: "Exact", "NotOlderThan", ""`,
    );
  if (text === '' || text === '0') return;
  const version = parseVersion(text);
  if (version > store.revision)
    throw new ApiError(504, 'Timeout', `Too large resource version: ${version}, current: ${store.revision}`, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    });
  if (match === 'Exact' && version !== store.revision)
    throw gone(`The provided resource version is too old: ${version} (current ${store.revision})`);
}
