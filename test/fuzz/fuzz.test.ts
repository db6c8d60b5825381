// Every target for a moment. `npm run fuzz` does it for ten minutes.
// runs: spare time
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { feed } from './engine.ts';
import { TEXT_TARGETS } from './targets-text.ts';
import { WIRE_TARGETS } from './targets-wire.ts';

const TARGETS = [...TEXT_TARGETS, ...WIRE_TARGETS].filter(
  ({ name }) => process.env['TARGET'] === undefined || name.includes(process.env['TARGET']),
);
const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 20);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));

describe(`random input, SEED=${SEED}`, () => {
  const unhandled: unknown[] = [];
  const note = (err: unknown): void => void unhandled.push(err);
  before(() => void process.on('unhandledRejection', note));
  after(() => void process.off('unhandledRejection', note));

  for (const target of TARGETS)
    it(target.name, async (t) => {
      const { tries, broken } = await feed(target, SEED, (SECONDS * 1000) / TARGETS.length);
      t.diagnostic(`${tries} tries`);
      assert.deepEqual(broken, []);
      assert.deepEqual(unhandled.splice(0), [], 'no rejection is left unhandled');
      assert.ok(tries > 0);
    });
});
