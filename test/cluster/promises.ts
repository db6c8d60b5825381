// What Kubernetes promises every pod, whoever runs it: one small pod each, and what it must have seen.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../src/core/pod.ts';
import { quantity, toNumber } from '../../src/core/quantity.ts';
import { NODES, PODS } from '../../src/kube/resources.ts';
import { NODE_NAME } from '../harness/node.ts';
import { changesSuite } from './promises-changes.ts';
import { filesSuite } from './promises-files.ts';
import { AT_ONCE, container, EMPTY, fieldEnv, never, Scene, shell, statusOf, WORK } from './scene.ts';

type Promised = {
  readonly name: string;
  readonly script: string;
  readonly main?: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: Partial<Pod['metadata']>;
  /** What the container writes to its output. */
  readonly says?: string | RegExp;
  /** How it ends: the exit code, and the message in the status. */
  readonly ends?: readonly [code: number, message?: string];
};

const MEMORY = [{ name: 'work', emptyDir: { medium: 'Memory' } }];
/** Who may do what in a directory, by its mode, its group and a file made there. */
const LOOK_AT_WORK = 'stat -c "%a %g" /scratch; echo hi > /scratch/f; cat /scratch/f; stat -c "%u %g" /scratch/f';

const PROMISES: readonly Promised[] = [
  {
    name: 'message-of-its-own-path',
    script: 'printf DONE > /dev/last-words',
    main: { terminationMessagePath: '/dev/last-words', securityContext: { runAsUser: 1000 } },
    ends: [0, 'DONE'],
  },
  {
    name: 'message-from-the-log',
    script: 'echo what went wrong; exit 1',
    main: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    ends: [1, 'what went wrong\n'],
  },
  {
    name: 'no-message-from-the-log-of-a-success',
    script: 'echo all is well',
    main: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    ends: [0],
  },
  {
    name: 'message-file-before-log',
    script: 'printf OK > /dev/termination-log; echo noise; exit 2',
    main: { terminationMessagePolicy: 'FallbackToLogsOnError' },
    ends: [2, 'OK'],
  },
  {
    name: 'composed-variables',
    script: 'echo "$ALL"; echo "$LITERAL"; echo "$LATE"',
    main: {
      env: [
        { name: 'A', value: 'a' },
        { name: 'ALL', value: '$(A)-$(B)-$(A)' },
        { name: 'B', value: 'b' },
        { name: 'LITERAL', value: '$$(A)' },
        { name: 'LATE', value: '$(A)-$(B)' },
      ],
    },
    says: 'a-$(B)-a\n$(A)\na-b\n',
  },
  {
    name: 'variables-in-arguments',
    script: '',
    main: {
      command: ['sh', '-c', 'echo "$0" "$1"'],
      args: ['$(WHO)', '$$(WHO) $(NOBODY)'],
      env: [{ name: 'WHO', value: 'me' }],
    },
    says: 'me $(WHO) $(NOBODY)\n',
  },
  {
    name: 'facts-in-the-environment',
    script:
      'echo "$NAME $SPACE $ACCOUNT $LABEL"; echo "$NODE"; [ "$IP" = "$IPS" ] && [ "$HOST" = "$HOSTS" ] && echo same',
    main: {
      env: [
        fieldEnv('NAME', 'metadata.name'),
        fieldEnv('SPACE', 'metadata.namespace'),
        fieldEnv('ACCOUNT', 'spec.serviceAccountName'),
        fieldEnv('LABEL', "metadata.labels['tier']"),
        fieldEnv('NODE', 'spec.nodeName'),
        fieldEnv('IP', 'status.podIP'),
        fieldEnv('IPS', 'status.podIPs'),
        fieldEnv('HOST', 'status.hostIP'),
        fieldEnv('HOSTS', 'status.hostIPs'),
      ],
    },
    metadata: { labels: { tier: 'one' } },
    says: `facts-in-the-environment promises default one\n${NODE_NAME}\nsame\n`,
  },
  {
    name: 'scratch-of-root',
    script: LOOK_AT_WORK,
    main: { volumeMounts: [WORK] },
    spec: { volumes: EMPTY },
    says: '777 0\nhi\n0 0\n',
  },
  {
    name: 'scratch-of-somebody',
    script: LOOK_AT_WORK,
    main: { volumeMounts: [WORK], securityContext: { runAsUser: 1001, runAsGroup: 1001 } },
    spec: { volumes: EMPTY },
    says: '777 0\nhi\n1001 1001\n',
  },
  {
    name: 'scratch-in-memory',
    script: `${LOOK_AT_WORK}; stat -f -c %T /scratch`,
    main: { volumeMounts: [WORK], securityContext: { runAsUser: 1001 } },
    spec: { volumes: MEMORY },
    says: '1777 0\nhi\n1001 0\ntmpfs\n',
  },
  {
    name: 'scratch-of-a-group',
    script: LOOK_AT_WORK,
    main: { volumeMounts: [WORK], securityContext: { runAsUser: 1001 } },
    spec: { volumes: EMPTY, securityContext: { fsGroup: 123 } },
    says: '2777 123\nhi\n1001 123\n',
  },
  {
    name: 'scratch-in-memory-of-a-group',
    script: LOOK_AT_WORK,
    main: { volumeMounts: [WORK], securityContext: { runAsUser: 1001 } },
    spec: { volumes: MEMORY, securityContext: { fsGroup: 123 } },
    says: '3777 123\nhi\n1001 123\n',
  },
  {
    name: 'shared-scratch',
    script: 'until [ -e /scratch/f ]; do sleep 0.1; done; cat /scratch/f',
    main: { volumeMounts: [WORK] },
    spec: {
      volumes: EMPTY,
      containers: [
        container('main', {
          command: shell('until [ -e /scratch/f ]; do sleep 0.1; done; cat /scratch/f'),
          volumeMounts: [WORK],
        }),
        container('other', { command: shell('echo from the other > /scratch/f'), volumeMounts: [WORK] }),
      ],
    },
    says: 'from the other\n',
  },
  {
    name: 'identity',
    script: 'id -u; id -g; id -G; grep NoNewPrivs /proc/self/status | cut -f2; touch /x 2>/dev/null || echo read-only',
    main: {
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 3000,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
      },
    },
    spec: { securityContext: { supplementalGroups: [4000, 5000] } },
    says: /^1000\n3000\n3000 (2000 )?4000 5000\n1\nread-only\n/,
  },
  {
    name: 'privileges',
    script: 'mkdir /m; mount -t tmpfs none /m && echo may',
    main: { securityContext: { privileged: true } },
    says: 'may\n',
  },
  {
    name: 'no-privileges',
    script: 'mkdir /m; mount -t tmpfs none /m 2>/dev/null || echo may not',
    says: 'may not\n',
  },
  {
    name: 'kernel-settings',
    script: 'cat /proc/sys/kernel/shm_rmid_forced',
    spec: { securityContext: { sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] } },
    says: '1\n',
  },
  {
    name: 'kernel-settings-with-slashes',
    script: 'cat /proc/sys/net/ipv4/ip_unprivileged_port_start',
    spec: { securityContext: { sysctls: [{ name: 'net/ipv4/ip_unprivileged_port_start', value: '80' }] } },
    says: '80\n',
  },
  {
    name: 'hosts-with-aliases',
    script: 'head -1 /etc/hosts; grep foo.remote /etc/hosts',
    spec: { hostAliases: [{ ip: '123.45.67.89', hostnames: ['foo.remote', 'bar.remote'] }] },
    says: '# Kubernetes-managed hosts file.\n123.45.67.89\tfoo.remote\tbar.remote\n',
  },
  {
    name: 'hosts-file-of-its-own',
    script: 'cat /etc/hosts',
    main: { volumeMounts: [{ name: 'mine', mountPath: '/etc/hosts', subPath: 'hosts' }] },
    spec: {
      volumes: [{ name: 'mine', emptyDir: {} }],
      initContainers: [
        container('writes', {
          command: shell('echo 1.2.3.4 mine > /v/hosts'),
          volumeMounts: [{ name: 'mine', mountPath: '/v' }],
        }),
      ],
    },
    says: '1.2.3.4 mine\n',
  },
  {
    name: 'one-process-tree',
    script: '',
    spec: {
      shareProcessNamespace: true,
      containers: [
        // The other one is started after this one.
        container('main', {
          command: shell(
            'for i in $(seq 300); do ps | grep -q "[s]leep 4321" && break; sleep 0.1; done; cat /proc/1/comm; ps | grep -c "[s]leep 4321"; exit 0',
          ),
        }),
        container('other', { command: ['sleep', '4321'] }),
      ],
    },
    says: 'pause\n1\n',
  },
  {
    name: 'path-from-a-variable',
    script: 'echo hi > /scratch/f; ls -d /all/path-from-a-variable/f',
    main: {
      env: [fieldEnv('POD', 'metadata.name')],
      volumeMounts: [
        { name: 'work', mountPath: '/scratch', subPathExpr: '$(POD)' },
        { name: 'work', mountPath: '/all' },
      ],
    },
    spec: { volumes: EMPTY },
    says: '/all/path-from-a-variable/f\n',
  },
  {
    name: 'own-name-servers',
    script: 'cat /etc/resolv.conf',
    spec: {
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['1.1.1.1'],
        searches: ['resolv.conf.local'],
        options: [{ name: 'ndots', value: '2' }],
      },
    },
    says: 'search resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2\n',
  },
];

