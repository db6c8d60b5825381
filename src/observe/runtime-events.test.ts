import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ContainerEventType, type ContainerEventResponse } from '../cri/gen/cri.ts';
import type { ContainerdEvent } from '../cri/containerd-events.ts';
import { readEnvelope } from '../cri/containerd-events.ts';
import { ContainerRef, TaskExit } from '../cri/gen/containerd-events.ts';
import { aborted } from '../lib/abort.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { encode } from '../lib/proto/codec.ts';
import { RuntimeEvents, type Hint } from './runtime-events.ts';

type Opened = { at: number; kind: 'cri' | 'containerd'; end: (err?: Error) => void };
const UNIMPLEMENTED = new GrpcError(GrpcCode.Unimplemented, 'unknown method');

function setup(offers: { cri: boolean; containerd: boolean }) {
  const clock = new ManualClock();
  const registry = new Registry();
  const opened: Opened[] = [];
  const hints: Hint[] = [];
  const live: boolean[] = [];
  const ooms = { count: 0 };
  const send: { cri?: (e: ContainerEventResponse) => void; containerd?: (e: ContainerdEvent) => void } = {};
  const stream = (kind: Opened['kind'], signal: AbortSignal): Promise<void> => {
    if (!offers[kind]) return Promise.reject(UNIMPLEMENTED);
    return new Promise((resolve, reject) => {
      opened.push({ at: clock.monotonic(), kind, end: (err) => (err === undefined ? resolve() : reject(err)) });
      void aborted(signal).then(() => reject(new Error('aborted')));
    });
  };
  const metrics = {
    errors: registry.counter('errors', ''),
    successes: registry.counter('successes', ''),
    latency: registry.histogram('latency', ''),
  };
  const events = new RuntimeEvents({
    clock,
    log: silentLogger,
    metrics,
    sources: {
      criEvents: (onEvent, signal) => {
        send.cri = onEvent;
        return stream('cri', signal);
      },
      containerdEvents: (onEvent, signal) => {
        send.containerd = onEvent;
        return stream('containerd', signal);
      },
    },
    onHint: (hint) => hints.push(hint),
    onOom: () => void ooms.count++,
    onStream: (is) => live.push(is),
  });
  const stop = new AbortController();
  const running = events.run(stop.signal);
  const finish = async (): Promise<void> => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0, 'no timer is left');
  };
  return { clock, opened, hints, ooms, live, send, metrics, events, finish };
}

