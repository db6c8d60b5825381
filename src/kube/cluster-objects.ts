// The objects of the cluster that a node and its pods use, behind one face: what is watched, what is read when a pod asks,
// and what is issued to pods. Where something was known before a boot, that counts until the API server answers.
import type { EventRecorder } from '../core/events.ts';
import type { KubeObject } from '../core/meta.ts';
import type { ClusterTrustBundle, ConfigMap, Node, RuntimeClass, Secret, Service } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { ApiConnection } from './connect.ts';
import { ObjectCache, type ChangeDetection } from './object-cache.ts';
import { PodCertificates } from './pod-certificates.ts';
import type { PodCheckpoint } from './pod-checkpoint.ts';
import { configMapsOf, secretsOf } from './pod-references.ts';
import { PodTokens } from './pod-tokens.ts';
import { Reflector } from './reflector.ts';
import {
  CONFIG_MAPS,
  NODES,
  RUNTIME_CLASSES,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
  TRUST_BUNDLES,
} from './resources.ts';
import { RuntimeHandlers } from './runtime-handlers.ts';
import { TokenManager } from './tokens.ts';
import { knownObjects, TrustBundleWatch } from './trust-bundle-watch.ts';

export type ClusterObjectsDeps = {
  readonly api: Pick<ApiConnection, 'main' | 'objects'>;
  /** Absent where nothing is kept for a boot without the API server. */
  readonly checkpoint: PodCheckpoint | undefined;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Of this node's object, once that is known. */
  readonly nodeUid: () => string | undefined;
  readonly onObjectChange: (kind: 'configMap' | 'secret', namespace: string, name: string) => void;
  readonly onTrustBundles: () => void;
  readonly onPodCertificates: (uid: string) => void;
};

export type ClusterObjectsOptions = {
  readonly nodeName: string;
  /** `configMapAndSecretChangeDetectionStrategy` */
  readonly changeDetection: ChangeDetection;
  /** Gate `ClusterTrustBundleProjection`. */
  readonly trustBundles: boolean;
  /** Gate `PodCertificateRequest`. */
  readonly podCertificates: boolean;
};

/** A pod's start waits so long for the first list of services. */
const SERVICES_WAIT_MS = 5000;

export class ClusterObjects {
  readonly nodes: Reflector<Node>;
  readonly tokens: PodTokens;
  readonly trustBundles: TrustBundleWatch | undefined;
  readonly podCertificates: PodCertificates | undefined;
  readonly #services: Reflector<Service>;
  readonly #runtimeClasses: Reflector<RuntimeClass>;
  readonly #handlers: RuntimeHandlers;
  readonly #secrets: ObjectCache<Secret>;
  readonly #configMaps: ObjectCache<ConfigMap>;
  readonly #issued: TokenManager;
  readonly #deps: ClusterObjectsDeps;

