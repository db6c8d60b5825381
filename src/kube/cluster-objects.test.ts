// Services that a start of many pods finds not read yet.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { ClusterObjects, type ClusterObjectsDeps } from './cluster-objects.ts';
import type { Resource } from './resources.ts';

const end = { metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } } };

function setup() {
  const clock = new ManualClock();
  const listed = Promise.withResolvers<void>();
  const client = {
    async *watch<T>({ plural }: Resource<T>, _where: unknown, _idleMs: number, signal: AbortSignal) {
      if (plural === 'services') await listed.promise;
      yield { type: 'BOOKMARK', object: end };
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  const deps = {
    api: { main: client, objects: client },
    clock,
    log: silentLogger,
    registry: new Registry(),
    onObjectChange: () => undefined,
  } as unknown as ClusterObjectsDeps;
  const options = { nodeName: 'n1', changeDetection: 'Watch', trustBundles: false, podCertificates: false } as const;
  const objects = new ClusterObjects(deps, options);
  const stop = new AbortController();
  const running = Promise.all(objects.parts.map((part) => part.run(stop.signal)));
  const close = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, listed, objects, close };
}

test('services are waited for until they are read, but not for ever', async () => {
  const { clock, listed, objects, close } = setup();
  const { signal } = new AbortController();
  let done = 0;
  const wait = (): Promise<void> => objects.servicesRead(signal).then(() => void done++);
  const tooLong = wait();
  await clock.advance(4999);
  assert.equal(done, 0);
  await clock.advance(1);
  await tooLong;
  assert.equal(objects.services(), undefined);
  const second = wait();
  await assert.rejects(objects.servicesRead(AbortSignal.abort(new Error('the pod is being stopped'))), /being stopped/);
  listed.resolve();
  await clock.advance(0);
  await second;
  assert.deepEqual(objects.services(), []);
  await wait();
  assert.equal(done, 3);
  await close();
});
