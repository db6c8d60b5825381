// What pods get to prove and to check identities with, where the gates allow it: certificates, trust bundles.
import type { EventRecorder } from '../core/events.ts';
import type { KubeObject } from '../core/meta.ts';
import type { ClusterTrustBundle } from '../core/node.ts';
import type { ApiConnection } from '../kube/connect.ts';
import { PodCertificates, type PodCertificatesDeps } from '../kube/pod-certificates.ts';
import type { PodCheckpoint } from '../kube/pod-checkpoint.ts';
import { Reflector } from '../kube/reflector.ts';
import { TRUST_BUNDLES } from '../kube/resources.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { TrustBundleLister } from '../volumes/plugins/trust-bundles.ts';
import type { Foundation } from './foundation.ts';

/** What the first pod waits for before it is told to try again. */
const FIRST_READ_MS = 1000;

/** As the API server has them, else as they were last; undefined if nobody ever said. */
export const knownObjects = <T extends KubeObject>(
  reflector: Reflector<T>,
  before: readonly T[] | undefined,
): readonly T[] | undefined => (reflector.synced ? [...reflector.store.values()] : before);

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

/** Watched from the first pod on that asks: the gate is off by default, and so may the API be. */
export function buildTrustBundles(
  { base, onTrustBundles }: { readonly base: Foundation; readonly onTrustBundles: () => void },
  api: ApiConnection,
  checkpoint: PodCheckpoint | undefined,
): { readonly part: Runnable; readonly lister: TrustBundleLister } | undefined {
  if (!base.gates.enabled('ClusterTrustBundleProjection')) return undefined;
  const reflector = new Reflector<ClusterTrustBundle>(
    { client: api.main, clock: base.clock, log: base.log.child({ component: 'kube' }) },
    { name: 'trust-bundle-watch', resource: TRUST_BUNDLES },
  );
  reflector.subscribe(() => {
    checkpoint?.trustBundlesChanged(reflector.store.values());
    onTrustBundles();
  });
  const asked = Promise.withResolvers<void>();
  const run = async (signal: AbortSignal): Promise<void> => {
    await abortable(signal, asked.promise).catch(() => undefined);
    await reflector.run(signal);
  };
  const bundles = async (signal: AbortSignal): Promise<readonly ClusterTrustBundle[] | undefined> => {
    asked.resolve();
    if (!reflector.synced)
      await withDeadline(base.clock, signal, FIRST_READ_MS, (stop) => reflector.whenSynced(stop)).catch(() =>
        signal.throwIfAborted(),
      );
    return knownObjects(reflector, checkpoint?.trustBundles);
  };
  return { part: { name: reflector.name, run }, lister: { bundles } };
}
