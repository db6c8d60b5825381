import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { systemClock, type Clock } from '../lib/clock.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { lastLines } from './last-lines.ts';
import { fixedTime, nanosOf, parseCriLine, parseDockerLine } from './line.ts';
import { readLogs, type LogOptions } from './read-logs.ts';
import { until } from '../../test/harness/until.ts';

const root = mkdtempSync(join(tmpdir(), 'read-logs-'));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
const at = (second: number): string => `2026-11-15T03:13:${String(second).padStart(2, '0')}.5Z`;
const cri = (second: number, text: string, tag = 'F', stream = 'stdout'): string =>
  `${at(second)} ${stream} ${tag} ${text}\n`;
const file = (content: string): string => {
  const path = join(root, `${count++}.log`);
  writeFileSync(path, content);
  return path;
};
type TestedOptions = Omit<LogOptions, 'clock'>;
const never = new AbortController().signal;

async function all(path: string, options: TestedOptions = {}): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of readLogs(path, { ...options, clock: systemClock }, () => false, never)) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

const THREE = cri(1, 'one') + cri(2, 'two', 'F', 'stderr') + cri(3, 'three');

describe('lines', () => {
  const parsed = (text: string) => {
    const line = parseCriLine(Buffer.from(text)) ?? parseDockerLine(Buffer.from(text));
    return line === undefined ? undefined : [line.time, line.stream, line.content.toString()];
  };
  const rows: readonly (readonly [string, readonly string[] | undefined])[] = [
    [cri(1, 'x y'), [at(1), 'stdout', 'x y\n']],
    [cri(1, 'x', 'P'), [at(1), 'stdout', 'x']],
    [cri(1, 'x', 'P:more:tags'), [at(1), 'stdout', 'x']],
    [cri(1, 'x', 'F:tag'), [at(1), 'stdout', 'x\n']],
    [cri(1, ''), [at(1), 'stdout', '\n']],
    [`${at(1)} stdout F\n`, [at(1), 'stdout', '\n']],
    [`${at(1)} stdout P\n`, [at(1), 'stdout', '']],
    [cri(1, ' : a'), [at(1), 'stdout', ' : a\n']],
    [cri(1, 'x', 'Q'), undefined],
    [cri(1, 'x', 'F', 'stdin'), undefined],
    ['today stdout F x\n', undefined],
    ['garbage\n', undefined],
    ['', undefined],
    [`{"log":"hi\\n","stream":"stderr","time":"${at(2)}"}\n`, [at(2), 'stderr', 'hi\n']],
    ['{"log":1}\n', undefined],
    ['null\n', undefined],
  ];
  for (const [text, expected] of rows) it(JSON.stringify(text), () => assert.deepEqual(parsed(text), expected));

  it('times have nine digits', () => {
    assert.equal(fixedTime('2026-01-02T03:04:05Z'), '2026-01-02T03:04:05.000000000Z');
    assert.equal(fixedTime('2026-01-02T03:04:05.1+02:00'), '2026-01-02T03:04:05.100000000+02:00');
    assert.equal(nanosOf('1970-01-01T00:00:01.000000007Z'), 1_000_000_007n);
    assert.equal(nanosOf('1970-01-01T01:00:00+01:00'), 0n);
  });
});

