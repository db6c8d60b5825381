// The page of container and machine metrics from what was read. Pure.
import type { MachineFacts } from '../host/machine.ts';
import type { CpuTopology } from '../host/proc.ts';
import type { Labels } from '../lib/metrics.ts';
import { CONTAINER_FAMILIES, type ContainerReading, type DeviceName } from './cadvisor-families.ts';
import { Exposition, SharedLabels, type FamilyHead } from './exposition.ts';

export type MachineReading = {
  readonly facts: Pick<MachineFacts, 'cpus' | 'memoryBytes' | 'swapBytes' | 'kernelRelease'>;
  readonly topology: CpuTopology;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly osImage: string;
};

export type CadvisorPage = {
  /** Undefined: the containers could not be read. */
  readonly containers: readonly ContainerReading[] | undefined;
  readonly machine: MachineReading | undefined;
  readonly device: DeviceName;
};

const gauge = (name: string, help: string): FamilyHead => ({ name, type: 'gauge', help });

const VERSION = gauge(
  'cadvisor_version_info',
  "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.",
);
const CONTAINER_ERROR = gauge(
  'container_scrape_error',
  '1 if there was an error while getting container metrics, 0 otherwise',
);
const MACHINE_ERROR = gauge(
  'machine_scrape_error',
  '1 if there was an error while getting machine metrics, 0 otherwise.',
);

const MACHINE: readonly (readonly [FamilyHead, (machine: MachineReading) => number, Labels?])[] = [
  [gauge('machine_cpu_physical_cores', 'Number of physical CPU cores.'), (m) => m.topology.cores],
  [gauge('machine_cpu_cores', 'Number of logical CPU cores.'), (m) => m.facts.cpus],
  [gauge('machine_cpu_sockets', 'Number of CPU sockets.'), (m) => m.topology.sockets],
  // Mainframes have them, and to cAdvisor no other machine.
  [gauge('machine_cpu_books', 'Number of CPU books.'), () => 0],
  [gauge('machine_cpu_drawers', 'Number of CPU drawers.'), () => 0],
  [gauge('machine_memory_bytes', 'Amount of memory installed on the machine.'), (m) => m.facts.memoryBytes],
  [gauge('machine_swap_bytes', 'Amount of swap memory available on the machine.'), (m) => m.facts.swapBytes],
  // Persistent memory needs a vendor's library to be counted; upstream's builds lack it too and say zero.
  ...['memory_mode', 'app_direct_mode'].map(
    (mode) =>
      [
        gauge('machine_nvm_capacity', 'NVM capacity value labeled by NVM mode (memory mode or app direct mode).'),
        () => 0,
        { mode },
      ] as const,
  ),
  [gauge('machine_nvm_avg_power_budget_watts', 'NVM power budget.'), () => 0],
];

export function cadvisorMetricsText({ containers, machine, device }: CadvisorPage): string {
  const page = new Exposition();
  for (const reading of containers ?? []) addContainer(page, reading, device);
  page.add(CONTAINER_ERROR, {}, containers === undefined ? 1 : 0);
  if (machine !== undefined) addMachine(page, machine);
  page.add(MACHINE_ERROR, {}, machine === undefined ? 1 : 0);
  return page.text();
}

function addContainer(page: Exposition, reading: ContainerReading, device: DeviceName): void {
  const labels = new SharedLabels(reading.labels);
  for (const family of CONTAINER_FAMILIES)
    for (const { value, extra } of family.values(reading, device))
      page.addShared(family, labels, extra, value, family.unstamped === true ? undefined : reading.atMs);
}

function addMachine(page: Exposition, machine: MachineReading): void {
  page.add(
    VERSION,
    {
      kernelVersion: machine.facts.kernelRelease,
      osVersion: machine.osImage,
      dockerVersion: '',
      cadvisorVersion: '',
      cadvisorRevision: '',
    },
    1,
  );
  const labels = { machine_id: machine.machineId, system_uuid: machine.systemUuid, boot_id: machine.bootId };
  for (const [head, value, extra] of MACHINE) page.add(head, { ...labels, ...extra }, value(machine));
}
