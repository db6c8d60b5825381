// The content of `allocated_pods_state` and `actuated_pods_state`, as the Go kubelet writes and reads them: per pod the
// resources of its containers and of the pod as a whole. Pure. What another kubelet left is checked here, once: `null` is
// absent, and an entry that makes no sense is left out and named.
import { formatState, goJson, parseState } from './go-json.ts';
import type { ResourceList, ResourceRequirements } from './pod.ts';
import { tryParseQuantity } from './quantity.ts';

export type PodResourceEntry = {
  readonly containers: Readonly<Record<string, ResourceRequirements>>;
  readonly pod?: ResourceRequirements;
};

export type PodResourceState = {
  readonly pods: ReadonlyMap<string, PodResourceEntry>;
  /** What was left out, and why. */
  readonly damaged: readonly { readonly uid: string; readonly problem: string }[];
};

type Claim = NonNullable<ResourceRequirements['claims']>[number];

class Damage extends Error {}

/** Throws only when the file as a whole is no such file. */
export function parsePodResourceState(text: string): PodResourceState {
  const pods = new Map<string, PodResourceEntry>();
  const damaged: { uid: string; problem: string }[] = [];
  for (const [uid, entry] of Object.entries(parseState<unknown>(text))) {
    try {
      pods.set(uid, entryOf(entry));
    } catch (err) {
      if (!(err instanceof Damage)) throw err;
      damaged.push({ uid, problem: err.message });
    }
  }
  return { pods, damaged };
}

export const formatPodResourceState = (pods: ReadonlyMap<string, PodResourceEntry>): string =>
  formatState(new Map([...pods].map(([uid, entry]) => [uid, textOf(entry)])));

/** The file is written whole with every change of one pod: what stands there of the others is made once. */
const TEXTS = new WeakMap<PodResourceEntry, string>();

function textOf(entry: PodResourceEntry): string {
  const known = TEXTS.get(entry);
  if (known !== undefined) return known;
  const { containers, pod } = entry;
  const text = goJson({
    ContainerResources: sorted(containers, goRequirements),
    PodLevelResources: pod === undefined ? null : goRequirements(pod),
  });
  TEXTS.set(entry, text);
  return text;
}

/** In the order in which Go encodes maps and this struct. */
const goRequirements = ({ limits, requests, claims }: ResourceRequirements): ResourceRequirements => ({
  ...(limits !== undefined && { limits: sorted(limits, (q) => q) }),
  ...(requests !== undefined && { requests: sorted(requests, (q) => q) }),
  ...(claims !== undefined && { claims: claims.map(goClaim) }),
});

const goClaim = ({ name, request = '' }: Claim): Claim => ({ name, ...(request !== '' && { request }) });

const sorted = <T, U>(record: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries(
    Object.entries(record)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => [key, map(value)]),
  );

function entryOf(value: unknown): PodResourceEntry {
  const { ContainerResources, PodLevelResources } = fieldsOf(value, 'the entry') ?? {};
  const containers: Record<string, ResourceRequirements> = {};
  for (const [name, resources] of Object.entries(fieldsOf(ContainerResources, 'ContainerResources') ?? {}))
    containers[name] = requirementsOf(resources, `ContainerResources[${name}]`) ?? {};
  const pod = requirementsOf(PodLevelResources, 'PodLevelResources');
  return { containers, ...(pod !== undefined && { pod }) };
}

function requirementsOf(value: unknown, path: string): ResourceRequirements | undefined {
  const fields = fieldsOf(value, path);
  if (fields === undefined) return undefined;
  const limits = listOf(fields['limits'], `${path}.limits`);
  const requests = listOf(fields['requests'], `${path}.requests`);
  const claims = claimsOf(fields['claims'], `${path}.claims`);
  return {
    ...(limits !== undefined && { limits }),
    ...(requests !== undefined && { requests }),
    ...(claims !== undefined && { claims }),
  };
}

function claimsOf(value: unknown, path: string): readonly Claim[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (!Array.isArray(value)) throw new Damage(`${path} is no list`);
  return value.map((each: unknown, i) => {
    const { name, request } = fieldsOf(each, `${path}[${i}]`) ?? {};
    if (typeof name !== 'string') throw new Damage(`${path}[${i}] has no name`);
    return goClaim({ name, ...(typeof request === 'string' && { request }) });
  });
}

function listOf(value: unknown, path: string): ResourceList | undefined {
  const fields = fieldsOf(value, path);
  if (fields === undefined) return undefined;
  const list: Record<string, string> = {};
  for (const [name, amount] of Object.entries(fields)) {
    if (typeof amount !== 'string' || tryParseQuantity(amount) === undefined)
      throw new Damage(`${path}[${name}] is no quantity`);
    list[name] = amount;
  }
  return list;
}

function fieldsOf(value: unknown, path: string): Readonly<Record<string, unknown>> | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw new Damage(`${path} is no object`);
  return value as Record<string, unknown>;
}
