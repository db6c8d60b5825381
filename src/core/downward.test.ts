import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerForResources, defaultLimits, fieldValue, formatMap, goQuote, resourceValue } from './downward.ts';
import type { Container, Pod } from './pod.ts';

const container: Container = {
  name: 'c',
  resources: { limits: { cpu: '100m', memory: '64Mi', 'hugepages-2Mi': '4Mi' }, requests: { cpu: '50m' } },
};
const pod: Pod = {
  metadata: {
    name: 'web',
    namespace: 'prod',
    uid: 'u-1',
    labels: { zone: 'z1', app: 'a' },
    annotations: { x: '1\n"2"', 'kubernetes.io/config.source': 'api' },
  },
  spec: { containers: [container], initContainers: [{ name: 'i' }], nodeName: 'n1', serviceAccountName: 'sa' },
};
const facts = { podIPs: ['10.0.0.2', 'fd00::2'], hostIPs: ['192.0.2.1', '2001:db8::1'] };

test('field paths give the pod its own facts', () => {
  const rows: [string, string][] = [
    ['metadata.name', 'web'],
    ['metadata.namespace', 'prod'],
    ['metadata.uid', 'u-1'],
    ['metadata.labels', 'app="a"\nzone="z1"'],
    ['metadata.annotations', 'kubernetes.io/config.source="api"\nx="1\\n\\"2\\""'],
    ["metadata.labels['zone']", 'z1'],
    ["metadata.labels['none']", ''],
    ["metadata.labels['constructor']", ''],
    ["metadata.annotations['toString']", ''],
    ["metadata.annotations['x']", '1\n"2"'],
    ['spec.nodeName', 'n1'],
    ['spec.serviceAccountName', 'sa'],
    ['status.podIP', '10.0.0.2'],
    ['status.podIPs', '10.0.0.2,fd00::2'],
    ['status.hostIP', '192.0.2.1'],
    ['status.hostIPs', '192.0.2.1,2001:db8::1'],
  ];
  for (const [path, want] of rows) assert.equal(fieldValue(pod, path, facts), want, path);
  assert.equal(fieldValue(pod, 'status.podIP', { podIPs: [], hostIPs: [] }), '');
  for (const bad of ['metadata.nothing', "spec.nodeName['x']", '']) {
    assert.throws(() => fieldValue(pod, bad, facts), { kind: 'invalid', message: `unsupported fieldPath: ${bad}` });
  }
});

test('values are quoted as Go does', () => {
  const rows: [string, string][] = [
    ['plain', '"plain"'],
    ['tab\tbell\u0007', '"tab\\tbell\\a"'],
    ['\u0001\u007f', '"\\x01\\x7f"'],
    ['é 世 😀', '"é 世 😀"'],
    ['\u00a0\u200b', '"\\u00a0\\u200b"'],
    ['\u{e0001}', '"\\U000e0001"'],
    ['back\\slash', '"back\\\\slash"'],
  ];
  for (const [text, want] of rows) assert.equal(goQuote(text), want);
  assert.equal(formatMap(undefined), '');
});

test('resource values are in units of the divisor, rounded up', () => {
  const allocatable = { cpu: '4', memory: '8Gi', 'ephemeral-storage': '10Gi' };
  const rows: [string, string | undefined, string][] = [
    ['limits.cpu', '1m', '100'],
    ['limits.cpu', undefined, '1'],
    ['limits.cpu', '0', '1'],
    ['limits.memory', '1Mi', '64'],
    ['limits.memory', undefined, '67108864'],
    ['limits.memory', '10Mi', '7'],
    ['requests.cpu', '1m', '50'],
    ['requests.memory', '1', '0'],
    ['limits.ephemeral-storage', '1Gi', '10'],
    ['requests.ephemeral-storage', '1Gi', '0'],
    ['limits.hugepages-2Mi', '1Mi', '4'],
    ['requests.hugepages-2Mi', '1Mi', '0'],
  ];
  for (const [resource, divisor, want] of rows) {
    const selector = divisor === undefined ? { resource } : { resource, divisor };
    assert.equal(resourceValue(container, selector, allocatable), want, `${resource} / ${divisor}`);
  }
  assert.throws(() => resourceValue(container, { resource: 'limits.gpu' }, allocatable), { kind: 'invalid' });
  const limited: Pod = { ...pod, spec: { ...pod.spec, resources: { limits: { memory: '1Gi' } } } };
  const selector = { resource: 'limits.memory', divisor: '1Mi' };
  assert.equal(resourceValue({ name: 'x' }, selector, defaultLimits(limited, allocatable)), '1024');
  // A limit of zero is none.
  const unlimited = { name: 'x', resources: { limits: { memory: '0', cpu: '0' } } };
  assert.equal(resourceValue(unlimited, selector, defaultLimits(limited, allocatable)), '1024');
  assert.equal(resourceValue(unlimited, { resource: 'limits.cpu' }, allocatable), '4');
  const zero: Pod = { ...pod, spec: { ...pod.spec, resources: { limits: { memory: '0' } } } };
  assert.equal(resourceValue({ name: 'x' }, selector, defaultLimits(zero, allocatable)), '8192');
  assert.equal(containerForResources(pod, 'i').name, 'i');
  assert.throws(() => containerForResources(pod, 'zz'), { message: 'container zz not found' });
});
