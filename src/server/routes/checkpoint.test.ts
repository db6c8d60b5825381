// Checkpoint archives: where they go, and that they cannot fill the disk.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import type { PodFinder } from '../pods-view.ts';
import type { Exchange } from '../router.ts';
import { checkpointRoutes } from './checkpoint.ts';

const root = mkdtempSync(join(tmpdir(), 'checkpoint-'));
after(() => rmSync(root, { recursive: true, force: true }));
const directory = join(root, 'checkpoints');

async function ask(room?: {
  bavail: number;
  blocks: number;
}): Promise<{ status: number; body: string; asked: number }> {
  let asked = 0;
  const pod = { metadata: { name: 'p', namespace: 'n' }, spec: { containers: [{ name: 'c' }] } };
  const { routes } = checkpointRoutes({
    finder: { pod: () => pod, container: async () => ({ id: 'id' }) } as unknown as PodFinder,
    runtime: {
      checkpointContainer: async () => {
        asked++;
        return {};
      },
    },
    directory,
    nowMs: () => 0,
    ...(room === undefined ? {} : { room: async () => room }),
  });
  let answer = { status: 0, body: '' };
  const response = {
    statusCode: 0,
    setHeader: () => undefined,
    writeHead: (status: number) => (answer = { ...answer, status }),
    end(body: string) {
      answer = { status: answer.status || this.statusCode, body: String(body) };
    },
  };
  const params = { namespace: 'n', pod: 'p', container: 'c' };
  const { signal } = new AbortController();
  await routes[0]?.handle({ params, query: new URLSearchParams(), response, signal } as unknown as Exchange);
  return { ...answer, asked };
}

for (const [bavail, isTaken] of [
  [100, true],
  [99, false],
] as const)
  it(`are ${isTaken ? '' : 'not '}made with ${bavail / 10} % of the disk available`, async () => {
    const { status, asked, body } = await ask({ bavail, blocks: 1000 });
    assert.deepEqual([status, asked], isTaken ? [200, 1] : [500, 0]);
    if (!isTaken) assert.match(body, /less than 10% of the filesystem of .* is available/);
  });

it('go into a folder of their own, until there are too many', async () => {
  const first = await ask();
  assert.deepEqual([first.status, first.asked], [200, 1]);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  for (let i = 0; i < 32; i++) writeFileSync(join(directory, `checkpoint-${i}.tar`), '');
  const refused = await ask();
  assert.equal(refused.asked, 0, 'the runtime is not asked');
  assert.equal(refused.status, 500);
  assert.match(refused.body, /holds 32 checkpoint archives: remove some first/);
});
