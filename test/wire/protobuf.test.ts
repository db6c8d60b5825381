// Our protobuf against Go's: random messages of ours as Go reads them, in parts and ruined, and what Go writes as we read it.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { decode, encode, type FieldSpec, type MessageSpec, type MessageType } from '../../src/lib/proto/codec.ts';
import { MalformedMessage } from '../../src/lib/proto/reader.ts';
import { noGoPeer, startPeer, stopPeer } from './go-peer.ts';
import { cases, Dice, SEED } from './random.ts';

type Message = Record<string, unknown>;
const list = (no: number, name: string, type: FieldSpec['type']): FieldSpec => ({ no, name, type, repeated: true });
const one = (no: number, name: string, type: FieldSpec['type']): FieldSpec => ({ no, name, type });
const spec = (name: string, ...fields: readonly FieldSpec[]): MessageSpec => ({ name, fields: () => fields });

// google.protobuf.Type and what it consists of, and google.api.Metric, which has a map.
const Any = spec('Any', one(1, 'typeUrl', 'string'), one(2, 'value', 'bytes'));
const Option = spec('Option', one(1, 'name', 'string'), one(2, 'value', Any));
const Field = spec(
  'Field',
  one(1, 'kind', 'enum'),
  one(2, 'cardinality', 'enum'),
  one(3, 'number', 'int32'),
  one(4, 'name', 'string'),
  one(6, 'typeUrl', 'string'),
  one(7, 'oneofIndex', 'int32'),
  one(8, 'packed', 'bool'),
  list(9, 'options', Option),
  one(10, 'jsonName', 'string'),
);
const TYPES: Readonly<Record<string, MessageSpec>> = {
  Type: spec(
    'Type',
    one(1, 'name', 'string'),
    list(2, 'fields', Field),
    list(3, 'oneofs', 'string'),
    list(4, 'options', Option),
    one(5, 'sourceContext', spec('SourceContext', one(1, 'fileName', 'string'))),
    one(6, 'syntax', 'enum'),
  ),
  Metric: spec('Metric', one(2, 'labels', 'map'), one(3, 'type', 'string')),
  Int32Value: spec('Int32Value', one(1, 'value', 'int32')),
  Int64Value: spec('Int64Value', one(1, 'value', 'bigint64')),
  UInt32Value: spec('UInt32Value', one(1, 'value', 'uint32')),
  UInt64Value: spec('UInt64Value', one(1, 'value', 'uint64')),
  DoubleValue: spec('DoubleValue', one(1, 'value', 'double')),
};

const TEXTS = ['', 'a', 'ü 日本 😀', 'x'.repeat(127), 'y'.repeat(128), 'z'.repeat(20_000), '\0'];
const whole = (least: number, most: number) => (dice: Dice) =>
  dice.one([0, 1, least, most, 127, 128, Math.floor(least + dice.next() * (most - least))]);
const VALUES: Readonly<Record<Exclude<FieldSpec['type'], MessageSpec>, (dice: Dice) => unknown>> = {
  string: (dice) => dice.one(TEXTS),
  bytes: (dice) => new Uint8Array(dice.bytes(300)),
  bool: (dice) => dice.next() < 0.5,
  int32: whole(-(2 ** 31), 2 ** 31 - 1),
  enum: whole(-(2 ** 31), 2 ** 31 - 1),
  uint32: whole(0, 2 ** 32 - 1),
  uint64: whole(0, 2 ** 53 - 1),
  int64: whole(-(2 ** 53), 2 ** 53),
  bigint64: (dice) => dice.one([0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), BigInt(Math.floor(dice.next() * 2 ** 53))]),
  fixed64: (dice) => dice.one([0n, 1n, 2n ** 64n - 1n]),
  double: (dice) => dice.one([0, 1.5, -1e300, Infinity, dice.next()]),
  map: (dice) => Object.fromEntries(dice.list(4, () => [dice.one(TEXTS), dice.one(TEXTS)])),
};

