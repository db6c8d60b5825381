// How the machine is put together, from the texts found below /sys. Pure. Follows cAdvisor, whose view upstream's
// managers use: offline CPUs are missing, a level 3 cache shared by a whole NUMA node is no uncore cache.
import type { CpuSet } from '../../core/cpuset.ts';

export type MachineCore = {
  readonly socket: number;
  /** Online logical CPUs, ascending. */
  readonly threads: readonly number[];
  /** Id of the last-level cache that only a part of the NUMA node shares. */
  readonly uncoreCache: number | undefined;
};

export type NumaNode = {
  readonly id: number;
  readonly memoryBytes: number;
  readonly hugePages: readonly { readonly sizeKb: number; readonly pages: number }[];
  /** To every node, in the order of the nodes; empty when the kernel does not tell. */
  readonly distances: readonly number[];
  /** Empty for a node that is memory only. */
  readonly cores: readonly MachineCore[];
};

export type MachineTopology = { readonly nodes: readonly NumaNode[]; readonly sockets: number };

export type FoundCache = {
  readonly id: string;
  readonly level: string;
  /** Hexadecimal words, `00000000,0000000f`. */
  readonly sharedCpuMap: string;
};

export type FoundCpu = {
  readonly id: number;
  readonly coreId: string;
  readonly packageId: string;
  readonly caches: readonly FoundCache[];
};

export type FoundNode = {
  readonly id: number;
  readonly meminfo: string;
  readonly distance: string;
  readonly hugePages: readonly { readonly directory: string; readonly pages: string }[];
  readonly cpus: readonly FoundCpu[];
};

export type FoundMachine = {
  readonly nodes: readonly FoundNode[];
  /** All CPU directories: what is left to go by when there are no node directories. */
  readonly cpus: readonly FoundCpu[];
  /** Undefined: the kernel does not tell, all count. */
  readonly online: CpuSet | undefined;
  readonly cpuinfo: string;
};

export function machineTopology(found: FoundMachine): MachineTopology {
  const nodes = found.nodes.length > 0 ? numaNodes(found) : onePerPackage(found.cpus);
  return { nodes: [...nodes].sort((a, b) => a.id - b.id), sockets: socketsOf(found, nodes) };
}

const numaNodes = ({ nodes, online }: FoundMachine): readonly NumaNode[] =>
  nodes.map((node) => ({
    id: node.id,
    memoryBytes: Number(/MemTotal:\s+(\d+) kB/.exec(node.meminfo)?.[1] ?? 0) * 1024,
    hugePages: node.hugePages
      .map(({ directory, pages }) => ({
        sizeKb: Number(/^hugepages-(\d+)kB$/.exec(directory)?.[1] ?? 0),
        pages: integer(pages) ?? 0,
      }))
      .filter(({ sizeKb }) => sizeKb > 0)
      .sort((a, b) => a.sizeKb - b.sizeKb),
    distances: node.distance
      .split(/\s+/)
      .filter((word) => word !== '')
      .map(Number),
    cores: coresOf(node.cpus.filter((cpu) => online?.has(cpu.id) ?? true)),
  }));

/** Without NUMA directories every package counts as one node, of which no memory is known. */
function onePerPackage(cpus: readonly FoundCpu[]): readonly NumaNode[] {
  const packages = Map.groupBy(cpus, (cpu) => integer(cpu.packageId));
  return [...packages].flatMap(([id, own]) =>
    id === undefined ? [] : [{ id, memoryBytes: 0, hugePages: [], distances: [], cores: coresOf(own) }],
  );
}

type CoreDraft = { readonly socket: number; readonly cpus: FoundCpu[] };

function coresOf(cpus: readonly FoundCpu[]): readonly MachineCore[] {
  const drafts = new Map<string, CoreDraft>();
  for (const cpu of cpus) {
    const [core, socket] = [integer(cpu.coreId), integer(cpu.packageId)];
    if (core === undefined || socket === undefined) continue;
    const key = `${socket}/${core}`;
    const draft = drafts.get(key) ?? { socket, cpus: [] };
    draft.cpus.push(cpu);
    drafts.set(key, draft);
  }
  return [...drafts.values()].map(({ socket, cpus: own }) => ({
    socket,
    threads: own.map((cpu) => cpu.id).sort((a, b) => a - b),
    uncoreCache: uncoreCacheOf(own, drafts.size * own.length),
  }));
}

function uncoreCacheOf(cpus: readonly FoundCpu[], threadsOfNode: number): number | undefined {
  const cache = cpus[0]?.caches.find(
    ({ level, sharedCpuMap }) => Number(level) >= 3 && sharersOf(sharedCpuMap) !== threadsOfNode,
  );
  return cache === undefined ? undefined : integer(cache.id);
}

const sharersOf = (map: string): number =>
  (map.match(/[0-9a-f]/gi) ?? []).reduce((sum, digit) => sum + ones(Number.parseInt(digit, 16)), 0);

const ones = (digit: number): number => (digit & 1) + ((digit >> 1) & 1) + ((digit >> 2) & 1) + ((digit >> 3) & 1);

/** /proc/cpuinfo names the packages on x86; where it does not, the packages of the online CPUs count. */
function socketsOf({ cpuinfo }: FoundMachine, nodes: readonly NumaNode[]): number {
  const named = new Set([...cpuinfo.matchAll(/^physical id\s*:\s*(\d+)/gm)].map((match) => match[1]));
  if (named.size > 0) return named.size;
  return new Set(nodes.flatMap((node) => node.cores.map((core) => core.socket))).size;
}

const integer = (text: string): number | undefined => {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? Number(trimmed) : undefined;
};
