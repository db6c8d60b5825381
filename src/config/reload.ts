// What a changed configuration means for a running kubelet: which fields take effect at once, which wait for a restart.
import { CONFIG_FIELDS, type KubeletConfig } from './config-fields.ts';
import { readField, withField } from './convert.ts';
import type { Fields } from './schema.ts';

/** Fields that may change while the process lives, once their owner follows them (updates.ts). */
export const LIVE_FIELDS: ReadonlySet<string> = new Set([
  'logging.verbosity',
  'logging.vmodule',
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

/** `live` narrows the fields that take effect at once to those that somebody follows. */
export function diffConfig(
  before: KubeletConfig,
  after: KubeletConfig,
  live: ReadonlySet<string> = LIVE_FIELDS,
): ConfigDiff {
  const changed = changedFields(before, after);
  return {
    live: changed.filter((path) => live.has(path)),
    needRestart: changed.filter((path) => !live.has(path)),
  };
}

/** `before` with those fields of `after`: what is in force until the restart. */
export function applyLive(before: KubeletConfig, after: KubeletConfig, fields: readonly string[]): KubeletConfig {
  let out = before;
  for (const path of fields) out = withField(out, path, readField(after, path));
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
