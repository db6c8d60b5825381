// A full image disk, for real: the runtime keeps its images on a small loop-mounted filesystem, and the whole kubelet
// brings it down to the low threshold.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { imageFilesystem } from '../../src/images/image-fs.ts';
import { bytesToFree, usedPercent } from '../../src/images/image-gc-plan.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const NAMESPACE = 'default';
const MIB = 2 ** 20;
const HIGH = 60;
const KINDS = ['never-1', 'never-2', 'used-first', 'used-last', 'in-use', 'static', 'pinned', 'young'] as const;
type Kind = (typeof KINDS)[number];
const ref = (kind: Kind): string => `localhost/${kind}:v1`;

let node: TestNode;
before(async () => {
  node = await startNode({
    diskMiB: 300,
    config: 'imageGCHighThresholdPercent: 99\nimageGCLowThresholdPercent: 98\nimageMinimumGCAge: 5s',
  });
  for (const kind of KINDS)
    if (kind !== 'young') await node.containerd.importImage({ ref: ref(kind), extraBytes: 12 * MIB });
  await node.containerd.pinImage(ref('pinned'));
  // No container is ever made for it: only that the pod is known keeps the image.
  writeFileSync(join(node.manifests, 'static.json'), JSON.stringify(pod('static', { nodeSelector: { no: 'where' } })));
});
after(() => node?.stop());

function pod(kind: Kind, more: object = {}): Pod {
  const container = { name: 'c', image: ref(kind), imagePullPolicy: 'Never', command: ['sleep', '1000'] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: kind, namespace: NAMESPACE },
    spec: {
      nodeName: 'n1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [container],
      ...more,
    },
  } as unknown as Pod;
}

const phaseOf = async (name: string): Promise<string | undefined> =>
  (await node.client.get(PODS, { namespace: NAMESPACE, name }, never)).status?.phase;

async function startPod(kind: Kind): Promise<void> {
  await until('the pod may be made', () =>
    node.client.create(PODS, { namespace: NAMESPACE }, pod(kind), never).then(() => true),
  );
  await untilSeen(
    `${kind} runs`,
    () => phaseOf(kind),
    (seen) => seen === 'Running',
  );
}

async function endPod(kind: Kind): Promise<void> {
  await node.client.delete(PODS, { namespace: NAMESPACE, name: kind }, {}, never);
  await until(`no container of ${kind} is left`, async () => {
    const { containers } = await node.containerd.runtime.listContainers({}, never);
    return containers.every((c) => c.image?.userSpecifiedImage !== ref(kind));
  });
}

/** Every change of a threshold has the kubelet look at its images, and collect. */
async function thresholds(high: number, low: number): Promise<void> {
  await node.reconfigure((text) =>
    text
      .replace(/(imageGCHighThresholdPercent:) \d+/, `$1 ${high}`)
      .replace(/(imageGCLowThresholdPercent:) \d+/, `$1 ${low}`),
  );
  await untilSeen(
    'the new thresholds are in force',
    () => node.log(),
    (seen) => seen.includes(`imageGCLowThresholdPercent`),
  );
}

