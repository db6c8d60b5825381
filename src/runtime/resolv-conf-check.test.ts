import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkResolvConf } from './resolv-conf-check.ts';

test('a resolver file that pods cannot take over is told of the node', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'kts-resolv-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const [good, long, none] = ['good', 'long', 'none'].map((name) => join(root, name)) as [string, string, string];
  await writeFile(good, 'nameserver 192.0.2.1\nsearch a b\n');
  await writeFile(long, `search ${'x'.repeat(300)}\n`);
  const told: string[] = [];
  const events = {
    node: (...[type, reason, message]: string[]): void => void told.push(`${type} ${reason}: ${message}`),
  };
  for (const path of ['', good, long, none]) await checkResolvConf(path, 'cluster.local', events);
  assert.deepEqual(told, [
    `Warning CheckLimitsForResolvConf: Resolv.conf file "${long}" contains a search path which length is more than allowed 253 chars!`,
    `Warning CheckLimitsForResolvConf: open ${none}: no such file or directory`,
  ]);
});