export function promisesSuite(scene: () => Scene): void {
  describe('promises to every pod', { concurrency: AT_ONCE }, () => {
    for (const promised of PROMISES) it(promised.name, () => keeps(scene(), promised));
    limits(scene);
    downwardFiles(scene);
    projected(scene);
    changesSuite(scene);
    filesSuite(scene);
  });
}

/** Runs the pod to its end and compares what it said and how it ended. */
async function keeps(s: Scene, promised: Promised): Promise<void> {
  const { name, script, main = {}, spec = {}, metadata } = promised;
  const containers = [container('main', { command: shell(script), ...main })];
  await s.pod(name, { restartPolicy: 'Never', containers, ...spec }, metadata);
  const { pod, ended } = await over(s, name);
  const output = await s.output(pod);
  const [code, message] = promised.ends ?? [0];
  assert.equal(ended.exitCode, code, output);
  assert.equal(ended.reason, code === 0 ? 'Completed' : 'Error');
  if (promised.ends !== undefined) assert.equal(ended.message, message);
  if (typeof promised.says === 'string') assert.equal(output, promised.says);
  if (promised.says instanceof RegExp) assert.match(output, promised.says);
  await s.delete(name, { gracePeriodSeconds: 0 });
}

type Ended = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

async function over(s: Scene, name: string): Promise<{ pod: Pod; ended: Ended }> {
  const endOf = (pod: Pod): Ended | undefined => statusOf(pod, 'main')?.state.terminated;
  const pod = await s.until(name, 'has run', (p) => endOf(p) !== undefined);
  const ended = endOf(pod);
  assert.ok(ended !== undefined);
  return { pod, ended };
}

