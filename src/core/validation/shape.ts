// Types of JSON fields: what a typed decoder would refuse. After `conform` the rest of the program may trust the types.
// Nulls count as absent, unknown fields are dropped and reported, numbers in quantities become text.
import type { FieldError } from './field-error.ts';

export type Shape =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'quantity'
  | 'intOrString'
  | 'any'
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly fields: Fields };
export type Fields = { readonly [name: string]: Shape };

export const list = (of: Shape): Shape => ({ list: of });
export const map = (of: Shape): Shape => ({ map: of });
export const object = (fields: Fields): Shape => ({ fields });

export type Conformed = {
  readonly value: unknown;
  readonly errors: readonly FieldError[];
  /** Paths of fields nobody knows. */
  readonly unknown: readonly string[];
};

export function conform(value: unknown, shape: Shape, path = ''): Conformed {
  const walk = new Walk();
  const clean = walk.visit(value, shape, path);
  return { value: clean, errors: walk.errors, unknown: walk.unknown };
}

const INT32 = 2 ** 31;

class Walk {
  readonly errors: FieldError[] = [];
  readonly unknown: string[] = [];

  visit(value: unknown, shape: Shape, path: string): unknown {
    if (typeof shape === 'string') return this.#scalar(value, shape, path);
    if ('list' in shape) {
      if (!Array.isArray(value)) return this.#wrong(value, 'a list', path);
      return value.map((entry: unknown, i) => this.visit(entry, shape.list, `${path}[${i}]`));
    }
    if (!isRecord(value)) return this.#wrong(value, 'an object', path);
    return 'map' in shape ? this.#map(value, shape.map, path) : this.#object(value, shape.fields, path);
  }

  #map(value: Readonly<Record<string, unknown>>, of: Shape, path: string): unknown {
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [
        name,
        // A null in a map of texts is an empty text, as typed decoders have it.
        entry === null && of === 'string' ? '' : this.visit(entry, of, `${path}[${name}]`),
      ]),
    );
  }

  #object(value: Readonly<Record<string, unknown>>, fields: Fields, path: string): unknown {
    const known: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const entry = value[name];
      const child = path === '' ? name : `${path}.${name}`;
      const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (shape === undefined) this.unknown.push(child);
      else if (entry !== null && entry !== undefined) known[name] = this.visit(entry, shape, child);
    }
    return known;
  }

  #scalar(value: unknown, shape: Exclude<Shape, object>, path: string): unknown {
    switch (shape) {
      case 'any':
        return value;
      case 'string':
        return typeof value === 'string' ? value : this.#wrong(value, 'a string', path);
      case 'bool':
        return typeof value === 'boolean' ? value : this.#wrong(value, 'true or false', path);
      case 'int32':
        return isInt(value) && value >= -INT32 && value < INT32 ? value : this.#wrong(value, 'a 32 bit integer', path);
      case 'int64':
        return isInt(value) ? value : this.#wrong(value, 'an integer', path);
      case 'quantity':
        if (typeof value === 'number') return String(value);
        return typeof value === 'string' ? value.trim() : this.#wrong(value, 'a quantity', path);
      case 'intOrString':
        return typeof value === 'string' || isInt(value) ? value : this.#wrong(value, 'an integer or a string', path);
      default:
        return shape satisfies never;
    }
  }

  #wrong(value: unknown, expected: string, path: string): undefined {
    this.errors.push({
      field: path === '' ? '.' : path,
      kind: 'Invalid',
      value: typeof value === 'object' ? undefined : value,
      message: `must be ${expected}, not ${nameOf(value)}`,
    });
    return undefined;
  }
}

const isInt = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value);
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'string' ? 'a string' : `a ${typeof value}`;
}
