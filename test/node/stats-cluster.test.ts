// The kubelet's own metrics about pods of a cluster: starts, status updates, ends, and the start of the node itself.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { startNode, NODE_NAME, type TestNode } from '../harness/node.ts';
import { untilSeen } from '../harness/until.ts';
import { assertKnown, knownFamilies, parseExposition, type Family } from './stats-exposition.ts';

const { signal } = new AbortController();
const RO_PORT = 19_000 + (process.pid % 900);
let node: TestNode;

const podOf = (name: string, script: string): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      nodeName: NODE_NAME,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [
        { name: 'c', image: 'localhost/busybox:latest', imagePullPolicy: 'Never', command: ['sh', '-c', script] },
      ],
    },
  }) as unknown as Pod;

before(async () => {
  node = await startNode({ config: `readOnlyPort: ${RO_PORT}` });
  for (const [name, script] of [
    ['stays', 'sleep 1000'],
    ['ends', 'sleep 1; exit 7'],
  ] as const)
    await node.client.create(PODS, { namespace: 'default' }, podOf(name, script), signal);
});
after(() => node.stop());

const page = async (path: string): Promise<ReadonlyMap<string, Family>> =>
  parseExposition(await (await fetch(`http://127.0.0.1:${RO_PORT}${path}`)).text());
const metrics = (): Promise<ReadonlyMap<string, Family>> => page('/metrics');
const REFERENCE = readFileSync(join(import.meta.dirname, 'stats-reference', 'metrics.tsv'), 'utf8');

/** The sum over all series of a family's part that carry these labels. */
async function value(family: string, labels: Record<string, string> = {}, part = family): Promise<number> {
  const series = (await metrics()).get(family)?.series ?? [];
  return series
    .filter((s) => s.name === part && Object.entries(labels).every(([k, v]) => s.labels[k] === v))
    .reduce((sum, s) => sum + s.value, 0);
}

test('starts of pods are timed', async () => {
  for (const name of ['kubelet_pod_start_total_duration_seconds', 'kubelet_pod_start_sli_duration_seconds'])
    await untilSeen(
      `${name} counts`,
      () => value(name, {}, `${name}_count`),
      (seen) => seen >= 1,
    );
  const seen = 'kubelet_pod_start_duration_seconds';
  await untilSeen(
    'both run',
    () => value(seen, {}, `${seen}_count`),
    (got) => got === 2,
  );
  assert.ok((await value('kubelet_first_network_pod_start_sli_duration_seconds')) > 0);
  assert.equal(await value('kubelet_containers_per_pod_count', {}, 'kubelet_containers_per_pod_count_sum'), 2);
});

test('ends of containers are counted with how they ended', async () => {
  const labels = { container_type: 'container', exit_code: '7', reason: 'Error' };
  await untilSeen(
    'the end is counted',
    () => value('kubelet_terminated_containers_total', labels),
    (seen) => seen === 1,
  );
});

test('status updates are timed', async () => {
  const name = 'kubelet_pod_status_sync_duration_seconds';
  await untilSeen(
    'updates are counted',
    () => value(name, {}, `${name}_count`),
    (seen) => seen >= 4,
  );
  const mean = (await value(name, {}, `${name}_sum`)) / (await value(name, {}, `${name}_count`));
  assert.ok(mean < 5, `${mean} s`);
});

test('a new node tells how long it took to be ready', async () => {
  await untilSeen(
    'ready',
    () => value('kubelet_node_startup_duration_seconds'),
    (seen) => seen > 0,
  );
  assert.ok((await value('kubelet_node_startup_pre_kubelet_duration_seconds')) > 0);
  const total = await value('kubelet_node_startup_duration_seconds');
  assert.ok(total > (await value('kubelet_node_startup_pre_kubelet_duration_seconds')));
});

test('pods are counted where they stand', async () => {
  const counts = async (): Promise<readonly number[]> => [
    await value('kubelet_active_pods', { static: '' }),
    await value('kubelet_desired_pods', { static: '' }),
    await value('kubelet_working_pods', { lifecycle: 'sync', config: 'desired', static: '' }),
    await value('kubelet_running_containers', { container_state: 'running' }),
  ];
  // Each is counted where it is known, not all in the same moment.
  await untilSeen(
    'one is over',
    async () => (await counts()).join(),
    (seen) => seen === '1,2,1,1',
  ).catch(() => undefined);
  assert.deepEqual(await counts(), [1, 2, 1, 1]);
});

test('families are those of upstream, and those without labels are there, used or not', async () => {
  assert.equal((await fetch(`http://127.0.0.1:${RO_PORT}/healthz`)).status, 200);
  const pages = await Promise.all(['/metrics', '/metrics/probes', '/metrics/slis'].map((path) => page(path)));
  for (const shown of pages) assertKnown(shown, REFERENCE);
  const everywhere = [...pages, await page('/metrics/resource')];
  const absent = knownFamilies(REFERENCE)
    .filter(({ name, labels }) => ['', 'le'].includes(labels) && !everywhere.some((shown) => shown.has(name)))
    .map(({ name }) => name);
  assert.deepEqual(absent, [
    // Of rotateCertificates.
    'kubelet_certificate_manager_client_expiration_renew_errors',
    'kubelet_certificate_manager_client_ttl_seconds',
    // Of serverTLSBootstrap.
    'kubelet_certificate_manager_server_rotation_seconds',
    'kubelet_certificate_manager_server_ttl_seconds',
    // Of the gate MemoryQoS.
    'kubelet_memory_qos_node_memory_low_bytes',
    'kubelet_memory_qos_node_memory_min_bytes',
    'kubelet_server_expiration_renew_errors',
    // Left out: test/docs/metric-families.test.ts says why.
    'rest_client_transport_cache_entries',
    'rest_client_transport_cert_rotation_gc_calls_total',
    // Hidden.
    'scrape_error',
  ]);
});
