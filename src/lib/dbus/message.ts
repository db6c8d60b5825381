// Messages: the header with its fields, the body by its signature, and the cutting of a stream of bytes into messages.
import { KubeletError } from '../errors.ts';
import { marshal, writeValue, Writer } from './marshal.ts';
import { parseSignature } from './signature.ts';
import { Reader, unmarshal } from './unmarshal.ts';
import { checkName, Variant, type DBusValue } from './values.ts';

export type MessageKind = 'call' | 'return' | 'error' | 'signal';

export type Message = {
  readonly kind: MessageKind;
  readonly serial: number;
  readonly noReply?: boolean;
  readonly path?: string;
  readonly interface?: string;
  readonly member?: string;
  readonly error?: string;
  readonly replySerial?: number;
  readonly destination?: string;
  readonly sender?: string;
  readonly signature?: string;
  readonly body: readonly DBusValue[];
  /** Open files that came or go with it; `h` values are indexes into these. */
  readonly descriptors: readonly number[];
};

const KINDS: readonly MessageKind[] = ['call', 'return', 'error', 'signal'];
const NO_REPLY = 1;
const LITTLE = 0x6c;
const BIG = 0x42;
const VERSION = 1;
const FIXED_BYTES = 16;
/** The bus allows 128 MiB; nothing we ask for comes near this. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_DESCRIPTORS = 16;

const FIELDS = [
  { code: 1, name: 'path', signature: 'o' },
  { code: 2, name: 'interface', signature: 's' },
  { code: 3, name: 'member', signature: 's' },
  { code: 4, name: 'error', signature: 's' },
  { code: 5, name: 'replySerial', signature: 'u' },
  { code: 6, name: 'destination', signature: 's' },
  { code: 7, name: 'sender', signature: 's' },
  { code: 8, name: 'signature', signature: 'g' },
  { code: 9, name: 'descriptorCount', signature: 'u' },
] as const;
type Fields = { [K in (typeof FIELDS)[number]['name']]?: string | number };

const [FIELDS_TYPE] = parseSignature('a(yv)');

/** What each kind cannot do without. */
const REQUIRED: Readonly<Record<MessageKind, readonly (keyof Fields)[]>> = {
  call: ['path', 'member'],
  return: ['replySerial'],
  error: ['replySerial', 'error'],
  signal: ['path', 'interface', 'member'],
};

export function encodeMessage(message: Message): Buffer {
  const body = message.signature === undefined ? Buffer.alloc(0) : marshal(message.signature, message.body);
  const all: Fields = { ...(message as Fields) };
  if (message.descriptors.length > 0) all.descriptorCount = message.descriptors.length;
  checkFields(message.kind, all);
  const writer = new Writer();
  writer.byte(LITTLE);
  writer.byte(KINDS.indexOf(message.kind) + 1);
  writer.byte(message.noReply === true ? NO_REPLY : 0);
  writer.byte(VERSION);
  writer.uint32(body.length);
  writer.uint32(message.serial);
  const fields = FIELDS.flatMap(({ code, name, signature }) => {
    const value = all[name];
    return value === undefined ? [] : [[code, new Variant(signature, value)]];
  });
  if (FIELDS_TYPE !== undefined) writeValue(writer, FIELDS_TYPE, fields);
  writer.align(8);
  writer.bytes(body);
  const bytes = writer.done();
  if (bytes.length > MAX_MESSAGE_BYTES) throw new KubeletError('invalid', 'D-Bus message is too large');
  return bytes;
}

function checkFields(kind: MessageKind, fields: Fields): void {
  for (const name of REQUIRED[kind])
    if (fields[name] === undefined) throw new KubeletError('invalid', `D-Bus ${kind} without ${name}`);
  for (const name of ['path', 'interface', 'member', 'error', 'destination', 'sender'] as const) {
    const text = fields[name];
    if (typeof text === 'string') checkName(name, text);
  }
}

/** How long the message is that begins here, or undefined when that cannot be said yet. */
export function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < FIXED_BYTES) return undefined;
  const order = bytes[0];
  if (order !== LITTLE && order !== BIG) throw bad('begins with no byte order');
  if (bytes[3] !== VERSION) throw bad('is of another version of the protocol');
  const word = (at: number): number => (order === LITTLE ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  const header = FIXED_BYTES + word(12);
  const total = header + ((8 - (header % 8)) % 8) + word(4);
  if (total > MAX_MESSAGE_BYTES) throw bad('is too large');
  return total;
}

