// Cluster trust bundles in projected volumes: by name, by signer and labels, optional, and as they change.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Pod, ProjectedSource } from '../../src/core/pod.ts';
import { TRUST_BUNDLES } from '../../src/kube/resources.ts';
import type { TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { newAuthority } from '../harness/authorities.ts';
import { container, never, Scene } from './scene.ts';

const SIGNER = 'example.com/mesh';
const anchor = (name: string): string => newAuthority(name).certificatePem;

function create(node: TestNode, name: string, trustBundle: string, more: Labels = {}): Promise<unknown> {
  const { labels, signerName } = more;
  const body = { metadata: { name, ...(labels === undefined ? {} : { labels }) }, spec: { signerName, trustBundle } };
  return node.client.create(TRUST_BUNDLES, {}, body, never);
}
type Labels = { readonly labels?: Readonly<Record<string, string>>; readonly signerName?: string };

function mounting(s: Scene, name: string, ...bundles: Bundle[]): Promise<Pod> {
  const sources = bundles.map((clusterTrustBundle) => ({ clusterTrustBundle }));
  return s.pod(name, {
    volumes: [{ name: 'trust', projected: { sources } }],
    containers: [container('main', { volumeMounts: [{ name: 'trust', mountPath: '/trust' }] })],
  });
}
type Bundle = NonNullable<ProjectedSource['clusterTrustBundle']>;

/** Whom a file in the container trusts. */
async function trusted(s: Scene, pod: Pod, path: string): Promise<string[]> {
  const text = await s.exec(pod, `cat /trust/${path}`);
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----\n/g) ?? [];
  assert.equal(blocks.join(''), text, 'nothing but certificates');
  return blocks.map((block) => new X509Certificate(block).subject.replace('CN=', '')).sort();
}

export function trustBundleSuite(node: () => TestNode): void {
  describe('trust bundles', () => {
    it('are mounted by name and by signer and labels, and follow changes', async () => {
      const s = await Scene.open(node(), 'trust');
      await create(node(), 'root', anchor('first') + anchor('second'));
      const named = (name: string): string => `${SIGNER.replace('/', ':')}:${name}`;
      const live = { signerName: SIGNER, labels: { use: 'live' } };
      const twin = anchor('twin');
      await create(node(), named('a'), anchor('a') + twin, live);
      await create(node(), named('b'), twin, live);
      await create(node(), named('canary'), anchor('canary'), { signerName: SIGNER, labels: { use: 'canary' } });
      const labelSelector = { matchLabels: { use: 'live' } };
      await mounting(
        s,
        'p',
        { name: 'root', path: 'by-name.pem' },
        { signerName: SIGNER, labelSelector, path: 'by-label.pem' },
        { signerName: SIGNER, labelSelector: {}, path: 'all.pem' },
        { signerName: SIGNER, path: 'none.pem', optional: true },
        { name: 'absent', path: 'absent.pem', optional: true },
      );
      const pod = await s.ready('p');
      assert.deepEqual(await trusted(s, pod, 'by-name.pem'), ['first', 'second']);
      assert.deepEqual(await trusted(s, pod, 'by-label.pem'), ['a', 'twin'], 'each once');
      assert.deepEqual(await trusted(s, pod, 'all.pem'), ['a', 'canary', 'twin']);
      assert.deepEqual(await trusted(s, pod, 'none.pem'), [], 'a selector that is not there matches nothing');
      assert.deepEqual(await trusted(s, pod, 'absent.pem'), []);

      const where = { name: 'root' };
      await node().client.patch(TRUST_BUNDLES, where, { spec: { trustBundle: anchor('third') } }, never);
      await create(node(), named('c'), anchor('c'), live);
      await create(node(), 'absent', anchor('present'));
      const changed = async (): Promise<boolean> =>
        (await trusted(s, pod, 'by-name.pem')).join() === 'third' &&
        (await trusted(s, pod, 'by-label.pem')).join() === 'a,c,twin' &&
        (await trusted(s, pod, 'absent.pem')).join() === 'present';
      await until('the running pod sees the changes', changed);
      await node().client.delete(TRUST_BUNDLES, { name: named('a') }, {}, never);
      const gone = async (): Promise<boolean> => (await trusted(s, pod, 'by-label.pem')).join() === 'c,twin';
      await until('what was deleted is trusted no more', gone);
    });

    it('keep a pod waiting until the one it needs is there', async () => {
      const s = await Scene.open(node(), 'trust-later');
      const pod = await mounting(s, 'p', { name: 'later', path: 'ca.pem' });
      const event = await s.event(pod, 'FailedMount');
      assert.match(event.message ?? '', /clustertrustbundle.certificates.k8s.io "later" not found/);
      await create(node(), 'later', anchor('late'));
      assert.deepEqual(await trusted(s, await s.ready('p'), 'ca.pem'), ['late']);
    });
  });
}
