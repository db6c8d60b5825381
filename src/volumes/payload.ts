// Turns API objects into the files of a volume. Pure.
import type { ConfigMap, Secret } from '../core/node.ts';
import {
  containerForResources,
  defaultLimits,
  fieldValue,
  resourceValue,
  type DownwardFacts,
} from '../core/downward.ts';
import { containersOf, type DownwardApiFile, type KeyToPath, type Pod, type ResourceList } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import type { FileBudget } from './file-budget.ts';
import type { PayloadFile } from './atomic-writer.ts';

export const DEFAULT_MODE = 0o644;

export type KeySelection = {
  readonly items: readonly KeyToPath[] | undefined;
  readonly defaultMode: number;
  readonly optional: boolean;
};

/** A value whose size is known before it is decoded. */
type Value = { readonly size: number; data(): Uint8Array };

function selectKeys(
  keys: ReadonlyMap<string, Value>,
  select: KeySelection,
  budget: FileBudget,
  missing: (key: string) => string,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  const add = (path: string, value: Value, mode: number): void => {
    budget.take(value.size, path);
    files.set(path, { data: value.data(), mode });
  };
  if (select.items === undefined || select.items.length === 0) {
    for (const [key, value] of keys) add(key, value, select.defaultMode);
    return files;
  }
  for (const item of select.items) {
    const value = keys.get(item.key);
    if (value !== undefined) add(item.path, value, item.mode ?? select.defaultMode);
    else if (!select.optional) throw new KubeletError('notFound', missing(item.key));
  }
  return files;
}

/** Decodes `text` once, however many files have it. */
function value(text: string, encoding: 'base64' | 'utf8'): Value {
  let made: Uint8Array | undefined;
  let size: number | undefined;
  return {
    get size() {
      return (size ??= Buffer.byteLength(text, encoding));
    },
    data: () => (made ??= Buffer.from(text, encoding)),
  };
}

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');

/** An object that is missing although optional gives no files. */
export function configMapFiles(
  object: ConfigMap | undefined,
  select: KeySelection,
  budget: FileBudget,
): Map<string, PayloadFile> {
  budget.take(0, 'the ConfigMap');
  const keys = new Map<string, Value>();
  for (const [key, text] of Object.entries(object?.binaryData ?? {})) keys.set(key, value(text, 'base64'));
  for (const [key, text] of Object.entries(object?.data ?? {})) keys.set(key, value(text, 'utf8'));
  return selectKeys(keys, select, budget, (key) => `configmap references non-existent config key: ${key}`);
}

export function secretFiles(
  object: Secret | undefined,
  select: KeySelection,
  budget: FileBudget,
): Map<string, PayloadFile> {
  budget.take(0, 'the Secret');
  const keys = new Map<string, Value>();
  for (const [key, text] of Object.entries(object?.data ?? {})) keys.set(key, value(text, 'base64'));
  for (const [key, text] of Object.entries(object?.stringData ?? {})) keys.set(key, value(text, 'utf8'));
  return selectKeys(keys, select, budget, (key) => `references non-existent secret key: ${key}`);
}

/** What a pod may know of itself. Each field is formatted once, however many files have it. */
export class DownwardValues {
  readonly #pod: Pod;
  readonly #facts: DownwardFacts;
  readonly #limits: ResourceList;
  readonly #fields = new Map<string, Value>();

  constructor(pod: Pod, facts: DownwardFacts, allocatable: ResourceList) {
    this.#pod = pod;
    this.#facts = facts;
    this.#limits = defaultLimits(pod, allocatable);
  }

  of({ fieldRef, resourceFieldRef }: DownwardApiFile): Value | undefined {
    if (fieldRef !== undefined) return this.#field(fieldRef.fieldPath);
    if (resourceFieldRef === undefined) return undefined;
    const container = containerForResources(this.#pod, resourceFieldRef.containerName ?? '');
    return value(resourceValue(container, resourceFieldRef, this.#limits), 'utf8');
  }

  #field(path: string): Value {
    let found = this.#fields.get(path);
    if (found === undefined) {
      found = value(fieldValue(this.#pod, path, this.#facts), 'utf8');
      this.#fields.set(path, found);
    }
    return found;
  }
}

export function downwardFiles(
  values: DownwardValues,
  items: readonly DownwardApiFile[],
  defaultMode: number,
  budget: FileBudget,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  for (const item of items) {
    const found = values.of(item);
    if (found === undefined) continue;
    budget.take(found.size, item.path);
    files.set(item.path, { data: found.data(), mode: item.mode ?? defaultMode });
  }
  return files;
}

/** The user all containers of a pod run as, if they agree on one: the owner of files only the pod may read. */
export function commonUser(pod: Pod): number | undefined {
  let common: number | undefined;
  for (const { container } of containersOf(pod)) {
    const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
    if (user === undefined || (common !== undefined && common !== user)) return undefined;
    common = user;
  }
  return common;
}

/** A credential of the pod: readable by its user or group only, where the pod names one. */
export function credentialFile(
  pod: Pod,
  { path, data }: { readonly path: string; readonly data: string },
  defaultMode: number,
  budget: FileBudget,
): PayloadFile {
  budget.take(Buffer.byteLength(data), path);
  const uid = commonUser(pod);
  const mode = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined ? 0o600 : defaultMode;
  return { data: utf8(data), mode, ...(uid === undefined ? {} : { uid }) };
}
