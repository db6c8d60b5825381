// Records of pulls that are damaged on disk: their images count as pulled, with credentials that nobody knows.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PullRecords } from './pull-records.ts';

const SECRET = { uid: 'u', namespace: 'default', name: 'one', credentialHash: 'h' };
const made: string[] = [];

after(() => {
  for (const root of made) rmSync(root, { recursive: true, force: true });
});

/** An image pulled with a secret, and one whose pull was cut off. */
async function setup(): Promise<{ again: () => Promise<PullRecords>; pulled: string; pulling: string }> {
  const root = mkdtempSync(join(tmpdir(), 'kts-records-'));
  made.push(root);
  const again = async (): Promise<PullRecords> => {
    const records = new PullRecords({ clock: systemClock, log: silentLogger }, root);
    await records.load(async () => undefined);
    return records;
  };
  const records = await again();
  await records.allow('sha256:a', 'reg.io/a', { kubernetesSecrets: [SECRET] });
  await records.begin('reg.io/b:1');
  return { again, pulled: join(root, 'image_manager', 'pulled'), pulling: join(root, 'image_manager', 'pulling') };
}

function damage(dir: string, text: (good: string) => string): void {
  for (const name of readdirSync(dir)) {
    const good = readFileSync(join(dir, name), 'utf8');
    assert.notEqual(text(good), good);
    writeFileSync(join(dir, name), text(good));
  }
}

const mapping =
  (json: string) =>
  (good: string): string =>
    good.replace(/"credentialMapping":.*/, `"credentialMapping":${json}}`);

describe('a pull record on disk', () => {
  const rows: readonly (readonly [what: string, text: (good: string) => string])[] = [
    ['empty', () => ''],
    ['cut off', (good) => good.slice(0, 40)],
    ['null', () => 'null'],
    ['a list', () => '[]'],
    ['without content', () => '{}'],
    ['of another image', (good) => good.replace('sha256:a', 'sha256:b')],
    ['with a mapping that is none', mapping('[]')],
    ['with access that is none', mapping('{"reg.io/a":1}')],
    ['with a list that is none', mapping('{"reg.io/a":{"kubernetesSecrets":1}}')],
    ['with an item that is none', mapping('{"reg.io/a":{"kubernetesSecrets":[null]}}')],
  ];
  for (const [what, text] of rows)
    it(`gives nobody access when it is damaged: ${what}`, async () => {
      const { again, pulled } = await setup();
      damage(pulled, text);
      const records = await again();
      assert.equal(records.records, 0);
      assert.ok(records.ours('reg.io/a:1', 'sha256:a'), 'the image is no preloaded one, which everybody may use');
      assert.ok(!records.ours('reg.io/c:1', 'sha256:c'));
      await records.allow('sha256:a', 'reg.io/a', { nodePodsAccessible: true });
      await records.prune(new Set(['sha256:a']), Infinity);
      const later = await again();
      assert.equal(later.recordOf('sha256:a')?.credentialMapping['reg.io/a']?.nodePodsAccessible, true);
    });

  it('goes with its image, damaged or not', async () => {
    const { again, pulled } = await setup();
    damage(pulled, () => 'null');
    const records = await again();
    await records.prune(new Set(['sha256:a']), Infinity);
    assert.equal(readdirSync(pulled).length, 1);
    await records.prune(new Set(), Infinity);
    assert.deepEqual(readdirSync(pulled), []);
    assert.ok(!records.ours('reg.io/a:1', 'sha256:a'));
  });

  it('stays when it was written after the images were listed, though its stamp has whole seconds', async () => {
    const root = mkdtempSync(join(tmpdir(), 'kts-records-'));
    made.push(root);
    const clock = new ManualClock(1_000_000_500);
    const records = new PullRecords({ clock, log: silentLogger }, root);
    await records.load(async () => undefined);
    const listedAtMs = clock.now();
    await clock.advance(400);
    await records.allow('sha256:a', 'reg.io/a', { kubernetesSecrets: [SECRET] });
    await records.prune(new Set(), listedAtMs);
    assert.ok(records.ours('reg.io/a:1', 'sha256:a'), 'the image is no preloaded one, which everybody may use');
    await records.prune(new Set(), listedAtMs + 1000);
    assert.ok(!records.ours('reg.io/a:1', 'sha256:a'));
  });

  it('of a pull that was cut off still tells that there was one when it is damaged', async () => {
    const { again, pulling } = await setup();
    damage(pulling, () => 'null');
    const records = await again();
    assert.ok(records.ours('reg.io/b:1', 'sha256:b'));
    await records.begin('reg.io/b:1');
    await records.failed('reg.io/b:1');
    assert.ok(!records.ours('reg.io/b:1', 'sha256:b'));
    assert.deepEqual(readdirSync(pulling), []);
  });
});

