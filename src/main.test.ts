import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { CONFIG_FIELDS } from './config/config-fields.ts';
import { FLAGS } from './config/flags.ts';
import type { Field, Fields } from './config/schema.ts';
import { main, type MainIo, type Signals } from './main.ts';

const dir = mkdtempSync(join(tmpdir(), 'kubelet-main-'));
after(() => rmSync(dir, { recursive: true }));
const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n';
let files = 0;

function configFile(text: string): string {
  const path = join(dir, `${files++}.yaml`);
  writeFileSync(path, text);
  return path;
}

const signals: Signals = {
  onStop: () => assert.fail('started although the input is broken'),
  onReload: () => undefined,
  onCrash: () => undefined,
  exitNow: () => undefined,
};

type Result = { code: number; out: string; err: string };

async function run(argv: readonly string[]): Promise<Result> {
  let [out, err] = ['', ''];
  const io: MainIo = { out: (text) => (out += text), err: (text) => (err += text), columns: 80 };
  const code = await main(argv, io, signals);
  return { code, out, err };
}

/** Exit code 1, one message that begins with our name, nothing a program would say to its author. */
function assertOneMessage({ code, out, err }: Result, of: string): void {
  assert.equal(code, 1, `${of}\n${out}${err}`);
  assert.equal(out, '', of);
  assert.match(err, /^kubelet: .+/, of);
  assert.equal(err.split('\n').filter((line) => line.startsWith('kubelet: ')).length, 1, `${of}\n${err}`);
  assert.doesNotMatch(err, /\n {4}at |TypeError|RangeError|\[object |undefined|NaN/, `${of}\n${err}`);
  assert.ok(err.endsWith('\n') && err.length < 20_000, of);
}

/** A value of the wrong type for each field there is. */
function brokenFields(fields: Fields, at: readonly string[] = []): { path: string; yaml: string }[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const path = [...at, name];
    if (field.kind === 'object') return [...brokenFields(field.fields, path), broken(path, '7')];
    return [broken(path, wrongFor(field))];
  });
}

const broken = (path: readonly string[], value: string): { path: string; yaml: string } => ({
  path: path.join('.'),
  yaml: `${path.map((name, depth) => `${'  '.repeat(depth)}${name}:`).join('\n')} ${value}\n`,
});

function wrongFor(field: Field): string {
  switch (field.kind) {
    case 'bool':
      return '"yes please"';
    case 'string':
    case 'stringMap':
    case 'boolMap':
    case 'stringsMap':
      return '[1, 2]';
    case 'duration':
      return 'soon';
    default:
      return '{a: b}';
  }
}

test('a wrong type in any field of the file is refused by name', async () => {
  const all = brokenFields(CONFIG_FIELDS);
  assert.ok(all.length > 120);
  for (const { path, yaml } of all) {
    const result = await run([`--config=${configFile(HEAD + yaml)}`]);
    assertOneMessage(result, yaml);
    assert.ok(result.err.includes(`${path}: expected `), `${path}\n${result.err}`);
    assert.match(result.err, /\.yaml:\d+:\d+: /);
  }
});

const TAKES_ANYTHING = new Set(['string', 'labels', 'strings']);

test('a wrong value for any flag is refused by name', async () => {
  const all = FLAGS.filter((def) => !TAKES_ANYTHING.has(def.type));
  assert.ok(all.length > 60);
  for (const def of all) {
    const result = await run([`--${def.name}=?!`]);
    assertOneMessage(result, def.name);
    assert.ok(result.err.includes(`--${def.name}`), result.err);
  }
});

test('a flag that lost a letter is refused, most often with the right name', async () => {
  let found = 0;
  const long = FLAGS.filter((def) => def.name.length > 6);
  for (const def of long) {
    const typo = def.name.slice(0, 3) + def.name.slice(4);
    const result = await run([`--${typo}=1`]);
    assertOneMessage(result, typo);
    if (result.err.includes(`did you mean --${def.name}?`)) found++;
  }
  assert.ok(found >= long.length * 0.95, `${found} of ${long.length}`);
});

test('files cut short or with letters changed are refused or fine, never a crash', async () => {
  const whole = `${HEAD}authentication:\n  anonymous: {enabled: false}\n  x509:\n    clientCAFile: "/a/b"\nevictionHard: &e\n  memory.available: 100Mi\nclusterDNS: [10.0.0.1, "10.0.0.2"]\nregisterWithTaints:\n- {key: a, effect: NoSchedule}\nhealthzPort: 99999\n`;
  await fc.assert(
    fc.asyncProperty(
      fc.nat(whole.length),
      fc.nat(4),
      fc.stringMatching(/^[\][{}&*!|>%@`"':,#?\-\t\n\0a0 ]{0,4}$/),
      async (at, drop, insert) => {
        const text = whole.slice(0, at) + insert + whole.slice(at + drop);
        assertOneMessage(await run([`--config=${configFile(text)}`, '--port=0']), text);
      },
    ),
    { numRuns: 300 },
  );
});

test('values out of range are all named at once', async () => {
  const result = await run([
    `--config=${configFile(`${HEAD}maxPods: -1\nhairpinMode: x\n`)}`,
    '--port=0',
    '--event-qps=-1',
  ]);
  assertOneMessage(result, 'several');
  assert.equal(result.err.split('\n').filter((line) => line.startsWith('  - invalid configuration: ')).length, 4);
});

test('help and version go to standard output and succeed', async () => {
  const version = await run(['--version']);
  assert.match(version.out, /^Kubernetes v1\.36\.0\+kubelet-ts\.\d+\.\d+\.\d+\n$/);
  assert.equal(version.code, 0);
  const kubeadm = /^\s*Kubernetes v((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-\w.+]*)?)\s*$/;
  assert.match(version.out.trim(), kubeadm, 'kubeadm takes nothing else');
  const raw = (await run(['--version=raw'])).out;
  assert.match(raw, /^version\.Info\{.*GitVersion:"v1\.36\.0\+kubelet-ts/);
  assert.match(raw, /GitCommit:"([0-9a-f]{40})?"/);
  assert.ok(raw.includes(`Runtime:"node ${process.version}"`), raw);
  const help = await run(['--nonsense-after-help-is-ignored', '-h'].reverse());
  assert.equal(help.code, 0);
  assert.match(help.out, /--container-runtime-endpoint string/);
});

test('the program itself answers the same', () => {
  const bin = join(import.meta.dirname, '../bin/kubelet');
  for (const argv of [
    ['--no-such-flag'],
    ['--max-pods=many'],
    ['run'],
    [`--config=${configFile(`${HEAD}maxPods: many\n`)}`],
    [`--config=${join(dir, 'missing')}`],
    ['--feature-gates=Nonsense=true'],
  ]) {
    const { status, stdout, stderr } = spawnSync(bin, argv, { encoding: 'utf8' });
    assertOneMessage({ code: status ?? -1, out: stdout, err: stderr }, argv.join(' '));
  }
  const { status, stdout, stderr } = spawnSync(bin, ['--version'], { encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^Kubernetes v1\.36\.0\+kubelet-ts\./);
});
