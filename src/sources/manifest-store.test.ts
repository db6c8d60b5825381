import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Decoder } from './decoder.ts';
import { ManifestStore } from './manifest-store.ts';
import { ProblemBoard, type FoundProblem } from './problem.ts';
import { until } from '../../test/harness/until.ts';

const root = mkdtempSync(join(tmpdir(), 'manifest-store-'));
after(() => rmSync(root, { recursive: true, force: true }));
const never = new AbortController().signal;

const manifest = (name: string, more = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ns${more}}\nspec: {containers: [{name: c, image: i}]}\n`;

async function open(directory: string, options: { syncDirectory?: (path: string) => Promise<void> } = {}) {
  const sets: (readonly Pod[])[] = [];
  let problems: readonly FoundProblem[] = [];
  const store = new ManifestStore(
    {
      log: silentLogger,
      decoder: new Decoder(systemClock),
      emit: (pods) => sets.push(pods),
      report: (found) => (problems = found),
    },
    { directory, nodeName: 'n1', localObjects: false, ...options },
  );
  const stopper = new AbortController();
  const running = store.run(stopper.signal);
  await until('the first set', () => sets.length > 0);
  return {
    store,
    problems: () => problems,
    names: () => (sets.at(-1) ?? []).map((p) => p.metadata.name),
    close: () => {
      stopper.abort();
      return running;
    },
  };
}

describe('manifest store', () => {
  it('has deleted a pod when the directory is synced, and not before', async () => {
    const directory = join(root, 'synced');
    const told: unknown[] = [];
    let fails = true;
    const syncDirectory = async (path: string): Promise<void> => {
      told.push([path, readdirSync(directory), store.list().length]);
      if (fails) throw new Error('i/o error');
    };
    const { store, close } = await open(directory, { syncDirectory });
    await store.put('ns', 'web', manifest('web'), never);
    await assert.rejects(store.delete('ns', 'web'), /i\/o error/);
    fails = false;
    assert.equal(await store.delete('ns', 'web'), true);
    assert.deepEqual(told, [
      [directory, [], 1],
      [directory, [], 1],
    ]);
    assert.equal(store.list().length, 0);
    await close();
  });

  it('puts, replaces, lists, deletes, and remembers over restarts', async () => {
    const directory = join(root, 'a');
    const first = await open(directory);
    assert.deepEqual(first.names(), []);
    assert.equal((await first.store.put('ns', 'web', manifest('web'), never)).created, true);
    assert.equal((await first.store.put('ns', 'web', manifest('web', ', labels: {a: b}'), never)).created, false);
    await first.store.put('ns', 'two', manifest('two'), never);
    assert.deepEqual(first.names(), ['web-n1', 'two-n1']);
    assert.equal(first.store.get('ns', 'web')?.text, manifest('web', ', labels: {a: b}'));
    assert.equal(first.store.get('ns', 'nobody'), undefined);
    const file = join(directory, 'ns_web.yaml');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const uid = first.store.get('ns', 'web')?.pod.metadata.uid;
    assert.equal(await first.store.delete('ns', 'two'), true);
    assert.equal(await first.store.delete('ns', 'two'), false);
    await first.close();

    writeFileSync(join(directory, 'ns_bad.yaml'), 'kind: nonsense');
    writeFileSync(join(directory, 'README'), 'not ours');
    const second = await open(directory);
    assert.deepEqual(second.names(), ['web-n1']);
    assert.equal(second.store.get('ns', 'web')?.pod.metadata.uid, uid);
    assert.equal(second.problems().length, 1);
    const bad = join(directory, 'ns_bad.yaml');
    assert.deepEqual(second.store.unread, [bad]);
    await second.store.put('ns', 'bad', manifest('bad'), never);
    assert.deepEqual(second.store.unread, []);
    writeFileSync(bad, 'kind: nonsense');
    await second.close();
    const third = await open(directory);
    assert.equal(await third.store.delete('ns', 'bad'), true, 'what cannot be read can be removed');
    assert.deepEqual([third.store.unread, third.names()], [[], ['web-n1']]);
    await third.close();
    assert.equal(second.problems()[0]?.where, bad);
    assert.deepEqual(readdirSync(directory).sort(), ['README', 'ns_web.yaml']);
  });

  it('refuses what is wrong, with every reason, and changes nothing', async () => {
    const directory = join(root, 'b');
    const { store, names, close } = await open(directory);
    const refused: readonly (readonly [string, string, string, RegExp])[] = [
      ['ns', 'web', 'nonsense', /apiVersion: Required value/],
      [
        'ns',
        'web',
        manifest('web').replace('name: c', 'name: C'),
        /ns\/web:4:22: spec\.containers\[0\]\.name: Invalid value/,
      ],
      ['ns', 'web', manifest('other'), /is of pod ns\/other, not ns\/web/],
      ['other', 'web', manifest('web'), /is of pod ns\/web, not other\/web/],
      ['..', 'web', manifest('web'), /must be valid names/],
      ['ns', '../x', manifest('web'), /must be valid names/],
      ['ns', 'web', `# ${'x'.repeat(11 * 1024 * 1024)}`, /larger than 10 MiB/],
    ];
    for (const [namespace, name, body, message] of refused)
      await assert.rejects(store.put(namespace, name, body, never), (err: Error & { kind?: string }) => {
        assert.equal(err.kind, 'invalid');
        assert.match(err.message, message);
        return true;
      });
    assert.deepEqual(names(), []);
    assert.deepEqual(readdirSync(directory), []);
    await close();
  });

  it('takes many at once, one after the other', async () => {
    const { store, names, close } = await open(join(root, 'c'));
    const all = Array.from({ length: 20 }, (_, i) => `pod${i}`);
    await Promise.all(all.map((name) => store.put('ns', name, manifest(name), never)));
    assert.equal(names().length, 20);
    await Promise.all(all.map((name) => store.delete('ns', name)));
    assert.deepEqual(names(), []);
    await close();
  });
});

describe('problems', () => {
  it('are told once, kept with their first time, and forgotten when they are gone', () => {
    const events: string[] = [];
    let now = Date.UTC(2026, 0, 1);
    const board = new ProblemBoard({
      clock: { ...systemClock, now: () => now },
      log: silentLogger,
      events: { node: (type, reason, message) => void events.push(`${type} ${reason} ${message}`) },
    });
    const problem: FoundProblem = {
      where: '/m/a.yaml',
      severity: 'error',
      line: 3,
      column: 5,
      field: 'x',
      message: 'x: bad',
    };
    board.set('file', [problem, { ...problem, severity: 'warning', message: 'odd' }]);
    now += 60_000;
    board.set('file', [problem]);
    assert.deepEqual(events, ['Warning FailedValidation file: /m/a.yaml:3:5: x: bad']);
    assert.deepEqual(board.problems(), [{ source: 'file', ...problem, since: '2026-01-01T00:00:00Z' }]);
    board.set('http', [{ where: 'http://x', severity: 'error', message: 'no' }]);
    assert.equal(board.problems().length, 2);
    board.set('file', []);
    assert.equal(board.problems().length, 1);
    board.set(
      'file',
      Array.from({ length: 50 }, (_, i) => ({ ...problem, message: `bad ${i}` })),
    );
    assert.equal(events.length, 2 + 6);
    assert.match(events.at(-1) ?? '', /45 more problems in manifests/);
  });
});
