// What is put in a place: nothing, one, as much as the API server takes, as much as etcd takes, and what is made to hurt.
// Pure. A value is made when it is needed; its name and the seed repeat it.
import type { Shape } from './shapes.ts';

export type Value = {
  readonly name: string;
  /** Large ones are rare in a run: each costs everybody a pass over it. */
  readonly large: boolean;
  readonly make: () => unknown;
};

/** A pod that etcd takes has no more text. */
const ETCD_BYTES = 1_400_000;
/** The limits of the API server: of a label, of a name, of an annotation's key, of a termination message's path. */
const API_LIMITS = [63, 253, 317, 4096];
const MANY = 100_000;
const DEEP = 100_000;

/** Stands for a byte that is not UTF-8, and is replaced where the text becomes bytes. */
export const BAD_BYTE = '\ue0ff';

/** Text that is put into JSON as it stands: `JSON.stringify` has no duplicate keys and no deep nesting. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const FILLINGS: readonly string[] = [
  '$(',
  '$(A)',
  '$$',
  '/',
  '../',
  'a-',
  'a.',
  'secret "',
  '"',
  "'",
  '\\',
  '\n',
  '\r\n',
  '\u0000',
  '\u001b[2J',
  '\u007f',
  '\ud800',
  '\udc00x',
  BAD_BYTE,
  '\u2028',
  'é',
  '💥',
  '{{',
  '%s',
  '<b>',
  '&a *a ',
  '0',
  '-',
  '1e',
  ' ',
  ': ',
  ',',
  '=',
  '@',
  '[',
  'aws://',
  'x',
];

const value = (name: string, make: () => unknown, large = false): Value => ({ name, large, make });
const shown = (filling: string): string => JSON.stringify(filling).slice(1, -1);

const TEXTS: readonly Value[] = [
  value('empty', () => ''),
  ...['a', '.', '..', '__proto__', 'constructor', 'null', '~'].map((text) => value(`"${text}"`, () => text)),
  ...API_LIMITS.flatMap((n) => [n, n + 1].map((size) => value(`${size} × a`, () => 'a'.repeat(size)))),
  ...FILLINGS.flatMap((filling) => [
    value(`one ${shown(filling)}`, () => filling),
    value(`100 × ${shown(filling)}`, () => filling.repeat(100)),
    value(`10 kB of ${shown(filling)}`, () => filling.repeat(10_000 / filling.length)),
    value(`1.4 MB of ${shown(filling)}`, () => filling.repeat(ETCD_BYTES / Buffer.byteLength(filling)), true),
  ]),
];

const LONG_NUMBER = '9'.repeat(400);
const NUMBERS: readonly Value[] = [
  ...[0, 1, -1, 0.5, -0, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 53, 2 ** 63, -(2 ** 63), 1e300].map((n) =>
    value(String(n), () => n),
  ),
  value('400 digits', () => new RawJson(LONG_NUMBER)),
  value('1e400', () => new RawJson('1e400')),
  value('1 MB of digits', () => new RawJson('9'.repeat(1_000_000)), true),
];

const QUANTITIES: readonly Value[] = [
  ...['0', '1', '-1', '1e999', '1E', '1Ei', '0.0000000001', '1e-400', '99999999999999999999Ei', '+1', '１'].map(
    (text) => value(`"${text}"`, () => text),
  ),
  value('400 digits', () => LONG_NUMBER),
  value('1.4 MB of digits', () => '9'.repeat(ETCD_BYTES), true),
  value('1.4 MB of decimals', () => `0.${'0'.repeat(ETCD_BYTES)}1`, true),
  value('an exponent of 1.4 MB', () => `1e${'9'.repeat(ETCD_BYTES)}`, true),
];

const TIMES: readonly Value[] = [
  ...['', '0', 'yesterday', '9999-12-31T23:59:59Z', '-000001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'].map((text) =>
    value(`"${text}"`, () => text),
  ),
  value('1.4 MB of 0', () => '0'.repeat(ETCD_BYTES), true),
];

const DURATIONS: readonly Value[] = [
  ...['0s', '-1s', '1ns', '1e9h', '999999999h', 's', '1', '.s', '1h1h1h'].map((text) => value(`"${text}"`, () => text)),
  value('1 MB of 1h', () => '1h'.repeat(500_000), true),
];

/** What no schema allows here. */
const WRONG: readonly Value[] = [
  value('null', () => null),
  value('true', () => true),
  value('a number', () => 7),
  value('a text', () => 'text'),
  value('a list', () => [null]),
  value('an object', () => ({ a: {} })),
  value('a key __proto__', () => new RawJson('{"__proto__":{"polluted":true}}')),
  value(`${DEEP} lists in each other`, () => new RawJson(`${'['.repeat(DEEP)}${']'.repeat(DEEP)}`), true),
  value(`${DEEP} objects in each other`, () => new RawJson(`${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`), true),
];

