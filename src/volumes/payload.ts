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
import type { PayloadFile } from './atomic-writer.ts';

export const DEFAULT_MODE = 0o644;

export type KeySelection = {
  readonly items: readonly KeyToPath[] | undefined;
  readonly defaultMode: number;
  readonly optional: boolean;
};

function selectKeys(
  keys: ReadonlyMap<string, () => Uint8Array>,
  select: KeySelection,
  missing: (key: string) => string,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  if (select.items === undefined || select.items.length === 0) {
    for (const [key, data] of keys) files.set(key, { data: data(), mode: select.defaultMode });
    return files;
  }
  for (const item of select.items) {
    const data = keys.get(item.key);
    if (data !== undefined) files.set(item.path, { data: data(), mode: item.mode ?? select.defaultMode });
    else if (!select.optional) throw new KubeletError('notFound', missing(item.key));
  }
  return files;
}

const base64 = (text: string): Uint8Array => Buffer.from(text, 'base64');
const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');

/** An object that is missing although optional gives no files. */
export function configMapFiles(object: ConfigMap | undefined, select: KeySelection): Map<string, PayloadFile> {
  const keys = new Map<string, () => Uint8Array>();
  for (const [key, text] of Object.entries(object?.binaryData ?? {})) keys.set(key, () => base64(text));
  for (const [key, text] of Object.entries(object?.data ?? {})) keys.set(key, () => utf8(text));
  return selectKeys(keys, select, (key) => `configmap references non-existent config key: ${key}`);
}

export function secretFiles(object: Secret | undefined, select: KeySelection): Map<string, PayloadFile> {
  const keys = new Map<string, () => Uint8Array>();
  for (const [key, text] of Object.entries(object?.data ?? {})) keys.set(key, () => base64(text));
  for (const [key, text] of Object.entries(object?.stringData ?? {})) keys.set(key, () => utf8(text));
  return selectKeys(keys, select, (key) => `references non-existent secret key: ${key}`);
}

export function downwardFiles(
  pod: Pod,
  items: readonly DownwardApiFile[],
  defaultMode: number,
  facts: DownwardFacts,
  allocatable: ResourceList,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  for (const item of items) {
    let text: string;
    if (item.fieldRef !== undefined) text = fieldValue(pod, item.fieldRef.fieldPath, facts);
    else if (item.resourceFieldRef !== undefined) {
      const container = containerForResources(pod, item.resourceFieldRef.containerName ?? '');
      text = resourceValue(container, item.resourceFieldRef, defaultLimits(pod, allocatable));
    } else continue;
    files.set(item.path, { data: utf8(text), mode: item.mode ?? defaultMode });
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
export function credentialFile(pod: Pod, data: string, defaultMode: number): PayloadFile {
  const uid = commonUser(pod);
  const mode = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined ? 0o600 : defaultMode;
  return { data: utf8(data), mode, ...(uid === undefined ? {} : { uid }) };
}
