// Registration, status, conditions, lease, cordon and drain.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { arch, release } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import type { Lease } from '../../src/core/node.ts';
import { NODES } from '../../src/kube/resources.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { assetsFolder } from '../harness/real-assets.ts';
import { conditionOfNode, nodeEvent, nodeReady, readLease, readNode, untilNode } from './node-view.ts';
import { never, Scene } from './scene.ts';

const run = promisify(execFile);

export function registers(node: () => TestNode): void {
  it('registers with its labels, taints and provider', async () => {
    const seen = await nodeReady(node());
    const goArch = arch() === 'x64' ? 'amd64' : arch();
    assert.deepEqual(seen.metadata.labels, {
      'beta.kubernetes.io/arch': goArch,
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': goArch,
      'kubernetes.io/hostname': NODE_NAME,
      'kubernetes.io/os': 'linux',
      'example.com/team': 'red',
      'node.kubernetes.io/kind': 'small',
    });
    assert.equal(seen.metadata.annotations?.['volumes.kubernetes.io/controller-managed-attach-detach'], 'true');
    assert.equal(seen.spec?.providerID, 'test://n1');
    const given = seen.spec?.taints?.filter((t) => t.key.startsWith('example.com/'));
    assert.deepEqual(given, [{ key: 'example.com/fresh', value: 'yes', effect: 'NoSchedule' }]);
    await nodeEvent(node(), 'Starting');
    await nodeEvent(node(), 'NodeReady');
    await nodeEvent(node(), 'NodeHasSufficientMemory');
  });
}

export function showsStatus(node: () => TestNode): void {
  it('says what the node is and what it has', async () => {
    const n = node();
    const { status: s } = await untilNode(n, 'lists images', (seen) => (seen.status?.images ?? []).length > 0);
    assert.deepEqual(
      s?.addresses?.map((a) => a.type),
      ['InternalIP', 'Hostname'],
    );
    assert.equal(s?.addresses?.at(1)?.address, NODE_NAME);
    for (const key of ['cpu', 'memory', 'ephemeral-storage', 'pods']) {
      assert.ok(s?.capacity?.[key] !== undefined, key);
      assert.ok(s.allocatable?.[key] !== undefined, key);
    }
    assert.equal(s?.capacity?.['pods'], '110');
    assert.notEqual(s?.allocatable?.['memory'], s?.capacity?.['memory'], 'the eviction threshold is kept back');
    assert.equal(s?.nodeInfo?.kernelVersion, release());
    assert.match(s?.nodeInfo?.containerRuntimeVersion ?? '', /^(containerd|cri-o):\/\/\d/);
    assert.match(s?.nodeInfo?.kubeletVersion ?? '', /^v1\.36\.\d+/);
    assert.equal(s?.daemonEndpoints?.kubeletEndpoint?.Port, n.port);
    const names = s?.images?.flatMap((i) => i.names ?? []) ?? [];
    assert.ok(names.includes('localhost/busybox:latest'), names.join());
    const handlers = s?.runtimeHandlers?.map((h) => h.name ?? '') ?? [];
    assert.ok(handlers.includes('') && handlers.includes('runc'), handlers.join());
    assert.deepEqual(s?.declaredFeatures, [...(s?.declaredFeatures ?? [])].sort());
    assert.equal(s?.features?.supplementalGroupsPolicy, true);
  });

  it('gives every condition with its reason', async () => {
    const seen = await nodeReady(node());
    const said = (seen.status?.conditions ?? []).map((c) => [c.type, c.status, c.reason, c.message]);
    assert.deepEqual(said, [
      ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
      ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
      ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
      ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
    ]);
  });
}

