// Statistics through the whole kubelet on a real runtime: figures agree with the kernel's files, pages parse, and nothing
// that dashboards and metrics-server look for is missing.
// runs: gate
// shows: metrics and statistics: `/metrics`, `/metrics/{cadvisor,resource,probes,slis}`, `/stats/summary`
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { detectCgroups } from '../../src/host/cgroups/layout.ts';
import { keyedNumbers } from '../../src/host/cgroups/kernel-formats.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';
import { assertKnown, labelsOf, parseExposition, referenceFamilies, type Family } from './stats-exposition.ts';

const REFERENCE = join(import.meta.dirname, 'stats-reference');
const UID = 'aaaaaaaa-0000-4000-8000-00000000057a';
const POD = { namespace: 'default', pod: 'busy-n1' };
const RO_PORT = 20_000 + (process.pid % 900);

/** Keeps 20 MB of memory that cannot be dropped, writes to its layer, its volume and its log, then burns a quota. */
const BUSY =
  'dd if=/dev/zero of=/dev/shm/x bs=1M count=20 2>/dev/null; dd if=/dev/zero of=/v/x bs=1k count=300 2>/dev/null; ' +
  'dd if=/dev/zero of=/layer bs=1k count=100 2>/dev/null; echo started; while :; do :; done';

const manifest = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'busy', uid: UID },
  spec: {
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: 'scratch', emptyDir: {} }],
    containers: [
      {
        name: 'c',
        image: 'localhost/busybox:latest',
        imagePullPolicy: 'Never',
        command: ['sh', '-c', BUSY],
        volumeMounts: [{ name: 'scratch', mountPath: '/v' }],
        resources: { limits: { cpu: '100m', memory: '64Mi' } },
      },
    ],
  },
};

let node: TestNode;
before(async () => {
  node = await startNode({ cluster: false, config: `readOnlyPort: ${RO_PORT}\nvolumeStatsAggPeriod: 2s` });
  writeFileSync(join(node.manifests, 'busy.json'), JSON.stringify(manifest));
  await untilSeen(
    'the container has its memory',
    async () => (await container())?.memory.workingSetBytes,
    (seen) => seen > 20e6,
  );
});
after(() => node.stop());

type Json = Record<string, unknown>;
type ContainerRow = {
  name: string;
  cpu: { usageNanoCores: number; usageCoreNanoSeconds: number };
  memory: { usageBytes: number; workingSetBytes: number };
  logs: { usedBytes: number };
  rootfs: { usedBytes: number };
};
type PodRow = {
  podRef: { name: string };
  containers: ContainerRow[];
  cpu: { usageCoreNanoSeconds: number };
  memory: { workingSetBytes: number };
  volume?: { name: string; usedBytes: number }[];
  'ephemeral-storage'?: { usedBytes: number };
  process_stats?: { process_count: number };
  network?: { name: string; rxBytes: number; interfaces: unknown[] };
};
type SummaryBody = { node: Json; pods: PodRow[] };

