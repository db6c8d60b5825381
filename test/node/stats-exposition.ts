// A strict reader of Prometheus' text format: it rejects what a lenient one would let pass, so that a page it accepts is
// accepted everywhere.
import assert from 'node:assert/strict';

export type Series = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly atMs: number | undefined;
};
export type Family = { readonly type: string; readonly help: string; readonly series: readonly Series[] };

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const VALUE = /^([+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]Inf|NaN)$/;
const TYPES = ['counter', 'gauge', 'histogram', 'summary', 'untyped'];

type Open = { type: string | undefined; help: string; series: Series[] };

export function parseExposition(text: string): ReadonlyMap<string, Family> {
  assert.ok(text === '' || text.endsWith('\n'), 'the last line ends');
  const families = new Map<string, Open>();
  const seen = new Set<string>();
  let current: string | undefined;
  for (const [i, line] of text.split('\n').slice(0, -1).entries()) {
    const where = `line ${i + 1}: ${line.slice(0, 200)}`;
    assert.ok(!line.includes('\r'), where);
    if (line.startsWith('#')) current = readComment(line, families, current, where);
    else {
      const series = readSample(line, where);
      assert.ok(current !== undefined && belongs(series.name, current, families.get(current)?.type), where);
      const key = `${series.name}${identity(series.labels)}`;
      assert.ok(!seen.has(key), `twice: ${where}`);
      seen.add(key);
      families.get(current)?.series.push(series);
    }
  }
  return new Map([...families].map(([name, family]) => [name, closed(name, family)]));
}

function readComment(
  line: string,
  families: Map<string, Open>,
  current: string | undefined,
  where: string,
): string | undefined {
  const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
  assert.ok(keyword !== undefined && NAME.test(name), `only HELP and TYPE are comments here: ${where}`);
  if (keyword === 'HELP') {
    assert.ok(!families.has(name), `one HELP per family, and all its samples together: ${where}`);
    assert.match(rest, /^([^\\]|\\\\|\\n)*$/, where);
    families.set(name, { type: undefined, help: rest, series: [] });
    return name;
  }
  const family = families.get(name);
  assert.ok(name === current && family !== undefined, `TYPE comes right behind its HELP: ${where}`);
  assert.ok(family.type === undefined && family.series.length === 0, where);
  assert.ok(TYPES.includes(rest), where);
  family.type = rest;
  return current;
}

function belongs(name: string, family: string, type: string | undefined): boolean {
  if (type === 'histogram') return ['_bucket', '_sum', '_count'].some((suffix) => name === `${family}${suffix}`);
  return name === family;
}

function readSample(line: string, where: string): Series {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0] ?? '';
  assert.ok(name !== '', where);
  let rest = line.slice(name.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith('{')) {
    rest = rest.slice(1);
    while (!rest.startsWith('}')) {
      const match = /^([^=]+)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,(?=[^}])|(?=\}))/.exec(rest);
      assert.ok(match !== null, where);
      const [whole, label = '', value = ''] = match;
      assert.ok(LABEL.test(label) && !label.startsWith('__') && labels[label] === undefined, where);
      labels[label] = value.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
      rest = rest.slice(whole.length);
    }
    rest = rest.slice(1);
  }
  const [, value = '', stamp] = /^ (\S+)(?: (-?\d+))?$/.exec(rest) ?? [];
  assert.match(value, VALUE, where);
  return { name, labels, value: numberOf(value), atMs: stamp === undefined ? undefined : Number(stamp) };
}

const numberOf = (text: string): number =>
  text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);

function closed(name: string, { type, help, series }: Open): Family {
  assert.ok(type !== undefined, `${name} has a type`);
  assert.ok(series.length > 0, `${name} has samples`);
  if (type === 'counter' || type === 'histogram')
    for (const s of series) assert.ok(s.value >= 0, `${s.name} only grows: ${s.value}`);
  if (type === 'histogram') checkHistogram(name, series);
  const labelSets = new Set(series.map((s) => labelNames(s).join()));
  assert.ok(
    labelSets.size === 1 || type === 'histogram',
    `${name} has one set of labels: ${[...labelSets].join(' | ')}`,
  );
  return { type, help, series };
}

