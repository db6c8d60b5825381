// What /configz shows: as configured, but for what was found out since.
import { join } from 'node:path';
import type { KubeletConfig } from './config-fields.ts';
import { toVersionedJson } from './convert.ts';
import type { Environment } from './environment.ts';
import { maskConfig } from './mask.ts';
import type { JsonObject } from './schema.ts';

/** The v1beta1 form of the configuration in force, with credentials hidden. */
export const configz = (
  { flags, updates }: Pick<Environment, 'flags' | 'updates'>,
  found: { readonly cgroupDriver: KubeletConfig['cgroupDriver'] },
): JsonObject => maskConfig(toVersionedJson(configInForce(updates.published, { ...found, certDir: flags.certDir })));

/** The runtime's cgroup driver and the certificate made here are found out after the configuration was read. */
export function configInForce(
  config: KubeletConfig,
  { cgroupDriver, certDir }: { readonly cgroupDriver: KubeletConfig['cgroupDriver']; readonly certDir: string },
): KubeletConfig {
  const own = config.tlsCertFile === '' && !config.serverTLSBootstrap;
  return {
    ...config,
    cgroupDriver,
    ...(own ? { tlsCertFile: join(certDir, 'kubelet.crt'), tlsPrivateKeyFile: join(certDir, 'kubelet.key') } : {}),
  };
}
