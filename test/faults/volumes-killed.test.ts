// The whole kubelet is killed at random instants while ten pods with five volumes each are mounted and unmounted, and
// started again at once. No mount is leaked or made twice, no data is lost, no pod is stuck.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import type { Pod, Volume } from '../../src/core/pod.ts';
import { CONFIG_MAPS, PODS, SECRETS, type Resource } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';
import { mountsBeneath } from '../node/volumes-setup.ts';
import { randomFrom } from './fleet.ts';

const KILLS = Number(process.env['FAULT_ROUNDS'] ?? 30);
const SEED = Number(process.env['SEED'] ?? 1);
const STEADY = 5;
const CHANGING = 5;
/** Two in memory with content, one in memory without, one bind of a part of a volume. */
const MOUNTS_PER_POD = 4;
const namespace = 'default';
const never = new AbortController().signal;

const VOLUMES: readonly Volume[] = [
  { name: 'disk', emptyDir: {} },
  { name: 'memory', emptyDir: { medium: 'Memory' } },
  { name: 'conf', configMap: { name: 'conf' } },
  { name: 'secret', secret: { secretName: 'secret' } },
  {
    name: 'all',
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } },
        { configMap: { name: 'conf' } },
        { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      ],
    },
  },
];
/** Ends with an error at once when a volume lacks what must be in it. */
const WRITE = `set -e
test "$(cat /v/conf/a)" = alpha; test "$(cat /v/secret/key)" = value; test -s /v/all/token; test "$(cat /v/all/name)" = $NAME
for v in disk memory; do test ! -e /v/$v/data; echo $NAME > /v/$v/data; done
echo part > /part/data
trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done`;

const podNamed = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: {
    nodeName: NODE_NAME,
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    securityContext: { fsGroup: 2000 },
    volumes: VOLUMES,
    containers: [
      {
        name: 'c',
        image: BUSYBOX_IMAGE,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', WRITE],
        env: [{ name: 'NAME', value: name }],
        volumeMounts: [
          ...VOLUMES.map((v) => ({ name: v.name, mountPath: `/v/${v.name}` })),
          { name: 'disk', mountPath: '/part', subPath: 'a/part' },
        ],
      },
    ],
  },
});

describe(`volumes while the kubelet is killed ${KILLS} times (seed ${SEED})`, () => {
  let node: TestNode;
  const random = randomFrom(SEED);
  const wanted = new Map<string, string>();
  let made = 0;

  before(async () => {
    node = await startNode();
    const make = (resource: Resource<KubeObject>, kind: string, name: string, body: object): Promise<KubeObject> =>
      node.client.create(
        resource,
        { namespace },
        { apiVersion: 'v1', kind, metadata: { name, namespace }, ...body },
        never,
      );
    await make({ base: '/api/v1', plural: 'serviceaccounts' }, 'ServiceAccount', 'default', {}).catch(() => undefined);
    await make(CONFIG_MAPS, 'ConfigMap', 'conf', { data: { a: 'alpha' } });
    await make(SECRETS, 'Secret', 'secret', { data: { key: 'dmFsdWU=' } });
  });
  after(() => node?.stop());

  const podsDir = (): string => join(node.dir, 'kubelet', 'pods');
  const mounts = (): string[] => mountsBeneath(podsDir());

  async function create(name: string): Promise<void> {
    const pod = await node.client.create(PODS, { namespace }, podNamed(name), never);
    wanted.set(name, pod.metadata.uid ?? '');
  }

  async function remove(name: string): Promise<void> {
    wanted.delete(name);
    await node.client.delete(PODS, { namespace, name }, {}, never);
  }

  /** One of the changing pods comes or goes. */
  async function act(): Promise<void> {
    const changing = [...wanted.keys()].filter((name) => name.startsWith('changing'));
    const victim = changing[random(CHANGING)];
    if (victim !== undefined) await remove(victim);
    else await create(`changing-${made++}`);
  }

  const dataOf = (uid: string): readonly string[] =>
    ['disk', 'memory'].map((v) =>
      readFileSync(join(podsDir(), uid, 'volumes/kubernetes.io~empty-dir', v, 'data'), 'utf8'),
    );

  async function converged(when: string): Promise<void> {
    let seen: unknown;
    const check = async (): Promise<boolean> => {
      const { items } = await node.client.list(PODS, { namespace }, never);
      const states = items.map((p) => `${p.metadata.name} ${p.status?.phase}`).sort();
      seen = { states, mounts: mounts().length, directories: readdirSync(podsDir()) };
      assert.deepEqual(states, [...wanted.keys()].map((name) => `${name} Running`).sort());
      assert.equal(new Set(mounts()).size, mounts().length, 'nothing is mounted twice');
      assert.equal(mounts().length, wanted.size * MOUNTS_PER_POD);
      assert.deepEqual(readdirSync(podsDir()).sort(), [...wanted.values()].sort());
      return true;
    };
    await until(`all is as wanted ${when}`, check).catch((err: unknown) => {
      throw new Error(`${String(err)}\n${JSON.stringify(seen, undefined, 1)}`);
    });
    for (const [name, uid] of wanted)
      await untilSeen(
        `${name} has written`,
        () => dataOf(uid),
        (data) => data.every((text) => text === `${name}\n`),
      );
  }

  it('mounts', async () => {
    for (let i = 0; i < STEADY; i++) await create(`steady-${i}`);
    for (let i = 0; i < CHANGING; i++) await create(`changing-${made++}`);
    await converged('at first');
  });

  it('is as wanted after the kills, with all data', async (t) => {
    let amid = 0;
    for (let kill = 1; kill <= KILLS; kill++) {
      for (let n = 1 + random(3); n > 0; n--) await act();
      await timePasses(random(900), 'another instant');
      if (mounts().length !== wanted.size * MOUNTS_PER_POD) amid++;
      await node.kubelet.kill('SIGKILL');
      await node.kubelet.start(node.healthzPort);
      if (kill % 10 === 0) await converged(`after kill ${kill} (seed ${SEED})`);
    }
    t.diagnostic(`${amid} of ${KILLS} kills while something was to be mounted or unmounted`);
    assert.ok(amid >= KILLS / 3, 'the kills hit');
  });

  it('leaves nothing', async () => {
    for (const name of wanted.keys()) await remove(name);
    await converged('at the end');
    assert.deepEqual(mounts(), []);
  });
});
