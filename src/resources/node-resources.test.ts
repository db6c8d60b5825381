import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeResources } from './node-resources.ts';

const MACHINE = {
  cpus: 4,
  memoryBytes: 2 ** 30,
  hugePages: [],
  swapBytes: 0,
  swapOn: false,
  maxPids: 0,
  kernelRelease: '6.1',
};

async function resources(ignoreEviction: boolean): Promise<NodeResources> {
  const made = new NodeResources(
    { machine: () => Promise.resolve(MACHINE) },
    {
      rootDir: '/',
      maxPods: 10,
      podsPerCore: 0,
      kubeReserved: { cpu: '500m', memory: '64Mi' },
      systemReserved: { cpu: '0' },
      reservedCpus: [],
      evictionHard: { 'memory.available': '100Mi' },
      ignoreEviction,
      reportEphemeralStorage: false,
    },
  );
  await made.refresh();
  return made;
}

test('what is kept from pods counts eviction thresholds, and nothing that is zero', async () => {
  const kept = (await resources(false)).reserved();
  assert.deepEqual([...kept.keys()], ['cpu', 'memory']);
  assert.equal((await resources(false)).allocatableList()['memory'], '860Mi');
});

test('memory of all pods together has what eviction keeps free, and not what is reserved', async () => {
  assert.equal((await resources(false)).podMemoryBytes(), 960 * 2 ** 20);
});

test('eviction thresholds can be left out of the reckoning', async () => {
  assert.equal((await resources(true)).allocatableList()['memory'], '960Mi');
});
