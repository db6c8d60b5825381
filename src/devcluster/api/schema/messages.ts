// The fields of the built-in kinds: what protobuf bodies are read with, unknown fields are found with and OpenAPI is made
// of. Kept by hand from the wire facts of the API, in tables: `Message: number name type; …`, where `~` instead of a name
// means that the message's fields are its parent's in JSON. Types: s string, i integer, b bool, y bytes, d double,
// m… message, q quantity, t time, u micro time, x int-or-string, r raw JSON, e… list wrapped in a message of its own; before
// them * pointer, [ list, { map from string; behind them ! for fields that JSON shows even when they are empty.
import { CORE } from './core.ts';
import { GROUPS } from './groups.ts';
import { POD } from './pod.ts';
import { VOLUMES } from './volumes.ts';

const SCALARS = {
  s: 'string',
  i: 'integer',
  b: 'bool',
  y: 'bytes',
  d: 'double',
  q: 'quantity',
  t: 'time',
  u: 'microTime',
  x: 'intOrString',
  r: 'json',
} as const;

export type Scalar = (typeof SCALARS)[keyof typeof SCALARS];

export type Element =
  | { readonly kind: Scalar }
  | { readonly kind: 'message'; readonly message: string }
  | { readonly kind: 'wrapped'; readonly of: Element };

export type Field = {
  readonly number: number;
  readonly name: string;
  readonly shape: 'one' | 'list' | 'map';
  readonly element: Element;
  /** Absent and empty are two things. */
  readonly pointer: boolean;
  readonly always: boolean;
  /** Its fields are its parent's in JSON. */
  readonly inline: boolean;
};

function elementOf(type: string): Element {
  const letter = type[0] ?? '';
  if (letter === 'm') return { kind: 'message', message: type.slice(1) };
  if (letter === 'e') return { kind: 'wrapped', of: elementOf(type.slice(1)) };
  if (letter in SCALARS && type.length === 1) return { kind: SCALARS[letter as keyof typeof SCALARS] };
  throw new Error(`no type ${type}`);
}

function fieldOf(text: string): Field {
  const found = /^(\d+) (\S+) ([[{])?(\*)?(\w[\w.]*)(!)?$/.exec(text);
  if (found === null) throw new Error(`no field: ${text}`);
  const [, number, name = '', container, pointer, type = '', always] = found;
  return {
    number: Number(number),
    name,
    shape: container === '[' ? 'list' : container === '{' ? 'map' : 'one',
    element: elementOf(type),
    pointer: pointer !== undefined,
    always: always !== undefined,
    inline: name === '~',
  };
}

const rows = new Map(
  [POD, VOLUMES, CORE, GROUPS]
    .join('')
    .replaceAll(/;\n +/g, '; ')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
);

const parsed = new Map<string, readonly Field[]>();

export const messageNames = (): readonly string[] => [...rows.keys()];

/** The fields of a message as they are on the wire. */
export function wireFields(message: string): readonly Field[] {
  let fields = parsed.get(message);
  if (fields === undefined) {
    const row = rows.get(message);
    if (row === undefined) throw new Error(`no message ${message}`);
    fields = row === '' ? [] : row.split('; ').map(fieldOf);
    parsed.set(message, fields);
  }
  return fields;
}

/** The fields of a message as JSON has them. */
export const jsonFields = (message: string): readonly Field[] =>
  wireFields(message).flatMap((field) =>
    field.inline && field.element.kind === 'message' ? jsonFields(field.element.message) : [field],
  );

/** The message of a kind; undefined for kinds that only exist as JSON here. */
export function messageOfKind(apiVersion: string, kind: string): string | undefined {
  if (kind === 'DeleteOptions') return 'meta.DeleteOptions';
  const group = apiVersion.includes('/') ? `${apiVersion.split(/[./]/)[0] ?? ''}.` : '';
  const name = `${group}${kind}`;
  return rows.has(name) ? name : undefined;
}
