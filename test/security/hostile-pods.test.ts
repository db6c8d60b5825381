// Random pods that the API server takes, on a whole kubelet with a runtime in memory. It must stay the same process, start
// good pods beside them in their time, and not grow. `HOSTILE_PODS=10000` makes it a soak, `HOSTILE_SECONDS=600` ends it by
// then, `HOSTILE_AT_A_TIME=250` makes it crowded; `SEED=…` repeats a run.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { NODE_NAME } from '../../bench/pods.ts';
import { startSoakWorld, type SoakWorld } from '../../bench/soak/soak-world.ts';
import type { Pod } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { mutateJson, seeded } from '../fuzz/mutate.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { until } from '../harness/until.ts';

const COUNT = Number(process.env['HOSTILE_PODS'] ?? 60);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
const SECONDS = Number(process.env['HOSTILE_SECONDS'] ?? Infinity);
const AT_A_TIME = Number(process.env['HOSTILE_AT_A_TIME'] ?? 40);
const namespace = 'default';
const never = new AbortController().signal;
const random = seeded(SEED);

const SPEC = {
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
  hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }],
  dnsConfig: { nameservers: ['1.2.3.4'], searches: ['x'], options: [{ name: 'ndots', value: '2' }] },
  securityContext: { fsGroup: 1, runAsUser: 0, supplementalGroups: [3] },
  activeDeadlineSeconds: 100,
  volumes: [{ name: 'v', emptyDir: {} }],
  initContainers: [{ name: 'i', image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent', restartPolicy: 'Always' }],
  containers: [
    {
      name: 'c',
      image: BUSYBOX_IMAGE,
      imagePullPolicy: 'IfNotPresent',
      command: ['sh', '-c', 'echo $(A)'],
      args: ['x'],
      env: [
        { name: 'A', value: 'x' },
        { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
      ports: [{ name: 'web', containerPort: 80, protocol: 'TCP' }],
      resources: { requests: { cpu: '1m', memory: '1Mi' } },
      readinessProbe: {
        httpGet: { path: '/', port: 'web', httpHeaders: [{ name: 'X', value: '€' }] },
        periodSeconds: 1,
        timeoutSeconds: 1,
      },
      livenessProbe: { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 },
      lifecycle: {
        preStop: { httpGet: { port: 80, path: '/x', httpHeaders: [{ name: 'Y', value: 'z' }] } },
        postStart: { sleep: { seconds: 1 } },
      },
      terminationMessagePolicy: 'FallbackToLogsOnError',
      volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'a/b' }],
      securityContext: { capabilities: { add: ['NET_ADMIN'] }, seccompProfile: { type: 'RuntimeDefault' } },
    },
  ],
};

const podOf = (name: string, spec: unknown): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { ...(spec as object), nodeName: NODE_NAME },
  }) as unknown as Pod;

/** False when the API server does not take it. */
async function offer(world: SoakWorld, pod: Pod): Promise<boolean> {
  try {
    await world.client.create(PODS, { namespace }, pod, never);
    return true;
  } catch (err) {
    if (isFault(err, 'invalid', 'denied', 'internal', 'exists', 'conflict')) return false;
    throw err;
  }
}

async function remove(world: SoakWorld, name: string): Promise<void> {
  try {
    await world.client.delete(PODS, { namespace, name }, random() < 0.3 ? { gracePeriodSeconds: 0 } : {}, never);
  } catch (err) {
    if (!isFault(err, 'notFound')) throw err;
  }
}

const memoryOf = (pid: number): number =>
  Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

it(`${COUNT} hostile pods, SEED=${SEED}`, { timeout: 3_600_000 }, async (t) => {
  const command = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
  const world = await startSoakWorld({ runtime: 'fake', command, env: { KUBELET_TS_SOURCE: '1' } });
  try {
    const { pid } = world.kubelet;
    let [taken, refused, slowest, first] = [0, 0, 0, 0];
    const end = performance.now() + SECONDS * 1000;
    const isOver = (): boolean => taken >= COUNT || performance.now() > end;
    for (let wave = 0; !isOver() && refused < 50 * COUNT; wave++) {
      const names: string[] = [];
      while (names.length < Math.min(AT_A_TIME, COUNT - taken) && refused < 50 * COUNT) {
        const name = `hostile-${taken + names.length}-${wave}`;
        let spec: unknown = SPEC;
        for (let i = 1 + Math.floor(random() * 3); i > 0; i--) spec = mutateJson(random, spec);
        if (typeof spec === 'object' && spec !== null && (await offer(world, podOf(name, spec)))) names.push(name);
        else refused++;
      }
      taken += names.length;
      const good = `good-${wave}`;
      const begun = performance.now();
      const { lifecycle: _, readinessProbe: __, livenessProbe: ___, ...plain } = SPEC.containers[0] ?? {};
      const { initContainers: ____, ...rest } = SPEC;
      assert.ok(await offer(world, podOf(good, { ...rest, containers: [plain] })));
      await until(`${good} runs`, async () => {
        assert.equal(world.kubelet.pid, pid);
        return (await world.client.get(PODS, { namespace, name: good }, never)).status?.phase === 'Running';
      });
      slowest = Math.max(slowest, performance.now() - begun);
      await Promise.all([...names, good].map((name) => remove(world, name)));
      await until(
        'they are gone',
        async () => {
          assert.equal(world.kubelet.pid, pid);
          const { items } = await world.client.list(PODS, { namespace }, never);
          return items.length === 0 || items.map((pod) => pod.metadata.name).join() === '';
        },
        90_000,
      );
      if (wave === 2) first = memoryOf(pid);
    }
    assert.ok(isOver(), `only ${taken} pods were taken`);
    const grown = first === 0 ? 0 : memoryOf(pid) - first;
    t.diagnostic(
      `${taken} taken, ${refused} refused, slowest good pod ${Math.round(slowest)} ms, ${Math.round(grown / 2 ** 20)} MiB more`,
    );
    assert.ok(slowest < 20_000, 'good pods start beside them');
    assert.ok(grown < 64 * 1024 * 1024, 'no memory stays');
    const log = readFileSync(join(world.dir, 'kubelet.log'), 'utf8');
    assert.doesNotMatch(
      log,
      /TypeError|ReferenceError|is not a function|Cannot read propert/,
      'no programming error came to light',
    );
  } finally {
    await world.stop();
  }
});
