// What the kubelet promises on cgroup v2 with systemd, one function per promise; cluster-suite.ts runs them in the guest.
import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Container, Pod, PodSpec } from '../../src/core/pod.ts';
import { CONFIG_MAPS, EVENTS, NODES, PODS } from '../../src/kube/resources.ts';
import { until, untilSeen } from '../harness/until.ts';
import { cgroupOf, command, IMAGE, NODE_NAME, PATIENT_MS, property, value, type GuestNode } from './guest-node.ts';

const never = new AbortController().signal;
const MI = 2 ** 20;
const PAGE = 4096;
const SLEEP = 'trap "exit 0" TERM; sleep 100000 & wait';
export type Scenario = readonly [name: string, run: (node: GuestNode) => Promise<void>];

const box = (name: string, script: string, more: Partial<Container> = {}): Container =>
  ({ name, image: IMAGE, imagePullPolicy: 'Never', command: ['sh', '-c', script], ...more }) as Container;
const podSpec = (containers: readonly Container[], more: Partial<PodSpec> = {}): PodSpec =>
  ({ containers, ...more }) as PodSpec;
const podDir = (pod: Pod): string => `/var/lib/kubelet/pods/${pod.metadata.uid}`;
const exec = async (pod: Pod, container: string, script: string): Promise<string> => {
  const id = pod.status?.containerStatuses?.find((c) => c.name === container)?.containerID?.split('//')[1] ?? '';
  return command(
    'ctr',
    '-n',
    'k8s.io',
    'tasks',
    'exec',
    '--exec-id',
    `x${process.hrtime.bigint()}`,
    id,
    'sh',
    '-c',
    script,
  );
};

async function wholePod(node: GuestNode): Promise<void> {
  const data = { greeting: 'hello' };
  await node.client.create(
    CONFIG_MAPS,
    { namespace: 'default' },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'words', namespace: 'default' }, data },
    never,
  );
  const volumeMounts = [
    { name: 'scratch', mountPath: '/scratch' },
    { name: 'words', mountPath: '/words' },
  ];
  const spec = podSpec(
    [
      box('main', `cat /words/greeting > /scratch/said; ${SLEEP}`, {
        volumeMounts,
        env: [{ name: 'GREETING', valueFrom: { configMapKeyRef: { name: 'words', key: 'greeting' } } }],
        readinessProbe: {
          exec: { command: ['grep', '-q', 'hello', '/scratch/said'] },
          periodSeconds: 2,
          timeoutSeconds: 30,
        },
      } as Partial<Container>),
      box('restarting', 'test -e /scratch/second && exec sleep 100000; touch /scratch/second; exit 3', {
        volumeMounts,
      }),
    ],
    {
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'words', configMap: { name: 'words' } },
      ],
      initContainers: [
        box('first', 'echo first > /scratch/order', { volumeMounts }),
        box('sidecar', `echo sidecar >> /scratch/order; ${SLEEP}`, { volumeMounts, restartPolicy: 'Always' }),
      ],
    },
  );
  await node.create('whole', spec);
  const pod = await node.ready('whole');
  assert.equal(await exec(pod, 'main', 'cat /scratch/order; echo $GREETING'), 'first\nsidecar\nhello');
  const restarts = pod.status?.containerStatuses?.find((c) => c.name === 'restarting')?.restartCount;
  assert.equal(restarts, 1);
  const { slice, scope } = await cgroupOf(pod, 'main');
  assert.match(
    slice,
    /^\/sys\/fs\/cgroup\/kubepods\.slice\/kubepods-besteffort\.slice\/kubepods-besteffort-pod[0-9a-f_]+\.slice$/,
  );
  assert.match(basename(scope), /^cri-containerd-[0-9a-f]{64}\.scope$/);
  assert.equal(await property(basename(slice), 'ActiveState'), 'active');
  await node.remove('whole');
  await until('its slice is gone', () => !existsSync(slice), PATIENT_MS);
  assert.equal(await property(basename(slice), 'ActiveState'), 'inactive');
  await until('its directory is gone', () => !existsSync(podDir(pod)), PATIENT_MS);
}

/** Less CPU than half of one would throttle, under emulation, what starts the sandbox for minutes. */
const amounts = (cpu: string, memory: string): Container['resources'] => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});

