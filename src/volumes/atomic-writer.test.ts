// runs: own process
import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { AtomicWriter, payloadPathProblem, type PayloadFile } from './atomic-writer.ts';

let root: string;
let random = 0.5;
const clock = new ManualClock(Date.UTC(2026, 10, 15, 3, 12, 17), () => random);
const writer = new AtomicWriter(clock);
const { signal } = new AbortController();
const none = (): Promise<void> => Promise.resolve();
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'atomic-'))));
afterEach(() => rmSync(root, { recursive: true }));

const files = (entries: Record<string, string>, mode = 0o644): Map<string, PayloadFile> =>
  new Map(Object.entries(entries).map(([path, text]) => [path, { data: Buffer.from(text), mode }]));
const stamps = (): string[] => readdirSync(root).filter((name) => name.startsWith('..20'));

test('files are reached through ..data and keep exact modes', async () => {
  const before = process.umask(0o077);
  try {
    assert.equal(await writer.write(root, files({ a: '1', 'deep/er/b': '2' }, 0o444), none, {}, signal), true);
  } finally {
    process.umask(before);
  }
  assert.deepEqual(readdirSync(root).sort(), ['..2026_11_15_03_12_17.2147483648', '..data', 'a', 'deep']);
  assert.equal(readlinkSync(join(root, '..data')), '..2026_11_15_03_12_17.2147483648');
  assert.equal(readlinkSync(join(root, 'deep')), '..data/deep');
  assert.equal(readFileSync(join(root, 'deep/er/b'), 'utf8'), '2');
  assert.equal(statSync(join(root, 'a')).mode & 0o7777, 0o444);
  assert.equal(statSync(join(root, '..data/deep/er')).mode & 0o7777, 0o755);
});

test(
  'a link belongs to the owner of its file, in the group that it was made in',
  { skip: process.getuid?.() !== 0 },
  async () => {
    const own = (text: string): PayloadFile => ({ data: Buffer.from(text), mode: 0o600, uid: 12_345 });
    const payload = new Map([...files({ plain: '1' }), ['token', own('2')], ['d/token', own('3')]]);
    const idsOf = (name: string): number[] => [lstatSync(join(root, name)).uid, lstatSync(join(root, name)).gid];
    const { gid } = lstatSync(root);
    await writer.write(root, payload, none, {}, signal);
    assert.deepEqual(['plain', 'token', 'd', '..data'].map(idsOf), [
      [0, gid],
      [12_345, gid],
      [12_345, gid],
      [0, gid],
    ]);
    rmSync(join(root, 'token'));
    mkdirSync(join(root, 'token'));
    await writer.write(root, payload, none, {}, signal);
    assert.deepEqual(idsOf('token'), [12_345, gid], 'also of one that was damaged');
  },
);

test('the same content is not written again, other content replaces all of it', async () => {
  await writer.write(root, files({ a: '1', b: '2', 'd/x': '3' }), none, {}, signal);
  const [first] = stamps();
  random = 0.25;
  assert.equal(await writer.write(root, files({ a: '1', b: '2', 'd/x': '3' }), none, {}, signal), false);
  assert.deepEqual(stamps(), [first]);
  for (const change of [{ a: '1', b: 'x' }, { a: '1' }, { a: '1', 'd/y': '3' }, {}]) {
    random += 0.01;
    assert.equal(await writer.write(root, files(change), none, {}, signal), true);
    assert.equal(stamps().length, 1);
    const shown = readdirSync(root).filter((name) => !name.startsWith('..'));
    assert.deepEqual(shown.sort(), [...new Set(Object.keys(change).map((p) => p.replace(/\/.*/, '')))].sort());
  }
});

test('a reader sees permissions set before the files appear, and nothing of a failed write', async () => {
  await writer.write(root, files({ a: '1' }), none, {}, signal);
  const old = readlinkSync(join(root, '..data'));
  random = 0.75;
  const refuse = (): Promise<void> => {
    assert.equal(readlinkSync(join(root, '..data')), old, 'not visible yet');
    return Promise.reject(new Error('no'));
  };
  await assert.rejects(writer.write(root, files({ a: '2' }), refuse, {}, signal), /no/);
  assert.equal(readFileSync(join(root, 'a'), 'utf8'), '1');
  assert.deepEqual(stamps(), [old]);
});

test('a write that was interrupted anywhere is completed by the next', async () => {
  await writer.write(root, files({ a: '1', b: '2' }), none, {}, signal);
  unlinkSync(join(root, 'b'));
  mkdirSync(join(root, '..2026_01_01_00_00_00.7'));
  assert.equal(await writer.write(root, files({ a: '1', b: '2' }), none, {}, signal), false);
  assert.equal(readFileSync(join(root, 'b'), 'utf8'), '2');
  assert.equal(stamps().length, 1);
});

test('paths that could leave the volume or hide its machinery are refused', () => {
  for (const good of ['a', 'a/b', '.hidden', 'a..b', 'a/..b', 'x'.repeat(255)]) {
    assert.equal(payloadPathProblem(good), undefined, good);
  }
  for (const bad of ['', '/a', '..', '../a', 'a/../b', '..data', '..a/b', 'x'.repeat(256), 'a/'.repeat(2049), 'a\0b']) {
    assert.match(payloadPathProblem(bad) ?? '', /^invalid path/, bad.slice(0, 20));
  }
});
