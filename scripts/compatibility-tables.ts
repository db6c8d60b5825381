// Writes the tables of flags, configuration fields and feature gates in docs/COMPATIBILITY.md from the tables in src/config.
// Whether a field or gate has an effect is read off the source: somebody outside src/config has to ask for it.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_FIELDS } from '../src/config/config-fields.ts';
import { completeConfig, readField } from '../src/config/convert.ts';
import { printFlag } from '../src/config/flag-types.ts';
import { FLAGS } from '../src/config/flags.ts';
import { GATES } from '../src/config/gate-table.ts';
import { LIVE_FIELDS } from '../src/config/reload.ts';
import { fieldAt, internalKey, type Fields } from '../src/config/schema.ts';
import { formatDurationMs } from '../src/core/duration.ts';

const root = join(import.meta.dirname, '..');
const file = join(root, 'docs/COMPATIBILITY.md');
const BEGIN = '<!-- tables of scripts/compatibility-tables.ts: begin -->';
const END = '<!-- tables of scripts/compatibility-tables.ts: end -->';

const source = globSync(join(root, 'src/**/*.ts'))
  .filter((path) => !path.endsWith('.test.ts') && !/\/src\/config\/(?!configure|load|updates)/.test(path))
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

const uses = (name: string): boolean => new RegExp(`\\b${name}\\b`).test(source);

/** Short and nested names are too common to be looked for alone. */
function usesField(path: string, key: string): boolean {
  const parts = path.split('.');
  if (parts.length > 1) return uses(`${parts.at(-2)}\\??\\.${key}`);
  return key.length > 8 ? uses(key) : uses(`\\w*[cC]onfig(?:\\.|, ')${key}`);
}

/** Where our answer is not simply "same". */
const NOTES: Readonly<Record<string, string>> = {
  failCgroupV1: 'same',
  seccompDefault: 'same',
  runOnce: 'differs: works (runs the static pods, reports on each, exits); 1.36 refuses it',
  runonce: 'differs: works (runs the static pods, reports on each, exits); 1.36 refuses it',
  enableContentionProfiling: 'accepted; there are no locks to profile',
  'contention-profiling': 'accepted; there are no locks to profile',
  iptablesMasqueradeBit: 'accepted and checked; upstream uses it no more either',
  iptablesDropBit: 'accepted and checked; upstream uses it no more either',
  kernelMemcgNotification: 'same: on cgroup v1; upstream does nothing on v2 either',
  'experimental-mounter-path': 'same for NFS; the resolv.conf below it is left alone',
  hairpinMode: 'accepted and checked; upstream uses it no more either',
  showHiddenMetricsForVersion: 'same; only `scrape_error` on `/metrics/resource` is hidden in this version',
  // Read by the name of the format in use.
  'logging.options.text.splitStream': 'same',
  'logging.options.text.infoBufferSize': 'same',
  'logging.options.json.splitStream': 'same',
  'logging.options.json.infoBufferSize': 'same',
};

function leafPaths(fields: Fields, at = ''): string[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    field.kind === 'object' && !field.nullable ? leafPaths(field.fields, `${at}${name}.`) : [`${at}${name}`],
  );
}

const cell = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``);

function fieldState(path: string): string {
  const note = NOTES[path];
  if (note !== undefined) return note;
  const field = fieldAt(CONFIG_FIELDS, path);
  const name = path.split('.').at(-1) ?? path;
  const live = LIVE_FIELDS.has(path) && source.includes(`'${path}'`) ? '; changes live on SIGHUP' : '';
  return field !== undefined && usesField(path, internalKey(name, field))
    ? `same${live}`
    : 'accepted and checked, no effect yet';
}

function flagState(name: string, group: string, field: string | undefined): string {
  const note = NOTES[name];
  if (note !== undefined) return note;
  if (group === 'Own') return 'only here';
  if (field !== undefined) return fieldState(field).replace('; changes live on SIGHUP', '');
  if (group === 'Misc') return 'same';
  const camel = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  return uses(camel) || uses(`${camel}Ms`)
    ? 'same'
    : group === 'cAdvisor'
      ? 'accepted, no effect'
      : 'accepted, no effect yet';
}

function shown(path: string): string {
  const value = readField(completeConfig({}), path);
  const field = fieldAt(CONFIG_FIELDS, path);
  if (value === undefined) return '';
  if (field?.kind === 'duration') return formatDurationMs(value as number);
  const text = JSON.stringify(value);
  return text === '{}' || text === '[]' || text === '""' ? '' : text.replace(/^"(.*)"$/, '$1');
}

const flags = FLAGS.map(
  (def) =>
    `| \`--${def.name}\` | ${def.type} | ${cell(printFlag(def.type, def.default))} | ${cell(def.field ?? '')} | ${flagState(def.name, def.group, def.field)} |`,
);
const fields = leafPaths(CONFIG_FIELDS).map(
  (path) =>
    `| \`${path}\` | ${fieldAt(CONFIG_FIELDS, path)?.kind ?? ''} | ${cell(shown(path))} | ${fieldState(path)} |`,
);
const gates = [...GATES]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, gate]) =>
      `| \`${name}\` | ${gate.stage} | ${gate.on ? 'on' : 'off'}${gate.locked ? ', locked' : ''} | ${uses(name) ? 'read' : gate.locked ? 'fixed' : 'accepted'} |`,
  );

const tables = [
  BEGIN,
  '',
  '### Flags',
  '',
  '| flag | type | default | field | state |',
  '|---|---|---|---|---|',
  ...flags,
  '',
  '### KubeletConfiguration v1beta1',
  '',
  '| field | type | default | state |',
  '|---|---|---|---|',
  ...fields,
  '',
  '### Feature gates',
  '',
  '| gate | stage | default | state |',
  '|---|---|---|---|',
  ...gates,
  '',
  END,
].join('\n');

const text = readFileSync(file, 'utf8');
const [head = '', rest = ''] = text.split(BEGIN, 2);
writeFileSync(file, `${head}${tables}${rest.split(END, 2)[1] ?? ''}`);
