// The node's figures in the shape the page shows. Pure.
import type { FsFigures, NodeFigures, Psi } from '../stats/summary-types.ts';
import type { DiskView, NodeUse, PsiView } from './model.ts';

export function nodeUse(figures: NodeFigures | undefined): NodeUse {
  if (figures === undefined) return { disks: [], psi: {} };
  const { cpu, memory, io, fs, runtime, swap, rlimit, network } = figures;
  const psi = { cpu: psiView(cpu?.psi), memory: psiView(memory?.psi), io: psiView(io?.psi) };
  return {
    ...whole({
      cpuCores: cpu?.usageNanoCores === undefined ? undefined : cpu.usageNanoCores / 1e9,
      memoryWorkingSetBytes: memory?.workingSetBytes,
      memoryAvailableBytes: memory?.availableBytes,
      swapBytes: swap?.swapUsageBytes,
      processes: rlimit?.curproc,
      networkRxBytes: network?.rxBytes,
      networkTxBytes: network?.txBytes,
    }),
    disks: disks(fs, runtime?.imageFs),
    psi: {
      ...(psi.cpu === undefined ? {} : { cpu: psi.cpu }),
      ...(psi.memory === undefined ? {} : { memory: psi.memory }),
      ...(psi.io === undefined ? {} : { io: psi.io }),
    },
  };
}

/** One disk is shown once, also where images share it with the rest. */
function disks(nodeFs: FsFigures | undefined, imageFs: FsFigures | undefined): readonly DiskView[] {
  const isShared = nodeFs?.capacityBytes === imageFs?.capacityBytes && nodeFs?.inodes === imageFs?.inodes;
  const found = isShared
    ? [diskView('node and images', nodeFs)]
    : [diskView('node', nodeFs), diskView('images', imageFs)];
  return found.filter((d) => d !== undefined);
}

export function diskView(name: string, fs: FsFigures | undefined): DiskView | undefined {
  if (fs?.capacityBytes === undefined || fs.availableBytes === undefined) return undefined;
  return {
    name,
    usedBytes: fs.capacityBytes - fs.availableBytes,
    capacityBytes: fs.capacityBytes,
    ...whole({ inodes: fs.inodes, inodesUsed: fs.inodesUsed }),
  };
}

const psiView = (psi: Psi | undefined): PsiView | undefined =>
  psi === undefined ? undefined : { some: psi.some.avg10, full: psi.full.avg10 };

/** Without what is not known. */
function whole<K extends string>(values: Readonly<Record<K, number | undefined>>): Partial<Record<K, number>> {
  return Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined)) as Partial<Record<K, number>>;
}
