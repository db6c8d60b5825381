// Pods as the API server sends them are trusted in what they ask for, not in being whole: a field of the wrong type must
// not reach code that believes the types, and a name that becomes a path must stay inside its folder. A pod that is
// broken is named and left out; one that was whole before stays as it was.
import type { EventRecorder } from '../core/events.ts';
import { podKey, type Pod, type PodStatus } from '../core/pod.ts';
import { formatFieldErrors, type FieldError } from '../core/validation/field-error.ts';
import { readPod, readPodAround, type Read } from '../core/validation/pod-shape.ts';
import type { Logger } from '../lib/logger.ts';

export type PodGuardDeps = { readonly log: Logger; readonly events: Pick<EventRecorder, 'pod'> };

export class PodGuard {
  readonly #deps: PodGuardDeps;
  /** By the very object received, so that each is looked at once. */
  readonly #read = new WeakMap<Pod, Pod | undefined>();
  #lastGood = new Map<string, Pod>();

  constructor(deps: PodGuardDeps) {
    this.#deps = deps;
  }

  /** The full set, without what is broken. */
  check(pods: readonly Pod[]): readonly Pod[] {
    const good = new Map<string, Pod>();
    for (const raw of pods) {
      const uid = String(raw.metadata.uid);
      const pod = this.#checked(raw) ?? this.#lastGood.get(uid);
      if (pod !== undefined) good.set(uid, pod);
    }
    this.#lastGood = good;
    return [...good.values()];
  }

  /** One of the set that was added, changed or removed; undefined when it is to be left out. */
  checkOne(uid: string, raw: Pod | undefined): Pod | undefined {
    const pod = raw === undefined ? undefined : (this.#checked(raw) ?? this.#lastGood.get(uid));
    if (pod === undefined) this.#lastGood.delete(uid);
    else this.#lastGood.set(uid, pod);
    return pod;
  }

  #checked(raw: Pod): Pod | undefined {
    if (this.#read.has(raw)) return this.#read.get(raw);
    const { object, errors } = this.#readWhole({ ...raw, status: wholeStatus(raw.status) });
    const problems = object === undefined ? errors : pathProblems(object);
    this.#read.set(raw, problems.length === 0 ? object : undefined);
    if (problems.length === 0) return object;
    this.#tell(raw, problems);
    return undefined;
  }

  /** With every change of a pod's spec the API server counts its generation up: the same number, the same spec. */
  #readWhole(raw: Pod): Read<Pod> {
    const known = this.#lastGood.get(String(raw.metadata.uid));
    const { generation = 0 } = raw.metadata;
    const isSameSpec = generation > 0 && known?.metadata.generation === generation;
    return isSameSpec ? readPodAround(known.spec, raw) : readPod(raw);
  }

  #tell(raw: Pod, problems: readonly FieldError[]): void {
    const { log, events } = this.#deps;
    const text = formatFieldErrors(problems.slice(0, MAX_TOLD));
    log.error('the API server sent a broken pod, ignoring it', {
      pod: podKey(raw),
      uid: raw.metadata.uid,
      problem: text,
    });
    const { name, namespace } = raw.metadata;
    if (isSegment(name) && isSegment(namespace))
      events.pod(raw, 'Warning', 'FailedValidation', `Error validating pod ${podKey(raw)} from api, ignoring: ${text}`);
  }
}

const MAX_TOLD = 5;

/** Names that become names of files and folders. */
function pathProblems({ metadata, spec }: Pod): FieldError[] {
  const names: [string, unknown][] = [
    ['metadata.name', metadata.name],
    ['metadata.namespace', metadata.namespace],
    ['metadata.uid', metadata.uid],
  ];
  const lists = { initContainers: spec.initContainers, containers: spec.containers, volumes: spec.volumes } as const;
  for (const [field, list] of Object.entries({ ...lists, ephemeralContainers: spec.ephemeralContainers }))
    for (const [i, { name }] of (list ?? []).entries()) names.push([`spec.${field}[${i}].name`, name]);
  return names
    .filter(([, name]) => !isSegment(name))
    .map(([field, value]) => ({ field, kind: 'Invalid', value, message: 'must be the name of a file' }));
}

const isSegment = (name: unknown): name is string =>
  typeof name === 'string' && name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && name.length <= 253;

const LISTS = [
  'conditions',
  'podIPs',
  'hostIPs',
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
  'resourceClaimStatuses',
] as const;

/** What others wrote into the status, without what has the wrong form: most of it is ours and made anew. */
function wholeStatus(raw: unknown): PodStatus {
  if (!isObject(raw)) return {};
  const status = Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null));
  for (const field of LISTS) {
    const list = status[field];
    if (Array.isArray(list)) status[field] = list.filter(isObject).map((entry) => withStates(field, entry));
    else delete status[field];
  }
  return status;
}

const withStates = (field: string, entry: Readonly<Record<string, unknown>>): object =>
  field.endsWith('ontainerStatuses')
    ? { ...entry, state: entry['state'] ?? {}, lastState: entry['lastState'] ?? {} }
    : entry;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
