// A machine with two NUMA nodes, and an agent that gives out their memory. How the topology manager decides is drawn from
// the seed.
import type { FileTree } from '../engine/file-tree.ts';
import { Random } from '../engine/random.ts';
import { makeDirs, putFile } from './host.ts';

const GI = 1024 ** 3;
const CPUS_EACH = 8;
const HUGE_PAGES = 1024;
const NODES = [0, 1] as const;
const NODE_BYTES = 32 * GI;
const RESERVED_BYTES = 2 * GI;

/** What each node has for pods, by type. */
export const NUMA_MEMORY: Readonly<Record<string, readonly number[]>> = {
  memory: [NODE_BYTES - RESERVED_BYTES - 2 * GI, NODE_BYTES - 2 * GI],
  'hugepages-2Mi': [2 * GI, 2 * GI],
};
/** Of each node, but for the one that is reserved. */
export const FEWEST_CPUS = CPUS_EACH - 1;

/** After each boot, in place of the one node of the usual machine. */
export function installNuma(files: FileTree): void {
  for (const node of NODES) {
    const dir = `/sys/devices/system/node/node${node}`;
    putFile(files, `${dir}/meminfo`, `Node ${node} MemTotal: ${NODE_BYTES / 1024} kB\n`);
    putFile(files, `${dir}/distance`, node === 0 ? '10 20\n' : '20 10\n');
    putFile(files, `${dir}/hugepages/hugepages-2048kB/nr_hugepages`, `${HUGE_PAGES}\n`);
  }
  putFile(files, '/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', `${2 * HUGE_PAGES}\n`);
  for (let cpu = CPUS_EACH; cpu < 2 * CPUS_EACH; cpu++) {
    files.rmdir(`/sys/devices/system/node/node0/cpu${cpu}`);
    makeDirs(files, `/sys/devices/system/node/node1/cpu${cpu}`);
    putFile(files, `/sys/devices/system/cpu/cpu${cpu}/topology/physical_package_id`, '1\n');
  }
}

export function numaConfig(seed: number): string {
  const random = new Random(seed, 'numa');
  return `memoryManagerPolicy: Static
systemReserved: {memory: 2047Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 2Gi}}]
topologyManagerPolicy: ${random.pick(['none', 'best-effort', 'restricted', 'single-numa-node'])}
topologyManagerScope: ${random.pick(['container', 'pod'])}
`;
}