function limits(scene: () => Scene): void {
  const resourceEnv = (name: string, resource: string, divisor?: string) => ({
    name,
    valueFrom: { resourceFieldRef: { resource, ...(divisor === undefined ? {} : { divisor }) } },
  });
  const env = [
    resourceEnv('CPU_LIMIT', 'limits.cpu'),
    resourceEnv('CPU_REQUEST', 'requests.cpu', '1m'),
    resourceEnv('MEMORY_LIMIT', 'limits.memory'),
    resourceEnv('MEMORY_MI', 'limits.memory', '1Mi'),
  ];
  const script = 'echo "$CPU_LIMIT $CPU_REQUEST $MEMORY_LIMIT $MEMORY_MI"';

  it('limits and requests in the environment', async () => {
    const s = scene();
    const resources = { limits: { cpu: '1250m', memory: '64Mi' }, requests: { cpu: '250m', memory: '32Mi' } };
    const main = container('main', { command: shell(script), env, resources });
    await s.pod('limits', { restartPolicy: 'Never', containers: [main] });
    assert.equal(await s.output((await over(s, 'limits')).pod), `2 250 ${64 * 2 ** 20} 64\n`);
  });

  it('what the node can give, where no limit is set', async () => {
    const s = scene();
    await s.pod('no-limits', {
      restartPolicy: 'Never',
      containers: [container('main', { command: shell(script), env })],
    });
    const [cpu, , memory] = (await s.output((await over(s, 'no-limits')).pod)).split(' ');
    const { status } = await s.node.client.get(NODES, { name: NODE_NAME }, never);
    const allocatable = (name: string): number => toNumber(quantity(status?.allocatable?.[name] ?? '0'));
    assert.deepEqual([Number(cpu), Number(memory)], [Math.ceil(allocatable('cpu')), allocatable('memory')]);
  });
}