  constructor(deps: ClusterObjectsDeps, o: ClusterObjectsOptions) {
    const { api, checkpoint, clock, log, onObjectChange } = deps;
    const client = api.main;
    this.#deps = deps;
    const watch = <T extends KubeObject>(options: ConstructorParameters<typeof Reflector<T>>[1]): Reflector<T> =>
      new Reflector<T>({ client, clock, log }, options);
    this.nodes = watch({ name: 'node-watch', resource: NODES, fieldSelector: `metadata.name=${o.nodeName}` });
    this.#services = watch({ name: 'service-watch', resource: SERVICES, fieldSelector: 'spec.clusterIP!=None' });
    this.#runtimeClasses = watch({ name: 'runtime-class-watch', resource: RUNTIME_CLASSES });
    this.#services.subscribe(() => checkpoint?.servicesChanged(this.#services.store.values()));
    this.#handlers = new RuntimeHandlers({
      classes: this.#runtimeClasses,
      lastKnown: checkpoint?.runtimeClasses,
      clock,
    });
    const reads = { client: api.objects, clock, log };
    const strategy = o.changeDetection;
    this.#secrets = new ObjectCache<Secret>(
      {
        ...reads,
        onChange: ({ namespace, name }) => onObjectChange('secret', namespace, name),
        ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.secrets }),
      },
      { name: 'secret-cache', resource: SECRETS, strategy, namesOf: secretsOf },
    );
    this.#configMaps = new ObjectCache<ConfigMap>(
      {
        ...reads,
        onChange: ({ namespace, name }) => onObjectChange('configMap', namespace, name),
        ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.configMaps }),
      },
      { name: 'config-map-cache', resource: CONFIG_MAPS, strategy, namesOf: configMapsOf },
    );
    const accounts = new ObjectCache<KubeObject>(
      {
        ...reads,
        onChange: () => undefined,
        ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.serviceAccounts }),
      },
      { name: 'service-account-reads', resource: SERVICE_ACCOUNTS, strategy: 'Get', namesOf: () => new Set() },
    );
    this.#issued = new TokenManager({
      client,
      clock,
      log,
      ...(checkpoint === undefined ? {} : { issued: checkpoint.tokens }),
    });
    this.tokens = new PodTokens({ tokens: this.#issued, accounts });
    this.trustBundles = o.trustBundles ? watchTrustBundles(deps) : undefined;
    this.podCertificates = o.podCertificates ? issueCertificates(deps, accounts, o.nodeName) : undefined;
  }

  /** Long-lived parts, in start order. */
  get parts(): readonly Runnable[] {
    const optional = [this.trustBundles, this.podCertificates].filter((part) => part !== undefined);
    const watches = [this.nodes, this.#services, this.#runtimeClasses, this.#secrets, this.#configMaps];
    return [...watches, ...optional, this.#issued];
  }

  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap> {
    return this.#configMaps.get(namespace, name, signal);
  }

  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret> {
    return this.#secrets.get(namespace, name, signal);
  }

  /** Undefined until they were read once. */
  services(): readonly Service[] | undefined {
    return knownObjects(this.#services, this.#deps.checkpoint?.services);
  }

  /** Pods that come first at a start wait for the services, for a while, instead of failing for want of them. */
  async servicesRead(signal: AbortSignal): Promise<void> {
    if (this.services() !== undefined) return;
    const read = withDeadline(this.#deps.clock, signal, SERVICES_WAIT_MS, (own) => this.#services.whenSynced(own));
    await read.catch(() => signal.throwIfAborted());
  }

  runtimeHandler(className: string, signal: AbortSignal): Promise<string> {
    return this.#handlers.handlerOf(className, signal);
  }

  /** Keeps the objects a pod refers to at hand until `unregister`. */
  register(pod: Pod): void {
    this.#secrets.register(pod);
    this.#configMaps.register(pod);
  }

  unregister(pod: Pod): void {
    const uid = uidOf(pod);
    for (const cache of [this.#secrets, this.#configMaps]) cache.unregister(uid);
    this.#issued.forgetPod(uid);
    this.podCertificates?.forgetPod(uid);
  }
}

function watchTrustBundles({ api, checkpoint, clock, log, onTrustBundles }: ClusterObjectsDeps): TrustBundleWatch {
  const reflector = new Reflector<ClusterTrustBundle>(
    { client: api.main, clock, log },
    { name: 'trust-bundle-watch', resource: TRUST_BUNDLES },
  );
  reflector.subscribe(() => {
    checkpoint?.trustBundlesChanged(reflector.store.values());
    onTrustBundles();
  });
  return new TrustBundleWatch(clock, reflector, () => checkpoint?.trustBundles);
}

/** Of signers in the cluster, for pods to prove who they are. */
function issueCertificates(
  deps: ClusterObjectsDeps,
  accounts: ObjectCache<KubeObject>,
  nodeName: string,
): PodCertificates {
  const { api, clock, events, nodeUid, onPodCertificates } = deps;
  const log = deps.log.child({ component: 'pod-certificates' });
  const certificates = new PodCertificates(
    { client: api.main, accounts, nodeUid, events, clock, log, onChange: onPodCertificates },
    { nodeName },
  );
  deps.registry.collected(
    'kubelet_podcertificate_states',
    '[ALPHA] Gauge vector reporting the number of pod certificate projected volume sources, faceted by signer_name and state.',
    'gauge',
    () => certificates.counts(),
  );
  return certificates;
}
