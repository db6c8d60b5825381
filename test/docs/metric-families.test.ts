// Every metric family of the Go kubelet is there under its own name, type and text, or left out for a reason that is given
// here. What is shown, with labels and buckets, is compared on a whole node (test/node/stats-node.test.ts).
// runs: gate
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');
const reference = readFileSync(join(root, 'test/node/stats-reference/metrics.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [name = '', type = '', , , help = ''] = line.split('\t');
    return { name, type, help };
  });

const LEFT_OUT: readonly (readonly [names: RegExp, why: string])[] = [
  [/^informer_/, 'upstream shows named informers only, and its kubelet names none'],
  [/^kubelet_started_host_process_/, 'Windows'],
  [/^rest_client_transport_/, 'the Go client keeps a cache of transports; here one belongs to each API server'],
  [/^volume_manager_selinux_/, 'labels of volumes that do not match are told by errors of the mount alone'],
];

const sources = globSync('**/*.ts', {
  cwd: join(root, 'src'),
  exclude: ['**/*.test.ts', '**/*.fixture.ts', 'devcluster/**', 'page/front/**'],
}).map((file) => readFileSync(join(root, 'src', file), 'utf8'));
const code = sources.join('\n');

/** `kubelet_volume_stats_${name}` and the like. */
const made = [...code.matchAll(/`((?:kubelet|process)_[^`]*\$\{[^`]*)`/g)].map(
  ([, text = '']) => new RegExp(`^${text.replace(/\$\{[^}]*\}/g, '[a-z_]*')}$`),
);
const isNamed = (name: string): boolean => code.includes(`'${name}'`) || made.some((pattern) => pattern.test(name));

test('every family of upstream is shown or left out for a reason', () => {
  const missing = reference
    .map(({ name }) => name)
    .filter((name) => !isNamed(name) && !LEFT_OUT.some(([names]) => names.test(name)));
  assert.deepEqual(missing, []);
  for (const [names] of LEFT_OUT)
    assert.ok(
      reference.some(({ name }) => names.test(name) && !isNamed(name)),
      `${names} is still left out`,
    );
});

test('families have the text of upstream', () => {
  const texts = [...code.matchAll(/'([a-z]\w*_\w+)',\s*(['"])((?:\\.|(?!\2).)*)\2/g)];
  const known = new Map(reference.map(({ name, help }) => [name, help]));
  let compared = 0;
  for (const [, name = '', , text = ''] of texts) {
    const help = known.get(name);
    if (help === undefined || !text.includes(' ')) continue;
    assert.equal(text.replaceAll("\\'", "'"), help, name);
    compared++;
  }
  assert.ok(compared > 100, `${compared} texts were found`);
});
