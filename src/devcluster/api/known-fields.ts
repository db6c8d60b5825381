// Which fields a kind has, read from the same tables as the protobuf form. What nobody knows is taken out and reported;
// nulls count as absent, but for times that are shown as null. Empty values mean nothing unless a field is a pointer.
import { isJson, type Json } from './objects.ts';
import { jsonFields, messageOfKind, type Element, type Field } from './schema/messages.ts';

const known = new Map<string, ReadonlyMap<string, Field>>();

function knownOf(message: string): ReadonlyMap<string, Field> {
  let found = known.get(message);
  if (found === undefined) {
    found = new Map(jsonFields(message).map((field) => [field.name, field]));
    known.set(message, found);
  }
  return found;
}

/** Kinds that are part of others, and may say so there too. */
const EMBEDDED = new Set(['PersistentVolumeClaim']);
const isTypeMeta = (name: string): boolean => name === 'apiVersion' || name === 'kind';

const isNullable = ({ shape, element }: Field): boolean =>
  shape === 'one' && (element.kind === 'time' || element.kind === 'microTime');

/** Takes out of `body` (in place) what its kind does not have; gives the paths of what was there for nothing. */
export function dropUnknownFields(body: Json, apiVersion: string, kind: string): readonly string[] {
  const message = messageOfKind(apiVersion, kind);
  if (message === undefined) return [];
  const unknown: string[] = [];
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = body;
  walk(rest, message, '', unknown);
  for (const key of Object.keys(body)) if (!(key in rest) && key !== 'kind' && key !== 'apiVersion') delete body[key];
  return unknown;
}

function walk(value: Json, message: string, path: string, unknown: string[]): void {
  const fields = knownOf(message);
  for (const [name, inner] of Object.entries(value)) {
    const field = fields.get(name);
    if (field === undefined) {
      if (isTypeMeta(name) && EMBEDDED.has(message) && path !== '') continue;
      // Kept apart from the API by clients of all ages.
      if (!(path === 'metadata' && (name === 'managedFields' || name === 'selfLink'))) unknown.push(join(path, name));
      delete value[name];
    } else if (inner === null) {
      if (!isNullable(field)) delete value[name];
    } else visit(inner, field, join(path, name), unknown);
  }
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

function visit(value: unknown, { shape, element }: Field, path: string, unknown: string[]): void {
  if (shape === 'one') visitOne(value, element, path, unknown);
  else if (shape === 'list') {
    if (Array.isArray(value)) value.forEach((item, i) => visitOne(item, element, `${path}[${i}]`, unknown));
  } else if (isJson(value))
    for (const [key, item] of Object.entries(value)) visitOne(item, element, `${path}.${key}`, unknown);
}

function visitOne(value: unknown, element: Element, path: string, unknown: string[]): void {
  if (element.kind === 'message' && isJson(value)) walk(value, element.message, path, unknown);
}

/** `body` without what the API does not show: fields that are empty and say no more than their absence. */
export function withoutEmptyFields<T extends Json>(body: T, apiVersion: string, kind: string): T {
  const message = messageOfKind(apiVersion, kind);
  return message === undefined ? body : (dropEmpty(body, message) as T);
}

/** Copies only what changes: parts of `value` may be the caller's, or belong to a stored object. */
function dropEmpty(value: Json, message: string): Json {
  const fields = knownOf(message);
  let result = value;
  for (const [name, inner] of Object.entries(value)) {
    const field = fields.get(name);
    if (field === undefined) continue;
    const gone = !field.pointer && !field.always && isEmpty(inner, field);
    const kept = gone ? undefined : dropInside(inner, field);
    if (!gone && kept === inner) continue;
    if (result === value) result = { ...value };
    if (gone) delete result[name];
    else result[name] = kept;
  }
  return result;
}

function dropInside(value: unknown, { shape, element }: Field): unknown {
  if (element.kind !== 'message') return value;
  const one = (item: unknown): unknown => (isJson(item) ? dropEmpty(item, element.message) : item);
  if (shape === 'one') return one(value);
  if (!Array.isArray(value)) return value;
  const items = value.map(one);
  return items.every((item, i) => item === value[i]) ? value : items;
}

function isEmpty(value: unknown, { shape, element }: Field): boolean {
  if (shape !== 'one') return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  // A structure is shown even when nothing is in it; a time that is zero is shown as null.
  return element.kind !== 'message' && (value === '' || value === 0 || value === false);
}