async function get(path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${RO_PORT}${path}`);
  assert.equal(response.status, 200, path);
  return response.text();
}
const summary = async (query = ''): Promise<SummaryBody> =>
  JSON.parse(await get(`/stats/summary${query}`)) as SummaryBody;
const pod = async (): Promise<PodRow | undefined> => (await summary()).pods.find((p) => p.podRef.name === POD.pod);
const container = async (): Promise<ContainerRow> => {
  const row = (await pod())?.containers[0];
  assert.ok(row !== undefined);
  return row;
};
const page = async (path: string): Promise<ReadonlyMap<string, Family>> => parseExposition(await get(path));

let cgroup: string | undefined;
/** Asked once: the page would be made anew, and shown again to whoever asks for it within a second. */
async function cgroupOfContainer(): Promise<string> {
  const seen = (await page('/metrics/cadvisor')).get('container_last_seen')?.series ?? [];
  return seen.find((s) => s.labels['container'] === 'c')?.labels['id'] ?? 'unknown';
}

/** The container's own files, by controller. */
async function file(controller: string, name: string): Promise<string> {
  const layout = await detectCgroups();
  const mount =
    layout.version === 2
      ? layout.mountPoint
      : (layout.hierarchies.find((h) => h.controllers.includes(controller))?.mountPoint ?? '');
  cgroup ??= await cgroupOfContainer();
  return readFile(join(mount, cgroup, name), 'utf8');
}
const cpuSecondsInFile = async (): Promise<number> => Number(await file('cpuacct', 'cpuacct.usage')) / 1e9;
const valueIn = (family: Family | undefined, labels: Json): number | undefined =>
  family?.series.find((s) => Object.entries(labels).every(([k, v]) => s.labels[k] === v))?.value;

const close = (shown: number | undefined, from: number, to: number, what: string): void =>
  assert.ok(shown !== undefined && shown >= from * 0.95 && shown <= to * 1.05, `${what}: ${from} … ${shown} … ${to}`);

const TERMINATED = 'kubelet_terminated_containers_total';

/** Answers are shared for a second. */
const answersAreMadeAnew = (): Promise<void> => timePasses(1100, 'measuring');

describe('a busy container', () => {
  test('shows the processor time of its cgroup', async () => {
    await cpuSecondsInFile();
    for (const [what, read] of [
      ['summary', async () => (await container()).cpu.usageCoreNanoSeconds / 1e9],
      [
        'resource',
        async () =>
          valueIn((await page('/metrics/resource')).get('container_cpu_usage_seconds_total'), {
            ...POD,
            container: 'c',
          }),
      ],
      [
        'cadvisor',
        async () =>
          valueIn((await page('/metrics/cadvisor')).get('container_cpu_usage_seconds_total'), {
            ...POD,
            container: 'c',
          }),
      ],
    ] as const) {
      await answersAreMadeAnew();
      const from = await cpuSecondsInFile();
      const shown = await read();
      close(shown, from, await cpuSecondsInFile(), what);
    }
  });

  test('shows the memory of its cgroup', async () => {
    const figures = async (): Promise<readonly [number, number]> => [
      Number(await file('memory', 'memory.usage_in_bytes')),
      keyedNumbers(await file('memory', 'memory.stat')).get('total_inactive_file') ?? 0,
    ];
    // The kernel charges memory in batches, of which it takes the rest back at any time: what counts is a look during which
    // the files stayed as they were.
    const { row, shown, usage, inactive } = await until('the files read the same before and after', async () => {
      await answersAreMadeAnew();
      const before_ = await figures();
      const seen = { row: (await container()).memory, shown: await page('/metrics/cadvisor') };
      const [usage, inactive] = await figures();
      return before_.join() === `${usage},${inactive}` && { ...seen, usage, inactive };
    });
    close(row.usageBytes, usage, usage, 'usage');
    close(row.workingSetBytes, usage - inactive, usage - inactive, 'working set');
    const labels = { ...POD, container: 'c' };
    close(
      valueIn(shown.get('container_memory_working_set_bytes'), labels),
      usage - inactive,
      usage - inactive,
      'cadvisor',
    );
    assert.equal(valueIn(shown.get('container_spec_memory_limit_bytes'), labels), 64 * 2 ** 20);
    assert.equal(valueIn(shown.get('container_spec_cpu_quota'), labels), 10_000);
  });

  test('is as fast as its quota lets it', async () => {
    await timePasses(6000, 'measuring');
    const [from, start] = [(await container()).cpu, performance.now()];
    await timePasses(6000, 'measuring');
    const [to, end] = [(await container()).cpu, performance.now()];
    const measured = ((to.usageCoreNanoSeconds - from.usageCoreNanoSeconds) / (end - start)) * 1000;
    assert.ok(Math.abs(to.usageNanoCores - measured) < 0.3 * measured, `${to.usageNanoCores} ≈ ${measured}`);
  });

  test('shows what it wrote', async () => {
    const row = await until('the volume is measured', async () => {
      const found = await pod();
      return found?.volume === undefined ? undefined : found;
    });
    const [{ rootfs, logs }] = row.containers as [ContainerRow];
    const scratch = row.volume?.find((v) => v.name === 'scratch')?.usedBytes ?? 0;
    assert.ok(scratch >= 300 * 1024 && scratch < 400 * 1024, `volume ${scratch}`);
    assert.ok(rootfs.usedBytes >= 100 * 1024, `layer ${rootfs.usedBytes}`);
    assert.equal(logs.usedBytes, 4096);
    const total = row['ephemeral-storage']?.usedBytes ?? 0;
    assert.ok(total >= scratch + rootfs.usedBytes + logs.usedBytes, `ephemeral storage ${total}`);
    assert.equal(row.process_stats?.process_count, 1);
    assert.equal(row.network?.name, 'eth0');
  });
});

/** Paths of every field, lists by their first element that has it. */
function fieldsOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => fieldsOf(item, `${at}[]`)))];
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([key, item]) => fieldsOf(item, `${at}.${key}`));
}

describe('the summary', () => {
  const reference = JSON.parse(readFileSync(join(REFERENCE, 'summary.json'), 'utf8')) as Json;

  test('has every field of the reference, in its order', async () => {
    const shown = await summary();
    const have = fieldsOf(shown);
    const missing = fieldsOf(reference).filter((field) => !have.includes(field));
    assert.deepEqual(missing, []);
    const wanted = new Set(fieldsOf(reference));
    assert.deepEqual(
      have.filter((field) => wanted.has(field)),
      fieldsOf(reference),
    );
  });

  test('is indented by one space per level', async () => {
    const text = await get('/stats/summary');
    assert.equal(text, JSON.stringify(JSON.parse(text), undefined, 1));
    assert.match(text, /^\{\n "node": \{\n  "nodeName": "n1",\n/);
  });

  test('reduced, has processor and memory only', async () => {
    const shown = await summary('?only_cpu_and_memory=true');
    assert.deepEqual(Object.keys(shown.node).sort(), [
      'cpu',
      'memory',
      'nodeName',
      'startTime',
      'swap',
      'systemContainers',
    ]);
    assert.deepEqual(Object.keys(shown.pods[0] ?? {}).sort(), [
      'containers',
      'cpu',
      'memory',
      'podRef',
      'startTime',
      'swap',
    ]);
  });

  test('of many who ask at once is made once', async () => {
    await answersAreMadeAnew();
    const asked = (): number => node.cri.counts.get('ListContainerStats') ?? 0;
    const before = asked();
    await Promise.all(Array.from({ length: 50 }, () => summary()));
    assert.ok(asked() - before <= 2, `${asked() - before} calls`);
  });

  test('says what it cannot get while the runtime is ill, and the other pages stay up', async () => {
    await answersAreMadeAnew();
    const lift = node.cri.inject({
      verb: 'ListContainerStats',
      fault: { do: 'error', code: 14, message: 'out of order' },
    });
    try {
      // Answers are shared for a second: the first may be from before.
      const response = await until('the fault is felt', async () => {
        const answer = await fetch(`http://127.0.0.1:${RO_PORT}/stats/summary`);
        return answer.status === 500 && answer;
      });
      assert.match(await response.text(), /^Internal Error: failed to list pod stats: .*out of order/);
      const resource = await page('/metrics/resource');
      assert.equal(resource.get('resource_scrape_error')?.series[0]?.value, 1);
      const cadvisor = await page('/metrics/cadvisor');
      assert.equal(cadvisor.get('container_scrape_error')?.series[0]?.value, 0);
      await page('/metrics');
    } finally {
      lift();
    }
  });
});

