// Storage of the one-command cluster, as somebody at a terminal uses it: a claim, a pod that writes, a second pod that
// reads, a stop and a start in between, growth under the running pod, block devices, and in the end nothing left.
// runs: default ports
import { strict as assert } from 'node:assert';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { ApiClient, dig, type Json } from '../contracts/api-server/client.ts';
import { DevCluster, traces } from '../harness/dev-cluster.ts';
import { until, untilSeen } from '../harness/until.ts';

const skip = process.getuid?.() !== 0 ? 'needs root' : !existsSync('/usr/bin/containerd') ? 'needs containerd' : false;
const CORE = '/api/v1/namespaces/default';
const STORAGE = '/apis/storage.k8s.io/v1';

const claimOf = (name: string, storage: string, more: Json = {}): Json => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...more },
});

const podOf = (name: string, script: string, volumes: readonly Json[], more: Json = {}): Json => ({
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'c',
        image: 'localhost/busybox:1',
        command: ['sh', '-c', `${script}; trap 'exit 0' TERM; while :; do sleep 1; done`],
        ...more,
      },
    ],
    volumes,
  },
});
const DATA: Json = { name: 'data', persistentVolumeClaim: { claimName: 'data' } };
const MOUNTED: Json = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };

class Terminal {
  readonly #api: ApiClient;
  constructor(api: ApiClient) {
    this.#api = api;
  }

  static async on(cluster: DevCluster): Promise<Terminal> {
    return new Terminal(ApiClient.fromKubeconfig(await readFile(cluster.kubeconfig, 'utf8')));
  }

  async create(path: string, body: Json): Promise<void> {
    const made = await this.#api.post(path, body);
    assert.equal(made.status, 201, JSON.stringify(made.body));
  }

