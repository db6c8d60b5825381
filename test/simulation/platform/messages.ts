// A gRPC message on its way from one side to the other: what `decode(encode(message))` gives, without the bytes. Most of what
// a node says to its runtime are lists of all pods, many times an hour. Now and then a message goes by the codec, too, and
// must come out the same.
import { isDeepStrictEqual } from 'node:util';
import { decode, encode, type FieldSpec, type MessageSpec, type MessageType } from '../../../src/lib/proto/codec.ts';

/** So many messages of each type are checked at first, then one in so many. */
const CHECKED_FIRST = 3;
const CHECKED_EVERY = 500;

const seen = new Map<MessageSpec, number>();

/** The other side's own copy. */
export function passOn<T>(type: MessageType<T>, message: T): T {
  const { spec } = type;
  const count = (seen.get(spec) ?? 0) + 1;
  seen.set(spec, count);
  const copy = copyOf(spec, message as Message) as T;
  if (
    (count <= CHECKED_FIRST || count % CHECKED_EVERY === 0) &&
    !isDeepStrictEqual(copy, decode(type, encode(type, message)))
  )
    void Promise.reject(new Error(`a copy of ${spec.name} differs from what the codec makes of it`)); // ends the run
  return copy;
}

type Message = Record<string, unknown>;

const EMPTY = new Uint8Array(0);

function copyOf(spec: MessageSpec, message: Message): Message {
  const out: Message = {};
  const fields = spec.fields();
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i] as FieldSpec;
    const value = valueOf(field, message[field.name]);
    if (value !== undefined) out[field.name] = value;
  }
  return out;
}

function valueOf(field: FieldSpec, given: unknown): unknown {
  const { type } = field;
  if (field.repeated === true) return ((given ?? []) as unknown[]).map((item) => one(type, item));
  if (type === 'map') return mapOf((given ?? {}) as Record<string, string>);
  if (given !== undefined && given !== null) return one(type, given);
  return typeof type === 'string' ? ZERO[type] : undefined;
}

const ZERO: Readonly<Record<string, unknown>> = {
  string: '',
  bytes: EMPTY,
  bool: false,
  bigint64: 0n,
  fixed64: 0n,
  int32: 0,
  int64: 0,
  uint32: 0,
  uint64: 0,
  enum: 0,
  double: 0,
};

function one(type: FieldSpec['type'], value: unknown): unknown {
  if (typeof type !== 'string') return copyOf(type, value as Message);
  switch (type) {
    case 'string':
      return (value as string).isWellFormed() ? value : (value as string).toWellFormed();
    case 'bytes':
      return (value as Uint8Array).length === 0 ? EMPTY : Buffer.from(value as Uint8Array);
    case 'bool':
      return value === true;
    case 'double':
      return value;
    case 'bigint64':
      return BigInt.asIntN(64, value as bigint);
    case 'fixed64':
      return BigInt.asUintN(64, value as bigint);
    case 'int32':
      return Math.trunc(value as number) | 0;
    default:
      return Math.trunc(value as number) + 0; // there is no -0 on the wire
  }
}

function mapOf(given: Record<string, string>): Record<string, string> {
  const map: Record<string, string> = {};
  for (const key of Object.keys(given)) map[key] = given[key] ?? '';
  return map;
}
