// The node as the cluster knows it: registration, status, conditions, lease, drain, deletion, restarts.
// runs: gate, at rest
// shows: node registration, status, lease, events
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startNode, type TestNode } from '../harness/node.ts';
import { isCordoned, isDrained, needsNetwork, registers, renewsLease, showsStatus } from './registration.ts';
import { rebootSuite, restartSuite, rewrittenStaticPod, staticPods } from './restarts.ts';

describe('the node', () => {
  let node: TestNode;

  before(async () => {
    node = await startNode({
      flags: ['--node-labels=example.com/team=red,node.kubernetes.io/kind=small', '--pod-checkpoint'],
      config: [
        'registerWithTaints: [{key: example.com/fresh, value: "yes", effect: NoSchedule}]',
        'providerID: test://n1',
      ].join('\n'),
    });
  });
  after(() => node?.stop());

  const the = (): TestNode => node;
  registers(the);
  isCordoned(the);
  isDrained(the);
  rebootSuite(the, () => {
    renewsLease(the);
    describe('one after the other', { concurrency: 1 }, () => {
      showsStatus(the);
      staticPods(the);
      rewrittenStaticPod(the);
      needsNetwork(the);
    });
  });
  restartSuite(the);

  it('was never refused anything', async () => {
    assert.deepEqual(await node.refusals(), []);
  });
});
