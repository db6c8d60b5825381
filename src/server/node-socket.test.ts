import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync, existsSync, mkdirSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
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
    const running = nodeSocket(endpoint, silentLogger, root).run(stop.signal);
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

  it('costs nothing else where it cannot be opened', async () => {
    const stop = new AbortController();
    const long = join(root, 'x'.repeat(120));
    const running = nodeSocket(endpoint, silentLogger, long).run(stop.signal);
    await new Promise(setImmediate);
    stop.abort();
    await running;
  });
});
