import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { decodeText, fieldSegments, locateFields } from './decode.ts';
import { Decoder } from './decoder.ts';

const valueOf = (text: string): unknown => decodeText(text).documents[0]?.value;
const errorsOf = (text: string): readonly string[] =>
  decodeText(text).errors.map((e) => `${e.line}:${e.column} ${e.message}`);

describe('values', () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['yes', true],
    ['On', true],
    ['y', true],
    ['NO', false],
    ['off', false],
    ['"yes"', 'yes'],
    ['yess', 'yess'],
    ['0644', 420],
    ['0o644', 420],
    ['0x1F', 31],
    ['1_000', 1000],
    ['12:30', '12:30'],
    ['2020-01-01', '2020-01-01'],
    ['2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z'],
    ['1e3', 1000],
    ['100m', '100m'],
    ['0.5', 0.5],
    ['{a: 1}', { a: 1 }],
    ['"\\u0041"', 'A'],
  ];
  for (const [text, expected] of rows) it(text, () => assert.deepEqual(valueOf(`v: ${text}`), { v: expected }));

  it('JSON, several documents, empty ones, anchors, merge keys', () => {
    assert.deepEqual(valueOf('{"a": [1, "x", null]}'), { a: [1, 'x', null] });
    assert.deepEqual(decodeText('---\n# nothing\n---\na: 1\n---\nb: 2\n').documents, [
      { index: 1, value: { a: 1 } },
      { index: 2, value: { b: 2 } },
    ]);
    assert.deepEqual(valueOf('x: &a {b: 1}\nz:\n  <<: *a\n  c: *a\n'), { x: { b: 1 }, z: { b: 1, c: { b: 1 } } });
  });

  it('no prototype is touched', () => {
    const value = valueOf('__proto__: {polluted: true}\n') as object;
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
});

describe('a key that is there twice', () => {
  const rows: [string, unknown, string][] = [
    [
      'a: 1\nb:\n  c: 1\n  c: {x: 2}\n',
      { a: 1, b: { c: { x: 2 } } },
      '4:3 key "c" is already set above; this one counts',
    ],
    ['{"a": {"b": 1}, "a": 2}', { a: 2 }, '1:17 key "a" is already set above; this one counts'],
  ];
  for (const [text, value, warning] of rows)
    it(`has its last value: ${JSON.stringify(text)}`, () => {
      const { documents, errors, warnings } = decodeText(text);
      assert.deepEqual(documents, [{ index: 0, value }]);
      assert.deepEqual(errors, []);
      assert.deepEqual(
        warnings.map((w) => `${w.line}:${w.column} ${w.message}`),
        [warning],
      );
    });

  it('is looked for where it counts', () => {
    assert.deepEqual(locateFields('a: {x: 1}\na: {x: 2}\n', 0, ['a.x']), [{ line: 2, column: 5 }]);
  });
});

describe('errors', () => {
  it('have a place', () => {
    assert.match(errorsOf('a: [1\nb: 2')[0] ?? '', /^2:1 /);
    assert.match(errorsOf('a:\n\t- b')[0] ?? '', /^2:1 Tabs/);
    assert.match(errorsOf('a: {{ .Values.x }}')[0] ?? '', /^1:\d+ keys must be plain values/);
    assert.match(errorsOf('a: *nobody')[0] ?? '', /Unresolved alias/);
  });

  it('of bombs come soon', () => {
    const begun = process.threadCpuUsage();
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (let i = 1; i < 12; i++) {
      const [now, before] = [String.fromCharCode(97 + i), String.fromCharCode(96 + i)];
      bomb.push(`${now}: &${now} [${Array(9).fill(`*${before}`).join(',')}]`);
    }
    assert.match(errorsOf(bomb.join('\n'))[0] ?? '', /alias/i);
    assert.match(errorsOf('['.repeat(50_000))[0] ?? '', /deep/);
    assert.match(errorsOf(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`)[0] ?? '', /deep/);
    assert.match(errorsOf('---\n'.repeat(5000))[0] ?? '', /more than 1000 documents/);
    assert.ok(process.threadCpuUsage(begun).user < 3_000_000, '3 seconds of processor time');
  });
});

describe('places of fields', () => {
  const text = 'metadata:\n  labels:\n    a.b/c: x\nspec:\n  containers:\n  - name: a\n    image: i\n  - {name: b}\n';
  const rows: readonly (readonly [string, number, number])[] = [
    ['spec.containers[0].image', 7, 5],
    ['spec.containers[1].name', 8, 6],
    ['spec.containers[1].image', 8, 5],
    ['spec.containers[7]', 5, 3],
    ['spec.volumes[0].name', 4, 1],
    ['metadata.labels[a.b/c]', 3, 5],
    ['nothing', 1, 1],
  ];
  for (const [field, line, column] of rows)
    it(field, () => assert.deepEqual(locateFields(text, 0, [field]), [{ line, column }]));
  it('segments', () => assert.deepEqual(fieldSegments('a.b[0].c[x.y/z]'), ['a', 'b', '0', 'c', 'x.y/z']));
});

describe('large texts', () => {
  const never = new AbortController().signal;
  // It stands still: on a busy machine the worker may take as long as it needs.
  const clock = new ManualClock();
  it('are decoded elsewhere and hold up nothing', async () => {
    const lines = Array.from({ length: 100_000 }, (_, i) => `  key${i}: "value number ${i}"`);
    const text = `data:\n${lines.join('\n')}\n`;
    const begun = process.threadCpuUsage();
    const decoded = await new Decoder(clock).decode(text, never);
    const used = process.threadCpuUsage(begun);
    const value = decoded.documents[0]?.value as { data: object } | undefined;
    assert.equal(Object.keys(value?.data ?? {}).length, 100_000);
    // Not the time that passed: on a busy machine that says nothing about this thread.
    const usedMs = (used.user + used.system) / 1000;
    assert.ok(usedMs < 500, `the loop was busy for ${usedMs} ms`);
    const [place] = await new Decoder(clock).locate(text, 0, ['data.key5000'], never);
    assert.deepEqual(place, { line: 5002, column: 3 });
  });

  it('are given up when asked to', async () => {
    const stopper = new AbortController();
    const decoding = new Decoder(clock).decode('- a\n'.repeat(500_000), stopper.signal);
    setTimeout(() => stopper.abort(), 50);
    await assert.rejects(decoding);
  });
});
