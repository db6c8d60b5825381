// What the wire may hold besides what an encoder of ours writes: parts of one message, fields of another time, numbers of another
// length. The rules are those of protobuf's conformance tests.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { frame, FrameReader } from '../grpc/frame.ts';
import { decode, type MessageType } from './codec.ts';
import { MalformedMessage } from './reader.ts';

type Message = Partial<Record<string, unknown>>;
const inner: MessageType<Message> = {
  spec: {
    name: 'Inner',
    fields: () => [
      { no: 1, name: 'text', type: 'string' },
      { no: 2, name: 'number', type: 'int64' },
      { no: 3, name: 'list', type: 'int32', repeated: true },
      { no: 4, name: 'inner', type: inner.spec },
      { no: 5, name: 'map', type: 'map' },
    ],
  },
};
const message: MessageType<Message> = {
  spec: {
    name: 'Message',
    fields: () => [
      { no: 1, name: 'text', type: 'string' },
      { no: 2, name: 'i32', type: 'int32' },
      { no: 3, name: 'u32', type: 'uint32' },
      { no: 4, name: 'kind', type: 'enum' },
      { no: 5, name: 'kinds', type: 'enum', repeated: true },
      { no: 6, name: 'inner', type: inner.spec },
      { no: 7, name: 'inners', type: inner.spec, repeated: true },
      { no: 8, name: 'map', type: 'map' },
    ],
  },
};

const varint = (value: bigint): string => {
  const digits: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) digits.push(Number(rest & 127n) | 128);
  return Buffer.from([...digits, Number(rest)]).toString('hex');
};
const tag = (no: number, wireType: number): string => varint((BigInt(no) << 3n) | BigInt(wireType));
const part = (no: number, ...body: readonly string[]): string =>
  `${tag(no, 2)}${varint(BigInt(body.join('').length / 2))}${body.join('')}`;
const text = (no: number, value: string): string => part(no, Buffer.from(value).toString('hex'));
const number = (no: number, value: bigint): string => tag(no, 0) + varint(value);
const group = (no: number, ...body: readonly string[]): string => tag(no, 3) + body.join('') + tag(no, 4);
const bytes = (...fields: readonly string[]): Buffer => Buffer.from(fields.join(''), 'hex');

describe('what is read', () => {
  const rows: readonly (readonly [string, Buffer, Message])[] = [
    [
      'a message in two parts is one',
      bytes(part(6, text(1, 'a')), part(6, number(2, 7n))),
      { inner: { text: 'a', number: 7, list: [], map: {} } },
    ],
    [
      'its lists are joined, its maps too, of numbers the last counts',
      bytes(
        part(6, part(3, '0102'), part(5, text(1, 'a'), text(2, 'x')), number(2, 1n)),
        part(6, number(3, 3n), part(5, text(1, 'b'), text(2, 'y')), number(2, 2n)),
      ),
      { inner: { text: '', number: 2, list: [1, 2, 3], map: { a: 'x', b: 'y' } } },
    ],
    [
      'and the messages in it',
      bytes(part(6, part(4, text(1, 'a'))), part(6, part(4, number(2, 7n)))),
      { inner: { text: '', number: 0, list: [], map: {}, inner: { text: 'a', number: 7, list: [], map: {} } } },
    ],
    [
      'messages of a list stay apart',
      bytes(part(7, text(1, 'a')), part(7, number(2, 7n))),
      {
        inners: [
          { text: 'a', number: 0, list: [], map: {} },
          { text: '', number: 7, list: [], map: {} },
        ],
      },
    ],
    ['a group is skipped', bytes(group(99, number(1, 5n)), text(1, 'x')), { text: 'x' }],
    ['one without content', bytes(group(99), text(1, 'x')), { text: 'x' }],
    [
      'groups in groups, with every kind of field',
      bytes(group(99, group(98, text(1, 'no'), `${tag(2, 5)}01020304`, `${tag(3, 1)}0102030405060708`)), text(1, 'x')),
      { text: 'x' },
    ],
    ['the largest field number', bytes(number(536_870_911, 1n), text(1, 'x')), { text: 'x' }],
    ['an int32 of 64 bits', bytes(number(2, -1n)), { i32: -1 }],
    ['the lower 32 bits of a larger one', bytes(number(2, (1n << 40n) | 5n)), { i32: 5 }],
    ['the lower 32 bits of the largest', bytes(number(2, 2n ** 63n - 1n)), { i32: -1 }],
    ['a uint32 of 64 bits', bytes(number(3, -1n)), { u32: 4_294_967_295 }],
    ['the lower 32 bits of a larger uint32', bytes(number(3, (1n << 40n) | 5n)), { u32: 5 }],
    ['an enum below 0', bytes(number(4, -1n)), { kind: -1 }],
    ['an enum of 64 bits', bytes(number(4, (1n << 40n) | 1n)), { kind: 1 }],
    ['enums in one piece', bytes(part(5, varint(-1n), '01')), { kinds: [-1, 1] }],
    ['a key of a map in another form', bytes(part(8, number(1, 5n), text(2, 'v'))), { map: { '': 'v' } }],
    ['a text that is not UTF-8', bytes(part(1, 'ff41')), { text: '\ufffdA' }],
  ];
  const zero = decode(message, Buffer.alloc(0));
  for (const [name, wire, wanted] of rows)
    it(name, () => assert.deepEqual(decode(message, wire), { ...zero, ...wanted }));
});

