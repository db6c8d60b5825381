import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Pod, PodStatus } from '../core/pod.ts';
import { podUid } from '../core/ids.ts';
import { apiTime } from '../core/time.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { newlyTerminated, PodMetrics } from './pod-metrics.ts';

const UID = podUid('u1');
let clock: ManualClock;
let registry: Registry;
let metrics: PodMetrics;
beforeEach(() => {
  clock = new ManualClock();
  registry = new Registry();
  metrics = new PodMetrics(clock, registry);
});

const podWith = (more: { status?: PodStatus; source?: string; volumes?: object[] } = {}): Pod =>
  ({
    metadata: {
      name: 'p',
      namespace: 'ns',
      uid: UID,
      creationTimestamp: apiTime(Date.UTC(2026, 0, 1)),
      annotations: {
        'kubernetes.io/config.source': more.source ?? 'api',
        'kubernetes.io/config.seen': new Date(Date.UTC(2026, 0, 1)).toISOString(),
      },
    },
    spec: { containers: [{ name: 'c' }, { name: 'd' }], volumes: more.volumes ?? [] },
    ...(more.status === undefined ? {} : { status: more.status }),
  }) as unknown as Pod;

const running = (id = 'x://1') => ({ containerID: id, state: { running: { startedAt: apiTime(1) } } });
const started: PodStatus = {
  phase: 'Running',
  startTime: apiTime(1),
  containerStatuses: ['c', 'd'].map((name) => ({ name, ...running() })),
} as unknown as PodStatus;

const line = (start: string): string | undefined =>
  registry
    .render()
    .split('\n')
    .find((l) => l.startsWith(start));
const value = (start: string): number => Number(line(start)?.split(' ').at(-1) ?? Number.NaN);

test('a worker creates, updates and syncs', async () => {
  const pod = podWith();
  metrics.changed('ADD', [pod]);
  await clock.advance(500);
  const step = (p: Pod): Promise<void> => metrics.step('sync', UID, p, () => Promise.resolve());
  await step(pod);
  await step(pod);
  await step(podWith());
  await metrics.step('kill', UID, pod, () => Promise.resolve());
  for (const operation of ['create', 'sync', 'update', 'kill'])
    assert.equal(value(`kubelet_pod_worker_duration_seconds_count{operation_type="${operation}"}`), 1, operation);
  assert.equal(value('kubelet_pod_worker_start_duration_seconds_sum'), 0.5);
  assert.equal(value('kubelet_containers_per_pod_count_sum'), 2);
});

test('a failed step is timed, too', async () => {
  metrics.changed('ADD', [podWith()]);
  await assert.rejects(metrics.step('sync', UID, podWith(), () => Promise.reject(new Error('no'))));
  assert.equal(value('kubelet_pod_worker_duration_seconds_count{operation_type="create"}'), 1);
});

test('a start is timed from creation to the API server showing it, without images and init containers', async () => {
  metrics.changed('ADD', [podWith()]);
  await clock.advance(1000);
  const [slow, fast] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pulls = [metrics.pulling(UID, () => slow.promise), metrics.pulling(UID, () => fast.promise)];
  await clock.advance(2000);
  fast.resolve();
  await clock.advance(2000);
  slow.resolve();
  await Promise.all(pulls);
  await clock.advance(5000);
  const status: PodStatus = {
    ...started,
    initContainerStatuses: [
      { name: 'i', state: { terminated: { exitCode: 0, startedAt: apiTime(1000), finishedAt: apiTime(4000) } } },
    ],
  } as unknown as PodStatus;
  metrics.changed('RECONCILE', [podWith({ status })]);
  metrics.changed('RECONCILE', [podWith({ status })]);
  assert.equal(value('kubelet_pod_start_total_duration_seconds_count'), 1, 'once');
  assert.equal(value('kubelet_pod_start_total_duration_seconds_sum'), 10);
  assert.equal(value('kubelet_pod_start_sli_duration_seconds_sum'), 10 - 4 - 3);
  assert.equal(value('kubelet_first_network_pod_start_sli_duration_seconds'), 3);
});