const rawList = (item: string, count: number): RawJson => new RawJson(`[${Array<string>(count).fill(item).join(',')}]`);

/** Every field that has a value of its own, nothing else. */
function smallest(shape: Shape): unknown {
  switch (shape.kind) {
    case 'list':
      return [];
    case 'map':
      return {};
    case 'object':
      return Object.fromEntries(
        shape
          .fields()
          .filter((f) => f.required)
          .map((f) => [f.name, smallest(f.shape)]),
      );
    case 'number':
    case 'port':
      return 1;
    case 'bool':
      return true;
    default:
      return 'x';
  }
}

function lists(of: Shape): Value[] {
  const item = JSON.stringify(smallest(of));
  const full = Math.floor(ETCD_BYTES / (item.length + 1));
  return [
    value('empty', () => []),
    value('one', () => rawList(item, 1)),
    value('a hole', () => [null]),
    value('100 equal', () => rawList(item, 100)),
    value('1000 different', () => Array.from({ length: 1000 }, (_, i) => named(smallest(of), i))),
    value(`${full} equal`, () => rawList(item, full), true),
    value(`${full >> 1} different`, () => Array.from({ length: full >> 1 }, (_, i) => named(smallest(of), i)), true),
  ];
}

function maps(of: Shape): Value[] {
  const item = JSON.stringify(smallest(of));
  const keyed = (count: number, key: (i: number) => string): RawJson =>
    new RawJson(`{${Array.from({ length: count }, (_, i) => `${JSON.stringify(key(i))}:${item}`).join(',')}}`);
  return [
    value('empty', () => ({})),
    value('one', () => keyed(1, () => 'k')),
    value(`${MANY} equal keys`, () => keyed(MANY, () => 'k'), true),
    value(`${MANY} keys`, () => keyed(MANY, (i) => i.toString(36)), true),
    value('a key of 1.4 MB', () => keyed(1, () => 'k'.repeat(ETCD_BYTES)), true),
    ...FILLINGS.map((filling) => value(`a key ${shown(filling)}`, () => keyed(1, () => filling.toWellFormed()))),
  ];
}

/** The first text or number in it tells it from the others. */
function named(item: unknown, i: number): unknown {
  if (typeof item === 'string') return `x${i.toString(36)}`;
  if (typeof item === 'number') return i;
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return item;
  const [key] = Object.keys(item);
  return key === undefined ? item : { ...item, [key]: named((item as Record<string, unknown>)[key], i) };
}

/** Unions: all members at once, and none. */
const objects = (shape: Extract<Shape, { kind: 'object' }>): Value[] => [
  value('no field', () => ({})),
  value('every field', () => Object.fromEntries(shape.fields().map((f) => [f.name, smallest(f.shape)]))),
];

function own(shape: Shape): readonly Value[] {
  switch (shape.kind) {
    case 'list':
      return lists(shape.of);
    case 'map':
      return maps(shape.of);
    case 'object':
      return objects(shape);
    case 'number':
      return NUMBERS;
    case 'quantity':
      return [...QUANTITIES, ...TEXTS];
    case 'time':
      return TIMES;
    case 'duration':
      return DURATIONS;
    case 'port':
      return [...NUMBERS, ...TEXTS];
    case 'bool':
      return [value('true', () => true), value('false', () => false)];
    default:
      return TEXTS;
  }
}

/** `typed`: where only what the schema allows can be said, as in protobuf. */
export const valuesOf = (shape: Shape, typed = false): readonly Value[] =>
  typed ? own(shape) : [...own(shape), ...WRONG];

const MARK = '\ue0fe';

/** JSON with raw parts, as bytes. */
export function jsonBytes(input: unknown): Buffer {
  const raw: string[] = [];
  const text = JSON.stringify(input, (_, part: unknown) =>
    part instanceof RawJson ? `${MARK}${raw.push(part.text) - 1}${MARK}` : part,
  );
  const parts = text.split(new RegExp(`"?${MARK}"?`));
  return textBytes(parts.map((part, i) => (i % 2 === 0 ? part : (raw[Number(part)] ?? ''))).join(''));
}

/** Text whose bad bytes are bad bytes. */
export function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (!text.includes(BAD_BYTE)) return bytes;
  const bad = Buffer.from(BAD_BYTE);
  for (let at = bytes.indexOf(bad); at >= 0; at = bytes.indexOf(bad, at + bad.length))
    bytes.fill(0xff, at, at + bad.length);
  return bytes;
}
