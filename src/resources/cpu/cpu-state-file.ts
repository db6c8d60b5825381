// `cpu_manager_state` as text, byte for byte as upstream writes it, so that a node can change hands. The checksum covers
// the content as Go prints it. Pure.
import { formatCpuSet, type CpuSet } from '../../core/cpuset.ts';
import { fnv1a32, goJson, parseObject } from '../../core/go-json.ts';
import { checkpointProblem, isRecord, mapJson, mapOf, mapText } from '../topology/checkpoint-text.ts';
import { parseGoCpuSet } from '../topology/go-values.ts';
import type { CpuAssignments } from './cpu-state.ts';

type Entries = ReadonlyMap<string, ReadonlyMap<string, string>>;

type Content = {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: Entries;
  /** Undefined in the format without them. */
  readonly podEntries: ReadonlyMap<string, string> | undefined;
};

/** `podLevel`: in the format that also has what pods hold as a whole (gate `PodLevelResourceManagers`). */
export function formatCpuState(policyName: string, state: CpuAssignments, podLevel: boolean): string {
  const content: Content = {
    policyName,
    defaultCpuSet: formatCpuSet(state.shared),
    entries: new Map([...state.entries].map(([uid, own]) => [uid, texts(own)])),
    podEntries: podLevel ? texts(state.pods) : undefined,
  };
  const { defaultCpuSet, entries, podEntries = new Map<string, string>() } = content;
  const parts = [
    `"policyName":${goJson(policyName)}`,
    `"defaultCpuSet":${goJson(defaultCpuSet)}`,
    ...(entries.size > 0 ? [`"entries":${mapJson(entries, (own) => mapJson(own, goJson))}`] : []),
    ...(podEntries.size > 0 ? [`"podEntries":${mapJson(podEntries, (cpuSet) => goJson({ cpuSet }))}`] : []),
    `"checksum":${checksumOf(content)}`,
  ];
  return `{${parts.join(',')}}`;
}

const texts = (sets: ReadonlyMap<string, CpuSet>): ReadonlyMap<string, string> =>
  new Map([...sets].map(([key, cpus]) => [key, formatCpuSet(cpus)]));

/** Fails with upstream's words for what is wrong. */
export function parseCpuState(text: string, policy: string, podLevel: boolean): CpuAssignments {
  const raw = parseObject(text);
  const content = contentOf(raw, podLevel);
  if (content === undefined) throw checkpointProblem(damageOf(raw));
  const { policyName, defaultCpuSet, entries, podEntries } = content;
  if (policyName !== policy)
    throw checkpointProblem(`configured policy "${policy}" differs from state checkpoint policy "${policyName}"`);
  return {
    shared: cpusOf(defaultCpuSet, `could not parse default cpu set "${defaultCpuSet}"`),
    entries: new Map(
      [...entries].map(([uid, own]) => {
        const what = (cpus: string, name: string): string =>
          `could not parse cpuset "${cpus}" for container "${name}" in pod "${uid}"`;
        return [uid, new Map([...own].map(([name, cpus]) => [name, cpusOf(cpus, what(cpus, name))]))];
      }),
    ),
    pods: new Map(
      [...(podEntries ?? [])].map(([uid, cpus]) => [
        uid,
        cpusOf(cpus, `could not parse cpuset "${cpus}" of pod "${uid}"`),
      ]),
    ),
  };
}

/** The content if its types and its sum are right; without pod entries it may come from a kubelet without the gate. */
function contentOf(raw: Readonly<Record<string, unknown>>, podLevel: boolean): Content | undefined {
  const policyName = raw['policyName'] ?? '';
  const defaultCpuSet = raw['defaultCpuSet'] ?? '';
  const checksum = raw['checksum'] ?? 0;
  const entries = mapOf(raw['entries'], (own) => mapOf(own, textOf));
  const podEntries = mapOf(raw['podEntries'], (own) => (isRecord(own) ? textOf(own['cpuSet']) : undefined));
  if (typeof policyName !== 'string' || typeof defaultCpuSet !== 'string') return undefined;
  if (entries === undefined || podEntries === undefined) return undefined;
  const plain: Content = { policyName, defaultCpuSet, entries, podEntries: undefined };
  const full: Content = { ...plain, podEntries };
  if (podLevel && checksum === checksumOf(full)) return full;
  // A file without a sum was written by hand.
  return checksum === 0 || checksum === checksumOf(plain) ? plain : undefined;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : undefined;

/** Upstream tries its oldest format last, so that is what its error speaks of. */
const damageOf = ({ entries }: Readonly<Record<string, unknown>>): string =>
  isRecord(entries) && Object.values(entries).some((own) => isRecord(own))
    ? 'json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string'
    : 'checkpoint is corrupted';

function checksumOf({ policyName, defaultCpuSet, entries, podEntries }: Content): number {
  const own = mapText(entries, (containers) => mapText(containers, (cpus) => cpus));
  const pods =
    podEntries === undefined
      ? ''
      : ` PodEntries:(state.PodCPUAssignments)${mapText(
          podEntries,
          (cpus) => `{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[${elements(cpus)}]}}`,
        )}`;
  return fnv1a32(
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} ` +
      `Entries:(map[string]map[string]string)${own}${pods} Checksum:(checksum.Checksum)0}`,
  );
}

function elements(text: string): string {
  const cpus = parseGoCpuSet(text);
  if (typeof cpus === 'string') return '';
  const ordered = [...cpus].sort((a, b) => a - b);
  return ordered.map((cpu) => `${cpu}:{}`).join(' ');
}

function cpusOf(text: string, problem: string): CpuSet {
  const cpus = parseGoCpuSet(text);
  if (typeof cpus === 'string') throw checkpointProblem(`${problem}: ${cpus}`);
  return cpus;
}