for (const [what, first, later] of [
  ['one that already ran when we came', podWith({ status: started }), podWith({ status: started })],
  ['a static one', podWith({ source: 'file' }), podWith({ source: 'file', status: started })],
  [
    'one of which only half has started',
    podWith(),
    podWith({ status: { ...started, containerStatuses: (started.containerStatuses ?? []).slice(1) } }),
  ],
] as const)
  test(`no start is timed of ${what}`, () => {
    metrics.changed('ADD', [first]);
    metrics.changed('RECONCILE', [later]);
    assert.equal(value('kubelet_pod_start_total_duration_seconds_count'), 0);
  });

test('a pod with a disk of its own has a start, but none that counts for the objective', () => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'x' } }];
  metrics.changed('ADD', [podWith({ volumes })]);
  metrics.changed('RECONCILE', [podWith({ volumes, status: started })]);
  assert.equal(value('kubelet_pod_start_total_duration_seconds_count'), 1);
  assert.equal(value('kubelet_pod_start_sli_duration_seconds_count'), 0);
});

test('from first sight to running', async () => {
  const pod = podWith();
  metrics.changed('ADD', [pod]);
  metrics.statusChanged({ pod, status: { phase: 'Pending' } as PodStatus });
  await clock.advance(3000);
  metrics.statusChanged({ pod, status: started });
  metrics.statusChanged({ pod, status: started });
  assert.equal(value('kubelet_pod_start_duration_seconds_count'), 1);
  assert.equal(value('kubelet_pod_start_duration_seconds_sum'), 3);
});

test('a pod that ran before we came is not timed', () => {
  const pod = podWith({ status: started });
  metrics.changed('ADD', [pod]);
  metrics.statusChanged({ pod, status: started });
  assert.equal(value('kubelet_pod_start_duration_seconds_count'), 0);
});

const ended = (exitCode: number, reason: string) => ({ terminated: { exitCode, reason } });
for (const [what, before, after, expected] of [
  ['ran and ended', running(), { containerID: 'x://1', state: ended(7, 'Error') }, [7]],
  ['ran, ended and waits', running(), { containerID: 'x://1', state: ended(0, 'Completed') }, [0]],
  ['was replaced', running(), { ...running('x://2'), lastState: ended(137, 'OOMKilled') }, [137]],
  ['still runs', running(), running(), []],
  [
    'had ended before',
    { containerID: 'x://1', state: ended(7, 'Error') },
    { containerID: 'x://1', state: ended(7, 'Error') },
    [],
  ],
  ['was never seen', undefined, { containerID: 'x://1', state: ended(7, 'Error') }, []],
] as const)
  test(`a container that ${what}`, () => {
    const list = (status: object | undefined) => (status === undefined ? [] : [{ name: 'c', ...status }]) as never;
    assert.deepEqual(
      [...newlyTerminated(list(before), list(after))].map((t) => t.exitCode),
      expected,
    );
  });

test('a pod is remembered until it is gone at its source and its worker is through', async () => {
  const pod = podWith();
  metrics.changed('ADD', [pod]);
  await metrics.step('sync', UID, pod, () => Promise.resolve());
  metrics.changed('REMOVE', [pod]);
  assert.equal(metrics.size, 1, 'its containers are still to be stopped');
  await metrics.step('terminated', UID, pod, () => Promise.resolve());
  assert.equal(metrics.size, 0);
  metrics.statusChanged({ pod, status: started });
  assert.equal(metrics.size, 0, 'a late word does not bring it back');
});

test('a pod that never got a worker is forgotten at once', () => {
  metrics.changed('ADD', [podWith()]);
  metrics.changed('REMOVE', [podWith()]);
  assert.equal(metrics.size, 0);
});
