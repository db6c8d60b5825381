import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ApiObject } from './objects.ts';
import { ObjectStore, type Change, type StoredObject } from './store.ts';
import { WatchHub } from './watch-hub.ts';

const object = (name: string, more: object = {}): ApiObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, namespace: 'ns' },
  ...more,
});

test('revisions grow over restarts, also after the newest object is gone', () => {
  const dir = mkdtempSync(join(tmpdir(), 'kts-store-'));
  const path = join(dir, 'db');
  let store = new ObjectStore(path);
  store.put('configmaps', object('a'));
  const b = store.put('configmaps', object('b'));
  store.remove('configmaps', b.key);
  const { revision } = store;
  store.close();
  store = new ObjectStore(path);
  assert.equal(store.revision, revision);
  assert.deepEqual(
    store.list('configmaps').map((s) => s.object.metadata.name),
    ['a'],
  );
  assert.equal(store.put('configmaps', object('c')).revision, revision + 1);
  store.close();
  rmSync(dir, { recursive: true });
});

test('lists are sorted, shared and never change under a reader', () => {
  const store = new ObjectStore(':memory:');
  for (const name of ['b', 'c', 'a']) store.put('configmaps', object(name));
  const before = store.list('configmaps');
  assert.equal(store.list('configmaps'), before);
  store.put('configmaps', object('b', { data: { x: 'y' } }));
  assert.equal(before[1]?.object['data'], undefined);
  assert.deepEqual(
    store.list('configmaps').map((s) => s.object.metadata.name),
    ['a', 'b', 'c'],
  );
  store.close();
});

test('changes are told in order with what was before', () => {
  const store = new ObjectStore(':memory:');
  const seen: Change[] = [];
  store.onChange((change) => seen.push(change));
  const first = store.put('configmaps', object('a'));
  const second = store.put('configmaps', object('a', { data: {} }));
  store.remove('configmaps', 'ns/a');
  assert.deepEqual(
    seen.map((c) => [c.type, c.before]),
    [
      ['ADDED', undefined],
      ['MODIFIED', first],
      ['DELETED', second],
    ],
  );
  assert.equal(seen[2]?.now.object.metadata.resourceVersion, String(store.revision));
  store.close();
});

test('a watch starts in the past as far as it is remembered', () => {
  const store = new ObjectStore(':memory:');
  const hub = new WatchHub(store, { windowSize: 5 });
  hub.attach();
  const start = store.revision;
  for (let i = 0; i < 20; i++) store.put('configmaps', object(`o${i}`));
  const form = { name: 'plain', render: (s: StoredObject) => s.text };
  const request = { storage: 'configmaps', namespace: undefined, matches: undefined, form };
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line) > 0, end: () => undefined };
  assert.throws(() => hub.watch(request, sink, start), /too old resource version/);
  hub.watch(request, sink, store.revision - 5);
  assert.equal(lines.length, 5);
  store.put('configmaps', object('new'));
  assert.equal(lines.length, 6);
  assert.throws(() => hub.watch(request, sink, store.revision + 10), /too large resource version/);
  hub.compact();
  assert.throws(() => hub.watch(request, sink, store.revision - 1), /too old/);
  store.close();
});

test('a watcher that does not read is dropped, others go on', () => {
  const store = new ObjectStore(':memory:');
  const hub = new WatchHub(store, { windowSize: 100 });
  hub.attach();
  const form = { name: 'plain', render: (s: StoredObject) => s.text };
  const request = { storage: 'configmaps', namespace: undefined, matches: undefined, form };
  let ended = 0;
  let received = 0;
  hub.watch(request, { write: () => false, end: () => void ended++ }, store.revision);
  hub.watch(request, { write: () => ++received > 0, end: () => undefined }, store.revision);
  store.put('configmaps', object('a'));
  store.put('configmaps', object('b'));
  assert.deepEqual([ended, received, hub.watcherCount], [1, 2, 1]);
  store.close();
});