function checkHistogram(name: string, series: readonly Series[]): void {
  const groups = new Map<string, Series[]>();
  for (const s of series) {
    const { le: _, ...rest } = s.labels;
    const key = identity(rest);
    groups.set(key, [...(groups.get(key) ?? []), s]);
  }
  for (const [key, group] of groups) {
    const buckets = group.filter((s) => s.name === `${name}_bucket`);
    const count = group.filter((s) => s.name === `${name}_count`);
    assert.equal(count.length, 1, `${name}${key} has one count`);
    assert.equal(group.filter((s) => s.name === `${name}_sum`).length, 1, `${name}${key} has one sum`);
    assert.equal(buckets.at(-1)?.labels['le'], '+Inf', `${name}${key} ends at infinity`);
    assert.equal(buckets.at(-1)?.value, count[0]?.value, `${name}${key}: the last bucket holds everything`);
    for (const [i, bucket] of buckets.entries()) {
      const before = buckets[i - 1];
      if (before === undefined) continue;
      assert.ok(bucket.value >= before.value, `${name}${key} accumulates`);
      assert.ok(numberOf(bucket.labels['le'] ?? '') > numberOf(before.labels['le'] ?? ''), `${name}${key} is sorted`);
    }
  }
}

/** The same for the same labels in any order. */
const identity = (labels: Readonly<Record<string, string>>): string =>
  Object.keys(labels)
    .sort()
    .map((name) => `${name}=${JSON.stringify(labels[name])}`)
    .join();

const labelNames = ({ labels }: Series): readonly string[] => Object.keys(labels).sort();

/** Every label name a family uses. */
export const labelsOf = (family: Family): string =>
  [...new Set(family.series.flatMap((s) => Object.keys(s.labels)))].sort().join();

/** The bounds of a histogram's buckets, but for the last. */
const boundsOf = (name: string, { type, series }: Family): string =>
  type === 'histogram'
    ? [...new Set(series.filter((s) => s.name === `${name}_bucket`).map((s) => Number(s.labels['le'])))]
        .filter((bound) => !Number.isNaN(bound))
        .join()
    : '';

type KnownFamily = { name: string; type: string; help: string; labels: string; buckets: string };

/** `family<tab>type<tab>labels<tab>buckets<tab>help` per line, behind a heading. */
export const knownFamilies = (tsv: string): readonly KnownFamily[] =>
  tsv
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [name = '', type = '', names = '', buckets = '', help = ''] = line.split('\t');
      const labels = [...names.split(',').filter(Boolean), ...(type === 'histogram' ? ['le'] : [])].sort().join();
      return { name, type, help, labels, buckets: buckets.split(',').filter(Boolean).map(Number).join() };
    });

const START_TIME = 'process_start_time_seconds';

/** Every family of a page is one of these, in everything but its values. */
export function assertKnown(page: ReadonlyMap<string, Family>, tsv: string): void {
  const known = new Map(knownFamilies(tsv).map((family) => [family.name, family]));
  const start = known.get(START_TIME);
  // On pages without the other figures of the process upstream shows another one of that name.
  if (start !== undefined && !page.has('process_open_fds'))
    known.set(START_TIME, { ...start, help: `[ALPHA] ${start.help}` });
  assert.ok(page.size > 0);
  for (const [name, family] of page) {
    const { type, help } = family;
    const shown = { name, type, help, labels: labelsOf(family), buckets: boundsOf(name, family) };
    assert.deepEqual(shown, known.get(name));
  }
}

/** `family<tab>type<tab>labels` per line, behind a heading. */
export const referenceFamilies = (tsv: string): readonly { name: string; type: string; labels: string }[] =>
  tsv
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', type = '', labels = ''] = line.split('\t');
      return { name, type, labels: labels.trim().split(',').filter(Boolean).sort().join() };
    });
