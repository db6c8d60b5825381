import assert from 'node:assert/strict';
import { it } from 'node:test';
import { envBytes, envText } from './env-bytes.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

for (const [what, bytes, text] of [
  ['nothing', '', ''],
  ['text', '61 c3bc e282ac f09f9880', 'aü€😀'],
  ['a byte that is no character', '61 ff 62', 'a\udcffb'],
  ['a character that is cut off', '61 e282', 'a\udce2\udc82'],
  ['a character in too many bytes', 'c080', '\udcc0\udc80'],
  ['half of a pair', 'eda080 61', '\udced\udca0\udc80a'],
  ['nothing but such bytes', '80 ff fe', '\udc80\udcff\udcfe'],
] as const)
  it(`${what} is the same on the way out`, () => {
    assert.equal(envText(hex(bytes)), text);
    assert.deepEqual(envBytes(text), hex(bytes));
  });

it('half of a pair that somebody wrote is no byte', () => {
  assert.deepEqual(envBytes('\ud800'), Buffer.from('\ufffd'));
});
