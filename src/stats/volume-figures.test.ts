import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { aborted } from '../lib/abort.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { VolumeMeasuring, type MeasuredVolume } from './volume-figures.ts';

const never = new AbortController().signal;
const measured = (usedBytes: number): MeasuredVolume => ({
  usedBytes,
  inodesUsed: 1,
  capacityBytes: 100,
  availableBytes: 50,
  inodes: 10,
  inodesFree: 5,
  source: usedBytes === 1 ? 'fsquota' : 'du',
  tookMs: usedBytes,
});
const pod = (uid: string, volumes: object[]): Pod =>
  ({ metadata: { name: `p-${uid}`, namespace: 'ns', uid }, spec: { containers: [], volumes } }) as unknown as Pod;

type Trouble = { readonly failed?: Set<string>; readonly hangs?: Set<string> };

function setup(pods: Pod[], volumes: Record<string, number>, { failed = new Set(), hangs = new Set() }: Trouble = {}) {
  const clock = new ManualClock(undefined, () => 0.5);
  const walks: PodUid[] = [];
  const batches: number[] = [];
  const registry = new Registry();
  const measuring = new VolumeMeasuring(
    {
      pods: () => pods,
      async *measure(uids, signal) {
        batches.push(uids.length);
        for (const uid of uids) {
          walks.push(uid);
          if (hangs.has(uid)) await aborted(signal);
          if (signal.aborted) return;
          yield {
            uid,
            failed,
            volumes: new Map(Object.entries(volumes).map(([name, bytes]) => [name, measured(bytes)])),
          };
        }
      },
      durations: registry.histogram('d', 'h', ['metric_source']),
      clock,
      log: silentLogger,
    },
    { periodMs: 60_000 },
  );
  return { clock, walks, batches, measuring, registry };
}

test('each pod is measured at once, then every period with its jitter', async () => {
  const { clock, walks, measuring } = setup([pod('a', [{ name: 'v', emptyDir: {} }])], { v: 7 });
  await measuring.measureDue(never);
  await measuring.measureDue(never);
  assert.equal(walks.length, 1);
  assert.equal(measuring.of(podUid('a'))?.ephemeral[0]?.usedBytes, 7);
  await clock.advance(89_000);
  await measuring.measureDue(never);
  assert.equal(walks.length, 1, 'one and a half periods are not over');
  await clock.advance(2000);
  await measuring.measureDue(never);
  assert.equal(walks.length, 2);
});

test('a pod without volumes is not looked at', async () => {
  const { clock, walks, measuring } = setup([pod('a', [])], {});
  await measuring.measureDue(never);
  await clock.advance(600_000);
  await measuring.measureDue(never);
  assert.deepEqual(walks, []);
  assert.deepEqual(measuring.of(podUid('a')), { ephemeral: [], others: [] });
});

test('only what is on the disk and dies with the pod is ephemeral storage', async () => {
  const volumes = [
    { name: 'disk', emptyDir: {} },
    { name: 'memory', emptyDir: { medium: 'Memory' } },
    { name: 'config', configMap: { name: 'x' } },
    { name: 'secret', secret: { secretName: 'x' } },
    { name: 'claim', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'generic', ephemeral: {} },
    { name: 'kube-api-access-x', projected: { sources: [] } },
    { name: 'unmeasured', emptyDir: {} },
  ];
  const sizes = { disk: 1, memory: 2, config: 3, secret: 4, claim: 5, generic: 6, 'kube-api-access-x': 7 };
  const { measuring } = setup([pod('a', volumes)], sizes);
  await measuring.measureDue(never);
  const found = measuring.of(podUid('a'));
  assert.deepEqual(
    found?.ephemeral.map((v) => v.name),
    ['disk', 'config'],
  );
  assert.deepEqual(
    found?.others.map((v) => [v.name, v.pvcRef?.name]),
    [
      ['memory', undefined],
      ['secret', undefined],
      ['claim', 'data'],
      ['generic', 'p-a-generic'],
      ['kube-api-access-x', undefined],
    ],
  );
});

test('the metric says who counted each volume, and how long it took', async () => {
  const names = ['quota', 'a', 'b'];
  const volumes = names.map((name) => ({ name, emptyDir: {} }));
  const { measuring, registry } = setup([pod('a', volumes)], { quota: 1, a: 2000, b: 3000 });
  await measuring.measureDue(never);
  const text = registry.render();
  assert.match(text, /^d_count\{metric_source="fsquota"\} 1$/m);
  assert.match(text, /^d_count\{metric_source="du"\} 2$/m);
  assert.match(text, /^d_sum\{metric_source="du"\} 5$/m);
});

