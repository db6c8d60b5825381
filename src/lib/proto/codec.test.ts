import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { decode, encode, type MessageType } from './codec.ts';
import { MalformedMessage } from './reader.ts';

const WHOLE: readonly string[] = ['int32', 'enum', 'uint32', 'int64', 'uint64', 'bigint64', 'fixed64'];

type Part = {
  text: string;
  parts: Partial<Part>[];
  numbers: number[];
  labels: Record<string, string>;
  small: number;
  big: number;
};
const part: MessageType<Partial<Part>> = {
  spec: {
    name: 'Part',
    fields: () => [
      { no: 1, name: 'text', type: 'string' },
      { no: 2, name: 'parts', type: part.spec, repeated: true },
      { no: 3, name: 'numbers', type: 'uint32', repeated: true },
      { no: 4, name: 'labels', type: 'map' },
      { no: 5, name: 'small', type: 'int32' },
      { no: 6, name: 'big', type: 'int64' },
    ],
  },
};
const EMPTY: Part = { text: '', parts: [], numbers: [], labels: {}, small: 0, big: 0 };
const again = (value: Partial<Part>): Partial<Part> => decode(part, encode(part, value));

describe('messages come back as they were', () => {
  // Lengths of one, two, three and four bytes, and those around the changes.
  for (const size of [0, 1, 125, 126, 127, 128, 16_000, 16_381, 16_382, 16_383, 16_384, 2_097_149, 2_097_152])
    it(`a part of ${size} characters in a part`, () => {
      const inner = { ...EMPTY, text: 'x'.repeat(size) };
      const value = { ...EMPTY, text: 'before', parts: [inner, { ...EMPTY, parts: [inner] }], small: 7 };
      assert.deepEqual(again(value), value);
    });

  it('the bytes are those of the encoding', () => {
    const value = { text: 'a', parts: [{ text: 'b' }], numbers: [1, 300], labels: { k: 'v' }, small: -1, big: 2 };
    const bytes = '0a0161' + '12030a0162' + '1a0301ac02' + '22060a016b120176' + '28ffffffffffffffffff01' + '3002';
    assert.equal(encode(part, value).toString('hex'), bytes);
  });

  for (const number of [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31)])
    it(`the number ${number}`, () => assert.equal(again({ small: number }).small, number));

  for (const number of [2 ** 42, 2 ** 49 - 1, 2 ** 49, 2 ** 53 - 1, -(2 ** 53) + 1, -1])
    it(`the large number ${number}`, () => assert.equal(again({ big: number }).big, number));

  it('labels, also those that objects have a meaning for', () => {
    const labels = JSON.parse('{"__proto__":"x","constructor":"y","plain":"z"}') as Record<string, string>;
    const got = again({ labels }).labels;
    assert.deepEqual(Object.entries(got ?? {}), Object.entries(labels));
    assert.equal(Object.getPrototypeOf(got), Object.prototype);
  });
});

describe('numbers beyond their type', () => {
  const types = ['int32', 'enum', 'uint32', 'int64', 'uint64', 'bigint64', 'fixed64'] as const;
  type Numbers = { [K in (typeof types)[number]]?: number | bigint };
  const numbers: MessageType<Numbers> = {
    spec: { name: 'Numbers', fields: () => types.map((type, i) => ({ no: i + 1, name: type, type })) },
  };
  /** Decoded as 64 bits each, with the sign of their type. */
  const raw: MessageType<Record<string, bigint>> = {
    spec: {
      name: 'Raw',
      fields: () => types.map((name, i) => ({ no: i + 1, name, type: name === 'fixed64' ? 'fixed64' : 'bigint64' })),
    },
  };
  const sent = (type: keyof Numbers, value: number | bigint): bigint | undefined => {
    const wire = decode(raw, encode(numbers, { [type]: value }))[type];
    return wire !== undefined && type === 'uint64' ? BigInt.asUintN(64, wire) : wire;
  };
  const MAX_INT64 = 2n ** 63n - 1n;
  const rows: readonly (readonly [keyof Numbers, number | bigint, bigint])[] = [
    ['int32', 2 ** 31 - 1, 2n ** 31n - 1n],
    ['int32', 2 ** 31, 2n ** 31n - 1n],
    ['int32', -(2 ** 31) - 1, -(2n ** 31n)],
    ['enum', 2 ** 63, 2n ** 31n - 1n],
    ['enum', -1, -1n],
    ['uint32', 2 ** 32, 2n ** 32n - 1n],
    ['uint32', 2 ** 32 - 1, 2n ** 32n - 1n],
    ['uint32', -1, 0n],
    ['int64', 2 ** 62, 2n ** 62n],
    ['int64', 2 ** 63, MAX_INT64],
    ['int64', 1e30, MAX_INT64],
    ['int64', Number.MAX_VALUE, MAX_INT64],
    ['int64', -(2 ** 63), -(2n ** 63n)],
    ['int64', -1e30, -(2n ** 63n)],
    ['int64', -1.5, -1n],
    ['uint64', 2 ** 63, 2n ** 63n],
    ['uint64', 2 ** 64, 2n ** 64n - 1n],
    ['uint64', -5, 0n],
    ['bigint64', 2n ** 63n, MAX_INT64],
    ['bigint64', -(2n ** 70n), -(2n ** 63n)],
    ['fixed64', 2n ** 64n, 2n ** 64n - 1n],
    ['fixed64', -1n, 0n],
  ];
  for (const [type, value, wanted] of rows)
    it(`${type} ${value} is sent as ${wanted}`, () => assert.equal(sent(type, value), wanted));

  for (const value of [NaN, Infinity, -Infinity])
    it(`${value} is refused with the name of the field`, () => {
      for (const type of ['int32', 'enum', 'uint32', 'int64', 'uint64'] as const)
        assert.throws(() => encode(numbers, { [type]: value }), {
          kind: 'invalid',
          message: `field ${type}: ${value} is no ${type}`,
        });
    });
});

it('no field of any generated message turns a number beyond its type around', async () => {
  let fields = 0;
  for (const file of globSync('../../**/gen/*.ts', { cwd: import.meta.dirname })) {
    const generated = (await import(join(import.meta.dirname, file))) as Record<string, Partial<MessageType<object>>>;
    for (const { spec } of Object.values(generated)) {
      if (spec === undefined) continue;
      for (const { name, type, repeated } of spec.fields()) {
        if (typeof type !== 'string' || !WHOLE.includes(type)) continue;
        const beyond = type === 'bigint64' || type === 'fixed64' ? 2n ** 64n : 2 ** 64;
        const value = { [name]: repeated === true ? [beyond] : beyond };
        const sent = (decode({ spec }, encode({ spec }, value)) as Record<string, unknown>)[name];
        const got: unknown = Array.isArray(sent) ? sent[0] : sent;
        assert.ok((got as number) >= 2 ** 31 - 1, `${spec.name}.${name}: ${String(got)}`);
        fields++;
      }
    }
  }
  assert.ok(fields > 50, `${fields} fields`);
});

it('a message that is cut off is refused wherever that happens', () => {
  const whole = encode(part, { text: 'abc', parts: [{ text: 'def' }], numbers: [1, 2, 300], big: 2 ** 50 });
  const lengths = new Set([0, 5, 12, 18, whole.length]); // between two fields nothing is missing
  for (let length = 0; length <= whole.length; length++) {
    const read = (): unknown => decode(part, whole.subarray(0, length));
    if (lengths.has(length)) assert.doesNotThrow(read, String(length));
    else assert.throws(read, MalformedMessage, String(length));
  }
});
