// The kubelet's own figures that are counted when somebody asks: pods and containers by state, what this build is and
// which of its features are on, sizes of logs and claimed volumes.
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, uidOf, type Pod, type PodCondition, type PodStatus } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Labels, Registry } from '../lib/metrics.ts';
import type { Summary, VolumeFigures } from './summary-types.ts';

type Sample = readonly [Labels, number];

interface Workers {
  uids(): readonly PodUid[];
  podOf(uid: PodUid): Pod | undefined;
  stateOf(uid: PodUid): { readonly phase: 'syncing' | 'terminating' | 'terminated' | 'finished' } | undefined;
}

export type KubeletMetricsDeps = {
  readonly registry: Registry;
  readonly store: {
    get(uid: PodUid): Pod | undefined;
    all(): readonly Pod[];
    mirrors(): readonly Pod[];
  };
  readonly workers: () => Workers;
  readonly active: () => readonly Pod[];
  readonly statusOf: (uid: PodUid) => PodStatus | undefined;
  readonly snapshots: () => readonly PodSnapshot[];
  /** The latest that was made, however old. */
  readonly summary: () => Summary | undefined;
};

export type KubeletFacts = {
  readonly nodeName: string;
  readonly cgroupVersion: number;
  readonly version: string;
  readonly platform: string;
  /** Who has the figures of containers. */
  readonly provider: 'cadvisor' | 'cri';
  readonly gates: readonly { readonly name: string; readonly stage: string; readonly enabled: boolean }[];
};

const TRUE = 'true';

export function registerKubeletMetrics(deps: KubeletMetricsDeps, facts: KubeletFacts): void {
  registerPods(deps);
  registerRuntime(deps);
  registerFacts(deps.registry, facts);
  registerSizes(deps);
}

function registerPods({ registry, store, workers, active, statusOf }: KubeletMetricsDeps): void {
  const gauge = gaugesOf(registry);
  gauge(
    'kubelet_desired_pods',
    '[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.',
    () => byOrigin(store.all()),
  );
  gauge(
    'kubelet_active_pods',
    '[ALPHA] The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver.',
    () => byOrigin(active()),
  );
  gauge(
    'kubelet_mirror_pods',
    '[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod)',
    () => [[{}, store.mirrors().length]],
  );
  gauge(
    'kubelet_working_pods',
    '[ALPHA] Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod has been removed from local configuration or force deleted in the API and consumes resources that are not otherwise visible.',
    () => workingPods(workers(), store),
  );
  gauge(
    'kubelet_managed_ephemeral_containers',
    '[ALPHA] Current number of ephemeral containers in pods managed by this kubelet.',
    () => [[{}, store.all().reduce((n, pod) => n + (pod.spec.ephemeralContainers?.length ?? 0), 0)]],
  );
  gauge('kubelet_pod_in_progress_resizes', '[ALPHA] Number of in-progress resizes for pods.', () => [
    [{}, resizes(store.all(), statusOf, 'PodResizeInProgress').length],
  ]);
  gauge('kubelet_pod_pending_resizes', '[ALPHA] Number of pending resizes for pods.', () =>
    byReason(resizes(store.all(), statusOf, 'PodResizePending')),
  );
}

/** Resizes that wait and resizes under way, as the pods' own conditions say. */
const resizes = (pods: readonly Pod[], statusOf: KubeletMetricsDeps['statusOf'], type: string): PodCondition[] =>
  pods.flatMap((pod) => (statusOf(uidOf(pod))?.conditions ?? []).filter((c) => c.type === type && c.status === 'True'));

const byReason = (conditions: readonly PodCondition[]): readonly Sample[] =>
  ['Deferred', 'Infeasible'].flatMap((reason): Sample[] => {
    const count = conditions.filter((c) => c.reason === reason).length;
    return count === 0 ? [] : [[{ reason: reason.toLowerCase() }, count]];
  });

const byOrigin = (pods: readonly Pod[]): readonly Sample[] => {
  const ofStatic = pods.filter(isStaticPod).length;
  return [
    [{ static: '' }, pods.length - ofStatic],
    [{ static: TRUE }, ofStatic],
  ];
};

const LIFECYCLES = { syncing: 'sync', terminating: 'terminating', terminated: 'terminated', finished: 'terminated' };
const CONFIGS: readonly (readonly [config: string, isStatic: string])[] = [
  ['desired', ''],
  ['desired', TRUE],
  ['orphan', ''],
  ['orphan', TRUE],
  ['runtime_only', 'unknown'],
];

