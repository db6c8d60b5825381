import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, it } from 'node:test';
import type { Secret } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import { formatText, LeveledLogger, silentLogger, type Line, type Logger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodCheckpoint, removeCheckpoint } from './pod-checkpoint.ts';
import { until } from '../../test/harness/until.ts';

const clock = new ManualClock();
const pod = (uid: string, spec: Partial<Pod['spec']> = {}, more: Partial<Pod> = {}): Pod => ({
  metadata: { name: uid, namespace: 'ns', uid, resourceVersion: '3', managedFields: [{}] },
  spec: { containers: [], ...spec },
  ...more,
});
const secret = (name: string, version = '1'): Secret => ({
  metadata: { name, namespace: 'ns', uid: name, resourceVersion: version, managedFields: [{}] },
  data: { key: 'aGlkZGVu' },
});
const using = (name: string): Partial<Pod['spec']> => ({ imagePullSecrets: [{ name }] });
const token = (podUid: string, lifeMs = 60_000): { token: string; expirationTimestamp: string; podUid: string } => ({
  token: `token of ${podUid}`,
  expirationTimestamp: apiTime(clock.now() + lifeMs),
  podUid,
});

let root = '';
let count = 0;
before(async () => void (root = await mkdtemp(join(tmpdir(), 'checkpoint-'))));
after(() => rm(root, { recursive: true }));

const newDir = (): string => join(root, `${count++}`, 'last_known');
async function open(dir: string, nodeName = 'n1', log: Logger = silentLogger): Promise<PodCheckpoint> {
  const checkpoint = new PodCheckpoint({ clock, log }, { dir, nodeName });
  await checkpoint.load();
  return checkpoint;
}

/** Runs it for the time of `told`, and until what it was told is written. */
async function write(checkpoint: PodCheckpoint, reported: () => void): Promise<void> {
  const end = new AbortController();
  const running = checkpoint.run(end.signal);
  reported();
  end.abort(); // a change before the stop is still written
  await running;
}

it('keeps pods and what they need, for root only and slim, and gives it to the next run of the same node', async () => {
  const dir = newDir();
  const first = await open(dir);
  assert.equal(first.pods, undefined, 'there was no word of pods yet');
  await write(first, () => {
    first.podsChanged([pod('a', { ...using('pull'), runtimeClassName: 'fast', serviceAccountName: 'sa' })]);
    first.nodeChanged({ metadata: { name: 'n1', labels: { disk: 'fast' } } });
    first.servicesChanged([{ metadata: { name: 'db', namespace: 'ns', managedFields: [{}] } }]);
    first.secrets.set('ns/pull', secret('pull'));
    first.runtimeClasses.set('fast', { metadata: { name: 'fast' }, handler: 'runc' });
    first.serviceAccounts.set('ns/sa', { metadata: { name: 'sa', namespace: 'ns', uid: 's' } });
    first.tokens.set('key', token('a'));
  });
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  const files = await readdir(dir);
  assert.deepEqual(
    files.sort(),
    [
      'node.json',
      'pods.json',
      'runtime-classes.json',
      'secrets.json',
      'service-accounts.json',
      'services.json',
      'tokens.json',
    ],
    'a file for each kind there is',
  );
  for (const name of files) {
    assert.equal((await stat(join(dir, name))).mode & 0o777, 0o600, name);
    assert.ok(!(await readFile(join(dir, name), 'utf8')).includes('managedFields'), name);
  }
  const next = await open(dir);
  assert.equal(next.pods?.[0]?.metadata.uid, 'a');
  assert.equal(next.node?.metadata.labels?.['disk'], 'fast');
  assert.equal(next.services?.[0]?.metadata.name, 'db');
  assert.equal(next.secrets.get('ns/pull')?.data?.['key'], 'aGlkZGVu');
  assert.equal(next.runtimeClasses.get('fast')?.handler, 'runc');
  assert.equal(next.serviceAccounts.get('ns/sa')?.metadata.uid, 's');
  assert.equal(next.tokens.get('key')?.token, 'token of a');
  assert.equal((await open(dir, 'n2')).pods, undefined, 'another node’s pods are not ours');
  await removeCheckpoint(dir);
  await assert.rejects(stat(dir), { code: 'ENOENT' });
});

it('forgets what no pod that is left uses, and tokens that expired', async () => {
  const dir = newDir();
  const checkpoint = await open(dir);
  await write(checkpoint, () => {
    checkpoint.podsChanged([pod('a', using('one')), pod('b', using('two')), pod('c', using('three'))]);
    for (const name of ['one', 'two', 'three', 'stray']) checkpoint.secrets.set(`ns/${name}`, secret(name));
    for (const uid of ['a', 'b']) checkpoint.tokens.set(uid, token(uid));
    checkpoint.tokens.set('short', token('a', 1000));
  });
  assert.equal(checkpoint.secrets.get('ns/stray'), undefined);
  assert.equal(checkpoint.tokens.get('short')?.podUid, 'a');
  await clock.advance(2000);
  await write(checkpoint, () =>
    checkpoint.podsChanged([pod('a', using('one')), pod('c', using('three'), { status: { phase: 'Succeeded' } })]),
  );
  const next = await open(dir);
  assert.deepEqual(
    next.secrets.values().map((s) => s.metadata.name),
    ['one'],
  );
  assert.deepEqual(
    next.tokens.values().map((t) => t.podUid),
    ['a'],
  );
  assert.equal(next.tokens.get('short'), undefined);
});