  async get(path: string): Promise<Json> {
    return (await this.#api.get(path)).body;
  }

  async items(path: string): Promise<Json[]> {
    return dig(await this.get(path), 'items') as Json[];
  }

  async grow(claim: string, storage: string): Promise<void> {
    const body = { spec: { resources: { requests: { storage } } } };
    const done = await this.#api.merge(`${CORE}/persistentvolumeclaims/${claim}`, body);
    assert.equal(done.status, 200, JSON.stringify(done.body));
  }

  async remove(path: string): Promise<void> {
    await this.#api.delete(path);
    await untilSeen(
      `${path} is gone`,
      async () => (await this.#api.get(path)).status,
      (seen) => seen === 404,
    );
  }

  async running(name: string): Promise<void> {
    await untilSeen(
      `${name} runs`,
      async () => dig(await this.get(`${CORE}/pods/${name}`), 'status', 'phase'),
      (seen) => seen === 'Running',
    );
  }

  /** What its container has printed, once it has printed something. */
  printed(name: string): Promise<string> {
    return until(`${name} has printed`, async () => {
      const { status, text } = await this.#api.get(`${CORE}/pods/${name}/log`);
      return status !== 200 || text === '' ? undefined : text;
    });
  }

  close(): void {
    this.#api.close();
  }
}

const isBound = async (terminal: Terminal, claim: string): Promise<boolean> =>
  dig(await terminal.get(`${CORE}/persistentvolumeclaims/${claim}`), 'status', 'phase') === 'Bound';

test('a claim outlives its pods and a stop of the cluster, and goes without a trace', { skip }, async (t) => {
  const cluster = await DevCluster.make();
  t.after(() => cluster.destroy());
  await cluster.up('--no-example');
  let terminal = await Terminal.on(cluster);
  t.after(() => terminal.close());
  await terminal.create(`${CORE}/persistentvolumeclaims`, claimOf('data', '32Mi'));
  await terminal.create(`${CORE}/pods`, podOf('first', 'echo kept > /data/file; sync', [DATA], MOUNTED));
  await terminal.running('first');
  const [attachment] = await terminal.items(`${STORAGE}/volumeattachments`);
  assert.equal(dig(attachment, 'status', 'attached'), true);
  const [csiNode] = await terminal.items(`${STORAGE}/csinodes`);
  assert.equal(dig(csiNode, 'spec', 'drivers', 0, 'name'), 'hostpath.csi.kubelet-dev');
  await terminal.remove(`${CORE}/pods/first`);
  await untilSeen(
    'detached',
    () => terminal.items(`${STORAGE}/volumeattachments`),
    (seen) => seen.length === 0,
  );

  await terminal.create(`${CORE}/pods`, podOf('second', 'cat /data/file; echo more >> /data/file', [DATA], MOUNTED));
  assert.equal(await terminal.printed('second'), 'kept\n');
  terminal.close();
  const down = await cluster.command('down');
  assert.equal(down.code, 0, down.stdout + down.stderr);
  const { network, cgroupRoot } = await cluster.settings();
  assert.deepEqual(await traces(cluster.dir, network, cgroupRoot), []);
  await cluster.up('--no-example');
  terminal = await Terminal.on(cluster);
  await terminal.remove(`${CORE}/pods/second`);
  await terminal.create(`${CORE}/pods`, podOf('third', 'cat /data/file', [DATA], MOUNTED));
  assert.match(await terminal.printed('third'), /^kept\nmore\n/);

  await terminal.remove(`${CORE}/pods/third`);
  await terminal.remove(`${CORE}/persistentvolumeclaims/data`);
  await untilSeen(
    'the volume is gone',
    () => terminal.items('/api/v1/persistentvolumes'),
    (seen) => seen.length === 0,
  );
  assert.deepEqual(await readdir(join(cluster.dir, 'volumes')), []);
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .filter((l) => l.includes(`${cluster.dir}/`));
  assert.deepEqual(
    mounts.filter((l) => /kubernetes\.io~?\/?csi/.test(l)),
    [],
  );
});

describe('on one cluster', { skip }, () => {
  let cluster: DevCluster;
  let terminal: Terminal;
  before(async () => {
    cluster = await DevCluster.make();
    await cluster.up('--no-example');
    terminal = await Terminal.on(cluster);
  });
  after(async () => {
    terminal?.close();
    await cluster?.destroy();
  });

  it('a claim grows under its pod, and a pod gets a block device', async () => {
    await terminal.create(`${CORE}/persistentvolumeclaims`, claimOf('data', '32Mi'));
    await terminal.create(`${CORE}/persistentvolumeclaims`, claimOf('raw', '8Mi', { volumeMode: 'Block' }));
    const raw: Json = { name: 'raw', persistentVolumeClaim: { claimName: 'raw' } };
    const device = { volumeDevices: [{ name: 'raw', devicePath: '/dev/xvda' }] };
    const script =
      'echo kept | dd of=/dev/xvda bs=512 conv=sync; dd if=/dev/xvda bs=4 count=1; blockdev --getsize64 /dev/xvda';
    await terminal.create(
      `${CORE}/pods`,
      podOf('user', `${script}; echo x > /data/f`, [DATA, raw], { ...MOUNTED, ...device }),
    );
    await terminal.running('user');
    await untilSeen(
      'the device was used',
      () => terminal.printed('user'),
      (seen) => seen.includes(`${8 << 20}`),
    );
    assert.match(await terminal.printed('user'), /^kept/m);
    const capacity = async (claim: string): Promise<unknown> =>
      dig(await terminal.get(`${CORE}/persistentvolumeclaims/${claim}`), 'status', 'capacity', 'storage');
    await terminal.grow('data', '64Mi');
    await terminal.grow('raw', '16Mi');
    await untilSeen(
      'the claim has grown',
      () => capacity('data'),
      (seen) => seen === '64Mi',
    );
    await untilSeen(
      'the device has grown',
      () => capacity('raw'),
      (seen) => seen === '16Mi',
    );
    await terminal.remove(`${CORE}/pods/user`);
    for (const claim of ['data', 'raw']) await terminal.remove(`${CORE}/persistentvolumeclaims/${claim}`);
    await untilSeen(
      'the volumes are gone',
      () => terminal.items('/api/v1/persistentvolumes'),
      (seen) => seen.length === 0,
    );
    const { network, cgroupRoot } = await cluster.settings();
    const left = (await traces(cluster.dir, network, cgroupRoot)).filter((line) =>
      /loop device|kubernetes\.io/.test(line),
    );
    assert.deepEqual(left, []);
  });

  it('inline and generic ephemeral volumes live as long as their pod', async () => {
    const template = { spec: claimOf('', '16Mi')['spec'] };
    const volumes: Json[] = [
      { name: 'inline', csi: { driver: 'hostpath.csi.kubelet-dev', volumeAttributes: { size: '8Mi' } } },
      { name: 'scratch', ephemeral: { volumeClaimTemplate: template } },
    ];
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${String(name)}` }));
    const script = 'for d in inline scratch; do echo $d > /$d/f; cat /$d/f; done; echo end';
    await terminal.create(`${CORE}/pods`, podOf('brief', script, volumes, { volumeMounts }));
    await terminal.running('brief');
    await untilSeen(
      'printed',
      () => terminal.printed('brief'),
      (seen) => seen === 'inline\nscratch\nend\n',
    );
    assert.equal(await isBound(terminal, 'brief-scratch'), true);
    await terminal.remove(`${CORE}/pods/brief`);
    await untilSeen(
      'the claim is gone',
      () => terminal.items(`${CORE}/persistentvolumeclaims`),
      (seen) => seen.length === 0,
    );
    await untilSeen(
      'no volume is left',
      () => readdir(join(cluster.dir, 'volumes')),
      (seen) => seen.length === 0,
    );
  });
});
