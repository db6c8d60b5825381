// Watches: order, selection, the initial state, bookmarks, the past.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import { dig, type Json } from './client.ts';
import { podBody, type Scene } from './scene.ts';

const name = (event: { object: Json }): unknown => dig(event.object, 'metadata', 'name');

export function watchContract(s: Scene): void {
  it('tells every change after a version, in order', async () => {
    const list = await s.api.get(`${s.path}/configmaps`);
    const version = String(dig(list.body, 'metadata', 'resourceVersion'));
    await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'w1' } });
    const watch = await s.api.watch(`${s.path}/configmaps?watch=true&resourceVersion=${version}`);
    await s.api.merge(`${s.path}/configmaps/w1`, { data: { a: 'b' } });
    await s.api.delete(`${s.path}/configmaps/w1`);
    const events = await watch.until((e) => e.length >= 3);
    watch.close();
    assert.deepEqual(
      events.map((e) => [e.type, name(e)]),
      [
        ['ADDED', 'w1'],
        ['MODIFIED', 'w1'],
        ['DELETED', 'w1'],
      ],
    );
    const versions = events.map((e) => Number(dig(e.object, 'metadata', 'resourceVersion')));
    assert.deepEqual(
      versions,
      versions.toSorted((a, b) => a - b),
    );
    assert.equal(dig(events[0]?.object, 'kind'), 'ConfigMap');
  });

  it('sends the state first, then its end mark, when asked for initial events', async () => {
    await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'init' } });
    const query =
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=300';
    const watch = await s.api.watch(`${s.path}/configmaps?${query}&fieldSelector=metadata.name%3Dinit`);
    const events = await watch.until((e) => e.some((x) => x.type === 'BOOKMARK'));
    assert.deepEqual(
      events.map((e) => e.type),
      ['ADDED', 'BOOKMARK'],
    );
    assert.equal(dig(events[1]?.object, 'metadata', 'annotations', 'k8s.io/initial-events-end'), 'true');
    await s.api.merge(`${s.path}/configmaps/init`, { data: { x: 'y' } });
    await watch.until((e) => e.some((x) => x.type === 'MODIFIED'));
    watch.close();
    const wrong = await s.api.get(`${s.path}/configmaps?watch=true&sendInitialEvents=true`);
    assert.equal(wrong.status, 422);
  });

  it('shows objects that come into sight as added and that leave it as deleted', async () => {
    const watch = await s.api.watch(`/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dsight`);
    await s.api.post(`${s.path}/pods`, podBody('sight'));
    await s.api.post(`${s.path}/pods/sight/binding`, { metadata: { name: 'sight' }, target: { name: 'sight' } });
    await s.api.delete(`${s.path}/pods/sight`, { gracePeriodSeconds: 0 });
    const events = await watch.until((e) => e.some((x) => x.type === 'DELETED'));
    watch.close();
    assert.deepEqual(
      events.map((e) => e.type),
      ['ADDED', 'MODIFIED', 'DELETED'],
    );
    assert.equal(dig(events[1]?.object, 'metadata', 'deletionGracePeriodSeconds'), 0);
    const labels = await s.api.watch(`${s.path}/configmaps?watch=true&labelSelector=seen`);
    await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'seen' } });
    await s.api.merge(`${s.path}/configmaps/seen`, { metadata: { labels: { seen: 'yes' } } });
    await s.api.merge(`${s.path}/configmaps/seen`, { metadata: { labels: { seen: null } } });
    const seen = await labels.until((e) => e.length >= 2);
    labels.close();
    assert.deepEqual(
      seen.map((e) => e.type),
      ['ADDED', 'DELETED'],
    );
  });

  it('ends in time', async () => {
    const watch = await s.api.watch(`${s.path}/configmaps?watch=true&timeoutSeconds=1`);
    await watch.until(() => watch.ended, 'end of the watch');
  });

  it('watches services that have an address', async () => {
    const watch = await s.api.watch(`/api/v1/services?watch=true&fieldSelector=spec.clusterIP%21%3DNone`);
    await s.api.post(`${s.path}/services`, {
      metadata: { name: 'headless' },
      spec: { clusterIP: 'None', ports: [{ port: 1 }] },
    });
    await s.api.post(`${s.path}/services`, { metadata: { name: 'headed' }, spec: { ports: [{ port: 80 }] } });
    const events = await watch.until((e) => e.some((x) => name(x) === 'headed'));
    watch.close();
    assert.ok(!events.some((e) => name(e) === 'headless'));
    assert.match(String(dig(events.at(-1)?.object, 'spec', 'clusterIP')), /^10\.96\./);
  });
}
