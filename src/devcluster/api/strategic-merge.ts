// Strategic merge patch: a merge patch that knows which lists have keys. Understands $patch (replace, delete, merge),
// $deleteFromPrimitiveList/x, $setElementOrder/x and $retainKeys.
import { badRequest } from './api-error.ts';
import { isJson, sameJson, type Json } from './objects.ts';
import type { MergeSchema } from './merge-schema.ts';

const DELETE_FROM = '$deleteFromPrimitiveList/';
const ORDER = '$setElementOrder/';

export function strategicMerge(original: unknown, patch: unknown, schema: MergeSchema): unknown {
  if (!isJson(patch)) return patch;
  return mergeMaps(isJson(original) ? original : {}, patch, schema);
}

function mergeMaps(original: Json, patch: Json, schema: MergeSchema): Json {
  if (patch['$patch'] === 'replace') return withoutDirectives(patch);
  if (patch['$patch'] === 'delete') return {};
  const result: Json = { ...original };
  const retain = patch['$retainKeys'];
  if (Array.isArray(retain)) for (const key of Object.keys(result)) if (!retain.includes(key)) delete result[key];
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === null) {
      delete result[key];
      continue;
    }
    if (key === '__proto__') continue; // no API type has it, and as a property it is the prototype
    const field = schema.fields?.[key] ?? {};
    if (Array.isArray(value)) result[key] = mergeLists(result[key], value, field, patch[ORDER + key]);
    else if (isJson(value)) {
      const merged = mergeMaps(asMap(result[key]), value, field);
      if (value['$patch'] === 'delete') delete result[key];
      else result[key] = merged;
    } else result[key] = value;
  }
  applyListDirectives(result, patch, schema);
  return result;
}

const asMap = (value: unknown): Json => (isJson(value) ? value : {});

/** Directives for lists that the patch itself does not carry. */
function applyListDirectives(result: Json, patch: Json, schema: MergeSchema): void {
  for (const [directive, value] of Object.entries(patch)) {
    if (directive.endsWith('/__proto__')) continue;
    if (directive.startsWith(DELETE_FROM)) {
      const key = directive.slice(DELETE_FROM.length);
      const current = result[key];
      if (Array.isArray(current) && Array.isArray(value))
        result[key] = current.filter((item) => !value.some((gone) => sameJson(gone, item)));
    } else if (directive.startsWith(ORDER)) {
      const key = directive.slice(ORDER.length);
      const current = result[key];
      if (Array.isArray(current) && Array.isArray(value) && patch[key] === undefined)
        result[key] = ordered(current, value, schema.fields?.[key] ?? {}, []);
    }
  }
}

function mergeLists(original: unknown, patch: unknown[], schema: MergeSchema, order: unknown): unknown[] {
  const base: unknown[] = Array.isArray(original) ? original : [];
  if (schema.set === true) {
    const added = patch.filter((item) => !base.some((old) => sameJson(old, item)));
    return ordered([...base, ...added], order, schema, patch);
  }
  const { key } = schema;
  if (key === undefined) return patch.filter((item) => !(isJson(item) && item['$patch'] !== undefined)).map(clean);
  const elements = patch.filter(isJson);
  if (elements.some((item) => item['$patch'] === 'replace'))
    return elements.filter((item) => item['$patch'] === undefined).map(clean);
  let result = base;
  for (const element of elements) {
    if (element['$patch'] !== 'delete') continue;
    result = result.filter((item) => !(isJson(item) && sameJson(item[key], element[key])));
  }
  result = [...result];
  for (const element of elements) {
    if (element['$patch'] === 'delete') continue;
    const id = element[key];
    if (id === undefined)
      throw badRequest(`map: ${JSON.stringify(element)} does not contain declared merge key: ${key}`);
    const index = result.findIndex((item) => isJson(item) && sameJson(item[key], id));
    const itemSchema: MergeSchema = schema.fields === undefined ? {} : { fields: schema.fields };
    if (index < 0) result.push(mergeMaps({}, element, itemSchema));
    else result[index] = mergeMaps(asMap(result[index]), element, itemSchema);
  }
  return ordered(result, order, schema, patch);
}

/** Puts the elements the order names into that order; others stay behind the element they followed. */
function ordered(items: unknown[], order: unknown, schema: MergeSchema, patch: readonly unknown[]): unknown[] {
  if (!Array.isArray(order)) return items;
  const idOf = (item: unknown): unknown => (schema.key !== undefined && isJson(item) ? item[schema.key] : item);
  for (const item of patch) {
    if (isJson(item) && item['$patch'] !== undefined) continue;
    if (!order.some((wanted) => sameJson(idOf(wanted), idOf(item))))
      throw badRequest('The order in patch list does not match $setElementOrder list');
  }
  const rank = (item: unknown): number => order.findIndex((wanted) => sameJson(idOf(wanted), idOf(item)));
  const ranked = items.map((item, index) => ({ item, index, rank: rank(item) }));
  const named = ranked.filter((r) => r.rank >= 0).sort((a, b) => a.rank - b.rank);
  const result = named.map((r) => r.item);
  for (const stray of ranked.filter((r) => r.rank < 0)) {
    const before = ranked[stray.index - 1];
    const at = before === undefined ? -1 : result.indexOf(before.item);
    result.splice(at + 1, 0, stray.item);
  }
  return result;
}

function withoutDirectives(patch: Json): Json {
  return Object.fromEntries(
    Object.entries(patch)
      .filter(([key]) => !key.startsWith('$') && key !== '__proto__')
      .map(([key, value]) => [key, clean(value)]),
  );
}

function clean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(clean);
  return isJson(value) ? withoutDirectives(value) : value;
}
