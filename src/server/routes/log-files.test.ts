// What is asked for by another name than its own, and files without a byte.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { silentLogger } from '../../lib/logger.ts';
import { until } from '../../../test/harness/until.ts';
import { Listener } from '../listener.ts';
import { logFileRoutes } from './log-files.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-logs-'));
const stop = new AbortController();
const endpoint = logFileRoutes({ root, enabled: true });
const listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: 0 });
let done: Promise<void>;

before(async () => {
  mkdirSync(join(root, 'pods', 'größe'), { recursive: true });
  writeFileSync(join(root, 'messages'), 'hello');
  writeFileSync(join(root, 'empty.log'), '');
  done = listener.run(stop.signal);
  await until('it listens', () => listener.boundPort !== undefined);
});
after(async () => {
  stop.abort();
  await done;
  rmSync(root, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${listener.boundPort}${path}`, { headers, redirect: 'manual' });

for (const [path, location] of [
  ['/logs/pods', 'pods/'],
  ['/logs/pods?a=b&c', 'pods/?a=b&c'],
  ['/logs/pods/gr%C3%B6%C3%9Fe', Buffer.from('größe/').toString('latin1')],
  ['/logs/messages/', '../messages'],
] as const)
  it(`${path} is told its own name`, async () => {
    const answer = await get(path);
    assert.deepEqual([answer.status, answer.headers.get('location'), await answer.text()], [301, location, '']);
  });

it('any part of an empty file is the whole of it', async () => {
  for (const range of ['bytes=0-', 'bytes=5-9', 'bytes=-3']) {
    const answer = await get('/logs/empty.log', { range });
    assert.deepEqual([answer.status, await answer.text()], [200, ''], range);
  }
  assert.equal((await get('/logs/messages', { range: 'bytes=5-' })).status, 416);
});
