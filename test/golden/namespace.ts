// The namespace of the recordings, with everything in it that the recorded pods refer to.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../src/core/meta.ts';
import { CONFIG_MAPS, SECRETS, SERVICES, type Resource } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import type { TestNode } from '../harness/node.ts';

type Cluster = { readonly client: TestNode['client']; readonly api: Pick<TestNode['api'], 'caPem'> };

const never = new AbortController().signal;
const core = (plural: string): Resource<KubeObject> => ({ base: '/api/v1', plural });
const RESOURCES: Readonly<Record<string, Resource<KubeObject>>> = {
  ConfigMap: CONFIG_MAPS,
  Secret: SECRETS,
  Service: SERVICES,
};

export async function createGoldenNamespace(node: Cluster): Promise<void> {
  await node.client.create(core('namespaces'), {}, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } }, never);
  const objects = JSON.parse(readFileSync(join(import.meta.dirname, 'objects.json'), 'utf8')) as KubeObject[];
  for (const object of objects) await create(node, RESOURCES[object.kind ?? ''] ?? CONFIG_MAPS, object);
  // What controllers make in every namespace; here they may be absent.
  const metadata = { name: 'default', namespace: 'golden' };
  await create(node, core('serviceaccounts'), { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  const ca = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, name: 'kube-root-ca.crt' }, data: { 'ca.crt': node.api.caPem } };
  await create(node, CONFIG_MAPS, ca);
}

async function create(node: Cluster, resource: Resource<KubeObject>, object: KubeObject): Promise<void> {
  try {
    await node.client.create(resource, { namespace: 'golden' }, object, never);
  } catch (err) {
    if (!isFault(err, 'exists', 'conflict')) throw err;
  }
}