function random(dice: Dice, { fields }: MessageSpec): Message {
  const value = ({ type }: FieldSpec): unknown => (typeof type === 'string' ? VALUES[type](dice) : random(dice, type));
  const message: Message = {};
  for (const field of fields())
    if (dice.next() < 0.6)
      message[field.name] = field.repeated === true ? dice.list(3, () => value(field)) : value(field);
  return message;
}

/** Some bytes are changed, left out, doubled or cut off. */
function ruined(dice: Dice, bytes: Buffer): Buffer {
  let out = Buffer.from(bytes);
  for (let i = 1 + dice.below(3); i > 0 && out.length > 0; i--) {
    const at = dice.below(out.length);
    const end = at + 1 + dice.below(4);
    const kind = dice.below(4);
    if (kind === 0) out[at] = dice.below(256);
    else if (kind === 1) out = Buffer.concat([out.subarray(0, at), out.subarray(end)]);
    else if (kind === 2) out = Buffer.concat([out.subarray(0, end), out.subarray(at)]);
    else out = out.subarray(0, at);
  }
  return out;
}

/**
 * Ours reads what is not UTF-8, and refuses a field of another form than it has; Go does the opposite. Tags beyond 32 bits
 * and groups that end under another field are refused by later versions of Go's library only.
 */
const DIFFERENT = { go: /UTF-8/, ours: /has wire type|is no field|a group ends/ };
/** Maps have no order, a uint64 beyond 2^53 is a number near it, and NaN has many forms. */
const WRITTEN_OTHERWISE: readonly string[] = ['Metric', 'UInt64Value', 'DoubleValue'];

describe(`messages as Go's protobuf reads them, SEED=${SEED}`, { skip: noGoPeer }, () => {
  let peer: ChildProcess;
  let lines: AsyncIterator<string>;
  before(() => {
    peer = startPeer('protobuf');
    if (peer.stdout !== null) lines = createInterface(peer.stdout)[Symbol.asyncIterator]();
  });
  after(() => stopPeer(peer));

  /** The message as Go writes it anew, or why it does not. */
  async function throughGo(kind: string, bytes: Buffer): Promise<Buffer | string> {
    peer.stdin?.write(`${kind} ${bytes.toString('hex')}\n`);
    const { value } = (await lines.next()) as { value: string };
    return value.startsWith('error') ? value : Buffer.from(value, 'hex');
  }

  async function readAlike(kind: string, bytes: Buffer): Promise<boolean> {
    const type: MessageType<Message> = { spec: TYPES[kind] ?? spec('') };
    const again = await throughGo(kind, bytes);
    const what = `${kind} ${bytes.toString('hex')}: ${String(again)}`;
    let ours: Message;
    try {
      ours = decode(type, bytes);
    } catch (err) {
      assert.ok(err instanceof MalformedMessage, what);
      assert.ok(typeof again === 'string' || DIFFERENT.ours.test(err.message), `${err.message}: ${what}`);
      return false;
    }
    if (typeof again === 'string') {
      assert.match(again, DIFFERENT.go, what);
      return false;
    }
    assert.deepEqual(decode(type, again), ours, what);
    if (!WRITTEN_OTHERWISE.includes(kind))
      assert.equal(encode(type, ours).toString('hex'), again.toString('hex'), what);
    return true;
  }

  for (const [kind, type] of Object.entries(TYPES))
    it(kind, async () => {
      const dice = new Dice();
      const message: MessageType<Message> = { spec: type };
      for (let i = cases(150); i > 0; i--) {
        const bytes = encode(message, random(dice, type));
        assert.ok(await readAlike(kind, bytes), bytes.toString('hex'));
        const parts = Buffer.concat([bytes, encode(message, random(dice, type))]);
        assert.ok(await readAlike(kind, parts), parts.toString('hex'));
        await readAlike(kind, ruined(dice, bytes));
      }
    });
});