export function renewsLease(node: () => TestNode): void {
  it('renews its lease', async () => {
    const n = node();
    // An older one may be from before an outage.
    const isYoung = (lease: Lease): boolean => Date.now() - Date.parse(lease.spec?.renewTime ?? '') < 2000;
    const justRenewed = async (): Promise<Lease | false> => {
      const lease = await readLease(n);
      return lease !== undefined && isYoung(lease) && lease;
    };
    const first = await until('there is a lease of now', justRenewed);
    assert.equal(first.spec?.holderIdentity, NODE_NAME);
    assert.equal(first.spec?.leaseDurationSeconds, 40);
    assert.match(first.spec?.renewTime ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const { uid } = (await readNode(n)).metadata;
    assert.deepEqual(first.metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'Node', name: NODE_NAME, uid }]);
    let [last, seconds] = [first.spec?.renewTime ?? '', Infinity];
    // What the machine does beside it can only make it later.
    for (let i = 0; i < 5 && seconds >= 14; i++) {
      const renewed = await untilSeen(
        'it is renewed',
        async () => (await readLease(n))?.spec?.renewTime ?? '',
        (time) => time !== last,
      );
      seconds = (Date.parse(renewed) - Date.parse(last)) / 1000;
      last = renewed;
    }
    assert.ok(seconds > 9 && seconds < 14, `${seconds} s`);
  });
}

export function needsNetwork(node: () => TestNode): void {
  it('is not ready without a network, says why, and is ready again with one', async (t) => {
    const n = node();
    if (n.containerd.version === 'cri-o') return t.skip('CRI-O does not look again once it has a network');
    const file = join(n.containerd.root, 'cni', '10-test.conflist');
    const network = await readFile(file, 'utf8');
    await rm(file);
    try {
      const seen = await untilNode(n, 'is not ready', (s) => conditionOfNode(s, 'Ready')?.status === 'False');
      const { reason, message } = conditionOfNode(seen, 'Ready') ?? {};
      assert.equal(reason, 'KubeletNotReady');
      assert.match(
        message ?? '',
        /^container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized$/,
      );
      await nodeEvent(n, 'NodeNotReady');
    } finally {
      await writeFile(file, network); // the runtime does not notice files that are moved here
    }
    const again = await nodeReady(n);
    assert.equal(conditionOfNode(again, 'Ready')?.message, 'kubelet is posting ready status');
  });
}

export function isCordoned(node: () => TestNode): void {
  it('tells when it is cordoned and uncordoned', async () => {
    const n = node();
    await nodeReady(n);
    const set = (unschedulable: boolean | null): Promise<unknown> =>
      n.client.patch(NODES, { name: NODE_NAME }, { spec: { unschedulable } }, never);
    await set(true);
    await nodeEvent(n, 'NodeNotSchedulable');
    await set(null);
    await nodeEvent(n, 'NodeSchedulable');
  });
}

/** The real control plane's kubectl if it comes with one, else the machine's. */
async function findKubectl(): Promise<string> {
  const folder = assetsFolder();
  for (const path of [...(folder === undefined ? [] : [join(folder, 'kubectl')]), 'kubectl'])
    if (
      await run(path, ['version', '--client']).then(
        () => true,
        () => false,
      )
    )
      return path;
  throw new Error('no kubectl on this machine; on Debian: apt-get install kubernetes-client');
}

export function isDrained(node: () => TestNode): void {
  it('is drained by kubectl', async () => {
    const n = node();
    const kubectl = await findKubectl();
    const s = await Scene.open(n, 'drained');
    await Promise.all(['one', 'two'].map((name) => s.pod(name, {})));
    await Promise.all(['one', 'two'].map((name) => s.ready(name)));
    const flags = ['--force', '--ignore-daemonsets', '--timeout=60s'];
    const { stdout } = await run(kubectl, ['--kubeconfig', n.api.adminKubeconfigPath, 'drain', NODE_NAME, ...flags]);
    // Older ones, that of Debian 12 for one, say `evicted`.
    assert.match(stdout, new RegExp(`node/${NODE_NAME} (drained|evicted)`));
    assert.equal((await readNode(n)).spec?.unschedulable, true);
    for (const name of ['one', 'two']) assert.equal(await s.isGone(name), true, name);
    await run(kubectl, ['--kubeconfig', n.api.adminKubeconfigPath, 'uncordon', NODE_NAME]);
  });
}
