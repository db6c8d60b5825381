// A node in a cluster: one API server connection, what is watched through it, and what is told to it.
import { join } from 'node:path';
import type { PodUid } from '../core/ids.ts';
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { ClusterObjects, type ClusterObjectsDeps } from '../kube/cluster-objects.ts';
import { ApiEventRecorder, type PodStarts } from '../kube/events.ts';
import { openCheckpoint } from '../kube/pod-checkpoint.ts';
import { PodFeed } from '../kube/pod-feed.ts';
import { PodGuard } from '../kube/pod-guard.ts';
import { NODES } from '../kube/resources.ts';
import { createNodeReporting, type NodeReporting, type NodeReportingDeps } from '../node/create.ts';
import { MirrorKeeper } from '../pods/mirror-keeper.ts';
import { MirrorPods } from '../pods/mirror-pods.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { connectCluster } from '../security/connect-cluster.ts';
import type { StatusStore } from '../status/status-store.ts';
import { StatusSync } from '../status/status-sync.ts';
import { tracedStatuses } from '../trace/traced-ports.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type ClusterDeps = Pick<ClusterObjectsDeps, 'onObjectChange' | 'onTrustBundles' | 'onPodCertificates'> &
  Pick<NodeReportingDeps, 'pressures' | 'shuttingDown' | 'devicesForgotten' | 'volumesInUse' | 'onAnswer'> & {
    readonly base: Foundation;
    readonly edge: RuntimeEdge;
    readonly store: PodStore;
    readonly statuses: StatusStore;
    readonly onPods: (pods: readonly Pod[], origin: 'api' | 'checkpoint') => void;
    readonly onPod: (uid: string, pod: Pod | undefined) => void;
    readonly mayBeRunning: (uid: PodUid) => boolean;
    readonly onStatusSynced: (uid: PodUid) => void;
    /** Our own Node object changed. */
    readonly onNode: (node: Node | undefined) => void;
    readonly starts: PodStarts;
  };

export async function buildCluster(deps: ClusterDeps, signal: AbortSignal): Promise<ClusterPort> {
  const { base, edge, store } = deps;
  const { clock, flags, nodeName } = base;
  const log = base.log.child({ component: 'kube' });
  const { api, parts: identity } = await connectCluster(base, (call) => base.records.calls.begin('api', call), signal);
  const events = new ApiEventRecorder(
    {
      client: api.events,
      clock,
      log: base.log.child({ component: 'events' }),
      starts: deps.starts,
      onEvent: (event) => base.records.timeline.event(event),
    },
    { nodeName },
  );
  const checkpoint = await openCheckpoint(
    flags.podCheckpoint,
    { clock, log: base.log.child({ component: 'checkpoint' }) },
    { dir: join(flags.rootDir, 'last_known'), nodeName },
  );
  const objects = new ClusterObjects(
    { ...deps, api, checkpoint, events, clock, log, registry: base.registry, nodeUid: () => known.get()?.metadata.uid },
    {
      nodeName,
      changeDetection: base.config.configMapAndSecretChangeDetectionStrategy,
      trustBundles: base.gates.enabled('ClusterTrustBundleProjection'),
      podCertificates: base.gates.enabled('PodCertificateRequest'),
    },
  );
  const { nodes } = objects;
  const reporting: NodeReporting = await createNodeReporting(
    base,
    { ...deps, ...edge, api, events, nodeWatch: nodes.store, ...edge.cri },
    edge.version,
  );
  const { known, status } = reporting;
  const guard = new PodGuard({ log, events });
  const feed = new PodFeed(
    {
      client: api.main,
      clock,
      log,
      ready: (stop) => nodes.whenSynced(stop),
      onPods: (pods, origin) => deps.onPods(guard.check(pods), origin),
      onPod: (uid, pod) => deps.onPod(uid, guard.checkOne(uid, pod)),
      ...(checkpoint === undefined ? {} : { checkpoint }),
    },
    { nodeName },
  );
  const mirrors = new MirrorPods({
    client: api.main,
    mirrorOf: (pod) => store.mirrorOf(pod),
    node: () => known.get(),
    log,
  });
  const keeper = new MirrorKeeper({ mirrors, desired: store, clock, log });
  const sync = new StatusSync({
    client: tracedStatuses(base.tracer, api.main),
    statuses: deps.statuses,
    watched: feed.reflector.store,
    mayBeRunning: deps.mayBeRunning,
    onSynced: deps.onStatusSynced,
    clock,
    log: base.log.child({ component: 'status-sync' }),
  });
  feed.reflector.subscribe((changes) => sync.apiPodsChanged(changes));
  nodes.subscribe(() => {
    const node = known.get();
    deps.onNode(node);
    status.nodeSeen(node);
    keeper.nodeSeen(node);
    checkpoint?.nodeChanged(nodes.store.byName(undefined, nodeName));
  });
  return {
    api,
    events,
    objects,
    parts: [
      events,
      ...identity,
      ...objects.parts,
      feed,
      ...(checkpoint === undefined ? [] : [checkpoint]),
      sync,
      keeper,
      ...reporting.parts,
    ],
    prepare: (stop) => reporting.prepare(stop),
    sources: ['api'],
    node: () => known.get() ?? checkpoint?.node ?? reporting.wouldBe(),
    freshNode: (stop) => api.main.get(NODES, { name: nodeName }, stop),
    nodeIps: () => reporting.nodeIps(),
    nodeChanged: () => status.wake(),
    statusChanged: (uid) => sync.wake(uid),
    podsRead: (stop) => feed.reflector.whenSynced(stop),
    mirrorStatus: (pod) =>
      mirrors.statusOf(pod, feed.reflector.store.byName(pod.metadata.namespace, pod.metadata.name)),
    keepMirror: (pod) => keeper.keep(pod),
    removeMirror: async (mirror, stop) => void (await mirrors.delete(mirror, stop)),
  };
}