test('a pod that left is forgotten', async () => {
  const pods = [pod('a', [{ name: 'v', emptyDir: {} }])];
  const { measuring } = setup(pods, { v: 7 });
  await measuring.measureDue(never);
  pods.length = 0;
  await measuring.measureDue(never);
  assert.equal(measuring.all().size, 0);
});

test('pods that are due soon are measured with one that is due', async () => {
  const volumes = [{ name: 'v', emptyDir: {} }];
  const pods = [pod('a', volumes)];
  const { clock, batches, measuring } = setup(pods, { v: 7 });
  await measuring.measureDue(never);
  await clock.advance(5000);
  pods.push(pod('b', volumes));
  await measuring.measureDue(never);
  assert.deepEqual(batches, [1, 1], 'a new pod does not wait, and a was measured lately');
  await clock.advance(85_000);
  await measuring.measureDue(never);
  await clock.advance(5000);
  await measuring.measureDue(never);
  assert.deepEqual(batches, [1, 1, 2]);
});

test('a new pod has its figures within ten seconds, without a look at all pods every second', async () => {
  const stop = new AbortController();
  const pods: Pod[] = [];
  const { clock, walks, measuring } = setup(pods, { v: 7 });
  const running = measuring.run(stop.signal);
  await clock.advance(1000);
  pods.push(pod('a', [{ name: 'v', emptyDir: {} }]));
  await clock.advance(9000);
  assert.deepEqual(walks, ['a']);
  pods.push(pod('b', [{ name: 'v', emptyDir: {} }]));
  measuring.podsChanged();
  await clock.advance(0);
  assert.deepEqual(walks, ['a', 'b'], 'and at once where the change is known');
  stop.abort();
  await clock.advance(0);
  await running.catch(() => undefined);
});

test('a scratch volume that is not there yet is looked for again soon', async () => {
  const volumes: Record<string, number> = {};
  const { clock, walks, measuring } = setup([pod('a', [{ name: 'v', emptyDir: {} }])], volumes);
  await measuring.measureDue(never);
  assert.equal(measuring.isMeasured(pod('a', [{ name: 'v', emptyDir: {} }])), true, 'it holds nothing');
  volumes['v'] = 7;
  await clock.advance(10_000);
  await measuring.measureDue(never);
  assert.equal(measuring.of(podUid('a'))?.ephemeral[0]?.usedBytes, 7);
  await clock.advance(10_000);
  await measuring.measureDue(never);
  assert.equal(walks.length, 2);
});

test('what a pod holds is unknown until it was measured, or when that failed', async () => {
  const scratch = pod('a', [{ name: 'v', emptyDir: {} }]);
  const failed = new Set(['v']);
  const { clock, measuring } = setup([scratch], {}, { failed });
  assert.equal(measuring.isMeasured(scratch), false);
  for (const volumes of [[], [{ name: 'm', emptyDir: { medium: 'Memory' } }], [{ name: 's', secret: {} }]])
    assert.equal(measuring.isMeasured(pod('b', volumes)), true, 'nothing of it is on the disk');
  await measuring.measureNow([scratch], never);
  assert.equal(measuring.isMeasured(scratch), false);
  failed.clear();
  await clock.advance(10_000);
  await measuring.measureNow([scratch], never);
  assert.equal(measuring.isMeasured(scratch), true);
  failed.add('v');
  await clock.advance(10_000);
  await measuring.measureNow([scratch], never);
  assert.equal(measuring.isMeasured(scratch), true, 'what was measured before counts');
});

test('measured now are pods without recent figures, within a bounded time', async () => {
  const scratch = (uid: string): Pod => pod(uid, [{ name: 'v', emptyDir: {} }]);
  const pods = ['a', 'b', 'c', 'd', 'e', 'f'].map(scratch);
  const { clock, walks, measuring } = setup(pods, { v: 7 }, { hangs: new Set(['b']) });
  await measuring.measureNow([scratch('a'), pod('x', [])], never);
  walks.length = 0;
  let done = false;
  const measured = measuring.measureNow(pods, never).then(() => (done = true));
  await clock.advance(9999);
  assert.equal(done, false);
  await clock.advance(1);
  await measured;
  assert.deepEqual(walks.toSorted(), ['b', 'c', 'd', 'e', 'f'], 'b hangs, a is fresh');
  assert.deepEqual(
    pods.filter((p) => !measuring.isMeasured(p)).map(({ metadata }) => metadata.name),
    ['p-b'],
  );
});
