import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodSpec, Volume } from '../../core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim, VolumeMode } from '../../core/storage.ts';
import { boundProblem, claimOf, claimProblem, modeProblem, mountOptionsOf } from './claim-checks.ts';
import { gidOf, mountProblem, type MountCheck } from './mount-checks.ts';

const podOf = (spec: Partial<PodSpec> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'ns', uid: 'pod-uid' },
  spec: { containers: [{ name: 'c' }], ...spec },
});
const volume = (spec: PersistentVolume['spec'], annotations: Record<string, string> = {}): PersistentVolume => ({
  metadata: { name: 'pv', annotations },
  spec,
});

describe('the claim of a volume', () => {
  const rows: readonly [string, Volume, unknown][] = [
    ['a volume that stands for itself', { name: 'v', emptyDir: {} }, undefined],
    [
      'a claim by name',
      { name: 'v', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'data', readOnly: false, isEphemeral: false },
    ],
    [
      'a claim to be read only',
      { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } },
      { name: 'data', readOnly: true, isEphemeral: false },
    ],
    ['a claim of the pod’s own', { name: 'v', ephemeral: {} }, { name: 'p-v', readOnly: false, isEphemeral: true }],
  ];
  for (const [what, of, expected] of rows) it(what, () => assert.deepEqual(claimOf(podOf(), of), expected));

  const named = (name: string, readOnly: boolean): Volume => ({
    name,
    persistentVolumeClaim: { claimName: 'data', readOnly },
  });
  const [writes, reads] = [named('writes', false), named('reads', true)];
  const twice: readonly [string, Volume[], string[], boolean][] = [
    ['the last one reads', [writes, reads], ['writes', 'reads'], true],
    ['the last one writes', [reads, writes], ['writes', 'reads'], false],
    ['the last one is not mounted', [writes, reads], ['writes'], false],
  ];
  for (const [what, volumes, mounted, readOnly] of twice)
    it(`a claim that two volumes name: ${what}`, () => {
      const volumeMounts = mounted.map((name) => ({ name, mountPath: `/${name}` }));
      const pod = podOf({ volumes, containers: [{ name: 'c', volumeMounts }] });
      for (const name of mounted) {
        const of = volumes.find((v) => v.name === name) ?? writes;
        assert.equal(claimOf(pod, of)?.readOnly, readOnly, name);
      }
    });
});

describe('what speaks against a claim', () => {
  const bound = { spec: { volumeName: 'pv' }, status: { phase: 'Bound' } };
  const owner = (uid: string, controller?: boolean): object => ({
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid, ...(controller === undefined ? {} : { controller }) },
    ],
  });
  const rows: readonly [string, boolean, object, object, RegExp | undefined][] = [
    ['bound', false, {}, bound, undefined],
    [
      'being deleted, protected',
      false,
      { deletionTimestamp: 'now', finalizers: ['kubernetes.io/pvc-protection'] },
      bound,
      undefined,
    ],
    ['being deleted', false, { deletionTimestamp: 'now' }, bound, /PVC is being deleted$/],
    ['being deleted, held by others', false, { deletionTimestamp: 'now', finalizers: ['x'] }, bound, /being deleted$/],
    ['without a status', false, {}, { spec: bound.spec }, /PVC is not bound$/],
    ['bound to nothing', false, {}, { status: bound.status }, /PVC has empty pvc.Spec.VolumeName$/],
    ['of the pod’s own, owned by it', true, owner('pod-uid', true), bound, undefined],
    ['of the pod’s own, owned by another', true, owner('other', true), bound, /pod is not owner/],
    ['of the pod’s own, not controlled by it', true, owner('pod-uid'), bound, /pod is not owner/],
    ['of the pod’s own, owned by nobody', true, {}, bound, /pod is not owner/],
  ];
  for (const [what, isEphemeral, metadata, rest, expected] of rows)
    it(what, () => {
      const claim = { metadata: { name: 'data', ...metadata }, ...rest } as PersistentVolumeClaim;
      const problem = claimProblem(podOf(), { name: 'data', readOnly: false, isEphemeral }, claim);
      if (expected === undefined) assert.equal(problem, undefined);
      else assert.match(problem ?? '', expected);
    });
});

describe('whether a volume is the claim’s own', () => {
  const rows: readonly [string, PersistentVolume['spec'], string | undefined, RegExp | undefined][] = [
    ['it is', { claimRef: { uid: 'u' } }, 'u', undefined],
    ['it is bound to nothing', {}, 'u', /nil pv.Spec.ClaimRef/],
    [
      'it is bound to an older claim of the name',
      { claimRef: { uid: 'old' } },
      'u',
      /UID old does not point to claim.UID u$/,
    ],
    ['it is bound to a claim without a UID', { claimRef: {} }, 'u', /UID {2}does not point to claim.UID u$/],
    ['neither has a UID', { claimRef: {} }, undefined, /does not point/],
  ];
  for (const [what, spec, uid, expected] of rows)
    it(what, () => {
      const claim = { metadata: { name: 'data', ...(uid === undefined ? {} : { uid }) } };
      const problem = boundProblem('ns/data', claim, volume(spec));
      if (expected === undefined) assert.equal(problem, undefined);
      else assert.match(problem ?? '', expected);
    });
});

