import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSpec, QosClass, ResourceRequirements } from './pod.ts';
import { computeQosClass } from './qos.ts';

const FULL: ResourceRequirements = { limits: { cpu: '1', memory: '1Gi' } };

test('classes by what containers and the pod as a whole ask for', () => {
  const rows: [string, QosClass, ResourceRequirements, Partial<PodSpec>?][] = [
    ['nothing', 'BestEffort', {}],
    ['zeros', 'BestEffort', { requests: { cpu: '0' }, limits: { memory: '0' } }],
    ['a request', 'Burstable', { requests: { cpu: '1' } }],
    ['all limits', 'Guaranteed', FULL],
    ['requests below limits', 'Burstable', { ...FULL, requests: { cpu: '500m' } }],
    ['an init container without', 'Burstable', FULL, { initContainers: [{ name: 'i' }] }],
    ['pod-level request above full containers', 'Burstable', FULL, { resources: { requests: { cpu: '1' } } }],
    ['pod-level limits', 'Guaranteed', {}, { resources: FULL }],
    ['an empty pod-level list', 'Guaranteed', FULL, { resources: {} }],
    ['empty pod-level lists', 'Burstable', { requests: { cpu: '1' } }, { resources: { requests: {}, limits: {} } }],
  ];
  for (const [what, qos, resources, more] of rows)
    assert.equal(
      computeQosClass({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources }], ...more } }),
      qos,
      what,
    );
});
