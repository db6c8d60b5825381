import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KubeletError } from './errors.ts';
import { parseSecretJson, parseSecretYaml } from './secret-text.ts';

const problemOf = (parse: () => unknown): string => {
  try {
    parse();
  } catch (err) {
    assert.ok(err instanceof KubeletError && err.kind === 'invalid' && err.cause === undefined);
    return err.message;
  }
  return 'none';
};

it('what is wrong with a secret text is said by place and kind', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['a: 1\nb: {c: [x]}', 'none'],
    ['', 'none'],
    ['a: b: c', 'line 1, column 4: block as implicit key'],
    ['a:\n  - "x', 'line 2, column 7: missing char'],
    ['a: 1\na: 2', 'line 2, column 1: duplicate key'],
    ['a: 1\n---\nb: 2', 'line 2, column 1: multiple docs'],
    ['a: `x', 'line 1, column 4: bad scalar start'],
    ['a: *x', 'it has too many aliases, or one without an anchor'],
  ];
  for (const [text, want] of rows)
    assert.equal(
      problemOf(() => parseSecretYaml(text)),
      want,
      text,
    );
  assert.deepEqual(parseSecretYaml('a: &x [1]\nb: *x'), { a: [1], b: [1] });
  assert.equal(
    problemOf(() => parseSecretJson('{"a": secret}')),
    'not JSON',
  );
  assert.deepEqual(parseSecretJson('{"a": 1}'), { a: 1 });
});

it('nothing is printed of a key that is a collection', async () => {
  const warnings: string[] = [];
  const hear = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', hear);
  parseSecretYaml('? [secret]\n: 1');
  // Warnings are emitted in a later tick.
  await new Promise(setImmediate);
  process.off('warning', hear);
  assert.deepEqual(warnings, []);
});

it('a text of aliases of aliases is refused', () => {
  const lines = Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]`);
  const text = `a0: &a0 [x]\n${lines.join('\n')}`;
  assert.equal(
    problemOf(() => parseSecretYaml(text)),
    'it has too many aliases, or one without an anchor',
  );
});
