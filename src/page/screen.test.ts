// The terminal's screen, with what a program in a container may write to it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Screen } from './front/screen.ts';

const [COLUMNS, ROWS, MAX_ROWS] = [20, 6, 2000];
const text = (screen: Screen): string[] =>
  screen.lines.slice(screen.start).map((line) => line.map(({ char }) => char).join(''));

describe('the screen of a terminal', () => {
  it('inserts and deletes lines and cells', () => {
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ['a\r\nb\r\nc\x1b[2;1H\x1b[L', ['a', '', 'b', 'c', '', '']],
      ['a\r\nb\r\nc\x1b[1;1H\x1b[2M', ['c', '', '', '', '', '']],
      ['abc\x1b[1;2H\x1b[2@', ['a  bc', '', '', '', '', '']],
      ['abc\x1b[1;2H\x1b[P', ['ac', '', '', '', '', '']],
      ['\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc', ['', 'b', 'c', '', '', '']],
    ];
    for (const [written, want] of rows) {
      const screen = new Screen(COLUMNS, ROWS);
      screen.write(written);
      assert.deepEqual(text(screen), want, JSON.stringify(written));
    }
  });

  it('counts no further than it is large', () => {
    for (const letter of 'ABCDGdHJKPX@LMrm') {
      const screen = new Screen(COLUMNS, ROWS);
      const before = process.threadCpuUsage();
      for (const count of ['2000000', '99999999999999999999', '2000000;2000000', ''])
        screen.write(`a\x1b[${count}${letter}b`);
      const { user, system } = process.threadCpuUsage(before);
      assert.ok(user + system < 50_000, `${letter}: ${user + system} µs`);
      assert.ok(screen.lines.length <= ROWS + 8, letter);
    }
  });

  it('stays as large as it is, whatever is written', () => {
    const number = fc.oneof(fc.nat(10), fc.constantFrom(2_000_000, 2 ** 53)).map(String);
    const sequence = fc
      .tuple(fc.array(number, { maxLength: 3 }), fc.constantFrom(...Array.from('ABCDGdHfJKPX@LMrmhl')))
      .map(([numbers, letter]) => `\x1b[${numbers.join(';')}${letter}`);
    const other = fc.constantFrom(
      'a',
      'text ',
      '\n',
      '\r',
      '\t',
      '\b',
      '\x1bM',
      '\x1bc',
      '\x1b7',
      '\x1b8',
      '\x1b[?1049h',
      '\x1b[?1049l',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(sequence, other), { maxLength: 80 }), (parts) => {
        const screen = new Screen(COLUMNS, ROWS);
        for (const part of parts) screen.write(part);
        assert.ok(screen.lines.length >= ROWS && screen.lines.length <= MAX_ROWS + 1, `${screen.lines.length} lines`);
        assert.ok(screen.x >= 0 && screen.x <= COLUMNS && screen.y >= 0 && screen.y < ROWS);
        for (const line of screen.lines) assert.ok(line === undefined || line.length <= COLUMNS);
      }),
      { numRuns: 1000 },
    );
  });
});
