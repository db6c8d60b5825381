// `memory_manager_state` as text, as upstream writes it. The checksum covers the content as Go prints it. Pure.
import { fnv1a32, goJson, parseObject } from '../../core/go-json.ts';
import { checkpointProblem, isRecord, mapJson, mapOf, mapText } from '../topology/checkpoint-text.ts';
import type { MachineMemory, MemoryBlock, MemoryTable, NodeMemory } from './machine-memory.ts';
import type { MemoryAssignments, MemoryEntries } from './memory-state.ts';

type Content = MemoryAssignments & { readonly policyName: string };

/** `podLevel`: in the format that also has what pods hold as a whole (gate `PodLevelResourceManagers`). */
export function formatMemoryState(policyName: string, state: MemoryAssignments, podLevel: boolean): string {
  const { machine, entries, pods } = state;
  const parts = [
    `"policyName":${goJson(policyName)}`,
    `"machineState":${mapJson(byText(machine), nodeJson)}`,
    ...(entries.size > 0 ? [`"entries":${mapJson(entries, (own) => mapJson(own, blocksJson))}`] : []),
    ...(podLevel && pods.size > 0
      ? [`"podEntries":${mapJson(pods, (blocks) => `{"memoryBlocks":${blocksJson(blocks)}}`)}`]
      : []),
    `"checksum":${checksumOf({ policyName, machine, entries, pods }, podLevel)}`,
  ];
  return `{${parts.join(',')}}`;
}

const byText = (machine: MachineMemory): ReadonlyMap<string, NodeMemory> =>
  new Map([...machine].map(([id, node]) => [String(id), node]));

const nodeJson = ({ assignments, tables, cells }: NodeMemory): string => {
  const map = mapJson(tables, ({ total, systemReserved, allocatable, reserved, free }) =>
    goJson({ total, systemReserved, allocatable, reserved, free }),
  );
  return `{"numberOfAssignments":${assignments},"memoryMap":${map},"cells":${goJson(cells)}}`;
};

const blocksJson = (blocks: readonly MemoryBlock[]): string =>
  goJson(blocks.map(({ numaNodes, type, size }) => ({ numaAffinity: numaNodes, type, size })));

/** Fails with upstream's words for what is wrong. */
export function parseMemoryState(text: string, policy: string, podLevel: boolean): MemoryAssignments {
  const raw = parseObject(text);
  const content = contentOf(raw);
  if (content === undefined) throw checkpointProblem('checkpoint is corrupted');
  const checksum = raw['checksum'] ?? 0;
  const isFull = podLevel && checksum === checksumOf(content, true);
  // A file without a sum was written by hand.
  if (!isFull && checksum !== 0 && checksum !== checksumOf(content, false))
    throw checkpointProblem('checkpoint is corrupted');
  if (content.policyName !== policy)
    throw checkpointProblem(
      `[memorymanager] configured policy "${policy}" differs from state checkpoint policy "${content.policyName}"`,
    );
  return isFull ? content : { ...content, pods: new Map() };
}

function contentOf(raw: Readonly<Record<string, unknown>>): Content | undefined {
  const policyName = raw['policyName'] ?? '';
  const nodes = mapOf(raw['machineState'], nodeOf);
  const entries: MemoryEntries | undefined = mapOf(raw['entries'], (own) => mapOf(own, blocksOf));
  const pods = mapOf(raw['podEntries'], (own) => (isRecord(own) ? blocksOf(own['memoryBlocks']) : undefined));
  if (typeof policyName !== 'string' || nodes === undefined || entries === undefined || pods === undefined)
    return undefined;
  const machine = new Map([...nodes].map(([id, node]) => [Number(id), node]));
  return [...machine.keys()].every(Number.isInteger) ? { policyName, machine, entries, pods } : undefined;
}

function listOf<T>(value: unknown, part: (value: unknown) => T | undefined): readonly T[] | undefined {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) return undefined;
  const known = value.map(part).filter((each) => each !== undefined);
  return known.length === value.length ? known : undefined;
}

const numberOf = (value: unknown): number | undefined =>
  value === null || value === undefined ? 0 : Number.isInteger(value) ? (value as number) : undefined;

function nodeOf(value: unknown): NodeMemory | undefined {
  if (!isRecord(value)) return undefined;
  const assignments = numberOf(value['numberOfAssignments']);
  const tables = mapOf(value['memoryMap'], tableOf);
  const cells = listOf(value['cells'], numberOf);
  return assignments === undefined || tables === undefined || cells === undefined
    ? undefined
    : { assignments, tables, cells };
}

function tableOf(value: unknown): MemoryTable | undefined {
  if (!isRecord(value)) return undefined;
  const [total, systemReserved, allocatable, reserved, free] = [
    'total',
    'systemReserved',
    'allocatable',
    'reserved',
    'free',
  ].map((key) => numberOf(value[key]));
  if (total === undefined || systemReserved === undefined || allocatable === undefined) return undefined;
  return reserved === undefined || free === undefined
    ? undefined
    : { total, systemReserved, allocatable, reserved, free };
}

const blocksOf = (value: unknown): readonly MemoryBlock[] | undefined =>
  listOf(value, (each) => {
    if (!isRecord(each)) return undefined;
    const numaNodes = listOf(each['numaAffinity'], numberOf);
    const type = each['type'] ?? '';
    const size = numberOf(each['size']);
    return numaNodes === undefined || typeof type !== 'string' || size === undefined
      ? undefined
      : { numaNodes, type, size };
  });

function checksumOf({ policyName, machine, entries, pods }: Content, podLevel: boolean): number {
  const nodes = [...machine].sort(([a], [b]) => a - b).map(([id, node]) => `${id}:<*>${nodeText(node)}`);
  const own = mapText(entries, (containers) => mapText(containers, blocksText));
  const podText = podLevel
    ? ` PodEntries:(state.PodMemoryAssignments)${mapText(pods, (blocks) => `{MemoryBlocks:([]state.Block)${blocksText(blocks)}}`)}`
    : '';
  return fnv1a32(
    `(*state.MemoryManagerCheckpoint){PolicyName:(string)${policyName} MachineState:(state.NUMANodeMap)map[${nodes.join(' ')}] ` +
      `Entries:(state.ContainerMemoryAssignments)${own}${podText} Checksum:(checksum.Checksum)0}`,
  );
}

const nodeText = ({ assignments, tables, cells }: NodeMemory): string => {
  const map = mapText(
    tables,
    (t) =>
      `<*>{TotalMemSize:(uint64)${t.total} SystemReserved:(uint64)${t.systemReserved} Allocatable:(uint64)${t.allocatable} ` +
      `Reserved:(uint64)${t.reserved} Free:(uint64)${t.free}}`,
  );
  return `{NumberOfAssignments:(int)${assignments} MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${map} Cells:([]int)[${cells.join(' ')}]}`;
};

const blocksText = (blocks: readonly MemoryBlock[]): string =>
  `[${blocks
    .map(
      ({ numaNodes, type, size }) =>
        `{NUMAAffinity:([]int)[${numaNodes.join(' ')}] Type:(v1.ResourceName)${type} Size:(uint64)${size}}`,
    )
    .join(' ')}]`;
