import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, Volume } from '../../core/pod.ts';
import type { PersistentSource } from '../plugin.ts';
import { mountOptionsFor, optionsText, sourceOf } from './driver-options.ts';

const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers: [{ name: 'c' }], serviceAccountName: 'sa', securityContext: { fsGroup: 0 } },
};
const of = (flexVolume: Record<string, unknown>): Volume => ({ name: 'v', flexVolume });
const persistent = (flexVolume: unknown): PersistentSource => ({
  volume: { metadata: { name: 'pv' }, spec: { flexVolume } },
  mountOptions: [],
  migrated: false,
});

describe('the source of a FlexVolume', () => {
  const plain = { driver: 'd', fsType: '', readOnly: false, options: {} };
  const rows: readonly [string, Volume, PersistentSource | undefined, boolean, unknown][] = [
    ['a driver', of({ driver: 'd' }), undefined, false, plain],
    [
      'all of it',
      of({ driver: 'd', fsType: 'xfs', readOnly: true, options: { a: 'b', n: 1 }, secretRef: { name: 's' } }),
      undefined,
      false,
      { driver: 'd', fsType: 'xfs', readOnly: true, options: { a: 'b' }, secret: { namespace: 'ns', name: 's' } },
    ],
    [
      'a persistent volume is read-only where the claim is, and names its secret’s namespace',
      { name: 'v' },
      persistent({ driver: 'd', readOnly: true, secretRef: { name: 's', namespace: 'other' } }),
      false,
      { ...plain, secret: { namespace: 'other', name: 's' } },
    ],
    [
      'or has it from the pod',
      { name: 'v' },
      persistent({ driver: 'd', secretRef: { name: 's' } }),
      true,
      { ...plain, readOnly: true, secret: { namespace: 'ns', name: 's' } },
    ],
  ];
  for (const [what, volume, given, readOnly, expected] of rows)
    it(what, () => {
      const request = { pod, volume, readOnly, ...(given === undefined ? {} : { persistent: given }) };
      assert.deepEqual(sourceOf(request), expected);
    });

  it('names a driver', () => {
    assert.throws(() => sourceOf({ pod, volume: of({ driver: 7 }), readOnly: false }), /names a driver/);
  });
});

describe('what a driver is told', () => {
  const source = { driver: 'd', fsType: 'ext4', readOnly: false, options: {} };

  it('the same with every call, keys sorted', () => {
    assert.equal(
      optionsText({ ...source, readOnly: true, options: { b: '2', a: '1' } }, 'data'),
      '{"a":"1","b":"2","kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"ro"}',
    );
  });

  it('pod, group and secret with a mount; the volume’s own options win', () => {
    const told = JSON.parse(
      optionsText(
        { ...source, options: { 'kubernetes.io/fsType': 'mine' } },
        'data',
        mountOptionsFor(pod, { key: 'c2VjcmV0' }),
      ),
    ) as unknown;
    assert.deepEqual(told, {
      'kubernetes.io/fsType': 'mine',
      'kubernetes.io/mounterArgs.FsGroup': '0',
      'kubernetes.io/pod.name': 'p',
      'kubernetes.io/pod.namespace': 'ns',
      'kubernetes.io/pod.uid': 'u',
      'kubernetes.io/pvOrVolumeName': 'data',
      'kubernetes.io/readwrite': 'rw',
      'kubernetes.io/secret/key': 'c2VjcmV0',
      'kubernetes.io/serviceAccount.name': 'sa',
    });
  });
});
