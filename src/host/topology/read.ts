// Collects the texts below /sys that tell how the machine is put together.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tryParseCpuSet } from '../../core/cpuset.ts';
import {
  machineTopology,
  type FoundCache,
  type FoundCpu,
  type FoundMachine,
  type FoundNode,
  type MachineTopology,
} from './machine-topology.ts';

/** `root` is where /proc and /sys are found: `/` but for tests. */
export async function readMachineTopology(root = '/'): Promise<MachineTopology> {
  return machineTopology(await readFound(root));
}

async function readFound(root: string): Promise<FoundMachine> {
  const cpuDir = join(root, 'sys/devices/system/cpu');
  const nodeDir = join(root, 'sys/devices/system/node');
  const [cpus, nodes, online, cpuinfo] = await Promise.all([
    readCpus(cpuDir, cpuDir),
    numbered(nodeDir, 'node').then((ids) => Promise.all(ids.map((id) => readNode(nodeDir, cpuDir, id)))),
    textOf(join(cpuDir, 'online')),
    textOf(join(root, 'proc/cpuinfo')),
  ]);
  const known = online.trim();
  return { cpus, nodes, cpuinfo, online: known === '' ? undefined : tryParseCpuSet(known) };
}

async function readNode(nodeDir: string, cpuDir: string, id: number): Promise<FoundNode> {
  const dir = join(nodeDir, `node${id}`);
  const [meminfo, distance, pools, cpus] = await Promise.all([
    textOf(join(dir, 'meminfo')),
    textOf(join(dir, 'distance')),
    namesIn(join(dir, 'hugepages')),
    readCpus(dir, cpuDir),
  ]);
  const hugePages = await Promise.all(
    pools.map(async (directory) => ({
      directory,
      pages: await textOf(join(dir, 'hugepages', directory, 'nr_hugepages')),
    })),
  );
  return { id, meminfo, distance, hugePages, cpus };
}

/** The CPUs listed in `listDir`, described by what lies in `cpuDir`. */
const readCpus = async (listDir: string, cpuDir: string): Promise<readonly FoundCpu[]> =>
  Promise.all((await numbered(listDir, 'cpu')).map((id) => readCpu(join(cpuDir, `cpu${id}`), id)));

async function readCpu(dir: string, id: number): Promise<FoundCpu> {
  const [coreId, packageId, names] = await Promise.all([
    textOf(join(dir, 'topology/core_id')),
    textOf(join(dir, 'topology/physical_package_id')),
    namesIn(join(dir, 'cache')),
  ]);
  const indexes = names.filter((name) => name.startsWith('index'));
  const caches = await Promise.all(indexes.map((name) => readCache(join(dir, 'cache', name))));
  return { id, coreId, packageId, caches };
}

async function readCache(dir: string): Promise<FoundCache> {
  const [id, level, sharedCpuMap] = await Promise.all([
    textOf(join(dir, 'id')),
    textOf(join(dir, 'level')),
    textOf(join(dir, 'shared_cpu_map')),
  ]);
  return { id, level, sharedCpuMap };
}

/** The n of all `<prefix>n` in a directory, in the order of their names as text. */
const numbered = async (dir: string, prefix: string): Promise<readonly number[]> =>
  (await namesIn(dir))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)));

/** A file or directory that is missing or cannot be read says nothing, which every machine does about something. */
const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
const namesIn = async (dir: string): Promise<readonly string[]> =>
  (await readdir(dir).catch((): string[] => [])).sort((a, b) => (a < b ? -1 : 1));
