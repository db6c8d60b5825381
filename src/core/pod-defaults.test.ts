import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyPodDefaults, pullPolicyOf } from './pod-defaults.ts';
import type { Container, Pod, PodSpec, Volume } from './pod.ts';

const podOf = (spec: Partial<PodSpec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
});
const specOf = (spec: Partial<PodSpec>): PodSpec => applyPodDefaults(podOf(spec)).spec;
const containerOf = (fields: Partial<Container>, spec: Partial<PodSpec> = {}): Container | undefined =>
  specOf({ ...spec, containers: [{ name: 'c', image: 'i:1', ...fields }] }).containers[0];
const volumeOf = (source: Partial<Volume>): Volume | undefined =>
  specOf({ volumes: [{ name: 'v', ...source }] }).volumes?.[0];

const BARE_CONTAINER = {
  name: 'c',
  image: 'i:1',
  imagePullPolicy: 'IfNotPresent',
  resources: {},
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
};

describe('pod defaults', () => {
  it('of a pod that says nothing', () => {
    assert.deepEqual(specOf({}), {
      containers: [BARE_CONTAINER],
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      securityContext: {},
      enableServiceLinks: true,
      terminationGracePeriodSeconds: 30,
    });
  });

  it('leave the given pod and everything it says alone', () => {
    const given = podOf({
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      enableServiceLinks: false,
      containers: [{ name: 'c', imagePullPolicy: 'Never', ports: [{ containerPort: 1, protocol: 'UDP' }] }],
    });
    const copy = structuredClone(given);
    const { spec } = applyPodDefaults(given);
    assert.deepEqual(given, copy);
    assert.equal(spec.restartPolicy, 'Never');
    assert.equal(spec.terminationGracePeriodSeconds, 0);
    assert.equal(spec.enableServiceLinks, false);
    assert.equal(spec.containers[0]?.imagePullPolicy, 'Never');
    assert.equal(spec.containers[0]?.ports?.[0]?.protocol, 'UDP');
  });

  it('repair a negative grace period', () => {
    assert.equal(specOf({ terminationGracePeriodSeconds: -5 }).terminationGracePeriodSeconds, 1);
  });

  it('keep both names of the service account equal', () => {
    for (const given of [
      { serviceAccount: 'a' },
      { serviceAccountName: 'a' },
      { serviceAccountName: 'a', serviceAccount: 'b' },
    ]) {
      const spec = specOf(given);
      assert.deepEqual([spec.serviceAccount, spec.serviceAccountName], ['a', 'a']);
    }
  });

  const images: readonly (readonly [string | undefined, string])[] = [
    ['busybox', 'Always'],
    ['busybox:latest', 'Always'],
    ['host:5000/busybox', 'Always'],
    ['host:5000/busybox:1', 'IfNotPresent'],
    ['busybox:1', 'IfNotPresent'],
    ['busybox@sha256:abc', 'IfNotPresent'],
    ['busybox:latest@sha256:abc', 'Always'],
    ['', 'IfNotPresent'],
    [undefined, 'IfNotPresent'],
  ];
  for (const [image, policy] of images) it(`pull policy of ${image}`, () => assert.equal(pullPolicyOf(image), policy));

  it('of probes, hooks, ports and variables', () => {
    const container = containerOf({
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: { grpc: { port: 1 }, timeoutSeconds: 5, periodSeconds: 0 },
      lifecycle: { postStart: { httpGet: { port: 'p', scheme: 'HTTPS' } } },
      ports: [{ containerPort: 80 }],
      env: [
        { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
      ],
    });
    assert.deepEqual(container?.livenessProbe, {
      httpGet: { port: 80, path: '/', scheme: 'HTTP' },
      timeoutSeconds: 1,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    });
    assert.deepEqual(container.readinessProbe, {
      grpc: { port: 1, service: '' },
      timeoutSeconds: 5,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    });
    assert.deepEqual(container.lifecycle?.postStart, { httpGet: { port: 'p', path: '/', scheme: 'HTTPS' } });
    assert.deepEqual(container.ports, [{ containerPort: 80, protocol: 'TCP' }]);
    assert.deepEqual(container.env?.[0]?.valueFrom, { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } });
    assert.deepEqual(container.env[1]?.valueFrom, { resourceFieldRef: { resource: 'limits.cpu', divisor: '0' } });
  });

  it('of resources: limits are requests unless said otherwise, in canonical form', () => {
    const container = containerOf({
      resources: { limits: { cpu: '0.5', memory: '1024Mi' }, requests: { cpu: '0.0001' } },
    });
    assert.deepEqual(container?.resources, {
      limits: { cpu: '500m', memory: '1Gi' },
      requests: { cpu: '1m', memory: '1Gi' },
    });
  });

  it('of ports on the host network', () => {
    const container = containerOf({ ports: [{ containerPort: 80 }] }, { hostNetwork: true });
    assert.deepEqual(container?.ports, [{ containerPort: 80, protocol: 'TCP', hostPort: 80 }]);
  });

  const volumes: readonly (readonly [string, Partial<Volume>, Record<string, unknown>])[] = [
    ['none', {}, { emptyDir: {} }],
    ['hostPath', { hostPath: { path: '/x' } }, { hostPath: { path: '/x', type: '' } }],
    ['configMap', { configMap: { name: 'm' } }, { configMap: { name: 'm', defaultMode: 420 } }],
    ['secret', { secret: { secretName: 's', defaultMode: 256 } }, { secret: { secretName: 's', defaultMode: 256 } }],
    [
      'downwardAPI',
      { downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      {
        downwardAPI: {
          items: [{ path: 'l', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.labels' } }],
          defaultMode: 420,
        },
      },
    ],
    [
      'projected',
      { projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
      { projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }], defaultMode: 420 } },
    ],
    ['image', { image: { reference: 'x' } }, { image: { reference: 'x', pullPolicy: 'Always' } }],
  ];
  for (const [name, given, expected] of volumes)
    it(`of volumes: ${name}`, () => assert.deepEqual(volumeOf(given), { name: 'v', ...expected }));

  it('of pods that have but requests as a whole: none', () => {
    const resources = { requests: { cpu: '2' } };
    const spec = applyPodDefaults({
      metadata: { name: 'p' },
      spec: { resources, containers: [{ name: 'a', resources: { requests: { memory: '1Mi' } } }] },
    }).spec;
    assert.deepEqual(spec.resources, resources);
  });
  it('of pods that have resources as a whole', () => {
    const spec = specOf({
      resources: { limits: { cpu: '2', memory: '1Gi' } },
      containers: [
        { name: 'a', resources: { requests: { cpu: '1' } } },
        {
          name: 'b',
          resources: { requests: { cpu: '500m' }, limits: { cpu: '1', 'hugepages-2Mi': '4Mi', memory: '1Mi' } },
        },
      ],
    });
    assert.deepEqual(spec.resources, {
      limits: { cpu: '2', memory: '1Gi', 'hugepages-2Mi': '4Mi' },
      requests: { cpu: '1500m', memory: '1Mi', 'hugepages-2Mi': '4Mi' },
    });
  });

  it('of amounts below a thousandth: rounded away from nothing; what is no amount is left', () => {
    const { resources } = containerOf({ resources: { limits: { cpu: '100u', memory: '-100u', x: 'much' } } }) ?? {};
    assert.deepEqual(resources?.limits, { cpu: '1m', memory: '0', x: 'much' });
    assert.deepEqual(volumeOf({ emptyDir: { sizeLimit: 'much' } })?.emptyDir, { sizeLimit: 'much' });
  });

  it('of volumes that say little', () => {
    assert.deepEqual(volumeOf({ downwardAPI: {} })?.downwardAPI, { defaultMode: 0o644 });
    assert.deepEqual(volumeOf({ projected: {} as never })?.projected, { defaultMode: 0o644 });
    const sources = [
      { downwardAPI: {} },
      { downwardAPI: { items: [{ path: 'p', resourceFieldRef: { resource: 'limits.cpu' } }, { path: 'q' }] } },
      { serviceAccountToken: { path: 't', expirationSeconds: 7 } },
      { podCertificate: { signerName: 's' } },
    ] as never;
    const filled = volumeOf({ projected: { sources } })?.projected?.sources;
    assert.deepEqual(filled?.[1]?.downwardAPI?.items?.[0]?.resourceFieldRef?.divisor, '0');
    assert.equal(filled?.[2]?.serviceAccountToken?.expirationSeconds, 7);
    assert.equal(filled?.[3]?.podCertificate?.maxExpirationSeconds, 86_400);
    assert.deepEqual(volumeOf({ iscsi: { iscsiInterface: 'eth' } } as never)?.['iscsi'], { iscsiInterface: 'eth' });
  });

  it('of huge pages of a pod: what it requests itself is not made up', () => {
    const resources = { requests: { 'hugepages-2Mi': '4Mi' }, limits: { 'hugepages-2Mi': '4Mi' } };
    const given = specOf({ containers: [{ name: 'a', resources }], resources: { limits: { memory: '1Gi' } } });
    assert.equal(given.resources?.limits?.['hugepages-2Mi'], '4Mi');
    const own = specOf({ containers: [{ name: 'a', resources }], resources: { requests: { 'hugepages-2Mi': '4Mi' } } });
    assert.equal(own.resources?.limits?.['hugepages-2Mi'], undefined);
  });

  it('of ephemeral containers', () => {
    const spec = specOf({ ephemeralContainers: [{ name: 'd', image: 'i:1', targetContainerName: 'c' }] });
    assert.deepEqual(spec.ephemeralContainers, [{ ...BARE_CONTAINER, name: 'd', targetContainerName: 'c' }]);
  });
});
