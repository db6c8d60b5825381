import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import type { CsiDriver } from '../../core/storage.ts';
import type { CsiNode } from '../../kube/resources.ts';
import { KubeletError } from '../../lib/errors.ts';
import { GrpcCode, GrpcError, type GrpcCodeName } from '../../lib/grpc/status.ts';
import type { NodeCapability } from './csi-client.ts';
import { isFinal } from './csi-errors.ts';
import { attachedContext, secretValues, tokensText } from './csi-objects.ts';
import {
  csiNodeWithDriver,
  csiNodeWithoutDriver,
  isOwnedBy,
  nodeWithDriver,
  nodeWithoutDriver,
} from './node-objects.ts';
import {
  capabilityOf,
  csiVolumeOf,
  lifecycleProblem,
  ownsFiles,
  publishContextOf,
  type CsiVolume,
} from './requests.ts';
import { highestVersion } from './versions.ts';

const volume = (change: Partial<CsiVolume> = {}): CsiVolume => ({
  driver: 'd',
  handle: 'h',
  specName: 'pv',
  isInline: false,
  isBlock: false,
  readOnly: false,
  fsType: '',
  attributes: {},
  accessModes: ['ReadWriteOnce'],
  mountOptions: [],
  migrated: false,
  ...change,
});
const pod = (fsGroup?: number): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers: [], ...(fsGroup === undefined ? {} : { securityContext: { fsGroup } }) },
});
const object = (spec: CsiDriver['spec']): CsiDriver => ({ metadata: { name: 'd' }, spec });
const can = (...names: NodeCapability[]): Set<NodeCapability> => new Set(names);

test('access modes, by what the driver knows', () => {
  const mode = (name: string, ...has: NodeCapability[]): number | undefined =>
    capabilityOf(volume({ accessModes: [name] }), can(...has)).accessMode?.mode;
  const knows = 'SINGLE_NODE_MULTI_WRITER';
  assert.deepEqual([mode('ReadWriteOnce'), mode('ReadWriteOnce', knows)], [1, 7]);
  assert.deepEqual([mode('ReadWriteOncePod'), mode('ReadWriteOncePod', knows)], [1, 6]);
  assert.deepEqual([mode('ReadOnlyMany'), mode('ReadWriteMany')], [3, 5]);
});

test('mount options are those of the spec', () => {
  const spec = { csi: { driver: 'd', volumeHandle: 'h' }, mountOptions: ['noatime'] };
  const request = {
    pod: pod(),
    volume: { name: 'v' },
    specName: 'pv',
    volumeMode: 'Filesystem',
    readOnly: false,
    persistent: { volume: { metadata: { name: 'pv' }, spec }, mountOptions: ['annotated'], migrated: false },
    inUse: false,
    attachedPath: '',
    progress: () => undefined,
  } as const;
  assert.deepEqual(csiVolumeOf(request).mountOptions, ['noatime']);
});

test('what the attacher left: attached counts, whatever error stands beside it', async () => {
  const context = (status: object): Promise<unknown> => {
    const attachment = async () => ({ metadata: { name: 'va' }, status });
    return attachedContext({ attachment }, 'h', 'va', new AbortController().signal);
  };
  const attachError = { message: 'no answer' };
  assert.deepEqual(await context({ attached: true, attachmentMetadata: { a: 'b' }, attachError }), { a: 'b' });
  await assert.rejects(context({ attached: false, attachError }), { message: 'no answer' });
  await assert.rejects(context({ attached: false }), { message: 'volume h is not attached for volume attachment va' });
});

test('the group travels only to drivers that mount with it', () => {
  const group = (gid: number | undefined, ...has: NodeCapability[]): string | undefined =>
    capabilityOf(volume(), can(...has), gid).mount?.volumeMountGroup;
  assert.deepEqual([group(7), group(7, 'VOLUME_MOUNT_GROUP'), group(undefined, 'VOLUME_MOUNT_GROUP')], ['', '7', '']);
  assert.deepEqual(capabilityOf(volume({ isBlock: true }), can(), 7).block, {});
});

