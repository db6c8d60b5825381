import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { KubeObject } from '../core/meta.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { FollowedObjects } from './followed-objects.ts';
import { RecordingClient, unreachable, type Answer } from './recording-client.ts';
import { getOnly, type Resource } from './resources.ts';

const DRIVERS: Resource<KubeObject> = { base: '/apis/storage.k8s.io/v1', plural: 'csidrivers' };
const CLAIMS: Resource<KubeObject> = getOnly({ base: '/api/v1', plural: 'persistentvolumeclaims' });
const object = (version: number, uid = 'u'): KubeObject => ({
  metadata: { name: 'x', uid, resourceVersion: String(version) },
});
const initial = (...objects: KubeObject[]): unknown => [
  ...objects.map((o) => ({ type: 'ADDED', object: o })),
  {
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } } },
  },
];

function open(t: TestContext, answer: Answer) {
  const clock = new ManualClock();
  const client = new RecordingClient(answer);
  const followed = new FollowedObjects({ client, clock, log: silentLogger }, { name: 'storage' });
  const stop = new AbortController();
  const running = followed.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0);
  });
  const heard: (string | undefined)[] = [];
  const listen = (o: KubeObject | undefined): void => void heard.push(o?.metadata.resourceVersion);
  return { clock, client, followed, heard, listen };
}

test('a kind that may be watched is watched, once for all its followers', async (t) => {
  const { clock, client, followed, heard, listen } = open(t, () => initial(object(3)));
  const one = followed.follow(DRIVERS, { name: 'x' }, listen);
  assert.equal(one.known, false);
  await clock.advance(1);
  const two = followed.follow(DRIVERS, { name: 'x' }, listen);
  assert.deepEqual(heard, ['3', '3']);
  assert.equal(two.object?.metadata.resourceVersion, '3');
  await clock.advance(1);
  assert.equal(client.calls.length, 1);
  assert.match(client.calls[0]?.target ?? '', /csidrivers\?.*fieldSelector=metadata\.name%3Dx/);
  one.release();
  two.release();
  followed.follow(DRIVERS, { name: 'x' }, listen);
  await clock.advance(1);
  assert.equal(client.calls.length, 2, 'a new watch after everybody had let go');
});

test('an object that is not there is known as such', async (t) => {
  const { clock, followed, heard, listen } = open(t, () => initial());
  const one = followed.follow(DRIVERS, { name: 'x' }, listen);
  await clock.advance(1);
  assert.deepEqual([one.known, one.object, heard], [true, undefined, [undefined]]);
});

test('a kind that may only be read is read less and less often while nothing changes', async (t) => {
  let version = 1;
  const { clock, client, followed, heard, listen } = open(t, () => object(version));
  const one = followed.follow(CLAIMS, { namespace: 'ns', name: 'x' }, listen);
  await clock.advance(1);
  assert.deepEqual(client.log, ['GET /api/v1/namespaces/ns/persistentvolumeclaims/x']);
  await clock.advance(600_000);
  const calm = client.calls.length;
  assert.ok(calm >= 14 && calm <= 18, `${calm} reads in ten minutes`);
  assert.deepEqual(heard, ['1']);
  version = 2;
  one.refresh();
  await clock.advance(1);
  assert.deepEqual(heard, ['1', '2']);
  await clock.advance(4000);
  assert.equal(client.calls.length, calm + 3, 'often again after a change');
  one.release();
  await clock.advance(600_000);
  assert.equal(client.calls.length, calm + 3, 'not at all after its release');
});

test('a deletion is heard, a server that is away changes nothing', async (t) => {
  let answer: () => unknown = () => object(1);
  const { clock, followed, heard, listen } = open(t, () => answer());
  followed.follow(CLAIMS, { namespace: 'ns', name: 'x' }, listen);
  await clock.advance(1);
  answer = () => {
    throw unreachable();
  };
  await clock.advance(120_000);
  assert.deepEqual(heard, ['1']);
  answer = () => undefined;
  await clock.advance(120_000);
  assert.deepEqual(heard, ['1', undefined]);
  answer = () => object(1, 'another');
  await clock.advance(120_000);
  assert.deepEqual(heard, ['1', undefined, '1']);
});
