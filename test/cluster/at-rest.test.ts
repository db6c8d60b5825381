// A node whose pods do nothing asks the API server for next to nothing: leases, and a status every five minutes.
// runs: at rest
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ServedRequest } from '../harness/api-server.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { nodeReady } from './node-view.ts';
import { Scene } from './scene.ts';
import { timePasses } from '../harness/until.ts';

const PODS = Number(process.env['KTS_IDLE_PODS'] ?? 50);
const WINDOW_MS = 60_000;
/** Events, the lease's creation and the last statuses are out by then. */
const SETTLE_MS = 15_000;
const LEASES = 7;
const STATUSES = 1;

const kindOf = ({ method, url }: ServedRequest): string => {
  const path = url.split('?')[0] ?? '';
  if (method === 'PUT' && path.endsWith(`/leases/${NODE_NAME}`)) return 'lease';
  if (method === 'PATCH' && path.endsWith(`/nodes/${NODE_NAME}/status`)) return 'node status';
  return `${method} ${path}`;
};

describe('a node at rest', () => {
  let node: TestNode;
  before(async () => {
    node = await startNode();
  });
  after(() => node?.stop());

  it(`asks for nothing but leases and a status while ${PODS} pods idle`, async (t) => {
    await nodeReady(node);
    const scene = await Scene.open(node, 'idle');
    const names = Array.from({ length: PODS }, (_, i) => `idle-${i}`);
    for (const name of names) await scene.pod(name, { automountServiceAccountToken: true });
    await Promise.all(names.map((name) => scene.ready(name)));
    await timePasses(SETTLE_MS, 'measuring');
    const from = Date.now();
    await timePasses(WINDOW_MS, 'measuring');
    const counts = new Map<string, number>();
    for (const request of await node.api.served())
      if (request.user === `system:node:${NODE_NAME}` && request.atMs >= from && request.atMs <= from + WINDOW_MS)
        counts.set(kindOf(request), (counts.get(kindOf(request)) ?? 0) + 1);
    t.diagnostic(JSON.stringify(Object.fromEntries(counts)));
    const { lease = 0, 'node status': status = 0, ...others } = Object.fromEntries(counts);
    assert.deepEqual(others, {});
    assert.ok(lease >= 5 && lease <= LEASES, `${lease} lease renewals`);
    assert.ok(status <= STATUSES, `${status} node statuses`);
  });

  it('was never refused anything', async () => {
    assert.deepEqual(await node.refusals(), []);
  });
});