it('never writes less than it read before the API server has said which pods there are', async () => {
  const dir = newDir();
  const first = await open(dir);
  await write(first, () => {
    first.podsChanged([pod('a', using('pull'))]);
    first.secrets.set('ns/pull', secret('pull'));
  });
  const second = await open(dir);
  await write(second, () => second.servicesChanged([]));
  assert.equal((await open(dir)).pods?.length, 1);
  await write(second, () => second.podsChanged([pod('a', using('pull'))]));
  assert.ok((await open(dir)).secrets.get('ns/pull') !== undefined, 'nobody said that it is gone');
  await write(second, () => second.secrets.delete('ns/pull'));
  assert.equal((await open(dir)).secrets.get('ns/pull'), undefined);
});

it('takes many changes with one write, and none where nothing changed', async () => {
  const dir = newDir();
  const checkpoint = await open(dir);
  const end = new AbortController();
  const running = checkpoint.run(end.signal);
  for (let i = 0; i < 10; i++) {
    checkpoint.podsChanged([pod('a', using('pull'))]);
    checkpoint.secrets.set('ns/pull', secret('pull', `${i}`));
    await clock.advance(10);
  }
  assert.deepEqual(await readdir(dir), [], 'nothing is written while changes come');
  await clock.advance(300);
  await untilThere(join(dir, 'pods.json'));
  const { ino } = await stat(join(dir, 'secrets.json'));
  checkpoint.podsChanged([pod('a', using('pull'))]);
  checkpoint.secrets.set('ns/pull', secret('pull', '9'));
  await clock.advance(1000);
  end.abort();
  await running;
  assert.equal((await stat(join(dir, 'secrets.json'))).ino, ino);
});

it('names a damaged file without showing it, and goes on with the others', async () => {
  const dir = newDir();
  const first = await open(dir);
  await write(first, () => {
    first.podsChanged([pod('a', using('pull'))]);
    first.servicesChanged([]);
    first.secrets.set('ns/pull', secret('pull'));
    first.tokens.set('key', token('a'));
  });
  await writeFile(join(dir, 'secrets.json'), (await readFile(join(dir, 'secrets.json'), 'utf8')).slice(0, -20));
  await writeFile(join(dir, 'tokens.json'), '{"version":1,"node":"n1","items":[["k",3]]}');
  const lines: string[] = [];
  const sink = { write: (line: Line) => void lines.push(formatText(line, 1)) };
  const next = await open(dir, 'n1', new LeveledLogger(clock, sink, () => 4));
  assert.equal(next.pods?.length, 1);
  assert.equal(next.secrets.get('ns/pull'), undefined);
  assert.equal(next.tokens.get('k'), undefined);
  assert.equal(lines.filter((l) => l.includes('secrets.json')).length, 1);
  assert.equal(lines.filter((l) => l.includes('tokens.json')).length, 1);
  assert.ok(!lines.join().includes('aGlkZGVu'));
});

it('leaves out an item that is none, and is told of the others as ever', async () => {
  const dir = newDir();
  const first = await open(dir);
  await write(first, () => {
    first.podsChanged([pod('a', using('pull')), pod('b')]);
    first.nodeChanged({ metadata: { name: 'n1' } });
    first.secrets.set('ns/pull', secret('pull'));
    first.tokens.set('key', token('a'));
  });
  const spoil = async (file: string, key: string, item: unknown): Promise<void> => {
    const path = join(dir, file);
    const content = JSON.parse(await readFile(path, 'utf8')) as { items: [string, unknown][] };
    content.items = [...content.items.filter(([other]) => other !== key), [key, item]];
    await writeFile(path, JSON.stringify(content));
  };
  await spoil('pods.json', 'b', { spec: {} });
  await spoil('node.json', 'n1', { metadata: null });
  await spoil('secrets.json', 'ns/pull', [1]);
  await spoil('tokens.json', 'key', { token: 1 });
  const lines: string[] = [];
  const sink = { write: (line: Line) => void lines.push(formatText(line, 1)) };
  const next = await open(dir, 'n1', new LeveledLogger(clock, sink, () => 4));
  assert.deepEqual(
    next.pods?.map(({ metadata }) => metadata.name),
    ['a'],
  );
  assert.equal(lines.length, 4);
  await write(next, () => {
    next.podsChanged([pod('a', using('pull')), pod('b')]);
    next.nodeChanged({ metadata: { name: 'n1' } });
    next.secrets.set('ns/pull', secret('pull'));
    next.tokens.set('key', token('a'));
  });
  const last = await open(dir);
  assert.deepEqual([last.pods?.length, last.node?.metadata.name], [2, 'n1']);
  assert.deepEqual([last.secrets.values().length, last.tokens.values().length], [1, 1]);
});

it('goes on where there is no place for it', async () => {
  const dir = newDir();
  await mkdir(dirname(dir), { recursive: true });
  await writeFile(dir, 'a file');
  const checkpoint = await open(dir);
  await write(checkpoint, () => checkpoint.podsChanged([pod('a')]));
  assert.equal(checkpoint.pods?.length, 1);
});

const untilThere = (path: string): Promise<unknown> => until(`${path} is written`, () => stat(path));
