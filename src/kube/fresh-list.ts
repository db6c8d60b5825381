// A whole list that is never older than what its caller has seen. A server that lags behind (its watch cache, or a member
// of a set) is asked to catch up; where it cannot, the answer comes from the storage itself.
import type { KubeList, KubeObject } from '../core/meta.ts';
import { isGone, isTooLargeVersion } from './api-error.ts';
import { compareVersions } from './object-store.ts';
import type { Query, Resource, Where } from './resources.ts';

export interface ListClient {
  list<T>(resource: Resource<T>, where: Where, signal: AbortSignal): Promise<KubeList<T>>;
}

export type Listed<T> = { readonly items: readonly T[]; readonly version: string };

const PAGE = 500;

/** `seen` is the newest version known to the caller, empty when it knows none. `where` adds selectors to a query. */
export async function freshList<T extends KubeObject>(
  client: ListClient,
  resource: Resource<T>,
  where: (query: Query) => Where,
  seen: string,
  signal: AbortSignal,
): Promise<Listed<T>> {
  const list = (query: Query): Promise<KubeList<T>> => client.list(resource, where(query), signal);
  if (seen !== '') {
    const page = await list({ resourceVersion: seen, resourceVersionMatch: 'NotOlderThan' }).catch((err: unknown) => {
      if (isGone(err) || isTooLargeVersion(err)) return undefined;
      throw err;
    });
    const version = page?.metadata.resourceVersion ?? '';
    // Servers from before `resourceVersionMatch` may answer with anything they have.
    if (page !== undefined && !isOlder(version, seen)) return { items: page.items, version };
  }
  // As the storage has it now. If that is older than what was seen, the storage was restored, and this is the truth.
  return await inPages(list);
}

async function inPages<T>(list: (query: Query) => Promise<KubeList<T>>): Promise<Listed<T>> {
  const items: T[] = [];
  let query: Query = { limit: PAGE };
  for (;;) {
    let page: KubeList<T>;
    try {
      page = await list(query);
    } catch (err) {
      if (!isGone(err) || query['limit'] === undefined) throw err;
      items.length = 0; // a page is no longer served: everything at once
      query = {};
      continue;
    }
    items.push(...page.items);
    const next = page.metadata.continue ?? '';
    if (next === '') return { items, version: page.metadata.resourceVersion ?? '' };
    query = { limit: PAGE, continue: next };
  }
}

export const isOlder = (version: string, seen: string): boolean => version !== '' && compareVersions(version, seen) < 0;
