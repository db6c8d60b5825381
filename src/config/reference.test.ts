import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDurationMs } from '../core/duration.ts';
import { CONFIG_FIELDS } from './config-fields.ts';
import { completeConfig, readField } from './convert.ts';
import { printFlag, type FlagType } from './flag-types.ts';
import { FLAGS } from './flags.ts';
import { helpText } from './help.ts';
import { FIELD_FLAGS, FIELDS, PLAIN_FLAGS, SETTLED_FLAGS } from './reference.fixture.ts';
import { fieldAt, type Field, type Fields, type LeafKind } from './schema.ts';

const rows = (table: string): string[][] =>
  table
    .trim()
    .split('\n')
    .map((line) => line.split(' '));

const OWN = [
  'enable-manifest-api',
  'image-pull-progress',
  'node-page-address',
  'node-page-port',
  'node-page-write',
  'not-ready-condition',
  'pod-checkpoint',
  'strict-stream-authorization',
];

function paths(fields: Fields, at = ''): string[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    field.kind === 'object' && !field.nullable ? paths(field.fields, `${at}${name}.`) : [`${at}${name}`],
  );
}

const kindOf = (field: Field): string => {
  const name = field.kind === 'duration' ? 'dur' : field.kind;
  return 'pointer' in field && field.pointer ? `*${name}` : name;
};

test('every configuration field is there, with its type and default', () => {
  const config = completeConfig({});
  assert.deepEqual(
    paths(CONFIG_FIELDS).sort(),
    rows(FIELDS)
      .map(([name = '']) => name)
      .sort(),
  );
  for (const [path = '', type, wanted = ''] of rows(FIELDS)) {
    const field = fieldAt(CONFIG_FIELDS, path);
    assert.ok(field !== undefined, path);
    assert.equal(kindOf(field), type, path);
    const value = readField(config, path);
    const shown = field.kind === 'duration' && typeof value === 'number' ? formatDurationMs(value) : plain(value);
    assert.equal(shown, wanted, path);
  }
});

const plain = (value: unknown): string => {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'object' ? Object.keys(value ?? {}).join(',') : String(value as string | number | boolean);
};

test('every flag is there and none besides ours', () => {
  const wanted = [...rows(PLAIN_FLAGS), ...rows(FIELD_FLAGS)].map(([name = '']) => name);
  assert.deepEqual(FLAGS.map((def) => def.name).sort(), [...wanted, ...OWN].sort());
});

test('flags without a field have their type, default and deprecation', () => {
  for (const [name = '', type, fallback = '', deprecated] of rows(PLAIN_FLAGS)) {
    const def = FLAGS.find((f) => f.name === name);
    assert.ok(def !== undefined, name);
    assert.equal(def.type, type, name);
    assert.equal(printFlag(def.type, def.default), fallback, name);
    assert.equal(def.deprecated !== undefined, deprecated === 'D', name);
  }
});

const LEGACY: Readonly<Record<string, string>> = {
  'anonymous-auth': 'true',
  'authentication-token-webhook': 'false',
  'authorization-mode': 'AlwaysAllow',
  'read-only-port': '10255',
};

/** Which kinds of flag may set which kind of field. */
const FITS: Readonly<Record<FlagType, readonly (LeafKind | 'objects')[]>> = {
  bool: ['bool'],
  string: ['string'],
  int: ['int64'],
  int32: ['int32'],
  int64: ['int64'],
  duration: ['duration'],
  ip: ['string'],
  quantity: ['quantity'],
  strings: ['strings'],
  mapStringString: ['stringMap'],
  mapStringStringNoSplit: ['stringMap'],
  mapStringBool: ['boolMap'],
  labels: ['stringMap'],
  langleMap: ['stringMap'],
  colonMultimap: ['stringsMap'],
  taints: ['objects'],
  reservedMemory: ['objects'],
  level: ['uint32'],
  vmodule: ['objects'],
  version: [],
};

test('flags that set a field set the right one, take its type and have its default', () => {
  const config = completeConfig({});
  for (const [name = '', path = ''] of rows(FIELD_FLAGS)) {
    const def = FLAGS.find((f) => f.name === name);
    assert.ok(def?.field !== undefined, name);
    assert.equal(def.field, path, name);
    const field = fieldAt(CONFIG_FIELDS, path);
    assert.ok(
      field !== undefined && field.kind !== 'object' && FITS[def.type].includes(field.kind),
      `${name} and ${path}`,
    );
    const wanted = LEGACY[name] ?? printFlag(def.type, readField(config, path));
    assert.equal(printFlag(def.type, def.default), wanted, name);
    assert.equal(def.deprecated === undefined, SETTLED_FLAGS.includes(name), name);
  }
});

test('help names every flag once and stays within the terminal', () => {
  for (const columns of [20, 60, 80, 200]) {
    const lines = helpText(columns).split('\n');
    for (const def of FLAGS) {
      const own = lines.filter((line) => new RegExp(`^  (-., |    )--${def.name}( |$)`).test(line));
      assert.equal(own.length, 1, def.name);
    }
    const width = Math.max(50, Math.min(columns, 120));
    for (const line of lines)
      assert.ok(line.length <= width || !line.trim().includes(' ') || line.startsWith('  '), line);
  }
});