describe('filesystem or device', () => {
  const mounts = podOf({ containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }] });
  const devices = podOf({ containers: [{ name: 'c', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] }] });
  const rows: readonly [string, Pod, VolumeMode | undefined, string | undefined][] = [
    ['mounted', mounts, 'Filesystem', undefined],
    ['a device', devices, 'Block', undefined],
    ['neither', podOf(), 'Block', undefined],
    ['not known', mounts, undefined, 'cannot get volumeMode for volume: pv'],
    ['a device mounted', mounts, 'Block', 'volume v has volumeMode Block, but is specified in volumeMounts'],
    [
      'a filesystem as a device',
      devices,
      'Filesystem',
      'volume v has volumeMode Filesystem, but is specified in volumeDevices',
    ],
  ];
  for (const [what, pod, mode, expected] of rows)
    it(what, () => assert.equal(modeProblem(pod, { name: 'v' }, mode, 'pv'), expected));
});

it('mount options: the annotation wins', () => {
  const annotation = { 'volume.beta.kubernetes.io/mount-options': 'ro,soft' };
  assert.deepEqual(mountOptionsOf(volume({})), []);
  assert.deepEqual(mountOptionsOf(volume({ mountOptions: ['hard'] })), ['hard']);
  assert.deepEqual(mountOptionsOf(volume({ mountOptions: ['hard'] }, annotation)), ['ro', 'soft']);
});

describe('right before a mount', () => {
  const elsewhere = {
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] },
    },
  };
  const node = { metadata: { name: 'n1', labels: { zone: 'b' } } };
  const alone = { accessModes: ['ReadWriteOncePod'] };
  const rows: readonly [string, PersistentVolume['spec'], Partial<MountCheck>, string | undefined][] = [
    ['nothing is wrong', {}, {}, undefined],
    ['of another zone', elsewhere, { node }, 'MountVolume.NodeAffinity check failed'],
    [
      'a device of another zone',
      { ...elsewhere, volumeMode: 'Block' },
      { node },
      'MapVolume.NodeAffinity check failed',
    ],
    ['of its own zone', elsewhere, { node: { metadata: { name: 'n1', labels: { zone: 'a' } } } }, undefined],
    ['of another zone, on a node not yet known', elsewhere, {}, undefined],
    [
      'a device of a kind that is none',
      { volumeMode: 'Block' },
      { plugin: {} },
      'MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin. Volume plugin is nil.',
    ],
    ['options it takes', {}, { mountOptions: ['ro'], plugin: { takesMountOptions: true } }, undefined],
    ['options it does not take', {}, { mountOptions: ['ro'] }, 'MountVolume.MountOptionSupport check failed'],
    ['options of a device are nobody’s', { volumeMode: 'Block' }, { mountOptions: ['ro'] }, undefined],
    ['for one pod, and it is the one', alone, {}, undefined],
    ['for one pod, and another has it', alone, { usedByOthers: true }, 'MountVolume.SetUp failed'],
    [
      'a device for one pod, and another has it',
      { ...alone, volumeMode: 'Block' },
      { usedByOthers: true },
      'MapVolume.SetUpDevice failed',
    ],
    [
      'for one pod or one node, and another pod has it',
      { accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] },
      { usedByOthers: true },
      undefined,
    ],
    ['for one node, and another pod has it', { accessModes: ['ReadWriteOnce'] }, { usedByOthers: true }, undefined],
    ['for all, and another pod has it', {}, { usedByOthers: true }, undefined],
  ];
  for (const [what, spec, otherwise, expected] of rows)
    it(what, () => {
      const check = {
        volume: volume(spec),
        mountOptions: [],
        plugin: { makesDevices: true },
        node: undefined,
        usedByOthers: false,
      };
      assert.equal(mountProblem({ ...check, ...otherwise })?.stage, expected);
    });
});

it('the group of a volume is a number or none', () => {
  const rows: readonly [string | undefined, number | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['-1', undefined],
    ['x', undefined],
    ['1e3', undefined],
    ['1234', 1234],
  ];
  for (const [text, expected] of rows)
    assert.equal(gidOf(volume({}, text === undefined ? {} : { 'pv.beta.kubernetes.io/gid': text })), expected);
});
