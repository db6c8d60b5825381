import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterTrustBundle } from '../../core/node.ts';
import type { Pod, ProjectedSource, Volume } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import { FileBudgets } from '../file-budget.ts';
import { ProjectedContent, type ProjectedDeps } from './projected.ts';
import { TrustBundles } from './trust-bundles.ts';

const signal = new AbortController().signal;
const pod: Pod = { metadata: { name: 'p', namespace: 'ns' }, spec: { containers: [{ name: 'c' }] } };
const missing = (kind: string) => (_ns: string, name: string) =>
  Promise.reject<never>(new KubeletError('notFound', `${kind} "${name}" not found`));
const deps: ProjectedDeps = {
  facts: { factsOf: () => ({ podIPs: [], hostIPs: [] }), allocatable: () => ({}) },
  objects: {
    configMap: (ns, name) =>
      name === 'c'
        ? Promise.resolve({ metadata: { name }, data: { a: 'from-map', b: 'b' } })
        : missing('configmap')(ns, name),
    secret: (ns, name) =>
      name === 's' ? Promise.resolve({ metadata: { name }, data: { a: 'cw==' } }) : missing('secret')(ns, name),
  },
  tokens: {
    token: (_pod, { audience, expirationSeconds }) =>
      Promise.resolve({ token: `${audience}/${expirationSeconds}`, refreshAtMs: expirationSeconds }),
  },
};

const requestOf = (volume: Volume) => ({
  pod,
  volume,
  progress: () => undefined,
  budget: new FileBudgets().begin('u', volume.name),
});

async function collect(sources: ProjectedSource[], over: Partial<ProjectedDeps> = {}) {
  const volume = { name: 'v', projected: { sources } };
  const content = await new ProjectedContent({ ...deps, ...over }).collect(requestOf(volume), signal);
  const files = Object.fromEntries([...content.files].map(([path, file]) => [path, Buffer.from(file.data).toString()]));
  return { files, refreshAtMs: content.refreshAtMs };
}

test('sources are merged in order, and the soonest token decides when to look again', async () => {
  const { files, refreshAtMs } = await collect([
    { configMap: { name: 'c' } },
    { secret: { name: 's' } },
    { downwardAPI: { items: [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' } }] } },
    { serviceAccountToken: { path: 't1', audience: 'vault', expirationSeconds: 7200 } },
    { serviceAccountToken: { path: 't2' } },
    { secret: { name: 'none', optional: true } },
  ]);
  assert.deepEqual(files, { a: 's', b: 'b', n: 'p', t1: 'vault/7200', t2: '/3600' });
  assert.equal(refreshAtMs, 3600);
});

test('all that is wrong is said, each once', async () => {
  await assert.rejects(collect([{ secret: { name: 'x' } }]), { kind: 'notFound', message: 'secret "x" not found' });
  await assert.rejects(collect([{ secret: { name: 'x' } }, { configMap: { name: 'y' } }, { secret: { name: 'x' } }]), {
    message: '[secret "x" not found, configmap "y" not found]',
  });
  const { tokens: _, ...standalone } = deps;
  const token = { serviceAccountToken: { path: 't' } };
  const volume = { name: 'v', projected: { sources: [token] } };
  await assert.rejects(new ProjectedContent(standalone).collect(requestOf(volume), signal), {
    message: 'service account tokens need an API server',
  });
  await assert.rejects(collect([{ clusterTrustBundle: { name: 'b', path: 'ca' } }]), {
    message: 'ClusterTrustBundle projection is not supported in static kubelet mode',
  });
});

const pem = (text: string): string =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString('base64')}\n-----END CERTIFICATE-----\n`;
const bundle = (name: string, certificates: string[], signerName?: string): ClusterTrustBundle => ({
  metadata: { name, labels: { live: name } },
  spec: { trustBundle: certificates.map(pem).join('# comment\n'), ...(signerName === undefined ? {} : { signerName }) },
});

test('trust bundles are found by name or by signer, without repetition, in one order per process', async () => {
  const all = [bundle('one', ['A', 'B'], 'sign/er'), bundle('two', ['B', 'C'], 'sign/er'), bundle('three', ['D'])];
  const trustBundles = new TrustBundles({ bundles: () => Promise.resolve(all) }, 'salt');
  const get = async (source: NonNullable<ProjectedSource['clusterTrustBundle']>): Promise<string[]> =>
    ((await collect([{ clusterTrustBundle: source }], { trustBundles })).files['ca'] ?? '')
      .split('-----BEGIN CERTIFICATE-----\n')
      .map((block) => Buffer.from(block.split('\n-----END')[0] ?? '', 'base64').toString())
      .filter((text) => text !== '')
      .sort();
  assert.deepEqual(await get({ name: 'one', path: 'ca' }), ['A', 'B']);
  assert.deepEqual(await get({ signerName: 'sign/er', labelSelector: {}, path: 'ca' }), ['A', 'B', 'C']);
  assert.deepEqual(await get({ signerName: 'sign/er', labelSelector: { matchLabels: { live: 'two' } }, path: 'ca' }), [
    'B',
    'C',
  ]);
  assert.deepEqual(await get({ name: 'none', optional: true, path: 'ca' }), []);
  await assert.rejects(get({ name: 'none', path: 'ca' }), /"none" not found/);
  await assert.rejects(get({ signerName: 'sign/er', path: 'ca' }), /matched zero ClusterTrustBundles/);
  const unread = new TrustBundles({ bundles: () => Promise.resolve(undefined) }, 'x');
  await assert.rejects(unread.certificates({ name: 'one', optional: true }, signal), /has not yet synced/);
  const query = { signerName: 'sign/er', labelSelector: {}, optional: false };
  const orders = new Set<string>();
  for (let i = 0; i < 30; i++)
    orders.add(await new TrustBundles({ bundles: () => Promise.resolve(all) }, `${i}`).certificates(query, signal));
  assert.ok(orders.size > 1);
  assert.equal(await trustBundles.certificates(query, signal), await trustBundles.certificates(query, signal));
});
