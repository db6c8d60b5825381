import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodConfig, type PodChange } from './merge.ts';

const pod = (uid: string, fields: Partial<Pod['metadata']> = {}, more: Partial<Pod> = {}): Pod => ({
  metadata: { name: uid, namespace: 'ns', uid, ...fields },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status: { phase: 'Pending' },
  ...more,
});

function setup(sources: readonly string[] = ['file', 'api']) {
  const changes: PodChange[] = [];
  const events: string[] = [];
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const config = new PodConfig(
    {
      clock,
      log: silentLogger,
      events: { pod: (_pod, _type, reason, message) => void events.push(`${reason} ${message}`) },
      onChange: (change) => changes.push(change),
    },
    { sources },
  );
  const said = (): readonly string[] =>
    changes.splice(0).map((c) => `${c.op} ${c.source} ${c.pods.map((p) => p.metadata.uid).join(' ')}`.trim());
  return { config, changes, events, clock, said };
}

describe('merge', () => {
  it('says ADD of nothing for the first empty set, and nothing for the second', () => {
    const { config, said } = setup();
    config.set('file', []);
    assert.deepEqual(said(), ['ADD file']);
    config.set('file', []);
    assert.deepEqual(said(), []);
  });

  it('tells of the first word of a source also when an old copy said the same before', () => {
    const { config, said } = setup();
    config.set('api', [pod('a')], true);
    assert.deepEqual([said(), config.awaited()], [['ADD api a'], ['file', 'api']]);
    config.set('api', [pod('a')]);
    assert.deepEqual([said(), config.awaited()], [['ADD api'], ['file']]);
    config.set('api', [pod('a')]);
    assert.deepEqual(said(), []);
  });

  it('is ready when every source has been heard', () => {
    const { config } = setup();
    assert.ok(!config.sourcesReady());
    config.set('api', []);
    assert.deepEqual(config.awaited(), ['file']);
    config.set('file', []);
    assert.ok(config.sourcesReady());
  });

  const same = pod('a');
  const rows: readonly (readonly [string, Pod, Pod, readonly string[]])[] = [
    ['the same object', same, same, []],
    ['an equal one', pod('a'), pod('a'), []],
    ['another version of it only', pod('a', { resourceVersion: '1' }), pod('a', { resourceVersion: '2' }), []],
    ['labels', pod('a'), pod('a', { labels: { x: 'y' } }), ['UPDATE api a']],
    ['annotations', pod('a'), pod('a', { annotations: { x: 'y' } }), ['UPDATE api a']],
    [
      'our own annotations',
      pod('a'),
      pod('a', { annotations: { 'kubernetes.io/config.seen': 'x', 'kubernetes.io/config.source': 'y' } }),
      [],
    ],
    ['spec', pod('a'), pod('a', {}, { spec: { containers: [] } }), ['UPDATE api a']],
    ['deletion', pod('a'), pod('a', { deletionTimestamp: 'now', deletionGracePeriodSeconds: 3 }), ['DELETE api a']],
    [
      'shorter grace',
      pod('a', { deletionTimestamp: 'now', deletionGracePeriodSeconds: 3 }),
      pod('a', { deletionTimestamp: 'now', deletionGracePeriodSeconds: 1 }),
      ['DELETE api a'],
    ],
    ['status', pod('a'), pod('a', {}, { status: { phase: 'Running' } }), ['RECONCILE api a']],
    [
      'spec and status',
      pod('a'),
      pod('a', {}, { spec: { containers: [] }, status: { phase: 'Running' } }),
      ['UPDATE api a'],
    ],
  ];
  for (const [name, before, after, expected] of rows)
    it(`tells changes apart: ${name}`, () => {
      const { config, said } = setup();
      config.set('api', [before]);
      assert.deepEqual(said(), ['ADD api a']);
      config.set('api', [after]);
      assert.deepEqual(said(), expected);
      const single = setup();
      single.config.set('api', [before]);
      single.said();
      single.config.change('api', 'a', after);
      assert.deepEqual(single.said(), expected, 'told alone as in a set');
      single.config.set('api', [after]);
      assert.deepEqual(single.said(), [], 'and remembered');
    });

  it('takes single pods of a known set: new, gone, and one whose name is taken', () => {
    const { config, said, events } = setup();
    config.change('api', 'early', pod('early'));
    assert.deepEqual(said(), [], 'without a set nothing is known');
    config.set('api', [pod('a')]);
    said();
    config.change('api', 'b', pod('b'));
    config.change('api', 'twin', pod('twin', { name: 'b' }));
    config.change('api', 'elsewhere', pod('elsewhere', { name: 'b', namespace: 'other' }));
    assert.match(events.join(), /duplicate pod name "b"/);
    config.change('api', 'a', undefined);
    config.change('api', 'a', undefined);
    assert.deepEqual(said(), ['ADD api b', 'ADD api elsewhere', 'REMOVE api a']);
    assert.deepEqual(
      config.pods().map((p) => p.metadata.uid),
      ['b', 'elsewhere'],
    );
  });

  it('keeps source and first sight over updates, also when the object comes without them', async () => {
    const { config, changes, clock } = setup();
    config.set('api', [pod('a', { annotations: { mine: '1' } })]);
    const seen = changes.at(-1)?.pods[0]?.metadata.annotations?.['kubernetes.io/config.seen'];
    assert.equal(seen, '2026-01-01T00:00:00Z');
    await clock.advance(5000);
    config.set('api', [pod('a', { annotations: { mine: '2' } }), pod('b')]);
    const update = changes.find((c) => c.op === 'UPDATE')?.pods[0]?.metadata.annotations;
    assert.deepEqual(update, { mine: '2', 'kubernetes.io/config.seen': seen, 'kubernetes.io/config.source': 'api' });
    assert.equal(changes.at(1)?.pods[0]?.metadata.annotations?.['kubernetes.io/config.seen'], '2026-01-01T00:00:05Z');
  });

  it('says things in order, and leaves other sources alone', () => {
    const { config, said } = setup();
    config.set('file', [pod('f')]);
    config.set('api', [pod('a'), pod('b'), pod('c'), pod('d')]);
    said();
    config.set('api', [
      pod('b', { labels: { x: 'y' } }),
      pod('c', { deletionTimestamp: 'now' }),
      pod('d', {}, { status: { phase: 'Running' } }),
      pod('e'),
    ]);
    assert.deepEqual(said(), ['REMOVE api a', 'ADD api e', 'UPDATE api b', 'DELETE api c', 'RECONCILE api d']);
    assert.deepEqual(
      config
        .pods()
        .map((p) => p.metadata.uid ?? '')
        .sort((a, b) => (a < b ? -1 : 1)),
      ['b', 'c', 'd', 'e', 'f'],
    );
  });

  it('takes a pod that is back as a new one', () => {
    const { config, said } = setup();
    config.set('file', [pod('a')]);
    config.set('file', []);
    config.set('file', [pod('a')]);
    assert.deepEqual(said(), ['ADD file a', 'REMOVE file a', 'ADD file a']);
  });

  it('refuses a second pod of a name, with an event', () => {
    const { config, said, events } = setup();
    config.set('file', [pod('a', { name: 'x' }), pod('b', { name: 'x' }), pod('c', { name: 'x', namespace: 'other' })]);
    assert.deepEqual(said(), ['ADD file a c']);
    assert.equal(events.length, 1);
    assert.match(
      events[0] ?? '',
      /^FailedValidation Error validating pod x_ns\(b\) from file due to duplicate pod name "x", ignoring/,
    );
  });
});
