import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
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

function setup(pods: Pod[], volumes: Record<string, number>) {
  const clock = new ManualClock(undefined, () => 0.5);
  const walks: PodUid[] = [];
  const batches: number[] = [];
  const registry = new Registry();
  const measuring = new VolumeMeasuring(
    {
      pods: () => pods,
      async *measure(uids) {
        batches.push(uids.length);
        for (const uid of uids) {
          walks.push(uid);
          yield { uid, volumes: new Map(Object.entries(volumes).map(([name, bytes]) => [name, measured(bytes)])) };
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
  stop.abort();
  await clock.advance(0);
  await running.catch(() => undefined);
});
