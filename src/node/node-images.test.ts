import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { NodeImages } from './node-images.ts';

test('images are read every half minute, and stay when they cannot be', async () => {
  const clock = new ManualClock();
  const never = new AbortController().signal;
  let reads = 0;
  let fails = false;
  const images = new NodeImages({
    list: async () => {
      reads++;
      if (fails) throw new Error('down');
      return [{ repoDigests: [], repoTags: [`tag:${reads}`], size: 5 }];
    },
    clock,
    log: silentLogger,
  });
  const tags = async (): Promise<string[]> => (await images.read(never)).flatMap((i) => [...i.repoTags]);
  assert.deepEqual([await tags(), await tags(), reads], [['tag:1'], ['tag:1'], 1]);
  await clock.advance(30_000);
  assert.deepEqual(await tags(), ['tag:2']);
  fails = true;
  await clock.advance(30_000);
  assert.deepEqual([await tags(), reads], [['tag:2'], 3]);
  assert.deepEqual([await tags(), await tags(), reads], [['tag:2'], ['tag:2'], 3], 'not again in every round');
  fails = false;
  await clock.advance(10_000);
  assert.deepEqual([await tags(), reads], [['tag:4'], 4]);
});

test('a status does not wait for a runtime that hangs, and asks it one question at a time', async () => {
  const clock = new ManualClock();
  const never = new AbortController().signal;
  const asked: PromiseWithResolvers<{ repoDigests: string[]; repoTags: string[]; size: number }[]>[] = [];
  const images = new NodeImages({
    list: () => {
      const answer = Promise.withResolvers<{ repoDigests: string[]; repoTags: string[]; size: number }[]>();
      asked.push(answer);
      return answer.promise;
    },
    clock,
    log: silentLogger,
  });
  const first = images.read(never);
  await clock.advance(2000);
  assert.deepEqual([await first, asked.length], [[], 1]);
  assert.deepEqual([await images.read(never), asked.length], [[], 1]);
  asked[0]?.resolve([{ repoDigests: [], repoTags: ['late'], size: 1 }]);
  await clock.advance(0);
  assert.deepEqual(await images.read(never), [{ repoDigests: [], repoTags: ['late'], sizeBytes: 1 }]);
});
