import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { readMachineTopology } from './read.ts';
import { machineTopology, type FoundCpu, type FoundMachine, type MachineTopology } from './machine-topology.ts';

async function topologyOf(files: Readonly<Record<string, string>>): Promise<MachineTopology> {
  const root = await mkdtemp(join(tmpdir(), 'topology-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    return await readMachineTopology(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

const CPU = 'sys/devices/system/cpu';
const NODE = 'sys/devices/system/node';

const cpu = (id: number, core: number, socket: number, l3?: { id: number; map: string }): Record<string, string> => ({
  [`${CPU}/cpu${id}/topology/core_id`]: `${core}\n`,
  [`${CPU}/cpu${id}/topology/physical_package_id`]: `${socket}\n`,
  ...(l3 !== undefined && {
    [`${CPU}/cpu${id}/cache/index0/level`]: '1\n',
    [`${CPU}/cpu${id}/cache/index0/id`]: `${core}\n`,
    [`${CPU}/cpu${id}/cache/index0/shared_cpu_map`]: '1\n',
    [`${CPU}/cpu${id}/cache/index3/level`]: '3\n',
    [`${CPU}/cpu${id}/cache/index3/id`]: `${l3.id}\n`,
    [`${CPU}/cpu${id}/cache/index3/shared_cpu_map`]: `${l3.map}\n`,
  }),
});

test('two sockets with two threads a core, one CPU offline, a memory-only node', async () => {
  const topology = await topologyOf({
    [`${CPU}/online`]: '0-6\n',
    ...cpu(0, 0, 0, { id: 0, map: '00000000,00000033' }),
    ...cpu(1, 1, 0, { id: 0, map: '33' }),
    ...cpu(2, 0, 1, { id: 1, map: '4c' }),
    ...cpu(3, 1, 1, { id: 1, map: '4c' }),
    ...cpu(4, 0, 0),
    ...cpu(5, 1, 0),
    ...cpu(6, 0, 1),
    ...cpu(7, 1, 1),
    ...Object.fromEntries([0, 1, 4, 5].map((id) => [`${NODE}/node0/cpu${id}/online`, '1'])),
    ...Object.fromEntries([2, 3, 6, 7].map((id) => [`${NODE}/node1/cpu${id}/online`, '1'])),
    [`${NODE}/node0/meminfo`]: 'Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n',
    [`${NODE}/node1/meminfo`]: 'Node 1 MemTotal:       2048 kB\n',
    [`${NODE}/node2/meminfo`]: 'Node 2 MemTotal:       4096 kB\n',
    [`${NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages`]: '3\n',
    [`${NODE}/node0/hugepages/hugepages-1048576kB/nr_hugepages`]: '0\n',
    [`${NODE}/node0/distance`]: '10 21 30\n',
    'proc/cpuinfo': 'physical id\t: 0\nphysical id\t: 1\n',
  });
  assert.deepEqual(topology, {
    sockets: 2,
    nodes: [
      {
        id: 0,
        memoryBytes: 1024 * 1024,
        hugePages: [
          { sizeKb: 2048, pages: 3 },
          { sizeKb: 1048576, pages: 0 },
        ],
        distances: [10, 21, 30],
        // The cache is shared by the whole node: no uncore cache.
        cores: [
          { socket: 0, threads: [0, 4], uncoreCache: undefined },
          { socket: 0, threads: [1, 5], uncoreCache: undefined },
        ],
      },
      {
        id: 1,
        memoryBytes: 2048 * 1024,
        hugePages: [],
        distances: [],
        cores: [
          { socket: 1, threads: [2, 6], uncoreCache: 1 },
          { socket: 1, threads: [3], uncoreCache: 1 },
        ],
      },
      { id: 2, memoryBytes: 4096 * 1024, hugePages: [], distances: [], cores: [] },
    ],
  });
});

test('without node directories every package is a node; CPUs that say nothing are left out', async () => {
  const topology = await topologyOf({
    ...cpu(0, 0, 0),
    ...cpu(1, 1, 0),
    ...cpu(2, 0, 1),
    [`${CPU}/cpu3/online`]: '0\n',
  });
  assert.deepEqual(
    topology.nodes.map((node) => [node.id, node.memoryBytes, node.cores.map((core) => core.threads)]),
    [
      [0, 0, [[0], [1]]],
      [1, 0, [[2]]],
    ],
  );
  assert.equal(topology.sockets, 2);
});

test('the machine this runs on has CPUs, each once', async () => {
  const { nodes, sockets } = await readMachineTopology();
  const cpus = nodes.flatMap((node) => node.cores.flatMap((core) => core.threads));
  assert.ok(cpus.length > 0 && sockets > 0);
  assert.equal(new Set(cpus).size, cpus.length);
});

const foundCpu = (id: number, more: Partial<FoundCpu> = {}): FoundCpu => ({
  id,
  coreId: `${id}`,
  packageId: '0',
  caches: [],
  ...more,
});

test('what the kernel tells in part or not at all', () => {
  const node = { id: 0, meminfo: '', distance: '', hugePages: [], cpus: [foundCpu(0), foundCpu(1)] };
  const machine: FoundMachine = { nodes: [node], cpus: [], online: undefined, cpuinfo: '' };
  const hugePages = [
    { directory: 'hugepages-2048kB', pages: 'many\n' },
    { directory: 'hugepages-16GB', pages: '4\n' },
  ];
  const rows: readonly [string, Partial<FoundMachine>, (t: MachineTopology) => unknown, unknown][] = [
    ['no total of memory', {}, (t) => t.nodes[0]?.memoryBytes, 0],
    ['no list of online CPUs: all count', {}, (t) => t.nodes[0]?.cores.map((c) => c.threads), [[0], [1]]],
    ['no packages in cpuinfo: those of the CPUs count', {}, (t) => t.sockets, 1],
    [
      'huge pages: a number that is none is 0, a directory of another name is left out',
      { nodes: [{ ...node, hugePages }] },
      (t) => t.nodes[0]?.hugePages,
      [{ sizeKb: 2048, pages: 0 }],
    ],
    [
      'a CPU without core or package is no core',
      { nodes: [{ ...node, cpus: [foundCpu(0, { coreId: '' }), foundCpu(1, { packageId: '-1' }), foundCpu(2)] }] },
      (t) => t.nodes[0]?.cores.map((c) => c.threads),
      [[2]],
    ],
    [
      'a CPU without a package belongs to no node where packages are the nodes',
      { nodes: [], cpus: [foundCpu(0), foundCpu(1, { packageId: '' })] },
      (t) => t.nodes.map((n) => n.cores.map((c) => c.threads)),
      [[[0]]],
    ],
    [
      'a cache of part of the node without an id',
      {
        nodes: [{ ...node, cpus: [foundCpu(0, { caches: [{ id: '', level: '3', sharedCpuMap: '3' }] })] }],
      },
      (t) => t.nodes[0]?.cores[0]?.uncoreCache,
      undefined,
    ],
  ];
  for (const [what, otherwise, read, expected] of rows)
    assert.deepEqual(read(machineTopology({ ...machine, ...otherwise })), expected, what);
});
