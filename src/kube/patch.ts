// Strategic-merge patches as the difference of two JSON objects: pure. Which lists are merged by key is part of the API
// (`patchMergeKey`), so each kind brings its own table.

export type Json = string | number | boolean | null | JsonObject | readonly Json[];
export type JsonObject = { readonly [key: string]: Json };

/** Path of a keyed list (`status.conditions`) → its merge key. Every other list is replaced as a whole. */
export type MergeKeys = Readonly<Record<string, string | SharedList>>;

/** Others write to it too, and the patch does not say of which version it speaks: what this copy does not show stays. */
type SharedList = { readonly sharedBy: string };

export const POD_MERGE_KEYS: MergeKeys = {
  'metadata.ownerReferences': 'uid',
  'status.conditions': { sharedBy: 'type' },
  'status.podIPs': 'ip',
  'status.hostIPs': 'ip',
  'status.resourceClaimStatuses': 'name',
};

export const NODE_MERGE_KEYS: MergeKeys = {
  'metadata.ownerReferences': 'uid',
  'status.conditions': 'type',
  'status.addresses': 'type',
};

/** The patch that turns `before` into `after`; `{}` when they are equal. Empty lists count as absent, as on the wire. */
export function strategicMergeDiff(before: object, after: object, keys: MergeKeys): JsonObject {
  return diffObjects(before as JsonObject, after as JsonObject, keys, '');
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

/** The field of an object, undefined also where it says nothing. Most fields are equal: nothing is copied to see that. */
function field(object: JsonObject, key: string): Json | undefined {
  const value = object[key] ?? undefined;
  return Array.isArray(value) && value.length === 0 ? undefined : value;
}

function diffObjects(before: JsonObject, after: JsonObject, keys: MergeKeys, path: string): JsonObject {
  const patch: Record<string, Json> = {};
  let changed = false;
  const names = keysOf(before, after);
  for (let i = 0; i < names.length; i++) {
    const key = names[i] as string;
    const was = field(before, key);
    const is = field(after, key);
    if (was === is) continue;
    const at = path === '' ? key : `${path}.${key}`;
    const change = diffField(key, was, is, keys, at);
    if (change === undefined) continue;
    Object.assign(patch, change);
    changed = true;
  }
  return changed ? sorted(patch) : patch;
}

/** What the patch has to say about one field; undefined when it is equal. */
function diffField(
  key: string,
  was: Json | undefined,
  is: Json | undefined,
  keys: MergeKeys,
  at: string,
): JsonObject | undefined {
  const list = keys[at];
  const mergeKey = typeof list === 'object' ? list.sharedBy : list;
  if (is === undefined && isList(was) && typeof list === 'object')
    return diffKeyed(key, was, [], list.sharedBy, keys, at);
  if (is === undefined) return { [key]: null };
  if (was === undefined) return { [key]: plain(is) };
  if (isObject(was) && isObject(is)) {
    const inner = diffObjects(was, is, keys, at);
    return Object.keys(inner).length > 0 ? { [key]: inner } : undefined;
  }
  if (isList(was) && isList(is) && mergeKey !== undefined) return diffKeyed(key, was, is, mergeKey, keys, at);
  return sameJson(was, is) ? undefined : { [key]: plain(is) };
}

function keysOf(a: JsonObject, b: JsonObject): string[] {
  const names = Object.keys(a);
  for (const name of Object.keys(b)) if (!Object.hasOwn(a, name)) names.push(name);
  return names;
}

function diffKeyed(
  field: string,
  before: readonly Json[],
  after: readonly Json[],
  mergeKey: string,
  keys: MergeKeys,
  path: string,
): JsonObject | undefined {
  const keyOf = (element: JsonObject): Json => element[mergeKey] ?? null;
  const olds = before.filter(isObject);
  const old = new Map(olds.map((e) => [keyOf(e), e]));
  const items = after.filter(isObject);
  const kept = new Set(items.map(keyOf));
  const changes: Json[] = [];
  for (const item of items) {
    const was = old.get(keyOf(item));
    if (was === undefined) {
      changes.push(sorted(plain(item) as JsonObject));
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
  if (changes.length === 0 && sameJson(order, oldOrder)) return undefined;
  return {
    ...(order.length === 0 ? {} : { [`$setElementOrder/${field}`]: order.map((k) => ({ [mergeKey]: k })) }),
    ...(changes.length === 0 ? {} : { [field]: changes }),
  };
}

/** Equality of JSON values. The order of an object's keys does not count, null and empty lists are as good as absent. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  if (isObject(a) && isObject(b)) return keysOf(a, b).every((name) => sameJson(field(a, name), field(b, name)));
  return false;
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const sorted = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