function downwardFiles(scene: () => Scene): void {
  it('facts in files, with their modes, that follow changes', async () => {
    const s = scene();
    const items = [
      { path: 'name', fieldRef: { fieldPath: 'metadata.name' }, mode: 0o400 },
      { path: 'deep/labels', fieldRef: { fieldPath: 'metadata.labels' } },
      { path: 'deep/notes', fieldRef: { fieldPath: 'metadata.annotations' } },
      { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'requests.cpu', divisor: '1m' } },
    ];
    const volumes = [{ name: 'facts', downwardAPI: { defaultMode: 0o440, items } }];
    const main = container('main', {
      volumeMounts: [{ name: 'facts', mountPath: '/facts' }],
      resources: { requests: { cpu: '100m' } },
    });
    await s.pod('facts', { volumes, containers: [main] }, { labels: { a: '1', b: 'two' }, annotations: { note: 'x' } });
    const pod = await s.ready('facts');
    assert.equal(
      await s.exec(pod, 'cd /facts; cat name; echo; cat deep/labels; echo; cat cpu; echo; stat -L -c %a name cpu'),
      'facts\na="1"\nb="two"\n100\n400\n440\n',
    );
    await s.patch(PODS, 'facts', { metadata: { labels: { b: 'three' }, annotations: { note: 'y' } } });
    const changed =
      'for i in $(seq 100); do grep -q three deep/labels && grep -q y deep/notes && exit; sleep 0.1; done; exit 1';
    await s.exec(pod, `cd /facts; ${changed}`);
  });
}

function projected(scene: () => Scene): void {
  it('many sources in one volume, readable for who may', async () => {
    const s = scene();
    await s.configMap(
      'mix-map',
      { plain: 'from the map' },
      { binaryData: { bytes: Buffer.from([0, 255, 10]).toString('base64') } },
    );
    await s.secret('mix.secret', { 'data-1': 'from the secret' });
    const sources = [
      {
        configMap: {
          name: 'mix-map',
          items: [
            { key: 'plain', path: 'map/plain' },
            { key: 'bytes', path: 'map/bytes', mode: 0o644 },
          ],
        },
      },
      { secret: { name: 'mix.secret', items: [{ key: 'data-1', path: 'secret/one', mode: 0o440 }] } },
      { secret: { name: 'not-there', optional: true } },
      { downwardAPI: { items: [{ path: 'pod/name', fieldRef: { fieldPath: 'metadata.name' } }] } },
    ];
    const main = container('main', {
      command: shell(
        'cd /all; cat map/plain secret/one pod/name; od -An -tx1 map/bytes; stat -L -c "%a %g" map/bytes secret/one',
      ),
      volumeMounts: [{ name: 'all', mountPath: '/all', readOnly: true }],
    });
    await s.pod('mix', {
      restartPolicy: 'Never',
      securityContext: { runAsUser: 1000, fsGroup: 1001 },
      volumes: [{ name: 'all', projected: { defaultMode: 0o644, sources } }],
      containers: [main],
    });
    const { pod } = await over(s, 'mix');
    assert.equal(await s.output(pod), 'from the mapfrom the secretmix 00 ff 0a\n644 1001\n440 1001\n');
  });
}
