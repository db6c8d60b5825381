import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodSnapshot } from '../../core/snapshot.ts';
import { silentLogger } from '../../lib/logger.ts';
import { Listener } from '../listener.ts';
import type { PodsView } from '../pods-view.ts';
import { joined, type Endpoint } from '../router.ts';
import { podsRoutes, runningPodsRoutes } from './pods.ts';

/** What an endpoint answers to a GET of each path. */
async function answers(endpoint: Endpoint, paths: readonly string[]): Promise<string[]> {
  const listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: 0 });
  const stop = new AbortController();
  const running = listener.run(stop.signal);
  try {
    while (listener.boundPort === undefined) await new Promise(setImmediate);
    const get = async (path: string): Promise<string> =>
      (await fetch(`http://127.0.0.1:${listener.boundPort}${path}`)).text();
    return await Promise.all(paths.map(get));
  } finally {
    stop.abort();
    await running;
  }
}

it('a node without pods shows a list of nothing, as Go encodes it', async () => {
  const endpoint = joined([podsRoutes({ all: () => [] } as unknown as PodsView), runningPodsRoutes({ all: () => [] })]);
  const nothing = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n';
  assert.deepEqual(await answers(endpoint, ['/pods', '/runningpods/']), [nothing, nothing]);
});

it('running pods have the containers that run, with the ids of their images', async () => {
  const containers = [
    { name: 'crio', state: 'running', image: 'busybox', imageId: 'sha256:1', imageRef: 'busybox@sha256:2' },
    { name: 'containerd', state: 'running', image: 'busybox', imageId: '', imageRef: 'sha256:3' },
    { name: 'ended', state: 'exited', image: 'busybox', imageId: 'sha256:4', imageRef: 'sha256:4' },
  ];
  const pod = { uid: 'u', name: 'p', namespace: 'n', sandboxes: [], containers } as unknown as PodSnapshot;
  const [text = ''] = await answers(runningPodsRoutes({ all: () => [pod] }), ['/runningpods/']);
  const [item] = (JSON.parse(text) as { items: { metadata: object; spec: object }[] }).items;
  assert.deepEqual(item?.metadata, { name: 'p', namespace: 'n', uid: 'u' });
  assert.deepEqual(item.spec, {
    containers: [
      { name: 'crio', image: 'sha256:1', resources: {} },
      { name: 'containerd', image: 'sha256:3', resources: {} },
    ],
  });
});
