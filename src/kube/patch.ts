// Strategic-merge patches as the difference of two JSON objects: pure. Which lists are merged by key is part of the API
// (`patchMergeKey`), so each kind brings its own table.

export type Json = string | number | boolean | null | JsonObject | readonly Json[];
export type JsonObject = { readonly [key: string]: Json };

/** Path of a keyed list (`status.conditions`) → its merge key. Every other list is replaced as a whole. */
export type MergeKeys = Readonly<Record<string, string>>;

export const POD_MERGE_KEYS: MergeKeys = {
  'metadata.ownerReferences': 'uid',
  'status.conditions': 'type',
  'status.podIPs': 'ip',
  'status.hostIPs': 'ip',
  'status.resourceClaimStatuses': 'name',
};

export const NODE_MERGE_KEYS: MergeKeys = {
  'metadata.ownerReferences': 'uid',
  'status.conditions': 'type',
  'status.addresses': 'type',
};

/** The patch that turns `before` into `after`; `{}` when they are equal. */
export function strategicMergeDiff(before: object, after: object, keys: MergeKeys): JsonObject {
  return diffObjects(plain(before) as JsonObject, plain(after) as JsonObject, keys, '');
}

/** As it goes over the wire: no undefined fields, no empty lists. Keys of objects are left as they are. */
export function plain(value: unknown): Json {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value as Json;
  const out: Record<string, Json> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined || (Array.isArray(inner) && inner.length === 0)) continue;
    out[key] = plain(inner);
  }
  return out;
}

function diffObjects(before: JsonObject, after: JsonObject, keys: MergeKeys, path: string): JsonObject {
  const patch: Record<string, Json> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[key], after[key]];
    const at = path === '' ? key : `${path}.${key}`;
    if ((was ?? null) === null && (is ?? null) === null) continue;
    if (is === undefined) {
      patch[key] = null;
    } else if (was === undefined) {
      patch[key] = is;
    } else if (isObject(was) && isObject(is)) {
      const inner = diffObjects(was, is, keys, at);
      if (Object.keys(inner).length > 0) patch[key] = inner;
    } else if (isList(was) && isList(is) && keys[at] !== undefined) {
      Object.assign(patch, diffKeyed(key, was, is, keys[at], keys, at));
    } else if (!sameJson(was, is)) {
      patch[key] = is;
    }
  }
  return sorted(patch);
}

function diffKeyed(
  field: string,
  before: readonly Json[],
  after: readonly Json[],
  mergeKey: string,
  keys: MergeKeys,
  path: string,
): JsonObject {
  const keyOf = (element: JsonObject): Json => element[mergeKey] ?? null;
  const olds = before.filter(isObject);
  const old = new Map(olds.map((e) => [keyOf(e), e]));
  const items = after.filter(isObject);
  const kept = new Set(items.map(keyOf));
  const changes: Json[] = [];
  for (const item of items) {
    const was = old.get(keyOf(item));
    if (was === undefined) {
      changes.push(sorted(item));
      continue;
    }
    const inner = diffObjects(was, item, keys, path);
    if (Object.keys(inner).length > 0) changes.push(sorted({ ...inner, [mergeKey]: keyOf(item) }));
  }
  for (const item of olds) {
    if (!kept.has(keyOf(item))) changes.push({ $patch: 'delete', [mergeKey]: keyOf(item) });
  }
  const order = items.map(keyOf);
  const oldOrder = olds.map(keyOf).filter((k) => kept.has(k));
  if (changes.length === 0 && sameJson(order, oldOrder)) return {};
  return {
    [`$setElementOrder/${field}`]: order.map((k) => ({ [mergeKey]: k })),
    ...(changes.length === 0 ? {} : { [field]: changes }),
  };
}

/** Equality of JSON values. The order of an object's keys does not count, and null is as good as absent. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  if (isObject(a) && isObject(b)) {
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((n) => sameJson(a[n], b[n]));
  }
  return false;
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const sorted = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