async function resize(node: GuestNode): Promise<void> {
  await node.create(
    'resized',
    podSpec([box('c', SLEEP, { resources: amounts('500m', '48Mi') } as Partial<Container>)]),
  );
  const { slice, scope } = await cgroupOf(await node.ready('resized'), 'c');
  const limits = async (): Promise<readonly string[]> => [
    await value(slice, 'cpu.max'),
    await value(slice, 'memory.max'),
    await value(scope, 'cpu.max'),
    await value(scope, 'memory.max'),
    await property(basename(slice), 'MemoryMax'),
    await property(basename(slice), 'CPUQuotaPerSecUSec'),
  ];
  const [small, large] = [`${48 * MI}`, `${64 * MI}`];
  assert.deepEqual(await limits(), ['50000 100000', small, '50000 100000', small, small, '500ms']);
  await node.client.patch(
    PODS,
    { namespace: 'default', name: 'resized', subresource: 'resize' },
    { spec: { containers: [{ name: 'c', resources: amounts('800m', '64Mi') }] } },
    never,
  );
  const pod = await node.comesTo('resized', 'has its new resources', ({ status }) => {
    const own = status?.containerStatuses?.[0];
    return own?.resources?.limits?.['cpu'] === '800m' && own.allocatedResources?.['memory'] === '64Mi';
  });
  assert.deepEqual(await limits(), ['80000 100000', large, '80000 100000', large, large, '800ms']);
  assert.equal(pod.status?.containerStatuses?.[0]?.restartCount, 0);
  // systemd writes its own idea of a unit back when it is told to: it must be the new one.
  await command('systemctl', 'daemon-reload');
  assert.deepEqual(await limits(), ['80000 100000', large, '80000 100000', large, large, '800ms']);
  await node.remove('resized');
}

async function outOfMemory(node: GuestNode): Promise<void> {
  const script = 'sleep 1000 & x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done';
  const resources = { limits: { memory: '24Mi' } };
  const made = podSpec([box('c', script, { resources } as Partial<Container>)], { restartPolicy: 'Never' });
  const { metadata } = await node.create('oom', made);
  const pod = await node.comesTo('oom', 'has failed', ({ status }) => status?.phase === 'Failed');
  const ended = pod.status?.containerStatuses?.[0]?.state?.terminated;
  assert.deepEqual([ended?.reason, ended?.exitCode], ['OOMKilled', 137]);
  const query = { fieldSelector: `involvedObject.uid=${metadata.uid},reason=OOMKilling` };
  await untilSeen(
    'the event is there',
    async () => (await node.client.list(EVENTS, { namespace: 'default', query }, never)).items,
    (seen) => seen.length > 0,
    PATIENT_MS,
  );
  await node.remove('oom');
}

/** Burstable, with less asked for than allowed: it may swap, and is throttled before it is killed. */
const elastic = (): Container =>
  box('c', SLEEP, {
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
  } as Partial<Container>);

async function memoryQos(node: GuestNode): Promise<void> {
  await node.create('elastic', podSpec([elastic()]));
  await node.create('firm', podSpec([box('c', SLEEP, { resources: amounts('500m', '64Mi') } as Partial<Container>)]));
  const files = async (name: string): Promise<readonly string[]> => {
    const { scope } = await cgroupOf(await node.ready(name), 'c');
    return Promise.all(['memory.high', 'memory.low', 'memory.min', 'memory.oom.group'].map((f) => value(scope, f)));
  };
  const high = Math.floor((64 * MI + 64 * MI * 0.9) / PAGE) * PAGE;
  assert.deepEqual(await files('elastic'), [`${high}`, `${64 * MI}`, '0', '1']);
  assert.deepEqual(await files('firm'), ['max', '0', `${64 * MI}`, '1']);
  // systemd sets back what it was not told, here when it reads its units again.
  await command('systemctl', 'daemon-reload');
  assert.deepEqual(await reservation(node, 'firm'), [`${64 * MI}`, '0', `${64 * MI}`, '0']);
  assert.deepEqual(await reservation(node, 'elastic'), ['0', `${64 * MI}`, '0', `${64 * MI}`]);
}

/** Of the pod's slice, in its files and as systemd has it. */
async function reservation(node: GuestNode, name: string): Promise<readonly string[]> {
  const { slice } = await cgroupOf(await node.ready(name), 'c');
  const unit = basename(slice);
  return [
    await value(slice, 'memory.min'),
    await value(slice, 'memory.low'),
    await property(unit, 'MemoryMin'),
    await property(unit, 'MemoryLow'),
  ];
}

