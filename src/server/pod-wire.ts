// A pod in protobuf, made from its JSON form. What JSON names is sent, zero or not: many fields tell zero from absent.
import { Writer } from '../lib/proto/writer.ts';
import type { Pod } from '../core/pod.ts';
import { POD_MESSAGES } from './pod-wire-table.ts';

type Field = {
  readonly no: number;
  readonly name: string;
  readonly type: string;
  readonly many: '' | '*' | '%';
  /** Its fields are those of the object itself. */
  readonly inline: boolean;
};

const VARINT = 0;
const BYTES = 2;

let messages: ReadonlyMap<string, readonly Field[]> | undefined;

/** Read when the first pod is sent: most nodes never do. */
function fieldsOf(message: string): readonly Field[] | undefined {
  messages ??= new Map(
    POD_MESSAGES.trim()
      .split('\n')
      .map((line) => {
        const [name = '', ...fields] = line.split(' ');
        return [name, fields.map(fieldOf)];
      }),
  );
  return messages.get(message);
}

function fieldOf(text: string): Field {
  const [no = '', field = '', kind = 's'] = text.split(':');
  const last = kind.at(-1);
  const many = last === '*' || last === '%' ? last : '';
  const inline = field.startsWith('^');
  return {
    no: Number(no),
    name: inline ? field.slice(1) : field,
    type: many === '' ? kind : kind.slice(0, -1),
    many,
    inline,
  };
}

export function encodePod(pod: Pod): Buffer {
  return message('Pod', pod);
}

function message(type: string, value: unknown): Buffer {
  const writer = new Writer();
  const fields = fieldsOf(type);
  if (fields === undefined) special(writer, type, value);
  else if (isRecord(value)) for (const field of fields) write(writer, field, value);
  return writer.finish();
}

function write(writer: Writer, field: Field, owner: Readonly<Record<string, unknown>>): void {
  const value = field.inline ? owner : owner[field.name];
  if (value === undefined || value === null) return;
  if (field.many === '') one(writer, field.no, field.type, value, field.name);
  else if (field.many === '*') {
    if (Array.isArray(value)) for (const item of value) one(writer, field.no, field.type, item, field.name);
  } else if (isRecord(value))
    for (const [key, item] of Object.entries(value)) {
      const entry = new Writer();
      one(entry, 1, 's', key);
      one(entry, 2, field.type, item);
      writer.varint((field.no << 3) | BYTES);
      writer.bytes(entry.finish());
    }
}

function one(writer: Writer, no: number, type: string, value: unknown, name = type): void {
  writer.varint((no << 3) | (type === 'i' || type === 'b' ? VARINT : BYTES));
  if (type === 's') writer.string(String(value));
  else if (type === 'i') writer.whole('int64', Number(value), name);
  else if (type === 'b') writer.varint(value === true ? 1 : 0);
  else if (type === 'y') writer.bytes(Buffer.from(String(value), 'base64'));
  else writer.bytes(message(type, value));
}

/** Messages that JSON writes in another way. */
function special(writer: Writer, type: string, value: unknown): void {
  switch (type) {
    case 'Quantity':
      return one(writer, 1, 's', value);
    case 'FieldsV1':
      return one(writer, 1, 's', JSON.stringify(value));
    case 'IntOrString':
      one(writer, 1, 'i', typeof value === 'number' ? 0 : 1);
      return one(writer, typeof value === 'number' ? 2 : 3, typeof value === 'number' ? 'i' : 's', value);
    case 'Time': {
      const text = String(value);
      const ms = Date.parse(text);
      const nanos = Number((/\.(\d{1,9})/.exec(text)?.[1] ?? '').padEnd(9, '0'));
      one(writer, 1, 'i', Math.floor((Number.isNaN(ms) ? 0 : ms) / 1000));
      return one(writer, 2, 'i', nanos);
    }
    default:
      throw new Error(`pods have no message ${type}`);
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
