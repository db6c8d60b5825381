// Request bodies in the protobuf form, which newer kubectl and Go kubelets send: turned into the JSON everything else
// works on. Answers stay JSON; those clients accept both.
import { badRequest } from './api-error.ts';
import type { Json } from './objects.ts';
import { messageOfKind, wireFields, type Element, type Field } from './schema/messages.ts';

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';
const MAGIC = Buffer.from('k8s\0');

const numbered = new Map<string, ReadonlyMap<number, Field>>();

function fieldsOf(message: string): ReadonlyMap<number, Field> {
  let fields = numbered.get(message);
  if (fields === undefined) {
    fields = new Map(wireFields(message).map((field) => [field.number, field]));
    numbered.set(message, fields);
  }
  return fields;
}

type Value = { readonly number: number; readonly varint: bigint; readonly bytes: Buffer };

/** The fields of one message, in order. */
function* values(bytes: Buffer): Generator<Value> {
  let at = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw badRequest('the protobuf body ends early');
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw badRequest('a number in the protobuf body is too long');
  };
  const NONE = Buffer.alloc(0);
  const take = (size: number): Buffer => {
    if (at + size > bytes.length) throw badRequest('the protobuf body ends early');
    at += size;
    return bytes.subarray(at - size, at);
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const number = key >> 3;
    switch (key & 7) {
      case 0:
        yield { number, varint: varint(), bytes: NONE };
        break;
      case 1:
        yield { number, varint: 0n, bytes: take(8) };
        break;
      case 2:
        yield { number, varint: 0n, bytes: take(Number(varint())) };
        break;
      case 5:
        yield { number, varint: 0n, bytes: take(4) };
        break;
      default:
        throw badRequest('the protobuf body is malformed');
    }
  }
}

const first = (bytes: Buffer, number: number): Value | undefined => {
  for (const value of values(bytes)) if (value.number === number) return value;
  return undefined;
};

function decodeMessage(message: string, bytes: Buffer): Json {
  const result: Json = {};
  const fields = fieldsOf(message);
  for (const value of values(bytes)) {
    const field = fields.get(value.number);
    if (field === undefined) continue;
    const { name, element, shape } = field;
    if (field.inline) Object.assign(result, decodeValue(element, value));
    else if (shape === 'list') result[name] = [...listOf(result[name]), decodeValue(element, value)];
    else if (shape === 'map') {
      const key = first(value.bytes, 1)?.bytes.toString() ?? '';
      const inner = first(value.bytes, 2) ?? { number: 2, varint: 0n, bytes: Buffer.alloc(0) };
      result[name] = { ...(result[name] as Json | undefined), [key]: decodeValue(element, inner) };
    } else {
      const decoded = decodeValue(element, value);
      // Go writes plain fields even when they are empty; only pointers mean what they say.
      if (field.pointer || field.always || !isEmpty(decoded)) result[name] = decoded;
    }
  }
  return result;
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const isEmpty = (value: unknown): boolean =>
  value === '' ||
  value === 0 ||
  value === false ||
  value === null ||
  (typeof value === 'object' && Object.keys(value).length === 0);

function decodeValue(element: Element, value: Value): unknown {
  switch (element.kind) {
    case 'string':
      return value.bytes.toString();
    case 'integer':
      return Number(BigInt.asIntN(64, value.varint));
    case 'bool':
      return value.varint !== 0n;
    case 'bytes':
      return value.bytes.toString('base64');
    case 'double':
      return value.bytes.readDoubleLE(0);
    case 'quantity':
      return first(value.bytes, 1)?.bytes.toString() ?? '0';
    case 'time':
      return timeOf(value.bytes, 0);
    case 'microTime':
      return timeOf(value.bytes, 6);
    case 'intOrString': {
      const isText = first(value.bytes, 1)?.varint === 1n;
      return isText
        ? (first(value.bytes, 3)?.bytes.toString() ?? '')
        : Number(BigInt.asIntN(32, first(value.bytes, 2)?.varint ?? 0n));
    }
    case 'json':
      return JSON.parse(first(value.bytes, 1)?.bytes.toString() ?? 'null') as unknown;
    case 'wrapped':
      return [...values(value.bytes)].filter((v) => v.number === 1).map((v) => decodeValue(element.of, v));
    case 'message':
      return decodeMessage(element.message, value.bytes);
    default:
      return element satisfies never;
  }
}

/** The zero time is null. */
function timeOf(bytes: Buffer, digits: number): string | null {
  const seconds = BigInt.asIntN(64, first(bytes, 1)?.varint ?? 0n);
  const nanos = Number(first(bytes, 2)?.varint ?? 0n);
  if (bytes.length === 0 || seconds === -62_135_596_800n) return null;
  const text = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${text}${digits === 0 ? '' : `.${String(nanos).padStart(9, '0').slice(0, digits)}`}Z`;
}

/** The object in a protobuf body: four magic bytes, then an envelope that names its type. */
export function decodeProtobuf(body: Buffer): Json {
  if (!body.subarray(0, 4).equals(MAGIC)) throw badRequest('the protobuf body has no type prefix');
  const envelope = body.subarray(4);
  const type = first(envelope, 1)?.bytes ?? Buffer.alloc(0);
  const raw = first(envelope, 2)?.bytes ?? Buffer.alloc(0);
  const apiVersion = first(type, 1)?.bytes.toString() ?? '';
  const kind = first(type, 2)?.bytes.toString() ?? '';
  const message = messageOfKind(apiVersion, kind);
  if (message === undefined) throw badRequest(`no protobuf form is known of ${kind} in ${apiVersion}`);
  return { kind, apiVersion, ...decodeMessage(message, raw) };
}