/** Reserved as a whole: what starts the sandbox and the container counts too, and must fit in. */
async function littleMemory(node: GuestNode): Promise<void> {
  await node.create('little', podSpec([box('c', SLEEP, { resources: amounts('500m', '32Mi') } as Partial<Container>)]));
  await node.ready('little');
  await node.remove('little');
}

/** The pods of `memoryQos` again: only what was asked for in part may swap, in proportion. */
async function swap(node: GuestNode): Promise<void> {
  const file = async (name: string): Promise<number> => {
    const { scope } = await cgroupOf(await node.ready(name), 'c');
    return Number(await value(scope, 'memory.swap.max'));
  };
  const meminfo = await readFile('/proc/meminfo', 'utf8');
  const kib = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(meminfo)?.[1]);
  const share = Math.floor(((64 * MI) / (kib('MemTotal') * 1024)) * kib('SwapTotal') * 1024);
  assert.equal(await file('elastic'), Math.floor(share / PAGE) * PAGE);
  assert.equal(await file('firm'), 0);
  const { status } = await node.client.get(NODES, { name: NODE_NAME }, never);
  assert.equal(status?.nodeInfo?.swap?.capacity, kib('SwapTotal') * 1024);
}

type Pressure = { readonly full?: object; readonly some?: { readonly total?: number } };
type Summary = {
  readonly node: { readonly cpu: { readonly psi?: Pressure }; readonly memory: { readonly psi?: Pressure } };
  readonly pods: readonly {
    readonly podRef: { readonly name: string };
    readonly memory?: { readonly psi?: Pressure };
    readonly containers?: readonly { readonly cpu?: { readonly psi?: Pressure } }[];
  }[];
};

async function pressure(): Promise<void> {
  const summary = await until(
    'the summary has the pod',
    async () => {
      const got = (await (await fetch('http://127.0.0.1:10255/stats/summary')).json()) as Summary;
      return got.pods.some(({ podRef }) => podRef.name === 'elastic') && got;
    },
    PATIENT_MS,
  );
  const pod = summary.pods.find(({ podRef }) => podRef.name === 'elastic');
  const total = (psi: Pressure | undefined): string => typeof psi?.some?.total;
  assert.deepEqual(
    [summary.node.cpu.psi, summary.node.memory.psi, pod?.memory?.psi, pod?.containers?.[0]?.cpu?.psi].map(total),
    ['number', 'number', 'number', 'number'],
  );
  const metrics = await (await fetch('http://127.0.0.1:10255/metrics/cadvisor')).text();
  assert.match(metrics, /^container_pressure_cpu_waiting_seconds_total\{[^}]*pod="elastic"/m);
}

async function eviction(node: GuestNode): Promise<void> {
  await node.create('firm', podSpec([box('c', SLEEP, { resources: amounts('500m', '64Mi') } as Partial<Container>)]));
  await node.ready('firm');
  // Leaves less than the threshold of `LIMITED`, whatever else there is.
  const available = /^MemAvailable:\s+(\d+)/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1];
  const eaten = Math.floor(Number(available) / 1024) - 400;
  const { metadata } = await node.create(
    'greedy',
    podSpec(
      [
        box('c', `dd if=/dev/zero of=/m/data bs=1M count=${eaten}; ${SLEEP}`, {
          resources: { requests: { memory: '16Mi' } },
          volumeMounts: [{ name: 'm', mountPath: '/m' }],
        } as Partial<Container>),
      ],
      { volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] },
    ),
  );
  const { status } = await node.comesTo('greedy', 'is evicted', (pod) => pod.status?.phase === 'Failed');
  assert.equal(status?.reason, 'Evicted');
  assert.match(status.message ?? '', /^The node was low on resource: memory\. Threshold quantity: 600Mi, /);
  assert.equal((await node.pod('firm')).status?.phase, 'Running');
  await until(
    'its slice is gone',
    async () => {
      const slice = `kubepods-burstable-pod${(metadata.uid ?? '').replaceAll('-', '_')}.slice`;
      return (await property(slice, 'ActiveState')) === 'inactive';
    },
    PATIENT_MS,
  );
  for (const name of ['greedy', 'firm']) await node.remove(name);
  await until(
    'the pressure is over',
    async () => {
      const seen = await node.client.get(NODES, { name: NODE_NAME }, never);
      return seen.status?.conditions?.find((c) => c.type === 'MemoryPressure')?.status === 'False';
    },
    PATIENT_MS,
  );
}