describe('reading', () => {
  const rows: readonly (readonly [string, string, TestedOptions, string])[] = [
    ['everything', THREE, {}, 'one\ntwo\nthree\n'],
    ['the last two', THREE, { tailLines: 2 }, 'two\nthree\n'],
    ['the last none', THREE, { tailLines: 0 }, ''],
    ['more than there is', THREE, { tailLines: 9 }, 'one\ntwo\nthree\n'],
    ['a last line without an end', `${THREE}${cri(4, 'four').trimEnd()}`, {}, 'one\ntwo\nthree\nfour'],
    ['a tail does not count it', `${THREE}${cri(4, 'four').trimEnd()}`, { tailLines: 2 }, 'two\nthree\n'],
    ['but where lines are missing', `${THREE}${cri(4, 'four').trimEnd()}`, { tailLines: 4 }, 'one\ntwo\nthree\nfour'],
    ['no line, and it is there', `${THREE}${cri(4, 'four').trimEnd()}`, { tailLines: 0 }, ''],
    ['limit', THREE, { limitBytes: 6 }, 'one\ntw'],
    ['limit with stamps', THREE, { limitBytes: 33, timestamps: true }, '2026-11-15T03:13:01.500000000Z on'],
    ['since', THREE, { sinceNanos: nanosOf(at(2)) }, 'two\nthree\n'],
    ['one stream', THREE, { stream: 'Stderr' }, 'two\n'],
    ['parts joined', cri(1, 'a', 'P') + cri(2, 'b', 'P') + cri(3, 'c'), {}, 'abc\n'],
    [
      'parts with one stamp',
      cri(1, 'a', 'P') + cri(2, 'b') + cri(3, 'c'),
      { timestamps: true },
      '2026-11-15T03:13:01.500000000Z ab\n2026-11-15T03:13:03.500000000Z c\n',
    ],
    ['bad lines left out', `rubbish\n${THREE}more rubbish\n${cri(5, 'x')}`, {}, 'one\ntwo\nthree\nx\n'],
    ['an empty file', '', {}, ''],
    ['Docker', `{"log":"a\\n","stream":"stdout","time":"${at(1)}"}\n`, {}, 'a\n'],
  ];
  for (const [name, content, options, expected] of rows)
    it(name, async () => assert.equal(await all(file(content), options), expected));

  it('keeps bytes that are no text', async () => {
    const path = file('');
    writeFileSync(path, Buffer.concat([Buffer.from(`${at(1)} stdout F `), Buffer.from([0xff, 0x00, 0xfe, 0x0a])]));
    const parts: Buffer[] = [];
    for await (const chunk of readLogs(path, { clock: systemClock }, () => false, never)) parts.push(chunk);
    assert.deepEqual(Buffer.concat(parts), Buffer.from([0xff, 0x00, 0xfe, 0x0a]));
  });

  it('a tail has no more lines than asked for while the log grows', async () => {
    const path = file(THREE);
    let writing = true;
    const write = (): void => {
      appendFileSync(path, cri(4, 'more'));
      if (writing) setImmediate(write);
    };
    write();
    for (let i = 0; i < 200; i++) assert.match(await all(path, { tailLines: 1 }), /^[a-z]+\n$/);
    writing = false;
  });

  it('finds the tail of a large file in many blocks', async () => {
    const lines = Array.from({ length: 5000 }, (_, i) => cri(1, `line ${i} ${'x'.repeat(i % 97)}`));
    const text = await all(file(lines.join('')), { tailLines: 1234 });
    assert.equal(text.split('\n').length - 1, 1234);
    assert.match(text, /^line 3766 /);
  });

  it('says which file is not there', async () => {
    await assert.rejects(all(join(root, 'nothing.log')), { kind: 'notFound' });
  });

  it('gives the end of a log as a message', async () => {
    const path = file(Array.from({ length: 200 }, (_, i) => cri(1, `line ${i} ${'y'.repeat(40)}`)).join(''));
    const text = await lastLines(systemClock, path, never);
    assert.equal(text.length, 2048);
    assert.ok(text.endsWith(`line 199 ${'y'.repeat(40)}\n`));
    assert.equal(await lastLines(systemClock, file(cri(1, 'only')), never), 'only\n');
  });
});

