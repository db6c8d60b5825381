// Random streams: however a watch is cut into pieces or its events are mixed up, the outcome is the same.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import type { KubeObject } from '../core/meta.ts';
import { systemClock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import { compareVersions, ObjectStore } from './object-store.ts';
import { readableBody } from './readable-body.ts';
import { readWatch } from './watch.ts';

const signal = new AbortController().signal;
const read = async (chunks: readonly Uint8Array[]): Promise<unknown[]> => {
  const events: unknown[] = [];
  const body = readableBody(Readable.from(chunks));
  for await (const event of readWatch(systemClock, body, 'things', 1000, signal)) events.push(event);
  return events;
};
const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const points = [...new Set([0, ...at.map((n) => n % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  return points.slice(1).map((end, i) => bytes.subarray(points[i], end));
};
const event = fc.record({
  type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'),
  object: fc.record({ metadata: fc.record({ name: fc.string({ unit: 'binary' }) }) }),
});

test('a stream cut anywhere gives the same events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 8 }), async (events, at) => {
      const bytes = Buffer.from(events.map((e) => `${JSON.stringify(e)}\n`).join(''));
      assert.deepEqual(await read(cut(bytes, at)), JSON.parse(JSON.stringify(events)));
    }),
    { numRuns: 200 },
  );
});

test('garbage ends in a fault, never in anything else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 }), async (chunks) => {
      await read([...chunks, Buffer.from('\n{"type":"NEW"}\n')]).then(
        () => assert.fail('accepted garbage'),
        (err: unknown) => assert.ok(isFault(err), String(err)),
      );
    }),
    { numRuns: 200 },
  );
});

test('mixed up, repeated and late events leave the newest state', () => {
  const change = fc.record({
    uid: fc.constantFrom('a', 'b', 'c'),
    version: fc.integer({ min: 1, max: 30 }),
    gone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const store = new ObjectStore<KubeObject>();
      const expected = new Map<string, number>();
      const deleted = new Set<string>();
      for (const { uid, version, gone } of changes) {
        const object = { metadata: { name: uid, uid, resourceVersion: String(version) } };
        if (gone) store.delete(object);
        else store.set(object);
        if (gone) deleted.add(uid);
        if (!deleted.has(uid)) expected.set(uid, Math.max(expected.get(uid) ?? 0, version));
        else expected.delete(uid);
      }
      const got = new Map([...store.values()].map((o) => [o.metadata.uid, Number(o.metadata.resourceVersion)]));
      assert.deepEqual(got, expected);
      for (const uid of ['a', 'b', 'c']) assert.equal(store.byName('', uid), store.get(uid));
    }),
  );
});

test('versions compare as numbers of any length', () => {
  const big = fc.bigInt({ min: 0n, max: 2n ** 70n });
  fc.assert(
    fc.property(big, big, (a, b) => {
      assert.equal(Math.sign(compareVersions(String(a), String(b))), a < b ? -1 : a > b ? 1 : 0);
    }),
  );
});