describe('RuntimeEvents', () => {
  it('prefers the CRI, falls back to containerd, and asks again each minute where there is neither', async () => {
    for (const [offers, kind] of [
      [{ cri: true, containerd: true }, 'cri'],
      [{ cri: false, containerd: true }, 'containerd'],
      [{ cri: false, containerd: false }, 'none'],
    ] as const) {
      const t = setup(offers);
      await t.clock.advance(59_000);
      assert.equal(t.events.kind, kind);
      assert.equal(t.live.at(-1), kind !== 'none');
      await t.finish();
    }
  });

  it('tells at once what containerd says of kills for memory', async () => {
    const t = setup({ cri: false, containerd: true });
    await t.clock.advance(1);
    for (const topic of ['/tasks/start', '/tasks/oom', '/tasks/exit']) t.send.containerd?.({ topic, containerId: 'c' });
    assert.equal(t.ooms.count, 1);
    await t.finish();
  });

  it('reconnects after 100 ms, then ever more rarely, at most every 3 s; a good stream starts that over', async () => {
    const t = setup({ cri: true, containerd: false });
    const gaps: number[] = [];
    await t.clock.advance(0);
    for (let i = 0; i < 8; i++) {
      const before = t.clock.monotonic();
      t.opened.at(-1)?.end(new GrpcError(GrpcCode.Unavailable, 'away'));
      const count = t.opened.length;
      while (t.opened.length === count) await t.clock.advance(50);
      gaps.push(t.clock.monotonic() - before);
    }
    assert.deepEqual(gaps, [100, 200, 400, 800, 1600, 3000, 3000, 3000]);
    await t.clock.advance(6000);
    t.opened.at(-1)?.end(new GrpcError(GrpcCode.Unavailable, 'away'));
    await t.clock.advance(100);
    assert.equal(t.opened.length, 10);
    assert.equal(t.metrics.errors.value(), 9);
    assert.equal(t.metrics.successes.value(), 1);
    await t.finish();
  });

  it('takes a stream that always ends at once without a word for none, and asks again each minute', async () => {
    const t = setup({ cri: true, containerd: false });
    await t.clock.advance(0);
    for (let i = 0; i < 2; i++) {
      t.opened.at(-1)?.end();
      await t.clock.advance(200);
    }
    assert.equal(t.opened.length, 3);
    t.opened.at(-1)?.end();
    await t.clock.advance(59_000);
    assert.deepEqual([t.opened.length, t.events.kind, t.live.at(-1)], [3, 'none', false]);
    await t.clock.advance(1_000);
    assert.equal(t.opened.length, 4, 'its events may have been switched on');
    const podSandboxStatus = undefined as ContainerEventResponse['podSandboxStatus'];
    t.send.cri?.({ containerId: 'c', containerEventType: 0, createdAt: 0n, podSandboxStatus, containersStatuses: [] });
    t.opened.at(-1)?.end();
    await t.clock.advance(3_000);
    assert.equal(t.opened.length, 5, 'a stream that told something is one');
    await t.finish();
  });

  it('turns events into hints with what to expect', async () => {
    const t = setup({ cri: true, containerd: false });
    await t.clock.advance(0);
    const metadata = { name: 'p', namespace: 'n', uid: 'u', attempt: 0 };
    const podSandboxStatus = { metadata } as ContainerEventResponse['podSandboxStatus'];
    const createdAt = t.clock.nowNanos();
    for (const containerEventType of Object.values(ContainerEventType))
      t.send.cri?.({ containerId: 'c', containerEventType, createdAt, podSandboxStatus, containersStatuses: [] });
    assert.deepEqual(
      t.hints.map((h) => `${h.id} ${h.podUid} ${h.expect}`),
      ['c u started', 'c u stopped', 'c u gone'],
    );
    await t.finish();
  });

  it('leaves out what the runtime kept for its first client', async () => {
    const t = setup({ cri: true, containerd: false });
    await t.clock.advance(60_000);
    const podSandboxStatus = undefined as ContainerEventResponse['podSandboxStatus'];
    const stopped = { containerEventType: ContainerEventType.CONTAINER_STOPPED_EVENT, podSandboxStatus };
    const nowNanos = t.clock.nowNanos();
    for (const [containerId, agoSeconds] of [
      ['old', 90n],
      ['new', 0n],
    ] as const)
      t.send.cri?.({
        ...stopped,
        containerId,
        createdAt: nowNanos - agoSeconds * 1_000_000_000n,
        containersStatuses: [],
      });
    assert.deepEqual(
      t.hints.map((h) => h.id),
      ['new'],
    );
    await t.finish();
  });

  it('hears a runtime whose clock was set back with ours, and one that does not date its events', async () => {
    const t = setup({ cri: true, containerd: false });
    await t.clock.advance(60_000);
    const podSandboxStatus = undefined as ContainerEventResponse['podSandboxStatus'];
    const stopped = { containerEventType: ContainerEventType.CONTAINER_STOPPED_EVENT, podSandboxStatus };
    const send = (containerId: string, createdAt: bigint): void =>
      t.send.cri?.({ ...stopped, containerId, createdAt, containersStatuses: [] });
    t.clock.jumpWall(-3_600_000);
    send('after the step', t.clock.nowNanos());
    send('undated', 0n);
    assert.deepEqual(
      t.hints.map((h) => h.id),
      ['after the step', 'undated'],
    );
    await t.finish();
  });

  it('reads containerd’s envelopes and leaves execs and other namespaces out', () => {
    const envelope = (topic: string, value: Buffer, namespace = 'k8s.io') =>
      readEnvelope({ namespace, topic, event: { typeUrl: 't', value } });
    const exit = (id: string): Buffer => encode(TaskExit, { containerId: 'c', id });
    assert.deepEqual(envelope('/tasks/exit', exit('c')), { topic: '/tasks/exit', containerId: 'c' });
    assert.equal(envelope('/tasks/exit', exit('exec-1')), undefined);
    assert.equal(envelope('/tasks/exit', exit('c'), 'default'), undefined);
    const start = encode(ContainerRef, { containerId: 'd' });
    assert.deepEqual(envelope('/tasks/start', start), { topic: '/tasks/start', containerId: 'd' });
  });
});
