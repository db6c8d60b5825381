// Pulling with credentials, and how often the cluster is told the same thing; evictions asked for by the API.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS } from '../../src/kube/resources.ts';
import { TestRegistry } from '../harness/registry.ts';
import { AT_ONCE, container, never, Scene, shell, statusOf } from './scene.ts';

export function imagesAndEventsSuite(scene: () => Scene): void {
  describe('images, events, evictions', { concurrency: AT_ONCE }, () => {
    pullSecrets(scene);
    events(scene);
    evictions(scene);
  });
}

function pullSecrets(scene: () => Scene): void {
  it('pulls with the secret a pod names, and not without', async () => {
    const s = scene();
    const registry = new TestRegistry({ username: 'me', password: 'pass word' });
    await registry.start();
    try {
      const image = registry.add('private', 'v1');
      const auths = { [registry.host]: { username: 'me', password: 'pass word' } };
      await s.create({ base: '/api/v1', plural: 'secrets' }, 'pull', {
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
      });
      const main = container('main', { image, imagePullPolicy: 'Always' });
      const refused = await s.pod('no-secret', { containers: [main] });
      const waiting = await s.until('no-secret', 'cannot pull', (p) =>
        ['ErrImagePull', 'ImagePullBackOff'].includes(statusOf(p, 'main')?.state.waiting?.reason ?? ''),
      );
      assert.equal(waiting.status?.phase, 'Pending');
      await s.event(refused, 'Failed', ({ message }) => (message ?? '').startsWith(`Failed to pull image "${image}"`));
      await s.pod('secret', { imagePullSecrets: [{ name: 'pull' }], containers: [main] });
      const pod = await s.ready('secret');
      const pulled = await s.event(pod, 'Pulled');
      assert.match(pulled.message ?? '', /^Successfully pulled image ".*" in .* Image size: \d+ bytes\.$/);
      await s.delete('no-secret', { gracePeriodSeconds: 0 });
      await s.delete('secret', { gracePeriodSeconds: 0 });
    } finally {
      await registry.stop();
    }
  });
}

function events(scene: () => Scene): void {
  it('tells a repeated event by counting it', async () => {
    const s = scene();
    const readinessProbe = { exec: { command: shell('echo no; exit 1') }, periodSeconds: 1 };
    const pod = await s.pod('unhealthy', { containers: [container('main', { readinessProbe })] });
    const event = await s.event(pod, 'Unhealthy', ({ count = 0 }) => count >= 3);
    assert.equal(event.message, 'Readiness probe failed: no\n');
    assert.equal(event.involvedObject.fieldPath, 'spec.containers{main}');
    assert.deepEqual(event.source, { component: 'kubelet', host: 'n1' });
    const same = (await s.events(pod.metadata.uid ?? '')).filter((e) => e.reason === 'Unhealthy');
    assert.equal(same.length, 1, 'one object, however often');
    await s.delete('unhealthy', { gracePeriodSeconds: 0 });
  });
}

function evictions(scene: () => Scene): void {
  it('stops an evicted pod gracefully', async () => {
    const s = scene();
    const made = await s.pod('evicted', {});
    await s.ready('evicted');
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted', namespace: s.namespace } };
    await s.node.client.create(PODS, { namespace: s.namespace, name: 'evicted', subresource: 'eviction' }, body, never);
    await s.event(made, 'Killing');
    await s.gone('evicted');
  });
}
