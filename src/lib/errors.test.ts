import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KubeletError, messageOf } from './errors.ts';

const LONG = 'x'.repeat(1_000_000);
const messages: readonly (readonly [string, string])[] = [
  ['of ours', new KubeletError('invalid', `cannot find volume "${LONG}"`).message],
  ['of the system', messageOf(new Error(`ENAMETOOLONG: name too long, open '${LONG}'`))],
  ['around another', new KubeletError('internal', `failed: ${messageOf(new Error(LONG))}`).message],
];
for (const [whose, message] of messages)
  it(`no message ${whose} is longer than a person reads, and it says how long it was`, () => {
    assert.ok(message.length < 17_000, `${message.length} characters`);
    assert.match(message, / characters\)$/);
  });
