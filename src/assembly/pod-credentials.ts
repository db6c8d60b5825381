// What pods get to prove and to check identities with, where the gates allow it: certificates, trust bundles.
import type { EventRecorder } from '../core/events.ts';
import type { ClusterTrustBundle } from '../core/node.ts';
import type { ApiConnection } from '../kube/connect.ts';
import { PodCertificates, type PodCertificatesDeps } from '../kube/pod-certificates.ts';
import type { PodCheckpoint } from '../kube/pod-checkpoint.ts';
import { Reflector } from '../kube/reflector.ts';
import { TRUST_BUNDLES } from '../kube/resources.ts';
import { TrustBundleWatch } from '../kube/trust-bundle-watch.ts';
import type { Foundation } from './foundation.ts';

/** Of signers in the cluster, for pods to prove who they are. */
export function buildPodCertificates(
  deps: {
    readonly base: Foundation;
    readonly events: EventRecorder;
    readonly onPodCertificates: (uid: string) => void;
  },
  api: Pick<PodCertificatesDeps, 'client' | 'accounts' | 'nodeUid'>,
): PodCertificates | undefined {
  const { base, events, onPodCertificates } = deps;
  if (!base.gates.enabled('PodCertificateRequest')) return undefined;
  const log = base.log.child({ component: 'pod-certificates' });
  const certificates = new PodCertificates(
    { ...api, events, clock: base.clock, log, onChange: onPodCertificates },
    { nodeName: base.nodeName },
  );
  base.registry.collected(
    'kubelet_podcertificate_states',
    'Gauge vector reporting the number of pod certificate projected volume sources, faceted by signer_name and state.',
    'gauge',
    () => certificates.counts(),
  );
  return certificates;
}

export function buildTrustBundles(
  { base, onTrustBundles }: { readonly base: Foundation; readonly onTrustBundles: () => void },
  api: ApiConnection,
  checkpoint: PodCheckpoint | undefined,
): TrustBundleWatch | undefined {
  if (!base.gates.enabled('ClusterTrustBundleProjection')) return undefined;
  const reflector = new Reflector<ClusterTrustBundle>(
    { client: api.main, clock: base.clock, log: base.log.child({ component: 'kube' }) },
    { name: 'trust-bundle-watch', resource: TRUST_BUNDLES },
  );
  reflector.subscribe(() => {
    checkpoint?.trustBundlesChanged(reflector.store.values());
    onTrustBundles();
  });
  return new TrustBundleWatch(base.clock, reflector, () => checkpoint?.trustBundles);
}