/** Every combination is shown, the empty ones too. */
function workingPods(workers: Workers, store: { get(uid: PodUid): Pod | undefined }): readonly Sample[] {
  const counts = new Map<string, number>();
  for (const uid of workers.uids()) {
    const state = workers.stateOf(uid);
    if (state === undefined) continue;
    const pod = workers.podOf(uid);
    const config = pod === undefined ? 'runtime_only' : store.get(uidOf(pod)) === undefined ? 'orphan' : 'desired';
    const isStatic = pod === undefined ? 'unknown' : isStaticPod(pod) ? TRUE : '';
    const key = `${LIFECYCLES[state.phase]}/${config}/${isStatic}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return CONFIGS.flatMap(([config, isStatic]) =>
    ['sync', 'terminating', 'terminated'].map((lifecycle): Sample => [
      { lifecycle, config, static: isStatic },
      counts.get(`${lifecycle}/${config}/${isStatic}`) ?? 0,
    ]),
  );
}

function registerRuntime({ registry, snapshots }: KubeletMetricsDeps): void {
  const gauge = gaugesOf(registry);
  gauge('kubelet_running_pods', '[ALPHA] Number of pods that have a running pod sandbox', () => [
    [{}, snapshots().filter((pod) => pod.sandboxes.some((s) => s.ready)).length],
  ]);
  gauge('kubelet_running_containers', '[ALPHA] Number of containers currently running', () => {
    const states = new Map<string, number>();
    for (const { state } of snapshots().flatMap((pod) => pod.containers))
      states.set(state, (states.get(state) ?? 0) + 1);
    return [...states].map(([container_state, count]): Sample => [{ container_state }, count]);
  });
}

function registerFacts(registry: Registry, facts: KubeletFacts): void {
  const gauge = gaugesOf(registry);
  gauge('kubelet_node_name', "[ALPHA] The node's name. The count is always 1.", () => [[{ node: facts.nodeName }, 1]]);
  gauge('kubelet_cgroup_version', '[ALPHA] cgroup version on the hosts.', () => [[{}, facts.cgroupVersion]]);
  gauge(
    'kubelet_metrics_provider',
    "[ALPHA] Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'",
    () => [[{ provider: facts.provider }, 1]],
  );
  gauge(
    'kubernetes_build_info',
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    () => [[buildLabels(facts), 1]],
  );
  gauge(
    'kubernetes_feature_enabled',
    '[BETA] This metric records the data about the stage and enablement of a k8s feature.',
    () =>
      facts.gates.map(({ name, stage, enabled }): Sample => [
        { name, stage: stage === 'GA' ? '' : stage.toUpperCase() },
        enabled ? 1 : 0,
      ]),
  );
}

function buildLabels({ version, platform }: KubeletFacts): Labels {
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  return {
    major,
    minor,
    git_version: version,
    git_commit: '',
    git_tree_state: '',
    build_date: '',
    go_version: '',
    compiler: '',
    platform,
  };
}

const VOLUMES: readonly (readonly [name: string, help: string, pick: (v: VolumeFigures) => number | undefined])[] = [
  ['capacity_bytes', 'Capacity in bytes of the volume', (v) => v.capacityBytes],
  ['available_bytes', 'Number of available bytes in the volume', (v) => v.availableBytes],
  ['used_bytes', 'Number of used bytes in the volume', (v) => v.usedBytes],
  ['inodes', 'Maximum number of inodes in the volume', (v) => v.inodes],
  ['inodes_free', 'Number of free inodes in the volume', (v) => v.inodesFree],
  ['inodes_used', 'Number of used inodes in the volume', (v) => v.inodesUsed],
  [
    'health_status_abnormal',
    'Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy',
    ({ volumeHealthStats: health }) => (health === undefined ? undefined : Number(health.abnormal)),
  ],
];

function registerSizes({ registry, summary }: KubeletMetricsDeps): void {
  const gauge = gaugesOf(registry);
  gauge(
    'kubelet_container_log_filesystem_used_bytes',
    "[ALPHA] Bytes used by the container's logs on the filesystem.",
    () =>
      (summary()?.pods ?? []).flatMap(({ podRef: { uid, namespace, name: pod }, containers }) =>
        containers.flatMap(({ name: container, logs }): Sample[] =>
          logs?.usedBytes === undefined ? [] : [[{ uid, namespace, pod, container }, logs.usedBytes]],
        ),
      ),
  );
  for (const [name, help, pick] of VOLUMES)
    gauge(`kubelet_volume_stats_${name}`, `[ALPHA] ${help}`, () => claimedVolumes(summary(), pick));
}

/** A claim that several pods use is shown once. */
function claimedVolumes(
  summary: Summary | undefined,
  pick: (volume: VolumeFigures) => number | undefined,
): readonly Sample[] {
  const found = new Map<string, Sample>();
  for (const volume of (summary?.pods ?? []).flatMap((pod) => pod.volume ?? [])) {
    const value = pick(volume);
    if (volume.pvcRef === undefined || value === undefined) continue;
    const { namespace, name } = volume.pvcRef;
    found.set(`${namespace}/${name}`, [{ namespace, persistentvolumeclaim: name }, value]);
  }
  return [...found.values()];
}

const gaugesOf =
  (registry: Registry) =>
  (name: string, help: string, collect: () => Iterable<Sample>): void =>
    registry.collected(name, help, 'gauge', collect);
