// What metrics-server reads: processor, memory and swap of node, pods and containers, each stamped with the moment it
// was measured. Pure.
import { Exposition, type FamilyHead } from './exposition.ts';
import type { ContainerFigures, CpuFigures, MemoryFigures, PodFigures, Summary, SwapFigures } from './summary-types.ts';
import type { Labels } from '../lib/metrics.ts';

const cpu = (of: string): string => `[STABLE] Cumulative cpu time consumed by the ${of} in core-seconds`;
const memory = (of: string): string => `[STABLE] Current working set of the ${of} in bytes`;
const notOnWindows = (what: string): string => `[ALPHA] ${what} in bytes. Reported only on non-windows systems`;
const counter = (name: string, help: string): FamilyHead => ({ name, type: 'counter', help });
const gauge = (name: string, help: string): FamilyHead => ({ name, type: 'gauge', help });

type Level = { readonly cpu: FamilyHead; readonly memory: FamilyHead; readonly swap: FamilyHead };

const NODE: Level = {
  cpu: counter('node_cpu_usage_seconds_total', cpu('node')),
  memory: gauge('node_memory_working_set_bytes', memory('node')),
  swap: gauge('node_swap_usage_bytes', notOnWindows('Current swap usage of the node')),
};
const POD: Level = {
  cpu: counter('pod_cpu_usage_seconds_total', cpu('pod')),
  memory: gauge('pod_memory_working_set_bytes', memory('pod')),
  swap: gauge('pod_swap_usage_bytes', notOnWindows('Current amount of the pod swap usage')),
};
const CONTAINER: Level = {
  cpu: counter('container_cpu_usage_seconds_total', cpu('container')),
  memory: gauge('container_memory_working_set_bytes', memory('container')),
  swap: gauge('container_swap_usage_bytes', notOnWindows('Current amount of the container swap usage')),
};
const SWAP_LIMIT = gauge('container_swap_limit_bytes', notOnWindows('Current amount of the container swap limit'));
const START_TIME = gauge(
  'container_start_time_seconds',
  '[STABLE] Start time of the container since unix epoch in seconds',
);
const ERROR_HELP = '1 if there was an error while getting container metrics, 0 otherwise';
const RESOURCE_SCRAPE_ERROR = gauge('resource_scrape_error', `[STABLE] ${ERROR_HELP}`);
/** The name before 1.29; hidden unless somebody asks for what is hidden. */
const SCRAPE_ERROR = gauge('scrape_error', `[ALPHA] (Deprecated since 1.29.0) ${ERROR_HELP}`);

/** `undefined`: the summary could not be made. */
export function resourceMetricsText(summary: Summary | undefined, showHidden: boolean): string {
  const page = new Exposition();
  if (summary !== undefined) {
    add(page, NODE, {}, summary.node);
    for (const pod of summary.pods) addPod(page, pod);
  }
  const failed = summary === undefined ? 1 : 0;
  page.add(RESOURCE_SCRAPE_ERROR, {}, failed);
  if (showHidden) page.add(SCRAPE_ERROR, {}, failed);
  return page.text();
}

function addPod(page: Exposition, figures: PodFigures): void {
  const { name: pod, namespace } = figures.podRef;
  for (const container of figures.containers)
    addContainer(page, { container: container.name, pod, namespace }, container);
  add(page, POD, { pod, namespace }, figures);
}

function addContainer(page: Exposition, labels: Labels, container: ContainerFigures): void {
  if (container.startTime.ms > 0) page.add(START_TIME, labels, container.startTime.ms / 1000);
  add(page, CONTAINER, labels, container);
  const { swap } = container;
  if (swap?.swapAvailableBytes !== undefined)
    page.add(SWAP_LIMIT, labels, swap.swapAvailableBytes + (swap.swapUsageBytes ?? 0), swap.time.ms);
}

type Figures = {
  readonly cpu: CpuFigures | undefined;
  readonly memory: MemoryFigures | undefined;
  readonly swap: SwapFigures | undefined;
};

function add(page: Exposition, heads: Level, labels: Labels, { cpu, memory, swap }: Figures): void {
  if (cpu?.usageCoreNanoSeconds !== undefined) page.add(heads.cpu, labels, cpu.usageCoreNanoSeconds / 1e9, cpu.time.ms);
  if (memory?.workingSetBytes !== undefined) page.add(heads.memory, labels, memory.workingSetBytes, memory.time.ms);
  if (swap?.swapUsageBytes !== undefined) page.add(heads.swap, labels, swap.swapUsageBytes, swap.time.ms);
}
