// Which fields a kind has, read from the same table as the protobuf form. What nobody knows is taken out and reported;
// nulls count as absent, but for times that are shown as null.
import { KINDS, MESSAGES } from './gen/wire.ts';
import { isJson, type Json } from './objects.ts';

type Known = { readonly fields: ReadonlyMap<string, string>; readonly nullable: ReadonlySet<string> };

const known = new Map<string, Known>();

function knownOf(message: string): Known {
  let found = known.get(message);
  if (found === undefined) {
    const fields = new Map<string, string>();
    const nullable = new Set<string>();
    for (const part of (MESSAGES[message] ?? '').split('; ')) {
      const [, name = '', raw = ''] = part.split(' ');
      const type = raw.replace(/!$/, '');
      if (name === '~') {
        const inner = knownOf(type.slice(type.indexOf('m') + 1));
        for (const [field, of] of inner.fields) fields.set(field, of);
        for (const field of inner.nullable) nullable.add(field);
      } else {
        fields.set(name, type);
        if (/^\*?[tu]$/.test(type)) nullable.add(name);
      }
    }
    found = { fields, nullable };
    known.set(message, found);
  }
  return found;
}

/** Takes out of `body` (in place) what its kind does not have; gives the paths of what was there for nothing. */
export function dropUnknownFields(body: Json, apiVersion: string, kind: string): readonly string[] {
  const message = KINDS[`${apiVersion} ${kind}`];
  if (message === undefined) return [];
  const unknown: string[] = [];
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = body;
  walk(rest, message, '', unknown);
  for (const key of Object.keys(body)) if (!(key in rest) && key !== 'kind' && key !== 'apiVersion') delete body[key];
  return unknown;
}

function walk(value: Json, message: string, path: string, unknown: string[]): void {
  const { fields, nullable } = knownOf(message);
  for (const [name, inner] of Object.entries(value)) {
    const type = fields.get(name);
    if (type === undefined) {
      // Kept apart from the API by clients of all ages.
      if (!(path === 'metadata' && (name === 'managedFields' || name === 'selfLink'))) unknown.push(join(path, name));
      delete value[name];
    } else if (inner === null) {
      if (!nullable.has(name)) delete value[name];
    } else visit(inner, type, join(path, name), unknown);
  }
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

function visit(value: unknown, type: string, path: string, unknown: string[]): void {
  if (type.startsWith('*')) visit(value, type.slice(1), path, unknown);
  else if (type.startsWith('[')) {
    if (Array.isArray(value)) value.forEach((item, i) => visit(item, type.slice(1), `${path}[${i}]`, unknown));
  } else if (type.startsWith('{')) {
    if (isJson(value))
      for (const [key, item] of Object.entries(value)) visit(item, type.slice(1), `${path}.${key}`, unknown);
  } else if (type.startsWith('m') && isJson(value)) walk(value, type.slice(1), path, unknown);
}
