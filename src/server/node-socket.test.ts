import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync, existsSync, mkdirSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { nodeSocket, readOnly } from './node-socket.ts';
import { exactly, joined } from './router.ts';
import { reply } from './replies.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-sock-'));
after(() => rmSync(root, { recursive: true, force: true }));
const socketPath = join(root, 'node', 'kubelet.sock');

const ask = (method: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    request({ socketPath, method, path }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end();
  });

const opened = async (): Promise<void> => {
  // What a killed run left is removed between two looks.
  const isOpen = (): boolean => {
    const found = statSync(socketPath, { throwIfNoEntry: false });
    return found?.isSocket() === true && (found.mode & 0o777) === 0o600;
  };
  while (!isOpen()) await new Promise(setImmediate);
};

describe('the socket of the command line', () => {
  const endpoint = joined([
    exactly('/read', ({ response }) => reply(response, 200, 'yes'), ['GET']),
    exactly('/any', ({ response }) => reply(response, 200, 'yes')),
    exactly('/change', ({ response }) => reply(response, 200, 'yes'), ['PUT']),
    { roots: [], routes: [{ path: '/exec', upgrades: true, handle: () => undefined }] },
  ]);

  it('shows only what can be read', () => {
    assert.deepEqual(
      readOnly(endpoint).routes.map(({ path, methods }) => [path, methods]),
      [
        ['/read', ['GET']],
        ['/any', ['GET']],
      ],
    );
  });

  it('is for root alone, replaces what a killed run left, and goes away', async () => {
    mkdirSync(join(root, 'node'), { mode: 0o755 });
    writeFileSync(socketPath, '');
    const stop = new AbortController();
    const running = nodeSocket(endpoint, { clock: systemClock, log: silentLogger }, root).run(stop.signal);
    await opened();
    assert.equal(statSync(join(root, 'node')).mode & 0o777, 0o700);
    assert.ok(statSync(socketPath).isSocket());
    assert.deepEqual(
      await Promise.all([ask('GET', '/read'), ask('POST', '/any'), ask('PUT', '/change'), ask('GET', '/exec')]),
      [200, 405, 404, 404],
    );
    stop.abort();
    await running;
    assert.equal(existsSync(socketPath), false);
  });

  it('is opened once what stands in its way is gone', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const folder = join(root, 'node');
    rmSync(folder, { recursive: true, force: true });
    writeFileSync(folder, '');
    const running = nodeSocket(endpoint, { clock, log: silentLogger }, root).run(stop.signal);
    while (clock.pending === 0) await new Promise(setImmediate);
    rmSync(folder);
    await clock.advance(1000);
    await opened();
    assert.equal(await ask('GET', '/read'), 200);
    stop.abort();
    await running;
  });
});
