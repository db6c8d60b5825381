import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../lib/clock.ts';
import { Decoder } from './decoder.ts';
import { readManifest } from './read-manifest.ts';

const POD =
  'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: c\n    image: i:1\n    env: [{name: A, value: b}]\n';

/** A good manifest with pieces cut out, doubled and put in. */
const mangled = fc
  .array(
    fc.tuple(
      fc.nat(POD.length),
      fc.nat(20),
      fc.constantFrom(
        '',
        '\t',
        '  ',
        ': ',
        '- ',
        '{',
        ']',
        '&a ',
        '*a',
        '!!set ',
        '<<: ',
        '"',
        "'",
        '|\n',
        '#',
        '\0',
        '---\n',
        '\u2028',
        'null',
        '__proto__',
        '0x',
        '%YAML 1.2\n',
      ),
    ),
    { maxLength: 6 },
  )
  .map((edits) => edits.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), POD));

describe('random manifests', () => {
  it('are answered with pods or with problems that have a place', async () => {
    const decoder = new Decoder(systemClock);
    const { signal } = new AbortController();
    let good = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 4, arbitrary: mangled }, { weight: 1, arbitrary: fc.string() }),
        async (text) => {
          const options = { nodeName: 'n1', localObjects: true, lists: true };
          const { pods, problems } = await readManifest(text, { where: '/m', local: true }, options, decoder, signal);
          const lines = text.split(/\r\n|\r|\n/).length;
          for (const problem of problems) {
            assert.ok(problem.message.length > 0);
            if (problem.line !== undefined)
              assert.ok(problem.line >= 1 && problem.line <= lines + 1, JSON.stringify({ text, problem }));
          }
          if (pods.length > 0) good++;
          else assert.ok(problems.length > 0, JSON.stringify(text));
        },
      ),
      { numRuns: 2000, seed: 20_261_115 },
    );
    assert.ok(good > 50, `only ${good} good ones: the generator proves little`);
  });
});
