// The pods API over its socket, and pods in protobuf.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { until } from '../../test/harness/until.ts';
import { podUid, type PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { GrpcCode } from '../lib/grpc/status.ts';
import { Registry } from '../lib/metrics.ts';
import { EventType, Pods } from './gen/pods-api.ts';
import { encodePod } from './pod-wire.ts';
import { PodsApiServer } from './pods-api.ts';
import { PodsFeed, type PodEvent } from './pods-feed.ts';

const podOf = (uid: string, more: Partial<Pod> = {}): Pod => ({
  metadata: { name: `p${uid}`, namespace: 'n', uid },
  spec: { containers: [] },
  ...more,
});

/** Fields as `number=value`, messages in braces; enough to read what was written. */
function shown(bytes: Uint8Array, nested: readonly number[][]): string {
  const buffer = Buffer.from(bytes);
  const read = (at: number): [number, number] => {
    let value = 0n;
    let shift = 0n;
    for (; ; at++) {
      const byte = buffer[at] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (byte < 0x80) return [Number(BigInt.asIntN(64, value)), at + 1];
    }
  };
  const walk = (from: number, to: number, path: readonly number[]): string => {
    const parts: string[] = [];
    for (let at = from; at < to;) {
      let tag: number, value: number;
      [tag, at] = read(at);
      [value, at] = read(at);
      const here = [...path, tag >>> 3];
      if ((tag & 7) === 0) parts.push(`${tag >>> 3}=${value}`);
      else {
        const isMessage = nested.some((n) => n.join() === here.join());
        const text = isMessage ? `{${walk(at, at + value, here)}}` : buffer.toString('utf8', at, at + value);
        parts.push(`${tag >>> 3}=${text}`);
        at += value;
      }
    }
    return parts.join(' ');
  };
  return walk(0, buffer.length, []);
}

describe('a pod in protobuf', () => {
  const spec = (fields: object): Pod => ({ metadata: { name: '' }, spec: { ...fields } as Pod['spec'] });
  const rows: readonly (readonly [string, Pod, readonly number[][], string])[] = [
    [
      'names and maps',
      podOf('1', { metadata: { name: 'p', uid: 'u', labels: { a: 'b' } } }),
      [[1], [1, 11], [2]],
      '1={1=p 5=u 11={1=a 2=b}} 2={}',
    ],
    [
      'times',
      podOf('1', { metadata: { name: 'p', creationTimestamp: '1970-01-01T00:01:00.5Z' } }),
      [[1], [1, 8], [2]],
      '1={1=p 8={1=60 2=500000000}} 2={}',
    ],
    [
      'zero is not absent',
      spec({ terminationGracePeriodSeconds: 0, hostNetwork: false }),
      [[1], [2]],
      '1={1=} 2={4=0 11=0}',
    ],
    [
      'a volume is one level deeper than in JSON',
      spec({ volumes: [{ name: 'v', emptyDir: {} }] }),
      [[1], [2], [2, 1], [2, 1, 2]],
      '1={1=} 2={1={1=v 2={2=}}}',
    ],
    [
      'so is what a probe does; ports are numbers or names',
      spec({
        containers: [
          { name: 'c', livenessProbe: { tcpSocket: { port: 80 } }, readinessProbe: { tcpSocket: { port: 'w' } } },
        ],
      }),
      [
        [1],
        [2],
        [2, 2],
        [2, 2, 10],
        [2, 2, 10, 1],
        [2, 2, 10, 1, 3],
        [2, 2, 10, 1, 3, 1],
        [2, 2, 11],
        [2, 2, 11, 1],
        [2, 2, 11, 1, 3],
        [2, 2, 11, 1, 3, 1],
      ],
      '1={1=} 2={2={1=c 10={1={3={1={1=0 2=80}}}} 11={1={3={1={1=1 3=w}}}}}}',
    ],
    [
      'a user beyond int64 is the largest',
      spec({ securityContext: { runAsUser: 2 ** 63 } }),
      [[1], [2], [2, 14]],
      '1={1=} 2={14={2=9223372036854776000}}',
    ],
    ['amounts', spec({ overhead: { cpu: '1' } }), [[1], [2], [2, 32], [2, 32, 2]], '1={1=} 2={32={1=cpu 2={1=1}}}'],
    [
      'negative numbers',
      {
        ...spec({}),
        status: { containerStatuses: [{ name: 'c', state: { terminated: { exitCode: -1 } } }] } as unknown as PodStatus,
      },
      [[1], [2], [3], [3, 8], [3, 8, 2], [3, 8, 2, 3]],
      '1={1=} 2={} 3={8={1=c 2={3={1=-1}}}}',
    ],
  ];
  for (const [name, pod, nested, expected] of rows)
    it(name, () => assert.equal(shown(encodePod(pod), nested), expected));
});

class Stores {
  readonly pods = new Map<PodUid, Pod>();
  readonly statuses = new Map<PodUid, { status: PodStatus; finished: boolean }>();
  readonly registry = new Registry();
  readonly dropped = this.registry.counter('dropped', 'd');
  readonly feed = new PodsFeed({
    pods: { get: (uid) => this.pods.get(uid), all: () => [...this.pods.values()] },
    statuses: this.statuses,
    dropped: this.dropped,
  });

  set(pod: Pod, status?: PodStatus, finished = false): void {
    this.pods.set(uidOf(pod), pod);
    if (status !== undefined) this.statuses.set(uidOf(pod), { status, finished });
    this.feed.changed(uidOf(pod));
  }
}

describe('what watchers are told', () => {
  const run = (act: (stores: Stores) => void): string[] => {
    const stores = new Stores();
    const seen: PodEvent[] = [];
    stores.feed.watch({ tell: (event) => seen.push(event) > 0, disconnect: () => assert.fail('nobody is slow') });
    act(stores);
    return seen.map(({ type, pod }) => `${type} ${pod.metadata.uid} ${pod.status?.phase ?? '-'}`);
  };
  const running: PodStatus = { phase: 'Running' };

  it('a pod is added once it has a status, and changes only when something did', () =>
    assert.deepEqual(
      run((stores) => {
        const pod = podOf('1');
        stores.set(pod);
        stores.set(pod, running);
        stores.set(pod);
        stores.set({ ...pod });
      }),
      ['ADDED 1 Running', 'MODIFIED 1 Running'],
    ));
  it('a pod that is finished is deleted, and nothing comes after that', () =>
    assert.deepEqual(
      run((stores) => {
        const pod = podOf('1');
        stores.set(pod, running);
        stores.set(pod, { phase: 'Failed' }, true);
        stores.set({ ...pod }, { phase: 'Failed' }, true);
        stores.pods.delete(podUid('1'));
        stores.feed.allChanged([pod]);
      }),
      ['ADDED 1 Running', 'DELETED 1 -'],
    ));
  it('a pod that vanishes is deleted', () =>
    assert.deepEqual(
      run((stores) => {
        stores.set(podOf('1', { status: { phase: 'Pending' } }));
        stores.pods.delete(podUid('1'));
        stores.feed.changed(podUid('1'));
      }),
      ['ADDED 1 Pending', 'DELETED 1 -'],
    ));
  it('a watcher that does not read is let go and counted', () => {
    const stores = new Stores();
    let gone = 0;
    stores.feed.watch({ tell: () => false, disconnect: () => gone++ });
    stores.set(podOf('1'), running);
    stores.set(podOf('2'), running);
    assert.equal(gone, 1);
    assert.match(stores.registry.render(), /^dropped 1$/m);
  });
});

describe('pods API', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pods-api-'));
  const socketPath = join(dir, 'api', 'pods-api.sock');
  const stores = new Stores();
  const channel = new GrpcChannel(systemClock, { target: { socketPath } });
  const life = new AbortController();
  const call = { signal: life.signal, deadlineMs: 5000 };
  let running: Promise<void> = Promise.resolve();

  before(async () => {
    stores.set(podOf('b'), { phase: 'Running' });
    stores.set(podOf('a'), { phase: 'Pending' });
    running = new PodsApiServer({ clock: systemClock, log: silentLogger, feed: stores.feed }, socketPath).run(
      life.signal,
    );
    await until('it listens', () => existsSync(socketPath));
  });
  after(async () => {
    channel.close();
    life.abort();
    await running;
    rmSync(dir, { recursive: true });
  });

  const bytesOf = (pod: Pod, phase?: PodStatus['phase']): string =>
    encodePod(phase === undefined ? pod : { ...pod, status: { phase } }).toString('hex');
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

  it('lists by UID and gets one', async () => {
    const { pods } = await channel.unary(Pods.listPods, {}, call);
    assert.deepEqual(pods.map(hex), [bytesOf(podOf('a'), 'Pending'), bytesOf(podOf('b'), 'Running')]);
    const { pod } = await channel.unary(Pods.getPod, { podUID: 'b' }, call);
    assert.equal(hex(pod), bytesOf(podOf('b'), 'Running'));
    await assert.rejects(channel.unary(Pods.getPod, { podUID: 'c' }, call), {
      code: GrpcCode.NotFound,
      message: 'pod with UID c not found',
    });
  });

  it('watches: what there is, the sign that this was all, then changes', async () => {
    const seen: [number, string][] = [];
    const stop = new AbortController();
    const watching = channel.serverStream(Pods.watchPods, {}, { signal: stop.signal }, ({ type, pod }) => {
      seen.push([type, hex(pod)]);
    });
    await until('the first list is complete', () => seen.some(([type]) => type === EventType.INITIAL_SYNC_COMPLETE));
    stores.set(podOf('c'), { phase: 'Pending' });
    stores.set(podOf('c'), { phase: 'Running' }, true);
    await until('it is told', () => seen.length >= 5);
    assert.deepEqual(seen, [
      [EventType.ADDED, bytesOf(podOf('a'), 'Pending')],
      [EventType.ADDED, bytesOf(podOf('b'), 'Running')],
      [EventType.INITIAL_SYNC_COMPLETE, ''],
      [EventType.ADDED, bytesOf(podOf('c'), 'Pending')],
      [EventType.DELETED, bytesOf(podOf('c'))],
    ]);
    stop.abort(new Error('enough'));
    await assert.rejects(watching, /enough/);
  });
});
