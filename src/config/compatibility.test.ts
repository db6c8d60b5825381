import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONFIG_FIELDS } from './config-fields.ts';
import { FLAGS } from './flags.ts';
import { GATES } from './gate-table.ts';

test('docs/COMPATIBILITY.md speaks of every flag, field and gate', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/COMPATIBILITY.md'), 'utf8');
  for (const def of FLAGS) assert.ok(text.includes(`\`--${def.name}\``), def.name);
  for (const name of Object.keys(CONFIG_FIELDS)) assert.match(text, new RegExp(`\`${name}[.\`]`), name);
  for (const name of GATES.keys()) assert.ok(text.includes(`\`${name}\``), name);
});
