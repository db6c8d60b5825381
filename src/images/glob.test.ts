import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { globMatches } from './glob.ts';

describe('globMatches', () => {
  const rows: readonly (readonly [pattern: string, text: string, matches: boolean])[] = [
    ['abc', 'abc', true],
    ['abc', 'abcd', false],
    ['*', '', true],
    ['*', 'anything', true],
    ['a*c', 'abbc', true],
    ['a*c', 'abbd', false],
    ['*a*b', 'xaxb', true],
    ['*a*b', 'xbxa', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['[a-c]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['[^a-c]x', 'dx', true],
    ['[^a-c]x', 'ax', false],
    ['[ab', 'a', false],
    ['a\\*', 'a*', true],
    ['a\\*', 'ab', false],
    ['a\\', 'a', false],
    ['a.c', 'abc', false],
    ['', '', true],
    ['', 'a', false],
  ];
  for (const [pattern, text, expected] of rows)
    it(`${pattern} ${expected ? 'matches' : 'does not match'} ${text}`, () =>
      assert.equal(globMatches(pattern, text), expected));

  it('agrees with the plain definition of stars', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
    fc.assert(
      fc.property(letters, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 }), (pattern, text) => {
        const slow = (p: string, t: string): boolean =>
          p === ''
            ? t === ''
            : p[0] === '*'
              ? slow(p.slice(1), t) || (t !== '' && slow(p, t.slice(1)))
              : p[0] === t[0] && t !== '' && slow(p.slice(1), t.slice(1));
        assert.equal(globMatches(pattern, text), slow(pattern, text));
      }),
    );
  });

  it('is not slowed down by a hostile pattern', () => {
    const begun = process.threadCpuUsage();
    assert.equal(globMatches(`${'*a'.repeat(2000)}b`, 'a'.repeat(2000)), false);
    assert.ok(process.threadCpuUsage(begun).user < 1_000_000, 'a second of processor time');
  });
});
