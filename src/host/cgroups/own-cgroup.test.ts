import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ownCgroup } from './own-cgroup.ts';

const SERVICE = '/system.slice/kubelet.service';

describe('the cgroup of this process', () => {
  for (const [name, version, text, expected] of [
    ['v2', 2, `0::${SERVICE}\n`, SERVICE],
    ['v2, at the root', 2, '0::/\n', undefined],
    [
      'v1, everything counted',
      1,
      `4:memory:${SERVICE}\n2:cpu,cpuacct:${SERVICE}\n1:name=systemd:${SERVICE}\n`,
      SERVICE,
    ],
    ['v1, nothing counted', 1, `4:memory:/\n2:cpu,cpuacct:/\n1:name=systemd:${SERVICE}\n`, SERVICE],
    ['v1, without systemd', 1, '4:memory:/mine\n2:cpu,cpuacct:/mine\n', '/mine'],
    ['v1, counted in different places', 1, `4:memory:/other\n2:cpu,cpuacct:/\n1:name=systemd:${SERVICE}\n`, undefined],
    ['unknown', 2, '', undefined],
  ] as const)
    it(name, () => assert.equal(ownCgroup(text, version), expected));
});
