import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Decoder } from './decoder.ts';
import { FileSource, type FileSourceDeps } from './file-source.ts';
import { LocalObjectStore } from './local-objects.ts';
import type { FoundProblem } from './problem.ts';
import { until } from '../../test/harness/until.ts';

const manifest = (name: string, image = 'busybox:1'): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: c\n    image: ${image}\n`;

const root = mkdtempSync(join(tmpdir(), 'file-source-'));
after(() => rmSync(root, { recursive: true, force: true }));

type Running = {
  readonly directory: string;
  readonly source: FileSource;
  readonly sets: (readonly Pod[])[];
  readonly problems: () => readonly FoundProblem[];
  readonly names: () => readonly string[];
  readonly stop: () => Promise<void>;
};

let count = 0;

const RESCAN_MS = 60_000;

function start(more: Partial<FileSourceDeps> = {}, path?: string, rescanMs = RESCAN_MS): Running {
  const directory = path ?? join(root, `dir-${count++}`);
  if (path === undefined) mkdirSync(directory);
  const sets: (readonly Pod[])[] = [];
  let problems: readonly FoundProblem[] = [];
  const source = new FileSource(
    {
      clock: systemClock,
      log: silentLogger,
      decoder: new Decoder(systemClock),
      emit: (pods) => sets.push(pods),
      report: (found) => (problems = found),
      ...more,
    },
    { path: directory, nodeName: 'n1', rescanMs },
  );
  const stopper = new AbortController();
  const done = source.run(stopper.signal);
  return {
    source,
    directory,
    sets,
    problems: () => problems,
    names: () => (sets.at(-1) ?? []).map((p) => p.metadata.name).sort(),
    stop: () => {
      stopper.abort();
      return done;
    },
  };
}

const same = (a: readonly string[], b: readonly string[]): boolean => JSON.stringify(a) === JSON.stringify(b);

describe('file source', () => {
  let running: Running;

  it('says of files that cannot be read why', async () => {
    const own = start();
    writeFileSync(join(own.directory, 'huge.yaml'), `# ${'x'.repeat(11 << 20)}`);
    symlinkSync('loop.yaml', join(own.directory, 'loop.yaml'));
    await until('both are told of', () => own.problems().length === 2);
    assert.match(own.problems()[0]?.message ?? '', /larger than 10 MiB/);
    assert.match(own.problems()[1]?.message ?? '', /cannot be read: .*ELOOP/);
    await own.stop();
  });

  it('says first that there is nothing, then sees a file within moments', async () => {
    running = start();
    await until('first set', () => running.sets.length === 1);
    assert.deepEqual(running.sets[0], []);
    writeFileSync(join(running.directory, 'a.yaml'), manifest('web'));
    await until('the pod, long before the rescan', () => same(running.names(), ['web-n1']), RESCAN_MS / 2);
    const pod = running.sets.at(-1)?.[0];
    assert.match(pod?.metadata.uid ?? '', /^[0-9a-f]{32}$/);
    assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.hash'], pod?.metadata.uid);
    assert.equal(pod?.metadata.namespace, 'default');
    assert.equal(pod?.spec.nodeName, 'n1');
    assert.deepEqual(pod?.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
    assert.deepEqual(pod?.status, { phase: 'Pending' });
    unlinkSync(join(running.directory, 'a.yaml'));
    await until('no pod', () => running.names().length === 0);
    await running.stop();
  });

  it('takes an atomic rename and ignores what editors and backups leave', async () => {
    running = start();
    await until('first set', () => running.sets.length === 1);
    for (const name of ['.a.yaml.swp', 'a.yaml~', 'a.yaml.backup', '4913', '#a.yaml#', '.hidden.yaml'])
      writeFileSync(join(running.directory, name), manifest('not-me'));
    mkdirSync(join(running.directory, 'sub.yaml'));
    writeFileSync(join(running.directory, '.tmp1'), manifest('web'));
    renameSync(join(running.directory, '.tmp1'), join(running.directory, 'web.yml'));
    await until('the pod', () => same(running.names(), ['web-n1']));
    const first = running.sets.at(-1)?.[0]?.metadata.uid;
    writeFileSync(join(running.directory, '.tmp2'), manifest('web', 'busybox:2'));
    renameSync(join(running.directory, '.tmp2'), join(running.directory, 'web.yml'));
    await until('another uid', () => running.sets.at(-1)?.[0]?.metadata.uid !== first);
    assert.deepEqual(running.names(), ['web-n1']);
    assert.deepEqual(running.problems(), []);
    await running.stop();
  });

  it('says that a pod is gone when its file is removed and written again, but not when it is replaced', async () => {
    const directory = join(root, `dir-${count++}`);
    const file = join(directory, 'a.yaml');
    mkdirSync(directory);
    writeFileSync(file, manifest('web'));
    running = start({}, directory);
    await until('the pod', () => same(running.names(), ['web-n1']));
    const uid = running.sets.at(-1)?.[0]?.metadata.uid;
    const { length } = running.sets;
    unlinkSync(file);
    writeFileSync(file, manifest('web'));
    await until('both sets', () => running.sets.length >= length + 2);
    assert.deepEqual(
      running.sets.slice(length, length + 2).map((set) => set.map((pod) => pod.metadata.uid)),
      [[], [uid]],
    );
    await running.stop();

    running = start({}, directory);
    await until('the pod', () => same(running.names(), ['web-n1']));
    const before = running.sets.length;
    writeFileSync(join(directory, '.tmp'), manifest('web'));
    renameSync(join(directory, '.tmp'), file);
    await until('another look', () => running.sets.length > before);
    for (let round = 0; round < 5; round++) {
      writeFileSync(join(directory, '.tmp'), manifest('web').replace('spec:', `# ${round}\nspec:`));
      renameSync(join(directory, '.tmp'), file);
    }
    await until('the last of five replacements', () => running.sets.length > before + 1);
    assert.ok(running.sets.every((set) => set.length === 1));
    await running.stop();
  });

  it('has one pod at most, and in the end the last, of files moved over one another from elsewhere', async () => {
    const [directory, elsewhere] = [join(root, `dir-${count++}`), join(root, `dir-${count++}`)];
    for (const dir of [directory, elsewhere]) mkdirSync(dir);
    writeFileSync(join(directory, 'a.yaml'), manifest('web', 'busybox:0'));
    running = start({}, directory);
    await until('the pod', () => same(running.names(), ['web-n1']));
    for (const round of [1, 2, 3]) {
      writeFileSync(join(elsewhere, 'a.yaml'), manifest('web', `busybox:${round}`));
      renameSync(join(elsewhere, 'a.yaml'), join(directory, 'a.yaml'));
    }
    await until('the last', () => running.sets.at(-1)?.[0]?.spec.containers[0]?.image === 'busybox:3');
    assert.ok(running.sets.every((set) => set.length <= 1));
    await running.stop();
  });

  it('keeps the last good version of a file that is broken and says where it is', async () => {
    running = start();
    const file = join(running.directory, 'a.yaml');
    writeFileSync(file, manifest('web'));
    await until('the pod', () => same(running.names(), ['web-n1']));
    writeFileSync(file, manifest('web').replace('name: c', 'name: Bad_Name'));
    await until('the problem', () => running.problems().length > 0);
    assert.deepEqual(running.names(), ['web-n1']);
    const [problem] = running.problems();
    assert.equal(problem?.where, file);
    assert.equal(problem?.line, 7);
    assert.equal(problem?.column, 5);
    assert.equal(problem?.field, 'spec.containers[0].name');
    assert.match(
      problem?.message ?? '',
      /^spec\.containers\[0\]\.name: Invalid value: "Bad_Name": .*last good version/,
    );
    writeFileSync(file, manifest('web', 'busybox:3'));
    await until('no problem', () => running.problems().length === 0);
    await running.stop();
  });

  it('does not complain of a file that is written in two steps', async () => {
    const reports: number[] = [];
    let written: number | undefined;
    // However slow this machine is: the first step was a moment ago.
    const clock = { ...systemClock, now: () => written ?? Date.now() };
    running = start({ clock, report: (found) => reports.push(found.length) });
    await until('first set', () => running.sets.length === 1);
    const file = join(running.directory, 'slow.yaml');
    const before = reports.length;
    writeFileSync(file, manifest('slow').slice(0, 40));
    written = statSync(file).mtimeMs + 120;
    await until('it has been looked at', () => reports.length > before);
    writeFileSync(file, manifest('slow'));
    await until('the pod', () => same(running.names(), ['slow-n1']));
    assert.ok(reports.every((n) => n === 0));
    await running.stop();
  });

  it('keeps the pod that is there when a second file names it, whatever the file is called', async () => {
    running = start();
    writeFileSync(join(running.directory, 'm.yaml'), manifest('web'));
    await until('the pod', () => same(running.names(), ['web-n1']));
    const uid = running.sets.at(-1)?.[0]?.metadata.uid;
    writeFileSync(join(running.directory, 'a.yaml'), manifest('web', 'busybox:2'));
    await until('the conflict', () => running.problems().length === 1);
    assert.equal(running.sets.at(-1)?.[0]?.metadata.uid, uid);
    const [problem] = running.problems();
    assert.equal(problem?.where, join(running.directory, 'a.yaml'));
    assert.match(problem?.message ?? '', /already defined in .*m\.yaml/);
    unlinkSync(join(running.directory, 'm.yaml'));
    await until('the other', () => running.sets.at(-1)?.[0]?.spec.containers[0]?.image === 'busybox:2');
    assert.deepEqual(running.problems(), []);
    await running.stop();
  });

  it('starts with the one of two that runs', async () => {
    const directory = join(root, `dir-${count++}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'b.yaml'), manifest('web', 'busybox:2'));
    running = start({}, directory);
    await until('set', () => running.sets.length === 1);
    await running.stop();
    const { uid = '', name } = running.sets[0]?.[0]?.metadata ?? { name: '' };
    writeFileSync(join(directory, 'a.yaml'), manifest('web', 'busybox:1'));
    running = start({}, directory);
    await until('set', () => running.sets.length === 1);
    assert.equal(running.sets[0]?.[0]?.spec.containers[0]?.image, 'busybox:1');
    await running.stop();
    const second = start({ observed: { all: () => [{ ...aliveSnapshot(uid), name }] } }, directory);
    await until('set', () => second.sets.length === 1);
    assert.equal(second.sets[0]?.[0]?.spec.containers[0]?.image, 'busybox:2');
    await second.stop();
  });

  it('works for a directory that comes later, goes and comes back', async () => {
    const directory = join(root, 'later');
    running = start({}, directory, 300);
    await until('first set', () => running.sets.length > 0);
    mkdirSync(directory);
    writeFileSync(join(directory, 'a.yaml'), manifest('web'));
    await until('the pod', () => same(running.names(), ['web-n1']));
    rmSync(directory, { recursive: true });
    await until('no pod', () => running.names().length === 0);
    mkdirSync(directory);
    writeFileSync(join(directory, 'b.yaml'), manifest('two'));
    await until('the second', () => same(running.names(), ['two-n1']));
    await running.stop();
  });

  const BROKEN: readonly [string, (file: string) => void][] = [
    ['empty', (file) => writeFileSync(file, '')],
    ['blank', (file) => writeFileSync(file, '\n\n')],
    ['a comment', (file) => writeFileSync(file, '# x\n')],
    ['zeros', (file) => writeFileSync(file, '\0'.repeat(100))],
    ['cut off', (file) => writeFileSync(file, manifest('web').slice(0, 50))],
    ['too large', (file) => writeFileSync(file, `${manifest('web')}#${'x'.repeat(11 << 20)}`)],
    ['a link to itself', (file) => symlinkSync('a.yaml', file)],
    ['a link to what is not there', (file) => symlinkSync('/nowhere/a.yaml', file)],
  ];

  it('says which files were never good, from its first look until they are', async () => {
    for (const [what, damage] of BROKEN) {
      const directory = join(root, `dir-${count++}`);
      const file = join(directory, 'a.yaml');
      mkdirSync(directory);
      damage(file);
      writeFileSync(join(directory, 'b.yaml'), manifest('other'));
      const own = start({}, directory, 200);
      await until(`${what}: a first set`, () => own.sets.length > 0);
      assert.deepEqual([own.names(), own.source.unread], [['other-n1'], [file]], what);
      rmSync(file);
      writeFileSync(file, manifest('web'));
      await until(`${what}: the pod`, () => same(own.names(), ['other-n1', 'web-n1']));
      assert.deepEqual(own.source.unread, [], what);
      writeFileSync(file, '');
      writeFileSync(join(directory, 'c.yaml'), '');
      await until(`${what}: both are told of`, () => own.problems().length === 2);
      assert.deepEqual([own.names(), own.source.unread], [['other-n1', 'web-n1'], []], `${what}: the pod is known`);
      await own.stop();
    }
  });

  it('says no more of a file that was never good and is gone', async () => {
    const directory = join(root, `dir-${count++}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'a.yaml'), '');
    const own = start({}, directory);
    await until('a first set', () => own.sets.length > 0);
    assert.equal(own.source.unread.length, 1);
    rmSync(join(directory, 'a.yaml'));
    await until('it is seen', () => own.source.unread.length === 0);
    await own.stop();
  });

  it('keeps the pod of a file that becomes a link to what is not there', async () => {
    running = start();
    const file = join(running.directory, 'a.yaml');
    writeFileSync(file, manifest('web'));
    await until('the pod', () => same(running.names(), ['web-n1']));
    symlinkSync('/nowhere/a.yaml', `${file}.new`);
    renameSync(`${file}.new`, file);
    await until('it is told', () => running.problems().length === 1);
    assert.match(running.problems()[0]?.message ?? '', /cannot be read: .*ENOENT.* \(the last good version stays/);
    assert.deepEqual(running.names(), ['web-n1']);
    rmSync(file);
    await until('no pod', () => running.names().length === 0);
    await running.stop();
  });

  it('says nothing of pods while its path is a link to what is not there', async () => {
    const path = join(root, `link-${count++}`);
    const target = join(root, `dir-${count++}`);
    symlinkSync(target, path);
    const own = start({}, path, 200);
    await until('it is told', () => own.problems().length === 1);
    assert.deepEqual(own.sets, []);
    mkdirSync(target);
    writeFileSync(join(target, 'a.yaml'), manifest('web'));
    await until('the pod', () => same(own.names(), ['web-n1']));
    await own.stop();
  });

  it('reads a single file, through a link too', async () => {
    const directory = join(root, `dir-${count++}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'real'), manifest('one'));
    symlinkSync(join(directory, 'real'), join(directory, 'link.conf'));
    running = start({}, join(directory, 'link.conf'), 200);
    await until('the pod', () => same(running.names(), ['one-n1']));
    writeFileSync(join(directory, 'real'), manifest('two'));
    await until('the change', () => same(running.names(), ['two-n1']));
    await running.stop();
  });

  it('collects ConfigMaps and Secrets beside the pods only when asked', async () => {
    const text = `${manifest('web')}    envFrom: [{configMapRef: {name: conf}}, {secretRef: {name: sec}}]\n`;
    const objects = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: "1"}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: sec}\nstringData: {p: hunter2}\n`;
    const store = new LocalObjectStore();
    const changes: string[] = [];
    const each: string[] = [];
    store.onChange((ids) => changes.push(...ids));
    store.onObjectChange((...of) => each.push(of.join(' ')));
    running = start({ objects: store });
    writeFileSync(join(running.directory, 'pod.yaml'), text);
    writeFileSync(join(running.directory, 'objects.yaml'), objects);
    await until('the pod', () => same(running.names(), ['web-n1']) && store.configMap('default', 'conf') !== undefined);
    assert.equal(store.secret('default', 'sec')?.data?.['p'], Buffer.from('hunter2').toString('base64'));
    assert.deepEqual(changes.sort(), ['ConfigMap default/conf', 'Secret default/sec']);
    assert.deepEqual(each.sort(), ['configMap default conf', 'secret default sec']);
    await running.stop();

    running = start({}, running.directory);
    await until('the problems', () => running.problems().filter((p) => p.severity === 'error').length === 2);
    assert.deepEqual(running.names(), []);
    const messages = running.problems().map((p) => p.message);
    assert.ok(
      messages.some((m) => m.includes('static pods may not reference secrets')),
      messages.join('\n'),
    );
    assert.ok(messages.some((m) => m.includes('kind: Invalid value: "ConfigMap": must be Pod')));
    assert.ok(!messages.join().includes('hunter2'));
    await running.stop();
  });
});