const owning: [string, CsiVolume, Pod, CsiDriver | undefined, NodeCapability[], boolean][] = [
  ['no group', volume(), pod(), object({ fsGroupPolicy: 'File' }), [], false],
  ['File', volume(), pod(5), object({ fsGroupPolicy: 'File' }), [], true],
  ['None', volume({ fsType: 'ext4' }), pod(5), object({ fsGroupPolicy: 'None' }), [], false],
  ['read-only', volume({ readOnly: true }), pod(5), object({ fsGroupPolicy: 'File' }), [], false],
  ['the driver does it', volume(), pod(5), object({ fsGroupPolicy: 'File' }), ['VOLUME_MOUNT_GROUP'], false],
  ['no object, no type', volume(), pod(5), undefined, [], false],
  ['no object, a type', volume({ fsType: 'xfs' }), pod(5), undefined, [], true],
  ['a type, many nodes', volume({ fsType: 'xfs', accessModes: ['ReadWriteMany'] }), pod(5), undefined, [], false],
  ['a type, inline', volume({ fsType: 'xfs', isInline: true }), pod(5), undefined, [], true],
];
for (const [name, ...[of, by, driver, has, expected]] of owning)
  test(`who gives files to the group: ${name}`, () => assert.equal(ownsFiles(of, by, driver, can(...has)), expected));

test('a driver object without a policy is no answer', () => {
  const answer = ownsFiles(volume(), pod(5), object({}), can());
  assert.match(typeof answer === 'object' ? answer.problem : '', /expected valid fsGroupPolicy, received nil value/);
});

test('how a driver may be used', () => {
  const problem = (inline: boolean, driver?: CsiDriver): string =>
    lifecycleProblem(volume({ isInline: inline }), driver)?.replace(/^.*lifecycle mode: /, '') ?? '';
  assert.equal(problem(false), '');
  assert.equal(problem(true), 'volume mode "Ephemeral" not supported by driver d (no CSIDriver object)');
  assert.equal(
    problem(true, object({})),
    'volume mode "Ephemeral" not supported by driver d (only supports ["Persistent"])',
  );
  assert.equal(problem(true, object({ volumeLifecycleModes: ['Ephemeral'] })), '');
  assert.match(problem(false, object({ volumeLifecycleModes: ['Ephemeral'] })), /only supports \["Ephemeral"\]/);
});

test('pod information wins over attributes, and is given on request only', () => {
  const own = volume({ attributes: { a: '1', 'csi.storage.k8s.io/pod.name': 'forged' } });
  assert.deepEqual(publishContextOf(own, pod(), object({})), own.attributes);
  assert.equal(publishContextOf(own, pod(), object({ podInfoOnMount: true }))['csi.storage.k8s.io/pod.name'], 'p');
});

const finals: Record<GrpcCodeName, boolean> = {
  OK: true,
  Canceled: false,
  Unknown: true,
  InvalidArgument: true,
  DeadlineExceeded: false,
  NotFound: true,
  AlreadyExists: true,
  PermissionDenied: true,
  ResourceExhausted: false,
  FailedPrecondition: true,
  Aborted: false,
  OutOfRange: true,
  Unimplemented: true,
  Internal: true,
  Unavailable: false,
  DataLoss: true,
  Unauthenticated: true,
};
test('which answers are final', () => {
  for (const [name, expected] of Object.entries(finals))
    assert.equal(isFinal(new GrpcError(GrpcCode[name as GrpcCodeName], '')), expected, name);
  assert.equal(isFinal(new KubeletError('deadline', 'no answer')), false);
});

test('versions of CSI', () => {
  const best = (...versions: string[]): string => {
    const answer = highestVersion(versions);
    return 'version' in answer ? answer.version : answer.problem;
  };
  assert.equal(best('1.0.0'), '1.0.0');
  assert.equal(best('0.3.0', '1.2.0', '1.10.1', '2.0.0'), '1.10.1');
  assert.equal(best(), 'Plugin returned an empty list for supported versions');
  assert.match(best('0.3.0'), /^None of the versions specified \["0.3.0"\] are supported\. err=/);
  assert.match(best('x', '2.0.0'), /^None of the versions specified \["x" "2.0.0"\] are supported\. err=/);
});