async function ownUsers(node: GuestNode): Promise<void> {
  const mounts = [
    { name: 'scratch', mountPath: '/scratch' },
    { name: 'down', mountPath: '/down' },
    { name: 'words', mountPath: '/words' },
  ];
  const spec = podSpec([box('c', SLEEP, { volumeMounts: mounts })], {
    hostUsers: false,
    hostNetwork: false,
    volumes: [
      { name: 'scratch', emptyDir: {} },
      { name: 'down', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      // Made by the first pod of the suite.
      { name: 'words', configMap: { name: 'words' } },
    ],
  } as Partial<PodSpec>);
  for (const name of ['users-1', 'users-2']) await node.create(name, spec);
  const [one, two] = [await node.ready('users-1'), await node.ready('users-2')];
  const outside = async (pod: Pod): Promise<number> =>
    Number((await exec(pod, 'c', 'cat /proc/self/uid_map')).split(/\s+/).filter(Boolean)[1]);
  const [first, second] = [await outside(one), await outside(two)];
  assert.ok(first >= 65_536 && first % 65_536 === 0 && second !== first, `${first} ${second}`);
  assert.equal(await exec(one, 'c', 'echo x > /scratch/f; stat -c %u:%g /scratch/f; cat /down/name'), '0:0\nusers-1');
  assert.equal(
    await exec(one, 'c', 'stat -Lc %u:%g /down/name /words/greeting; cat /words/greeting'),
    '0:0\n0:0\nhello',
  );
  const file = statSync(join(podDir(one), 'volumes/kubernetes.io~empty-dir/scratch/f'));
  assert.deepEqual([file.uid, file.gid], [0, 0]);
  for (const name of ['users-1', 'users-2']) await node.remove(name);
}

/** containerd 1.7 says nothing of users of a pod's own: the pod waits, and its event says why. */
async function noOwnUsers(node: GuestNode): Promise<void> {
  const { metadata } = await node.create('users', podSpec([box('c', SLEEP)], { hostUsers: false, hostNetwork: false }));
  const query = { fieldSelector: `involvedObject.uid=${metadata.uid},reason=FailedCreatePodSandBox` };
  const event = await until(
    'the refusal',
    async () => (await node.client.list(EVENTS, { namespace: 'default', query }, never)).items[0],
    PATIENT_MS,
  );
  assert.match(event.message ?? '', /can't set `spec.hostUsers: false`, runtime does not support user namespaces/);
  assert.equal((await node.pod('users')).status?.phase, 'Pending');
  await node.remove('users');
}

/** Everything a node of this kind can be told to do about memory. */
export const LIMITED = `featureGates: {MemoryQoS: true}
memoryReservationPolicy: TieredReservation
memorySwap: {swapBehavior: LimitedSwap}
evictionHard: {memory.available: 600Mi, nodefs.available: 1%, imagefs.available: 1%}`;

export async function addSwap(): Promise<void> {
  await command('busybox', 'dd', 'if=/dev/zero', 'of=/var/swapfile', 'bs=1M', 'count=256');
  await writeFile('/var/swapfile', '', { flag: 'a', mode: 0o600 });
  await command('mkswap', '/var/swapfile');
  await command('swapon', '/var/swapfile');
}

const PODS_AND_RESIZE: readonly Scenario[] = [
  ['a pod with init container, sidecar, volumes, probe and restart', wholePod],
  ['resize in place, known to systemd', resize],
  ['a container over its memory limit', outOfMemory],
];
export const MEMORY: readonly Scenario[] = [
  ['a pod with 32 Mi of memory, all of it reserved', littleMemory],
  ['memory QoS', memoryQos],
  ['swap in proportion', swap],
  ['pressure in statistics and metrics', pressure],
];
export const EVICTION: readonly Scenario[] = [['eviction for memory', eviction]];
/** What the runtime of the release can do for pods with users of their own. */
const OWN_USERS: Readonly<Record<string, Scenario>> = {
  bookworm: ['users of their own, refused with the reason', noOwnUsers],
  trixie: ['users of their own, mounts mapped', ownUsers],
};
export const podsOf = (release: string): readonly Scenario[] => {
  const own = OWN_USERS[release];
  return own === undefined ? PODS_AND_RESIZE : [...PODS_AND_RESIZE, own];
};
