// What can stand where: the shapes of an input, read from the schemas that the project has anyway (the API's messages, the
// fields of the KubeletConfiguration, the messages of gRPC), and every place in them. Pure.
import type { Field as ConfigField, Fields as ConfigFields } from '../../src/config/schema.ts';
import { jsonFields, type Element, type Field } from '../../src/devcluster/api/schema/messages.ts';
import type { FieldSpec, MessageSpec } from '../../src/lib/proto/codec.ts';

export type Leaf = 'text' | 'bytes' | 'number' | 'bool' | 'quantity' | 'time' | 'port' | 'duration' | 'json';
export type Shape =
  | { readonly kind: Leaf }
  | { readonly kind: 'list' | 'map'; readonly of: Shape }
  | { readonly kind: 'object'; readonly name: string; readonly fields: () => readonly NamedShape[] };
export type NamedShape = {
  readonly name: string;
  readonly shape: Shape;
  /** An object without it means nothing. */
  readonly required: boolean;
};

export type Path = readonly (string | number)[];
export type Place = { readonly path: Path; readonly shape: Shape };

const API_LEAVES: Readonly<Record<Exclude<Element['kind'], 'message' | 'wrapped'>, Leaf>> = {
  string: 'text',
  integer: 'number',
  bool: 'bool',
  bytes: 'bytes',
  double: 'number',
  quantity: 'quantity',
  time: 'time',
  microTime: 'time',
  intOrString: 'port',
  json: 'json',
};

/** A message of the API, as JSON has it. */
export const apiShape = (message: string): Shape => ({
  kind: 'object',
  name: message,
  fields: () =>
    jsonFields(message).map((field) => ({ name: field.name, shape: ofField(field), required: field.always })),
});

function ofElement(element: Element): Shape {
  if (element.kind === 'message') return apiShape(element.message);
  if (element.kind === 'wrapped') return { kind: 'list', of: ofElement(element.of) };
  return { kind: API_LEAVES[element.kind] };
}

const ofField = ({ shape, element }: Field): Shape =>
  shape === 'one' ? ofElement(element) : { kind: shape, of: ofElement(element) };

const TEXT: Shape = { kind: 'text' };
const NUMBER: Shape = { kind: 'number' };
const CONFIG_LEAVES: Readonly<Record<Exclude<ConfigField['kind'], 'object' | 'objects'>, Shape>> = {
  bool: { kind: 'bool' },
  int32: NUMBER,
  int64: NUMBER,
  uint32: NUMBER,
  float: NUMBER,
  string: TEXT,
  duration: { kind: 'duration' },
  quantity: { kind: 'quantity' },
  strings: { kind: 'list', of: TEXT },
  int32s: { kind: 'list', of: NUMBER },
  stringMap: { kind: 'map', of: TEXT },
  boolMap: { kind: 'map', of: { kind: 'bool' } },
  stringsMap: { kind: 'map', of: { kind: 'list', of: TEXT } },
};

/** The KubeletConfiguration, or an object in it. */
export const configShape = (name: string, fields: ConfigFields): Shape => ({
  kind: 'object',
  name,
  fields: () =>
    Object.entries(fields).map(([key, field]) => ({ name: key, shape: ofConfig(key, field), required: false })),
});

function ofConfig(name: string, field: ConfigField): Shape {
  if (field.kind === 'object') return configShape(name, field.fields);
  if (field.kind === 'objects') return { kind: 'list', of: configShape(name, field.fields) };
  return CONFIG_LEAVES[field.kind];
}

/** A message of gRPC. */
export const protoShape = (spec: MessageSpec): Shape => ({
  kind: 'object',
  name: spec.name,
  fields: () => spec.fields().map((field) => ({ name: field.name, shape: ofProto(field), required: false })),
});

function ofProto({ type, repeated }: FieldSpec): Shape {
  if (type === 'map') return { kind: 'map', of: TEXT };
  const one: Shape =
    typeof type !== 'string'
      ? protoShape(type)
      : { kind: type === 'string' ? 'text' : type === 'bytes' ? 'bytes' : type === 'bool' ? 'bool' : 'number' };
  return repeated === true ? { kind: 'list', of: one } : one;
}

/** An object of fields that no schema of the project names. */
export const shapeOf = (name: string, fields: Readonly<Record<string, Shape | Leaf>>): Shape => ({
  kind: 'object',
  name,
  fields: () =>
    Object.entries(fields).map(([key, shape]) => ({
      name: key,
      shape: typeof shape === 'string' ? { kind: shape } : shape,
      required: true,
    })),
});

/** Every place; an object that contains itself is entered once. */
export function places(shape: Shape, path: Path = [], entered: readonly string[] = []): Place[] {
  const here = path.length === 0 ? [] : [{ path, shape }];
  switch (shape.kind) {
    case 'list':
      return [...here, ...places(shape.of, [...path, 0], entered)];
    case 'map':
      return [...here, ...places(shape.of, [...path, 'k'], entered)];
    case 'object': {
      if (entered.includes(shape.name)) return here;
      const within = [...entered, shape.name];
      return [...here, ...shape.fields().flatMap(({ name, shape: inner }) => places(inner, [...path, name], within))];
    }
    default:
      return here;
  }
}

/** What an object needs to mean something; by the name of the field, else by its kind. */
const USUAL: Readonly<Record<string, unknown>> = {
  mountPath: '/usual',
  devicePath: '/dev/usual',
  ip: '1.2.3.4',
  path: 'usual',
  fieldPath: 'metadata.name',
  resource: 'limits.cpu',
  operator: 'Exists',
  resourceName: 'cpu',
  restartPolicy: 'NotRequired',
  image: 'usual.invalid/image:1',
  conditionType: 'usual.example/condition',
};

function usual({ name, shape }: NamedShape): unknown {
  if (shape.kind === 'object' || shape.kind === 'list' || shape.kind === 'map') return undefined;
  if (Object.hasOwn(USUAL, name)) return USUAL[name];
  return {
    text: 'usual',
    bytes: '',
    number: 1,
    bool: false,
    quantity: '1',
    time: null,
    port: 80,
    duration: '1s',
    json: {},
  }[shape.kind];
}

/** The sample with a value in one place; objects on the way that are not there yet get what they need. */
export function put(sample: unknown, shape: Shape, [first, ...rest]: Path, value: unknown): unknown {
  if (first === undefined) return value;
  if (shape.kind === 'list') {
    const list = Array.isArray(sample) ? [...(sample as unknown[])] : [];
    list[Number(first)] = put(list[Number(first)], shape.of, rest, value);
    return list;
  }
  const had = sample !== null && typeof sample === 'object' ? (sample as Record<string, unknown>) : undefined;
  if (shape.kind === 'map') return { ...had, [first]: put(had?.[first], shape.of, rest, value) };
  if (shape.kind !== 'object') return value;
  const fields = shape.fields();
  const needed = had ?? Object.fromEntries(fields.filter((f) => f.required).map((f) => [f.name, usual(f)]));
  const inner = fields.find((f) => f.name === first)?.shape ?? { kind: 'json' as const };
  return { ...needed, [first]: put(needed[first], inner, rest, value) };
}
