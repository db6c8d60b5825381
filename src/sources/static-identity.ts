// What makes a manifest a static pod of this node: its uid, its name, its place. Pure.
import { createHash } from 'node:crypto';
import { CONFIG_HASH, type Pod, type Toleration } from '../core/pod.ts';

export type Origin = {
  /** Path or URL. */
  readonly where: string;
  /** From a file or the manifest API, not from a URL. */
  readonly local: boolean;
};

const TOLERATE_ALL: Toleration = { operator: 'Exists', effect: 'NoExecute' };

/**
 * 32 hex digits that stay the same for the same manifest in the same place on the same node. The manifest as written
 * counts, not what we make of it, so that another version with other defaults does not see another pod.
 */
export function staticUid(manifest: unknown, origin: Origin, nodeName: string): string {
  const hash = createHash('sha256').update(canonicalJson(manifest));
  hash.update(origin.local ? `\0host:${nodeName}\0file:${origin.where}` : `\0url:${origin.where}`);
  return hash.digest('hex').slice(0, 32);
}

/** JSON with sorted keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, v]) => v !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`).join(',')}}`;
}

const staticName = (name: string, nodeName: string): string => `${name}-${nodeName.toLowerCase()}`;

/** A uid becomes a directory name, a cgroup name and a label. */
export const isUsableUid = (uid: string): boolean => /^[A-Za-z0-9](?:[-_A-Za-z0-9]{0,61}[A-Za-z0-9])?$/.test(uid);

export function makeStatic(pod: Pod, manifest: unknown, origin: Origin, nodeName: string): Pod {
  const uid = pod.metadata.uid || staticUid(manifest, origin, nodeName);
  return {
    ...pod,
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...pod.metadata,
      name: staticName(pod.metadata.name, nodeName),
      namespace: pod.metadata.namespace || 'default',
      uid,
      annotations: { ...pod.metadata.annotations, [CONFIG_HASH]: uid },
    },
    spec: {
      ...pod.spec,
      nodeName,
      ...(origin.local ? { tolerations: withToleration(pod.spec.tolerations ?? []) } : {}),
    },
    status: { phase: 'Pending' },
  };
}

const withToleration = (given: readonly Toleration[]): readonly Toleration[] => {
  const same = (t: Toleration): boolean =>
    !t.key && !t.value && t.operator === TOLERATE_ALL.operator && t.effect === TOLERATE_ALL.effect;
  return given.some(same) ? given.map((t) => (same(t) ? TOLERATE_ALL : t)) : [...given, TOLERATE_ALL];
};
