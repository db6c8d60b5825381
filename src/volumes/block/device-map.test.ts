// The directory of a volume's binds after a power cut: the binds are gone, the files they were over may be there.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VolumeLayout } from '../layout.ts';
import { DeviceMap, type DeviceMapDeps } from './device-map.ts';

function setup(t: TestContext): { map: DeviceMap; dir: string } {
  const root = mkdtempSync(join(tmpdir(), 'kts-map-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const unused = {} as DeviceMapDeps;
  return { map: new DeviceMap({ ...unused, layout: new VolumeLayout(root) }), dir: join(root, 'dev') };
}

test('a file over which nothing is bound is no user, and goes with the directory', async (t) => {
  const { map, dir } = setup(t);
  mkdirSync(dir);
  writeFileSync(join(dir, 'uid-of-a-pod'), '');
  assert.deepEqual(await map.users(dir), []);
  await map.removeGlobalMap(dir);
  assert.equal(existsSync(dir), false);
});

test('a directory that is not there is no problem', async (t) => {
  const { map, dir } = setup(t);
  assert.deepEqual(await map.users(dir), []);
  await map.removeGlobalMap(dir);
});

test('what a kind keeps beside the binds is left to it', async (t) => {
  const { map, dir } = setup(t);
  mkdirSync(dir);
  writeFileSync(join(dir, 'disk.json'), '{}');
  await assert.rejects(map.removeGlobalMap(dir), { code: 'ENOTEMPTY' });
  assert.ok(existsSync(join(dir, 'disk.json')));
});