describe('following', () => {
  /** Reads in the background until the container stops. */
  function follow(path: string, options: TestedOptions = {}, clock: Clock = systemClock) {
    let running = true;
    let text = '';
    const stopper = new AbortController();
    const done = (async () => {
      for await (const chunk of readLogs(path, { follow: true, ...options, clock }, () => running, stopper.signal))
        text += chunk.toString();
    })();
    return {
      text: () => text,
      done,
      stop: () => void (running = false),
      abort: () => stopper.abort(),
      until: (wanted: string) =>
        until(JSON.stringify(wanted), () => text === wanted, undefined, 5).catch(() => assert.equal(text, wanted)),
    };
  }

  it('sees lines as they come, the halves of lines too, and ends with the container', async () => {
    const path = file(cri(1, 'a'));
    // It stands still: a change is seen without the regular check.
    const clock = new ManualClock();
    const reader = follow(path, {}, clock);
    await reader.until('a\n');
    appendFileSync(path, cri(2, 'b').slice(0, 10));
    appendFileSync(path, cri(2, 'b').slice(10));
    await reader.until('a\nb\n');
    appendFileSync(path, cri(3, 'c').trimEnd());
    reader.stop();
    let isOver = false;
    void reader.done.then(() => (isOver = true));
    await until('the reader ends', async () => {
      await clock.advance(1000);
      return isOver;
    });
    assert.equal(reader.text(), 'a\nb\nc');
  });

  it('goes on over a rotation, loses nothing and doubles nothing', async () => {
    const path = file(cri(1, 'a'));
    const link = join(root, 'link.log');
    symlinkSync(path, link);
    const reader = follow(link);
    await reader.until('a\n');
    appendFileSync(path, cri(2, 'b'));
    renameSync(path, `${path}.20261115-031400`);
    appendFileSync(`${path}.20261115-031400`, cri(3, 'c'));
    writeFileSync(path, cri(4, 'd'));
    appendFileSync(`${path}.20261115-031400`, cri(4, 'late'));
    await reader.until('a\nb\nc\nlate\nd\n');
    appendFileSync(path, cri(5, 'e'));
    await reader.until('a\nb\nc\nlate\nd\ne\n');
    reader.stop();
    await reader.done;
  });

  it('reads files that were rotated while it was away, compressed ones too', async () => {
    const path = file(cri(1, 'a'));
    const stopper = new AbortController();
    const reader = readLogs(path, { follow: true, clock: systemClock }, () => true, stopper.signal);
    assert.equal((await reader.next()).value?.toString(), 'a\n');
    // The reader does not ask for more meanwhile: it is a slow one.
    renameSync(path, `${path}.20261115-031401`);
    writeFileSync(`${path}.20261115-031402.gz`, gzipSync(cri(2, 'b')));
    writeFileSync(`${path}.20261115-031403`, cri(3, 'c'));
    writeFileSync(path, cri(4, 'd'));
    let text = '';
    while (!text.endsWith('d\n')) text += (await reader.next()).value?.toString();
    assert.equal(text, 'b\nc\nd\n');
    await reader.return();
  });

  it('finds its way when its own file was compressed meanwhile', async () => {
    const path = file(cri(1, 'a'));
    writeFileSync(`${path}.20261115-031400`, cri(0, 'old'));
    const reader = readLogs(path, { follow: true, clock: systemClock }, () => true, never);
    assert.equal((await reader.next()).value?.toString(), 'a\n');
    writeFileSync(`${path}.20261115-031401.gz`, gzipSync(cri(1, 'a')));
    rmSync(path);
    writeFileSync(`${path}.20261115-031402`, cri(2, 'b'));
    writeFileSync(`${path}.20261115-031402.gz`, gzipSync(cri(2, 'b')));
    writeFileSync(path, cri(3, 'c'));
    let text = '';
    while (!text.endsWith('c\n')) text += (await reader.next()).value?.toString();
    assert.equal(text, 'b\nc\n');
    await reader.return();
  });

  it('stands a file that is truncated', async () => {
    const path = file(cri(1, 'aaaaaaaaaa') + cri(2, 'bbbbbbbbbb'));
    const reader = follow(path);
    await reader.until('aaaaaaaaaa\nbbbbbbbbbb\n');
    writeFileSync(path, cri(3, 'c'));
    await reader.until('aaaaaaaaaa\nbbbbbbbbbb\nc\n');
    reader.stop();
    await reader.done;
  });

  it('ends at once when nobody listens any more', async () => {
    const reader = follow(file(cri(1, 'a')), {}, new ManualClock());
    await reader.until('a\n');
    let isOver = false;
    void reader.done.catch(() => undefined).then(() => (isOver = true));
    reader.abort();
    await until('the reader ends, with no help of the clock', () => isOver);
  });

  it('with a tail starts near the end', async () => {
    const path = file(THREE);
    const reader = follow(path, { tailLines: 1 });
    await reader.until('three\n');
    appendFileSync(path, cri(4, 'four') + cri(5, 'five'));
    await reader.until('three\nfour\nfive\n');
    reader.stop();
    await reader.done;
  });
});

describe('a log directory that a pod can write to', () => {
  it('pipes in the place of logs take no thread and end the reading', async () => {
    const pipes = Array.from({ length: 8 }, () => join(root, `${count++}.log`));
    execFileSync('mkfifo', pipes);
    for (const path of pipes) await assert.rejects(all(path), /not a regular file/);
    await assert.rejects(lastLines(systemClock, pipes[0] ?? '', never), /not a regular file/);
    assert.ok((await stat('/')).isDirectory());
  });

  it('the end of a huge file without lines is found at once', async () => {
    const path = file('');
    truncateSync(path, 2 ** 40);
    appendFileSync(path, `\n${cri(1, 'last')}`);
    assert.equal(await lastLines(systemClock, path, never), 'last\n');
  });

  it('a link to a file that is no log shows nothing of it', async () => {
    const path = join(root, `${count++}.log`);
    symlinkSync(file('root:secret:1:\n'), path);
    assert.equal(await all(path), '');
  });
});
