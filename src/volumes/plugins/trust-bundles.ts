// The certificates behind clusterTrustBundle sources: of one bundle by name, or of all of a signer's bundles that match a
// selector. Each certificate once, in an order that is stable while the process lives and differs between processes, so
// that nobody comes to depend on it.
import { createHash } from 'node:crypto';
import type { ClusterTrustBundle } from '../../core/node.ts';
import { matchesLabelSelector } from '../../core/selectors.ts';
import { KubeletError } from '../../lib/errors.ts';
import { pem, pemBlocks } from '../../lib/x509/der.ts';
import type { TrustBundleQuery, TrustBundleSource } from './sources.ts';

/** All bundles of the cluster, or undefined while they cannot be read. */
export interface TrustBundleLister {
  bundles(signal: AbortSignal): Promise<readonly ClusterTrustBundle[] | undefined>;
}

export class TrustBundles implements TrustBundleSource {
  readonly #lister: TrustBundleLister;
  readonly #salt: string;

  /** `salt`: anything random, chosen once per process. */
  constructor(lister: TrustBundleLister, salt: string) {
    this.#lister = lister;
    this.#salt = salt;
  }

  async certificates(query: TrustBundleQuery, signal: AbortSignal): Promise<string> {
    const all = await this.#lister.bundles(signal);
    if (all === undefined) throw new KubeletError('unavailable', 'ClusterTrustBundle informer has not yet synced');
    const found = select(all, query);
    if (found.length === 0 && !query.optional) throw new KubeletError('notFound', missing(query));
    return this.#pem(found.map((bundle) => bundle.spec.trustBundle));
  }

  #pem(texts: readonly string[]): string {
    const certificates = new Map<string, Buffer>();
    for (const { bytes } of texts.flatMap(pemBlocks)) {
      const place = createHash('sha256').update(this.#salt).update(bytes).digest('hex');
      certificates.set(place, bytes);
    }
    const ordered = [...certificates].sort(([a], [b]) => (a < b ? -1 : 1));
    return ordered.map(([, bytes]) => pem('CERTIFICATE', bytes)).join('');
  }
}

function select(all: readonly ClusterTrustBundle[], query: TrustBundleQuery): ClusterTrustBundle[] {
  if ('name' in query) return all.filter((bundle) => bundle.metadata.name === query.name);
  return all.filter(
    (bundle) =>
      bundle.spec.signerName === query.signerName &&
      matchesLabelSelector(query.labelSelector, bundle.metadata.labels ?? {}),
  );
}

const missing = (query: TrustBundleQuery): string =>
  'name' in query
    ? `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "${query.name}" not found`
    : 'combination of signerName and labelSelector matched zero ClusterTrustBundles';
