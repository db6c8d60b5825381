import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { planVolume, usedVolumes, type Actual, type VolumeFacts, type VolumeStep } from './plan.ts';

const unmounted: Actual = { is: 'unmounted' };
const found: Actual = { is: 'uncertain', reconstructed: true };
const failed: Actual = { is: 'uncertain', reconstructed: false };
const mounted: Actual = { is: 'mounted', mounted: { hostPath: '/x', readOnly: false, selinuxRelabel: false } };

test('what to do about a volume', () => {
  const ready = { now: 1_000, placesKnown: true };
  const early = { ...ready, placesKnown: false };
  const facts = (wanted: boolean, actual: Actual, stale = false, notBefore = 0): VolumeFacts => ({
    wanted,
    actual,
    stale,
    notBefore,
  });
  const rows: [string, VolumeFacts, typeof ready, VolumeStep][] = [
    ['wanted, not there', facts(true, unmounted), early, { do: 'mount' }],
    ['wanted, found on disk', facts(true, found), early, { do: 'mount' }],
    ['wanted, half mounted', facts(true, failed), early, { do: 'mount' }],
    ['wanted, there', facts(true, mounted), early, { do: 'nothing' }],
    ['wanted, there, stale', facts(true, mounted, true), early, { do: 'refresh' }],
    ['unwanted, there', facts(false, mounted), early, { do: 'unmount' }],
    ['unwanted, half mounted', facts(false, failed), early, { do: 'unmount' }],
    ['unwanted, found, the pod or a claim unknown', facts(false, found), early, { do: 'nothing' }],
    ['unwanted, found, all known', facts(false, found), ready, { do: 'unmount' }],
    ['unwanted, gone', facts(false, unmounted), early, { do: 'forget' }],
    ['mount backing off', facts(true, unmounted, false, 1_500), ready, { do: 'wait', ms: 500 }],
    ['refresh backing off', facts(true, mounted, true, 1_001), ready, { do: 'wait', ms: 1 }],
    ['unmount backing off', facts(false, mounted, false, 3_000), ready, { do: 'wait', ms: 2_000 }],
    ['nothing to do does not wait', facts(true, mounted, false, 3_000), ready, { do: 'nothing' }],
    ['back-off over', facts(true, unmounted, false, 1_000), ready, { do: 'mount' }],
  ];
  for (const [name, volume, context, want] of rows) assert.deepEqual(planVolume(volume, context), want, name);
});

test('volumes count as used by mounts, devices and files of variables, in any container', () => {
  const volume = (name: string) => ({ name, emptyDir: {} });
  const pod: Pod = {
    metadata: { name: 'p' },
    spec: {
      volumes: ['main', 'init', 'debug', 'block', 'env', 'idle'].map(volume),
      initContainers: [{ name: 'i', volumeMounts: [{ name: 'init', mountPath: '/i' }] }],
      containers: [
        {
          name: 'c',
          volumeMounts: [{ name: 'main', mountPath: '/m' }],
          volumeDevices: [{ name: 'block', devicePath: '/dev/x' }],
          env: [{ name: 'E', valueFrom: { fileKeyRef: { volumeName: 'env', path: 'p', key: 'k' } } }],
        },
      ],
      ephemeralContainers: [{ name: 'd', volumeMounts: [{ name: 'debug', mountPath: '/d' }] }],
    },
  };
  assert.deepEqual(
    usedVolumes(pod).map((v) => v.name),
    ['main', 'init', 'debug', 'block', 'env'],
  );
});
