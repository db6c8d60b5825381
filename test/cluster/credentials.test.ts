// What pods get to prove and to check identities with, and how it is renewed under them: service account tokens, trust
// bundles, pod certificates. On a node of its own: the gates are on, and tokens live for seconds.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { startNode, type TestNode } from '../harness/node.ts';
import { nodeReady } from './node-view.ts';
import { podCertificateSuite } from './pod-certificates.ts';
import { AT_ONCE } from './scene.ts';
import { tokenSuite, TOKEN_SECONDS } from './tokens.ts';
import { trustBundleSuite } from './trust-bundles.ts';

const GATES = ['ClusterTrustBundle', 'ClusterTrustBundleProjection', 'PodCertificateRequest'];

describe('credentials of pods', { concurrency: AT_ONCE }, () => {
  let node: TestNode;

  before(async () => {
    node = await startNode({
      flags: [`--feature-gates=${GATES.map((gate) => `${gate}=true`).join()}`],
      apiServer: { maxTokenSeconds: TOKEN_SECONDS },
    });
    await nodeReady(node);
  });
  after(async () => {
    try {
      assert.deepEqual(await node?.refusals(), []);
    } finally {
      await node?.stop();
    }
  });

  tokenSuite(() => node);
  trustBundleSuite(() => node);
  podCertificateSuite(() => node);
});