describe('what is refused', () => {
  const rows: readonly (readonly [string, Buffer])[] = [
    ['the field 0', bytes('0001')],
    ['the field 0 in a map', bytes(part(8, '0200'))],
    ['a tag of more than 32 bits', bytes(varint((1n << 32n) | 10n), '0161')],
    ['a group that does not end', bytes(tag(99, 3), text(1, 'x'))],
    ['the end of another group', bytes(tag(99, 3), tag(98, 4))],
    ['the end of no group', bytes(tag(99, 4))],
    ['groups in groups without end', bytes(tag(99, 3).repeat(1000), tag(99, 4).repeat(1000))],
    ['a map that is a number', bytes(number(8, 2n), '0000')],
    ['the wire type 6', bytes(tag(99, 6))],
    ['the wire type 7', bytes(tag(99, 7))],
    ['a number without end', bytes(tag(2, 0), 'ff'.repeat(11))],
    ['a number of 65 bits', bytes(tag(2, 0), 'ff'.repeat(9), '02')],
    ['a length of 65 bits', bytes(tag(1, 2), '80'.repeat(9), '02')],
  ];
  for (const [name, wire] of rows) it(name, () => assert.throws(() => decode(message, wire), MalformedMessage));
});

describe('a message that is kept in part', () => {
  const kept = (wire: Buffer): Message => {
    const reader = new FrameReader(2 ** 20, 4);
    return decode(message, [...reader.push(frame(wire))][0] ?? Buffer.alloc(0));
  };

  it('is read beside groups', () => {
    const wire = bytes(group(99, group(98, text(1, 'long enough')), text(2, 'y')), text(1, 'abcdefgh'), number(3, 5n));
    const { text: value, u32 } = kept(wire);
    assert.deepEqual([value, u32], ['abcd', 5]);
  });

  for (const [name, wire] of [
    ['the field 0', bytes('0001')],
    ['a tag of more than 32 bits', bytes(varint((1n << 32n) | 10n), '0161')],
    ['a group that does not end', bytes(tag(99, 3))],
    ['the end of another group', bytes(tag(99, 3), tag(98, 4))],
    ['groups in groups without end', bytes(tag(99, 3).repeat(1000), tag(99, 4).repeat(1000))],
  ] as const)
    it(`is refused with ${name}`, () => assert.throws(() => kept(wire), /malformed/));
});
