// What a changed configuration means for a running kubelet: which fields take effect at once, which wait for a restart.
import { CONFIG_FIELDS, type KubeletConfig } from './config-fields.ts';
import { readField, withField } from './convert.ts';
import type { Fields } from './schema.ts';

/** Fields whose owners read them afresh each time, or are told. Everything else is fixed while the process lives. */
export const LIVE_FIELDS: ReadonlySet<string> = new Set([
  'logging.verbosity',
  'logging.vmodule',
  'logging.flushFrequency',
  'syncFrequency',
  'fileCheckFrequency',
  'httpCheckFrequency',
  'imageMinimumGCAge',
  'imageMaximumGCAge',
  'imageGCHighThresholdPercent',
  'imageGCLowThresholdPercent',
  'containerLogMaxSize',
  'containerLogMaxFiles',
  'nodeStatusMaxImages',
  'clusterDNS',
  'clusterDomain',
]);

export type ConfigDiff = { readonly live: readonly string[]; readonly needRestart: readonly string[] };

export function diffConfig(before: KubeletConfig, after: KubeletConfig): ConfigDiff {
  const changed = changedFields(before, after);
  return {
    live: changed.filter((path) => LIVE_FIELDS.has(path)),
    needRestart: changed.filter((path) => !LIVE_FIELDS.has(path)),
  };
}

/** `before` with the live fields of `after`: what is in force until the restart. */
export function applyLive(before: KubeletConfig, after: KubeletConfig): KubeletConfig {
  let out = before;
  for (const path of diffConfig(before, after).live) out = withField(out, path, readField(after, path));
  return out;
}

/** The dotted paths of the fields whose values differ. */
const changedFields = (before: KubeletConfig, after: KubeletConfig): string[] =>
  leafPaths(CONFIG_FIELDS, '').filter(
    (path) => JSON.stringify(readField(before, path)) !== JSON.stringify(readField(after, path)),
  );

function leafPaths(fields: Fields, at: string): string[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    field.kind === 'object' && !field.nullable ? leafPaths(field.fields, `${at}${name}.`) : [`${at}${name}`],
  );
}