const node = (annotation?: string, labels: Record<string, string> = {}): Node => ({
  metadata: {
    name: 'n',
    uid: 'node-uid',
    labels,
    ...(annotation === undefined ? {} : { annotations: { 'csi.volume.kubernetes.io/nodeid': annotation } }),
  },
});
const on = (topology: Record<string, string> = {}, maxVolumesPerNode = 0) => ({
  nodeId: 'id',
  maxVolumesPerNode,
  topology,
});

test('what the node says about drivers', () => {
  const annotated = (text: string | null) => ({
    metadata: { annotations: { 'csi.volume.kubernetes.io/nodeid': text } },
  });
  assert.deepEqual(nodeWithDriver(node(), 'b', on()), annotated('{"b":"id"}'));
  assert.deepEqual(nodeWithDriver(node('{"c":"x"}'), 'b', on()), annotated('{"b":"id","c":"x"}'));
  assert.deepEqual(nodeWithDriver(node('damaged'), 'b', on()), annotated('{"b":"id"}'));
  assert.equal(nodeWithDriver(node('{"b":"id"}'), 'b', on()), undefined);
  assert.deepEqual(nodeWithDriver(node('{"b":"id"}'), 'b', on({ zone: 'a' })), { metadata: { labels: { zone: 'a' } } });
  assert.throws(
    () => nodeWithDriver(node(undefined, { zone: 'z' }), 'b', on({ zone: 'a' })),
    /detected topology value collision: driver reported "zone":"a" but existing label is "zone":"z"/,
  );
  assert.deepEqual(nodeWithoutDriver(node('{"b":"id","c":"x"}'), 'b'), annotated('{"c":"x"}'));
  assert.deepEqual(nodeWithoutDriver(node('{"b":"id"}'), 'b'), annotated(null));
  assert.equal(nodeWithoutDriver(node(), 'b'), undefined);
});

test('what CSINode says about drivers', () => {
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'node-uid' };
  const csiNode = (drivers: CsiNode['spec']['drivers']): CsiNode => ({
    metadata: { name: 'n', ownerReferences: [owner] },
    spec: { drivers },
  });
  const other = { name: 'other', nodeID: 'o', topologyKeys: null };
  const added = csiNodeWithDriver(csiNode([{ name: 'd', nodeID: 'old' }, other]), 'd', on({ b: '', a: '' }, 2 ** 40));
  const entry = { name: 'd', nodeID: 'id', topologyKeys: ['a', 'b'], allocatable: { count: 2 ** 31 - 1 } };
  assert.deepEqual(added?.spec.drivers, [other, entry]);
  assert.equal(csiNodeWithDriver(csiNode([entry]), 'd', on({ b: '', a: '' }, 2 ** 40)), undefined);
  assert.deepEqual(csiNodeWithoutDriver(csiNode([entry, other]), 'd')?.spec.drivers, [other]);
  assert.equal(csiNodeWithoutDriver(csiNode(null), 'd'), undefined);
  assert.equal(isOwnedBy(csiNode(null), node()), true);
  assert.equal(isOwnedBy({ ...csiNode(null), metadata: { name: 'n' } }, node()), false);
});

test('secrets and tokens as a driver gets them', async () => {
  const { signal } = new AbortController();
  const gone = { secret: () => Promise.reject(new KubeletError('notFound', 'secret "s" not found')) };
  await assert.rejects(
    secretValues(gone, 'NodeStageSecretRef', { name: 's', namespace: 'ns' }, signal),
    /^KubeletError: fetching NodeStageSecretRef ns\/s failed: kubernetes.io\/csi: failed to find the secret s in the namespace ns with error: secrets "s" not found$/,
  );
  assert.deepEqual(await secretValues(gone, 'NodeStageSecretRef', undefined, signal), {});
  const token = (_pod: Pod, { audience }: { audience: string }) =>
    Promise.resolve({ token: `t-${audience}`, expirationTimestamp: '2026-01-01T00:00:00Z' });
  const requests = object({ tokenRequests: [{ audience: 'b' }, { audience: '' }] });
  assert.equal(
    await tokensText({ token }, pod(), requests, signal),
    '{"":{"token":"t-","expirationTimestamp":"2026-01-01T00:00:00Z"},"b":{"token":"t-b","expirationTimestamp":"2026-01-01T00:00:00Z"}}',
  );
  assert.equal(await tokensText({ token }, pod(), object({}), signal), undefined);
});
