import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decode, encode, MalformedMessage, type MessageType } from './codec.ts';

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

it('a message that is cut off is refused wherever that happens', () => {
  const whole = encode(part, { text: 'abc', parts: [{ text: 'def' }], numbers: [1, 2, 300], big: 2 ** 50 });
  const lengths = new Set([0, 5, 12, 18, whole.length]); // between two fields nothing is missing
  for (let length = 0; length <= whole.length; length++) {
    const read = (): unknown => decode(part, whole.subarray(0, length));
    if (lengths.has(length)) assert.doesNotThrow(read, String(length));
    else assert.throws(read, MalformedMessage, String(length));
  }
});
