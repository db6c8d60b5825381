import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podIpFamily } from './pod-ips.ts';

test('a pod’s first address is of the family of --node-ip', () => {
  const rows: readonly [string, number][] = [
    ['', 4],
    ['192.0.2.1', 4],
    ['fd00::1', 6],
    ['::', 6],
    ['fd00::1,192.0.2.1', 6],
    ['192.0.2.1, fd00::1', 4],
    ['nonsense,fd00::1', 6],
  ];
  for (const [nodeIp, family] of rows) assert.equal(podIpFamily(nodeIp), family, nodeIp);
});