type Listed = { readonly id: string; readonly size: number; readonly tags: readonly string[] };
async function images(): Promise<readonly Listed[]> {
  const list = await node.containerd.images.listImages({}, never);
  return list.images.map(({ id, size, repoTags }) => ({ id, size, tags: repoTags }));
}
const disk = () => imageFilesystem(node.containerd.images, never);
const removals = async (): Promise<readonly string[]> =>
  [...(await node.log()).matchAll(/unused image removed.*?image="?(sha256:[0-9a-f]+)/g)].map((m) => m[1] ?? '');
const nodeEvents = async (reason: string): Promise<readonly string[]> =>
  (await node.client.list(EVENTS, { namespace: NAMESPACE, query: { fieldSelector: `reason=${reason}` } }, never)).items
    .filter((e) => e.involvedObject.kind === 'Node')
    .map((e) => e.message ?? '');

test('a disk above the high threshold is collected to the low one, least recently used first', async () => {
  await startPod('in-use');
  await startPod('used-first');
  await thresholds(99, 97);
  await endPod('used-first');
  await startPod('used-last');
  await thresholds(99, 96);
  await endPod('used-last');
  await untilSeen(
    'the static pod is known',
    () => node.log(),
    (seen) => seen.includes('pod rejected'),
  );
  await node.containerd.importImage({ ref: ref('young'), extraBytes: 12 * MIB });

  const [full, there] = [await disk(), await images()];
  assert.ok(usedPercent(full) > HIGH, `${usedPercent(full)}% used`);
  const idOf = (name: string): string => there.find((i) => i.tags.includes(name))?.id ?? '';
  const size = new Map(there.map((i) => [i.id, i.size]));
  const order = ['localhost/busybox:latest', ref('never-1'), ref('never-2'), ref('used-first'), ref('used-last')];
  // Reached in the middle of the fourth image, by the sizes the runtime tells.
  const sizeOf = (name: string): number => size.get(idOf(name)) ?? 0;
  const target = order.slice(0, 3).reduce((sum, name) => sum + sizeOf(name), sizeOf(ref('used-first')) / 2);
  const low = Math.floor(100 - ((full.availableBytes + target) * 100) / full.capacityBytes);
  const wanted = bytesToFree(full, HIGH, low);
  await thresholds(HIGH, low);

  await until('enough is removed', async () => {
    const bytes = (await removals()).reduce((sum, id) => sum + (size.get(id) ?? 0), 0);
    return bytes >= wanted;
  });
  await untilSeen(
    'usage is at most the low threshold',
    async () => usedPercent(await disk()),
    (seen) => seen <= low,
  );
  const removed = await removals();
  const names = removed.map((id) => order.find((name) => idOf(name) === id) ?? id);
  assert.deepEqual(new Set(names.slice(0, 3)), new Set(order.slice(0, 3)), 'never used go first, in any order');
  assert.deepEqual(names.slice(3), [ref('used-first')], 'then the longest unused, and no more than needed');
  const kept = (await images()).flatMap((i) => i.tags);
  for (const kind of ['used-last', 'in-use', 'static', 'pinned', 'young'] as const)
    assert.ok(kept.includes(ref(kind)), `${kind} is kept`);
  assert.ok(kept.includes('localhost/pause:latest'), 'the sandbox image is kept');
  assert.deepEqual(await nodeEvents('FreeDiskSpaceFailed'), []);
});

test('what cannot be freed is said, and nothing in use is taken for it', async () => {
  const before = await disk();
  await thresholds(usedPercent(before), 5);
  const [text] = await until('the failure is told', async () => {
    const reported = await nodeEvents('FreeDiskSpaceFailed');
    return reported.length > 0 && reported;
  });
  assert.match(
    text ?? '',
    /^Insufficient free disk space on the node's image filesystem \(\d+% of 2\d\d\.\d MiB used\)\. Failed to free sufficient space by deleting unused images \(freed \d+ bytes\)\. Investigate disk usage, as it could be used by active images, logs, volumes, or other data\.$/,
  );
  assert.deepEqual(await nodeEvents('ImageGCFailed'), [], 'a first failure is not told twice');
  await thresholds(usedPercent(await disk()), 4);
  const [again] = await until('the second failure is told', async () => {
    const reported = await nodeEvents('ImageGCFailed');
    return reported.length > 0 && reported;
  });
  assert.match(again ?? '', /^Insufficient free disk space/);
  const kept = (await images()).flatMap((i) => i.tags);
  assert.ok(!kept.includes(ref('used-last')));
  for (const kind of ['in-use', 'static', 'pinned'] as const) assert.ok(kept.includes(ref(kind)), `${kind} is kept`);
  assert.equal(await phaseOf('in-use'), 'Running');
});
