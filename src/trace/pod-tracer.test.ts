import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { podUid } from '../core/ids.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodTracer } from './pod-tracer.ts';
import { drawn, type Waterfall } from './waterfall.ts';

const pod = (uid: string) => ({ uid: podUid(uid), namespace: 'default', name: `pod-${uid}` });

describe('the waterfall of a pod', () => {
  it('has the pieces of its own work, however deep, and nobody else’s', async () => {
    const clock = new ManualClock();
    const tracer = new PodTracer({ clock });
    tracer.begin('start', pod('a'));
    tracer.begin('start', pod('b'));
    const inner = async (): Promise<void> => {
      await turn();
      await tracer.span('image', async () => clock.advance(5), 'busybox');
    };
    await tracer.during(podUid('a'), () => tracer.span('sandbox', async () => clock.advance(10)).then(inner));
    await tracer.span('nobody', async () => undefined);
    await tracer.spanOf(podUid('stranger'), 'status', async () => undefined);
    tracer.finish('start', podUid('a'));
    const seen = tracer.ofPod('default', 'pod-a').at(-1);
    assert.deepEqual(seen?.spans, [
      { name: 'sandbox', fromMs: 0, toMs: 10 },
      { name: 'image', of: 'busybox', fromMs: 10, toMs: 15 },
    ]);
    assert.equal(seen?.tookMs, 15);
    assert.deepEqual(tracer.ofPod('default', 'pod-b').at(-1)?.spans, []);
    assert.ok(seen !== undefined);
    assert.match(drawn(seen), /start of default\/pod-a: 15\.0 ms\nsandbox/);
  });

  it('shows what is waited for right now, and what failed', async () => {
    const clock = new ManualClock();
    const tracer = new PodTracer({ clock });
    tracer.begin('start', pod('a'));
    const failing = tracer.spanOf(podUid('a'), 'cgroup', () => Promise.reject(new Error('no room')));
    await assert.rejects(failing, /no room/);
    const gate = Promise.withResolvers<void>();
    const waiting = tracer.spanOf(podUid('a'), 'volumes', () => gate.promise);
    const [cgroup, volumes] = tracer.ofPod('default', 'pod-a').at(-1)?.spans ?? [];
    assert.equal(cgroup?.error, 'no room');
    assert.deepEqual(volumes, { name: 'volumes', fromMs: 0 });
    gate.resolve();
    await waiting;
  });

  it('gives answers and failures of the work through unchanged', async () => {
    const tracer = new PodTracer({ clock: new ManualClock() });
    tracer.begin('start', pod('a'));
    assert.equal(await tracer.spanOf(podUid('a'), 'x', async () => 7), 7);
    const err = new Error('as it was');
    await assert.rejects(
      tracer.spanOf(podUid('a'), 'x', () => Promise.reject(err)),
      (got) => got === err,
    );
  });
});

describe('what is kept', () => {
  it('is bounded: finished waterfalls, spans of one, pods under way', async () => {
    const clock = new ManualClock();
    const reported: Waterfall[] = [];
    const tracer = new PodTracer({ clock, onFinished: (w) => reported.push(w) }, { keep: 3, maxSpans: 4 });
    for (let i = 0; i < 10; i++) {
      tracer.begin('start', pod(String(i)));
      for (let n = 0; n < 10; n++) await tracer.spanOf(podUid(String(i)), 'try', async () => undefined);
      await clock.advance(i);
      tracer.finish('start', podUid(String(i)));
    }
    assert.equal(reported.length, 10);
    assert.deepEqual(
      tracer.all().map((w) => [w.name, w.spans.length]),
      [
        ['pod-7', 4],
        ['pod-8', 4],
        ['pod-9', 4],
      ],
    );
    assert.deepEqual(
      tracer.slowest(2).map((w) => w.name),
      ['pod-9', 'pod-8'],
    );
    tracer.begin('start', pod('x'));
    tracer.keepOnly(new Set());
    assert.equal(tracer.ofPod('default', 'pod-x').at(-1), undefined);
  });

  it('a stop takes the place of a start that never ended, and a late finish of the start changes nothing', () => {
    const tracer = new PodTracer({ clock: new ManualClock() });
    tracer.begin('start', pod('a'));
    tracer.begin('stop', pod('a'));
    tracer.finish('start', podUid('a'));
    assert.equal(tracer.ofPod('default', 'pod-a').at(-1)?.kind, 'stop');
    tracer.finish('stop', podUid('a'));
    assert.deepEqual(
      tracer.all().map((w) => w.kind),
      ['stop'],
    );
  });
});