/** One whole message; `takeDescriptors` hands over the files that came with it. */
function decodeMessage(bytes: Buffer, takeDescriptors: (count: number) => readonly number[]): Message | undefined {
  const little = bytes[0] === LITTLE;
  const reader = new Reader(bytes, little);
  const [, kindNumber, flags, , bodyLength, serial] = 'yyyyuu'.split('').map((code) => reader.value(typeOf(code)));
  const fields = FIELDS_TYPE === undefined ? {} : readFields(reader.value(FIELDS_TYPE));
  reader.align(8);
  // The files belong to this message, also to one nobody understands.
  const descriptors = takeDescriptors(Number(fields.descriptorCount ?? 0));
  if (reader.left !== bodyLength) throw bad('has a body of another length');
  if (serial === 0) throw bad('has serial 0');
  const kind = KINDS[Number(kindNumber) - 1];
  if (kind === undefined) return undefined;
  checkFields(kind, fields);
  const { descriptorCount: _, ...named } = fields;
  const signature = String(fields.signature ?? '');
  const body = unmarshal(signature, bytes.subarray(reader.at), little);
  const noReply = (Number(flags) & NO_REPLY) !== 0;
  return { ...(named as Partial<Message>), kind, serial: Number(serial), noReply, body, descriptors };
}

const typeOf = (code: string) => parseSignature(code)[0] as { code: 'y' };

function readFields(value: DBusValue): Fields {
  const fields: Fields = {};
  for (const entry of value as readonly (readonly [number, Variant])[]) {
    const [code, variant] = entry;
    const known = FIELDS.find((field) => field.code === code);
    // Fields of later versions are to be ignored.
    if (known === undefined) continue;
    if (variant.signature !== known.signature) throw bad(`has a ${known.name} of type ${variant.signature}`);
    fields[known.name] = variant.value as string | number;
  }
  if (Number(fields.descriptorCount ?? 0) > MAX_DESCRIPTORS) throw bad('carries too many descriptors');
  return fields;
}

/** Cuts a stream into messages. Throws `invalid` on the first that is malformed; the stream is of no use afterwards. */
export class MessageStream {
  readonly #closeDescriptor: (fd: number) => void;
  #chunks: Buffer[] = [];
  #size = 0;
  #descriptors: number[] = [];

  constructor(closeDescriptor: (fd: number) => void) {
    this.#closeDescriptor = closeDescriptor;
  }

  /** Messages complete with this piece. */
  push(chunk: Buffer, descriptors: readonly number[]): Message[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#descriptors.push(...descriptors);
    const messages: Message[] = [];
    for (;;) {
      const bytes = this.#next();
      if (bytes === undefined) return messages;
      const message = this.#decode(bytes);
      if (message !== undefined) messages.push(message);
    }
  }

  /** Closes descriptors that no message claimed. */
  end(): void {
    this.#release(this.#descriptors.splice(0));
  }

  /** Joined only when a message is complete: a large one comes in many pieces. */
  #next(): Buffer | undefined {
    const [first = Buffer.alloc(0)] = this.#chunks;
    if (first.length < FIXED_BYTES && this.#size >= FIXED_BYTES) this.#join();
    const length = messageLength(this.#chunks[0] ?? first);
    if (length === undefined || length > this.#size) return undefined;
    this.#join();
    const [all = first] = this.#chunks;
    this.#chunks = length === all.length ? [] : [all.subarray(length)];
    this.#size -= length;
    return all.subarray(0, length);
  }

  #join(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
  }

  #decode(bytes: Buffer): Message | undefined {
    let taken: readonly number[] = [];
    let message: Message | undefined;
    try {
      message = decodeMessage(bytes, (count) => (taken = this.#take(count)));
      return message;
    } finally {
      if (message === undefined) this.#release(taken);
    }
  }

  #take(count: number): readonly number[] {
    if (count > this.#descriptors.length) throw bad('came without its descriptors');
    return this.#descriptors.splice(0, count);
  }

  #release(descriptors: readonly number[]): void {
    for (const fd of descriptors) this.#closeDescriptor(fd);
  }
}

const bad = (what: string): KubeletError => new KubeletError('invalid', `D-Bus message ${what}`);
