import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { placesOf } from './create.ts';

describe('where cgroups are', () => {
  for (const [cgroupRoot, driver, pods, burstable] of [
    ['', 'cgroupfs', '/kubepods', '/kubepods/burstable'],
    ['/', 'cgroupfs', '/kubepods', '/kubepods/burstable'],
    ['/mine', 'cgroupfs', '/mine/kubepods', '/mine/kubepods/burstable'],
    ['/', 'systemd', '/kubepods.slice', '/kubepods.slice/kubepods-burstable.slice'],
    [
      '/mine',
      'systemd',
      '/mine.slice/mine-kubepods.slice',
      '/mine.slice/mine-kubepods.slice/mine-kubepods-burstable.slice',
    ],
    [
      '/my-own',
      'systemd',
      '/my_own.slice/my_own-kubepods.slice',
      '/my_own.slice/my_own-kubepods.slice/my_own-kubepods-burstable.slice',
    ],
  ] as const)
    it(`${driver} below "${cgroupRoot}"`, () => {
      const places = placesOf(environmentOf({ config: { cgroupRoot } }), driver, undefined);
      assert.equal(places.pods, pods);
      assert.deepEqual(places.tiers, [pods, burstable, burstable.replace('burstable', 'besteffort')]);
      assert.deepEqual(places.system, []);
    });

  it('names the parts of the system that have a cgroup of their own', () => {
    const config = { kubeletCgroups: '/kubelet', systemCgroups: '/system' };
    const named = environmentOf({ config, flags: { runtimeCgroups: '/runtime' } });
    const { system } = placesOf(named, 'cgroupfs', '/own');
    assert.deepEqual(system, [
      { name: 'kubelet', path: '/kubelet' },
      { name: 'runtime', path: '/runtime' },
      { name: 'misc', path: '/system' },
    ]);
  });

  it('finds the kubelet where it was started', () => {
    const { system } = placesOf(environmentOf({}), 'systemd', '/system.slice/kubelet.service');
    assert.deepEqual(system, [{ name: 'kubelet', path: '/system.slice/kubelet.service' }]);
  });
});