describe('the pages', () => {
  for (const [path, reference] of [
    ['/metrics/cadvisor', 'cadvisor.tsv'],
    ['/metrics/resource', 'resource.tsv'],
  ] as const)
    test(`${path} has every family of the reference with its type and labels`, async () => {
      const shown = await page(path);
      for (const { name, type, labels } of referenceFamilies(readFileSync(join(REFERENCE, reference), 'utf8'))) {
        const family = shown.get(name);
        assert.ok(family !== undefined, `${name} is missing`);
        assert.equal(family.type, type, name);
        assert.equal(labelsOf(family), labels, name);
      }
    });

  for (const path of ['/metrics', '/metrics/probes'])
    test(`every family on ${path} is one of upstream's, with its type, text, labels and buckets`, async () =>
      assertKnown(await page(path), readFileSync(join(REFERENCE, 'metrics.tsv'), 'utf8')));

  test('/metrics and /metrics/probes parse', async () => {
    const shown = await page('/metrics');
    assert.equal(valueIn(shown.get('kubelet_running_pods'), {}), 1);
    assert.equal(valueIn(shown.get('kubelet_running_containers'), { container_state: 'running' }), 1);
    assert.equal(valueIn(shown.get('kubelet_desired_pods'), { static: 'true' }), 1);
    assert.equal(
      valueIn(shown.get('kubelet_working_pods'), { lifecycle: 'sync', config: 'desired', static: 'true' }),
      1,
    );
    assert.equal(valueIn(shown.get('kubelet_container_log_filesystem_used_bytes'), { uid: UID }), 4096);
    assert.ok((valueIn(shown.get('process_resident_memory_bytes'), {}) ?? 0) > 1e7);
    assert.ok((await page('/metrics/probes')).has('process_start_time_seconds'));
  });
});

test('a pod that is gone leaves no series', async () => {
  await rm(join(node.manifests, 'busy.json'));
  await until('the pod is gone', async () => !(await get('/metrics/cadvisor')).includes(POD.pod));
  await until('its directory and its end are noticed', async () => {
    const metrics = await page('/metrics');
    return !metrics.has('kubelet_container_log_filesystem_used_bytes') && metrics.has(TERMINATED);
  });
  await answersAreMadeAnew();
  assert.deepEqual((await summary()).pods, []);
  assert.ok(!(await get('/metrics/resource')).includes(POD.pod));
  const metrics = await page('/metrics');
  assert.equal(valueIn(metrics.get('kubelet_running_pods'), {}), 0);
  assert.equal(metrics.get('kubelet_container_log_filesystem_used_bytes'), undefined);
  const ended = metrics.get(TERMINATED);
  assert.equal(valueIn(ended, { container_type: 'container', exit_code: '137', reason: 'Error' }), 1);
});