describe('pull records on a disk that takes nothing', () => {
  const ACCESS = { kubernetesSecrets: [SECRET] };
  const newRoot = (): { root: string; store: string; pulled: string; pulling: string } => {
    const root = mkdtempSync(join(tmpdir(), 'kts-records-'));
    made.push(root);
    const store = join(root, 'image_manager');
    return { root, store, pulled: join(store, 'pulled'), pulling: join(store, 'pulling') };
  };
  const opened = async (root: string, resolve: (image: string) => string | undefined = () => undefined) => {
    const logged: string[] = [];
    const log = { ...silentLogger, error: (_: string, fields?: object) => void logged.push(JSON.stringify(fields)) };
    const records = new PullRecords({ clock: systemClock, log }, root);
    await records.load(async (image) => resolve(image));
    return { records, logged };
  };

  it('an intent of a pull that ended well is a record in memory, and stays on disk until that is written', async () => {
    const { root, pulled, pulling } = newRoot();
    await (await opened(root)).records.begin('reg.io/a:1');
    rmSync(pulled, { recursive: true });
    writeFileSync(pulled, 'no directory');
    const { records, logged } = await opened(root, () => 'sha256:a');
    assert.ok(logged.some((line) => line.includes(pulled)));
    assert.deepEqual(records.recordOf('sha256:a')?.credentialMapping, {});
    assert.deepEqual([records.intents, readdirSync(pulling).length], [1, 1]);
    await records.prune(new Set(['sha256:a']), 0);
    assert.deepEqual([records.intents, readdirSync(pulling).length], [1, 1], 'there is still no place for it');
    rmSync(pulled);
    await records.prune(new Set(['sha256:a']), 0);
    assert.deepEqual([records.intents, readdirSync(pulling), readdirSync(pulled).length], [0, [], 1]);
  });

  it('a pull ends well without its record on disk, is known with its credentials, and leaves no intent when all is gone', async () => {
    const { root, pulled, pulling } = newRoot();
    const { records } = await opened(root);
    rmSync(pulled, { recursive: true });
    writeFileSync(pulled, 'no directory');
    for (let i = 0; i < 3; i++) {
      await records.begin('reg.io/a:1');
      await records.succeeded('reg.io/a:1', 'sha256:a', 'reg.io/a', ACCESS);
    }
    await records.begin('reg.io/a:1');
    await records.failed('reg.io/a:1');
    assert.equal(records.recordOf('sha256:a')?.credentialMapping['reg.io/a']?.kubernetesSecrets?.length, 1);
    assert.deepEqual([records.intents, readdirSync(pulling).length], [1, 1]);
    rmSync(pulled);
    await records.prune(new Set(), Infinity);
    assert.deepEqual([records.intents, records.records, readdirSync(pulling)], [0, 0, []]);
  });

  it('are made with their directories once there is room', async () => {
    const { root, store, pulled, pulling } = newRoot();
    writeFileSync(store, 'no directory');
    const { records } = await opened(root);
    await assert.rejects(records.begin('reg.io/a:1'), /image_manager\/pulling\/sha256-\w+ was not written/);
    assert.equal(records.intents, 0);
    rmSync(store);
    await records.begin('reg.io/a:1');
    await records.succeeded('reg.io/a:1', 'sha256:a', 'reg.io/a', ACCESS);
    assert.deepEqual([readdirSync(pulled).length, readdirSync(pulling)], [1, []]);
  });

  it('that cannot be listed make every image one that may have been pulled', async () => {
    const { root, pulled } = newRoot();
    await opened(root);
    rmSync(pulled, { recursive: true });
    writeFileSync(pulled, 'no directory');
    const { records } = await opened(root);
    assert.ok(records.ours('reg.io/other:1', 'sha256:other'));
  });
});
