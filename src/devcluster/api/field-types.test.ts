import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import type { Json } from './objects.ts';
import { wrongType } from './field-types.ts';

const field = (got: string, name: string, type: string): string =>
  `json: cannot unmarshal ${got} into Go struct field ${name} of type ${type}`;

const rows: readonly (readonly [apiVersion: string, kind: string, body: Json, expected: string | undefined])[] = [
  ['v1', 'ConfigMap', { data: { a: '1' } }, undefined],
  ['v1', 'ConfigMap', { data: { a: 1 } }, field('number', 'ConfigMap.data', 'string')],
  ['v1', 'ConfigMap', { data: { a: true } }, field('bool', 'ConfigMap.data', 'string')],
  ['v1', 'ConfigMap', { data: ['a'] }, field('array', 'ConfigMap.data', 'map[string]string')],
  ['v1', 'ConfigMap', { data: null, metadata: null }, undefined],
  ['v1', 'ConfigMap', { metadata: { labels: { a: 1 } } }, field('number', 'ObjectMeta.metadata.labels', 'string')],
  ['v1', 'ConfigMap', { metadata: 'x' }, field('string', 'ConfigMap.metadata', 'v1.ObjectMeta')],
  ['v1', 'Secret', { data: { a: 'eA==' }, stringData: { b: '%' } }, undefined],
  ['v1', 'Secret', { data: { a: '%%' } }, 'illegal base64 data at input byte 0'],
  ['v1', 'Secret', { data: { a: 'eHg' } }, 'illegal base64 data at input byte 0'],
  ['v1', 'Secret', { data: { a: 1 } }, field('number', 'Secret.data', '[]uint8')],
  ['apps/v1', 'Deployment', { spec: { replicas: 3 } }, undefined],
  ['apps/v1', 'Deployment', { spec: { replicas: '3' } }, field('string', 'DeploymentSpec.spec.replicas', 'int32')],
  ['apps/v1', 'Deployment', { spec: { replicas: 1.5 } }, field('number 1.5', 'DeploymentSpec.spec.replicas', 'int32')],
  ['apps/v1', 'Deployment', { spec: { paused: 'no' } }, field('string', 'DeploymentSpec.spec.paused', 'bool')],
  [
    'apps/v1',
    'Deployment',
    { spec: { strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: 1 } } } },
    undefined,
  ],
  [
    'apps/v1',
    'Deployment',
    { spec: { template: { spec: { containers: [{ env: [{ name: 'A', value: 1 }] }] } } } },
    field('number', 'EnvVar.spec.template.spec.containers.env.value', 'string'),
  ],
  [
    'apps/v1',
    'Deployment',
    { spec: { template: { spec: { containers: { name: 'c' } } } } },
    field('object', 'PodSpec.spec.template.spec.containers', '[]v1.Container'),
  ],
  ['v1', 'PersistentVolumeClaim', { spec: { resources: { requests: { storage: 1024 } } } }, undefined],
  ['x/v1', 'Nobody', { spec: 1 }, undefined],
];

describe('values of the wrong type', () => {
  for (const [apiVersion, kind, body, expected] of rows)
    it(`${kind} ${JSON.stringify(body)}`, () => assert.equal(wrongType(body, apiVersion, kind), expected));
});
