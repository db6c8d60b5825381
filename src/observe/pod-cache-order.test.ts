// What a cache shows when answers come later than what happened since: nothing that has ended comes back to life.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ContainerState } from '../cri/gen/cri.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { forever, setup, UID } from './pod-cache.fixture.ts';

describe('a pod that a list shows while it is being read', () => {
  it('does not come back to life by an answer that is older than the list', async () => {
    const t = setup();
    const told: string[] = [];
    t.cache.onChange((_uid, events) => told.push(...events.map((e) => e.type)));
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    t.control.failStatus = new GrpcError(GrpcCode.Internal, 'cannot be described');
    await t.cache.relist(forever);
    Object.assign(t.control, { failStatus: undefined, gatedStatus: true });
    const read = t.cache.refresh(UID, forever);
    await t.settle();
    t.world.container = ContainerState.CONTAINER_EXITED;
    await t.cache.relist(forever);
    t.control.gatedStatus = false;
    await t.release();
    assert.equal((await read).containers[0]?.state, 'exited');
    assert.deepEqual(told, ['ContainerStarted', 'ContainerStarted', 'ContainerDied']);
  });

  it('does not get a ready sandbox back by such an answer', async () => {
    const t = setup();
    const told: string[] = [];
    t.cache.onChange((_uid, events) => told.push(...events.map((e) => `${e.type} ${e.id}`)));
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_EXITED });
    t.control.failStatus = new GrpcError(GrpcCode.Internal, 'cannot be described');
    await t.cache.relist(forever);
    Object.assign(t.control, { failStatus: undefined, gatedStatus: true });
    const read = t.cache.refresh(UID, forever);
    await t.settle();
    t.world.sandbox = 'notReady';
    await t.cache.relist(forever);
    t.control.gatedStatus = false;
    await t.release();
    assert.equal((await read).sandboxes[0]?.ready, false);
    assert.deepEqual(told, ['ContainerDied c', 'ContainerStarted s', 'ContainerDied s']);
  });
});

it('what died stays dead while the lists have no room for it, and dies once', async () => {
  const t = setup();
  const told: string[] = [];
  t.cache.onChange((_uid, events) => told.push(...events.map((e) => `${e.type} ${e.id}`)));
  Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_EXITED });
  t.control.failStatus = new GrpcError(GrpcCode.Internal, 'cannot be described');
  await t.cache.relist(forever);
  assert.deepEqual(told, ['ContainerDied c', 'ContainerStarted s']);
  t.control.tooManyDead = true;
  await t.cache.relist(forever);
  t.control.tooManyDead = false;
  await t.cache.relist(forever);
  assert.deepEqual(told.slice(2), []);
  assert.equal(t.cache.get(UID)?.containers[0]?.state, 'exited');
  delete t.world.container;
  await t.cache.relist(forever);
  assert.deepEqual(told.slice(2), ['ContainerRemoved c']);
});

it('a pod does not come back to life by a list that is older than the read that found nothing of it', async () => {
  const t = setup();
  const told: string[] = [];
  t.cache.onChange((_uid, events) => told.push(...events.map((e) => `${e.type} ${e.id}`)));
  Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
  await t.cache.relist(forever);
  const late = Promise.withResolvers<unknown[]>();
  t.control.late = late.promise;
  const listed = t.cache.relist(forever);
  t.control.late = undefined;
  const then = [t.sandbox()];
  Object.assign(t.world, { sandbox: undefined, container: undefined });
  await t.cache.refresh(UID, forever);
  t.control.fail = new GrpcError(GrpcCode.Internal, 'cannot be listed');
  late.resolve(then);
  await listed;
  await t.settle();
  assert.equal(t.cache.get(UID), undefined);
  assert.deepEqual(told.slice(2), ['ContainerDied c', 'ContainerRemoved c', 'ContainerDied s', 'ContainerRemoved s']);
});
