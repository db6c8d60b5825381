// Turns the JSON of a configuration file into checked wire values, field by field after the schema. A wrong type is
// fatal; an unknown or repeated field is only reported, as upstream falls back to lenient decoding for those.
import { tryParseDuration } from '../core/duration.ts';
import { canonicalQuantity, tryParseQuantity } from '../core/quantity.ts';
import type { Field, Fields, Json, JsonObject, LeafKind } from './schema.ts';

export type Problem = { readonly path: string; readonly message: string };
export type Decoded = {
  readonly value: JsonObject;
  /** Unknown fields: the file still counts. */
  readonly unknown: readonly Problem[];
  /** Wrong types: the file is refused. */
  readonly errors: readonly Problem[];
};

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

export function decodeFields(
  fields: Fields,
  input: JsonObject,
  nearest: (name: string) => string | undefined,
): Decoded {
  const walk = new Walk(nearest);
  const value = walk.object(fields, input, '');
  return { value, unknown: walk.unknown, errors: walk.errors };
}

class Walk {
  readonly unknown: Problem[] = [];
  readonly errors: Problem[] = [];
  readonly #nearest: (name: string) => string | undefined;

  constructor(nearest: (name: string) => string | undefined) {
    this.#nearest = nearest;
  }

  object(fields: Fields, input: JsonObject, at: string): JsonObject {
    const out: Record<string, Json> = {};
    for (const [name, raw] of Object.entries(input)) {
      const path = at === '' ? name : `${at}.${name}`;
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (field === undefined) {
        const hint = at === '' ? this.#nearest(name) : undefined;
        this.unknown.push({
          path,
          message: `unknown field "${path}"${hint === undefined ? '' : `, did you mean "${hint}"?`}`,
        });
        continue;
      }
      if (raw === null) continue;
      const value = this.#field(field, raw, path);
      if (value !== undefined) out[name] = value;
    }
    return out;
  }

  #field(field: Field, raw: Json, path: string): Json | undefined {
    if (field.kind === 'object') {
      if (isObject(raw)) return this.object(field.fields, raw, path);
      return this.#wrong(path, 'a map of fields', raw);
    }
    if (field.kind === 'objects') {
      if (!isList(raw)) return this.#wrong(path, 'a list of maps', raw);
      return raw.flatMap((item, i) => {
        const value = this.#field(
          { kind: 'object', fields: field.fields, nullable: false, omitEmpty: false },
          item,
          `${path}[${i}]`,
        );
        return value === undefined ? [] : [value];
      });
    }
    return this.#leaf(field.kind, raw, path);
  }

  #leaf(kind: LeafKind, raw: Json, path: string): Json | undefined {
    switch (kind) {
      case 'bool':
        return typeof raw === 'boolean' ? raw : this.#wrong(path, 'true or false', raw);
      case 'int32':
        return this.#whole(raw, path, -(2 ** 31), 2 ** 31 - 1);
      case 'uint32':
        return this.#whole(raw, path, 0, 2 ** 32 - 1);
      case 'int64':
        return this.#whole(raw, path, -(2 ** 63), 2 ** 63);
      case 'float':
        return typeof raw === 'number' ? raw : this.#wrong(path, 'a number', raw);
      case 'string':
        return typeof raw === 'string' ? raw : this.#wrong(path, 'a string', raw);
      case 'duration':
        return this.#duration(raw, path);
      case 'quantity':
        return this.#quantity(raw, path);
      case 'strings':
        return this.#list(raw, path, 'string');
      case 'int32s':
        return this.#list(raw, path, 'int32');
      case 'stringMap':
        return this.#map(raw, path, 'string');
      case 'boolMap':
        return this.#map(raw, path, 'bool');
      case 'stringsMap':
        return this.#map(raw, path, 'strings');
      default:
        return kind satisfies never;
    }
  }

  #whole(raw: Json, path: string, min: number, max: number): number | undefined {
    if (typeof raw !== 'number' || !Number.isInteger(raw)) return this.#wrong(path, 'a whole number', raw);
    if (raw < min || raw > max) return this.#wrong(path, `a whole number from ${min} to ${max}`, raw);
    return raw;
  }

  #duration(raw: Json, path: string): string | undefined {
    // The log flush frequency may be given as a count of nanoseconds.
    if (typeof raw === 'number' && Number.isInteger(raw) && path === 'logging.flushFrequency') return `${raw}ns`;
    if (raw === '') return '0s';
    if (typeof raw === 'string' && tryParseDuration(raw) !== undefined) return raw;
    return this.#wrong(path, 'a duration such as "1m30s"', raw);
  }

  #quantity(raw: Json, path: string): string | undefined {
    const text = typeof raw === 'number' ? String(raw) : raw;
    if (typeof text === 'string' && tryParseQuantity(text) !== undefined) return canonicalQuantity(text);
    return this.#wrong(path, 'a quantity such as "64Ki"', raw);
  }

  #list(raw: Json, path: string, item: LeafKind): Json | undefined {
    if (!isList(raw)) return this.#wrong(path, 'a list', raw);
    return raw.flatMap((entry, i) => {
      const value = this.#leaf(item, entry ?? '', `${path}[${i}]`);
      return value === undefined ? [] : [value];
    });
  }

  #map(raw: Json, path: string, item: LeafKind): Json | undefined {
    if (!isObject(raw)) return this.#wrong(path, 'a map', raw);
    const out: Record<string, Json> = {};
    for (const [key, entry] of Object.entries(raw)) {
      const zero = item === 'bool' ? false : item === 'strings' ? [] : '';
      const value = this.#leaf(item, entry ?? zero, `${path}.${key}`);
      if (value !== undefined) define(out, key, value);
    }
    return out;
  }

  #wrong(path: string, wanted: string, raw: Json): undefined {
    this.errors.push({ path, message: `${path}: expected ${wanted}, got ${describe(raw, path)}` });
    return undefined;
  }
}

/** Sets a key that came from outside: `__proto__` is a key like any other. */
export function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Fields whose values are credentials. */
const SECRET_FIELDS = /^staticPodURL(Header)?\b/;

function describe(raw: Json, path: string): string {
  if (raw === null) return 'nothing';
  if (isList(raw)) return 'a list';
  if (isObject(raw)) return 'a map';
  if (SECRET_FIELDS.test(path)) return `a ${typeof raw}`;
  if (typeof raw === 'string') return `the string ${JSON.stringify(raw.length > 60 ? `${raw.slice(0, 60)}…` : raw)}`;
  return `${typeof raw === 'number' ? 'the number' : 'the boolean'} ${raw}`;
}
