// The node as the cluster knows it: registration, status, conditions, lease, drain, deletion, restarts; and beside it a
// node with nothing to do, whose requests are counted.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startNode, type TestNode } from '../harness/node.ts';
import { registrationSuite } from './registration.ts';
import { quietSuite } from './quiet.ts';
import { restartSuite } from './restarts.ts';

describe('the node', { concurrency: true }, () => {
  describe('in use', { concurrency: 1 }, () => {
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

    registrationSuite(() => node);
    restartSuite(() => node);

    it('was never refused anything', async () => {
      assert.deepEqual(await node.refusals(), []);
    });
  });

  quietSuite();
});
