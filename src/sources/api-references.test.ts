// What a static pod may not name: the first reference to an API object, in upstream's order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, PodSpec, ProjectedSource } from '../core/pod.ts';
import { forbiddenReference } from './api-references.ts';

const main = (container: Partial<Container>): Partial<PodSpec> => ({ containers: [{ name: 'a', ...container }] });
const projected = (source: object): Partial<PodSpec> => ({
  volumes: [{ name: 'v', projected: { sources: [source as ProjectedSource] } }],
});
const AT = 'spec.volumes[0].projected.sources[0]';

const rows: readonly (readonly [Partial<PodSpec>, string | undefined, boolean])[] = [
  [{}, undefined, false],
  [{ serviceAccountName: 'sa' }, 'spec.serviceAccountName', false],
  [{ imagePullSecrets: [] }, undefined, false],
  [{ imagePullSecrets: [{ name: 's' }] }, 'spec.imagePullSecrets', true],
  [{ resourceClaims: [] }, undefined, false],
  [{ resourceClaims: [{ name: 'c' }] }, 'spec.resourceClaims', false],
  [main({ envFrom: [{}, { secretRef: { name: 's' } }] }), 'spec.containers[0].envFrom[1].secretRef', true],
  [main({ envFrom: [{ configMapRef: { name: 'c' } }] }), 'spec.containers[0].envFrom[0].configMapRef', true],
  [
    main({ env: [{ name: 'A' }, { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }),
    'spec.containers[0].env[1].valueFrom.secretKeyRef',
    true,
  ],
  [
    { initContainers: [{ name: 'i', env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 's', key: 'k' } } }] }] },
    'spec.initContainers[0].env[0].valueFrom.configMapKeyRef',
    true,
  ],
  [{ volumes: [{ name: 'v', emptyDir: {} }] }, undefined, false],
  [{ volumes: [{ name: 'v', configMap: { name: 'c' } }] }, 'spec.volumes[0].configMap', true],
  [{ volumes: [{ name: 'v', csi: { driver: 'd' } }] }, 'spec.volumes[0].csi', false],
  [{ volumes: [{ name: 'v', iscsi: {} } as never] }, undefined, false],
  [
    { volumes: [{ name: 'v', iscsi: { secretRef: { name: 's' } } } as never] },
    'spec.volumes[0].iscsi.secretRef',
    false,
  ],
  [{ volumes: [{ name: 'v', projected: {} as never }] }, undefined, false],
  [projected({ downwardAPI: {} }), undefined, false],
  [projected({ configMap: { name: 'c' } }), `${AT}.configMap`, true],
  [projected({ secret: { name: 's' } }), `${AT}.secret`, true],
  [projected({ serviceAccountToken: { path: 't' } }), `${AT}.serviceAccountToken`, false],
  [projected({ clusterTrustBundle: { path: 't' } }), `${AT}.clusterTrustBundle`, false],
  [projected({ podCertificate: { path: 't' } }), `${AT}.podCertificate`, false],
];

for (const [spec, field, localPossible] of rows)
  test(`${JSON.stringify(spec)}: ${field ?? 'nothing'}`, () => {
    const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'a' }], ...spec } };
    assert.equal(forbiddenReference(pod, { localObjects: false })?.field, field);
    assert.equal(forbiddenReference(pod, { localObjects: true })?.field, localPossible ? undefined : field);
    const isImpossible = /Claims|clusterTrust/.test(field ?? '');
    const allowed = { localObjects: false, apiObjects: true };
    assert.equal(forbiddenReference(pod, allowed)?.field, isImpossible ? field : undefined);
  });
