// The kubectl binaries tests run: real ones, from Debian's packages. KUBECTL_BINARIES (colon-separated paths) names others,
// for instance where there is no network.
import { join } from 'node:path';
import { unpackedPackage } from './debian-package.ts';

export type Kubectl = { readonly version: string; path(): Promise<string> };

/** Debian's stable release and the one of the API version this project implements. */
const VERSIONS = ['1.32', '1.36'];

export function kubectls(): readonly Kubectl[] {
  const named = (process.env['KUBECTL_BINARIES'] ?? '').split(':').filter(Boolean);
  if (named.length > 0) return named.map((path) => ({ version: path, path: () => Promise.resolve(path) }));
  return VERSIONS.map((version) => ({
    version,
    path: async () => join(await unpackedPackage('kubectl', version, 'usr/bin/kubectl'), 'usr/bin/kubectl'),
  }));
}
