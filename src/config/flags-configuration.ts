// Flags that set a field of the KubeletConfiguration. Their defaults are the fields' own, except where a kubelet without a
// configuration file has older ones.
import { CONFIG_FIELDS } from './config-fields.ts';
import type { FlagDef, FlagType } from './flag-types.ts';
import { fieldAt } from './schema.ts';

/** Without --config these hold, as they did before there was a configuration file. */
export const LEGACY_DEFAULTS: Readonly<Record<string, unknown>> = {
  'authentication.anonymous.enabled': true,
  'authentication.webhook.enabled': false,
  'authorization.mode': 'AlwaysAllow',
  readOnlyPort: 10255,
};

const BY_FILE =
  "set it through the file given to the kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.";

const NOT_DEPRECATED = new Set(['v', 'vmodule', 'log-flush-frequency', 'provider-id', 'fail-cgroupv1']);

/** [flag, type, field, help] */
const CONFIG_ROWS: readonly (readonly [string, FlagType, string, string])[] = [
  ['enable-server', 'bool', 'enableServer', "Serve the kubelet's HTTPS endpoints."],
  ['fail-swap-on', 'bool', 'failSwapOn', 'Refuse to start while swap is on.'],
  [
    'pod-manifest-path',
    'string',
    'staticPodPath',
    'Directory of static pod manifests, or one manifest. Files that begin with a dot are ignored.',
  ],
  ['sync-frequency', 'duration', 'syncFrequency', 'Longest time between two looks at a running pod.'],
  ['file-check-frequency', 'duration', 'fileCheckFrequency', 'Time between two looks at the static pod files.'],
  ['http-check-frequency', 'duration', 'httpCheckFrequency', 'Time between two requests to --manifest-url.'],
  ['manifest-url', 'string', 'staticPodURL', 'URL of static pod manifests.'],
  [
    'manifest-url-header',
    'colonMultimap',
    'staticPodURLHeader',
    'Headers for --manifest-url, name:value pairs separated by commas. May be given several times.',
  ],
  ['address', 'ip', 'address', 'Address to serve on; 0.0.0.0 or :: for all of them.'],
  ['port', 'int32', 'port', 'Port to serve HTTPS on.'],
  ['read-only-port', 'int32', 'readOnlyPort', 'Port to serve read-only without authentication on; 0 to switch it off.'],
  ['fail-cgroupv1', 'bool', 'failCgroupV1', 'Refuse to start on a host with cgroup v1.'],
  [
    'container-runtime-endpoint',
    'string',
    'containerRuntimeEndpoint',
    'Socket of the container runtime, unix:///path.',
  ],
  [
    'image-service-endpoint',
    'string',
    'imageServiceEndpoint',
    "Socket of the image service, when it is not the runtime's.",
  ],
  [
    'anonymous-auth',
    'bool',
    'authentication.anonymous.enabled',
    'Let requests without credentials in as system:anonymous.',
  ],
  [
    'authentication-token-webhook',
    'bool',
    'authentication.webhook.enabled',
    'Ask the API server (TokenReview) about bearer tokens.',
  ],
  [
    'authentication-token-webhook-cache-ttl',
    'duration',
    'authentication.webhook.cacheTTL',
    'How long an answer about a token is remembered.',
  ],
  [
    'client-ca-file',
    'string',
    'authentication.x509.clientCAFile',
    'Authorities whose client certificates are accepted; the common name becomes the user.',
  ],
  [
    'authorization-mode',
    'string',
    'authorization.mode',
    'AlwaysAllow, or Webhook to ask the API server (SubjectAccessReview).',
  ],
  [
    'authorization-webhook-cache-authorized-ttl',
    'duration',
    'authorization.webhook.cacheAuthorizedTTL',
    'How long a yes is remembered.',
  ],
  [
    'authorization-webhook-cache-unauthorized-ttl',
    'duration',
    'authorization.webhook.cacheUnauthorizedTTL',
    'How long a no is remembered.',
  ],
  [
    'tls-cert-file',
    'string',
    'tlsCertFile',
    'Serving certificate, with its chain. Without it one is made in --cert-dir.',
  ],
  ['tls-private-key-file', 'string', 'tlsPrivateKeyFile', 'Private key of --tls-cert-file.'],
  [
    'rotate-server-certificates',
    'bool',
    'serverTLSBootstrap',
    "Get and renew the serving certificate through the API server's certificate requests.",
  ],
  [
    'tls-cipher-suites',
    'strings',
    'tlsCipherSuites',
    "Cipher suites to serve with, comma separated. Without it the platform's own.",
  ],
  [
    'tls-min-version',
    'string',
    'tlsMinVersion',
    'Lowest TLS version to serve: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.',
  ],
  ['rotate-certificates', 'bool', 'rotateCertificates', 'Renew the client certificate before it ends.'],
  ['registry-qps', 'int32', 'registryPullQPS', 'Image pulls per second; 0 for no limit.'],
  ['registry-burst', 'int32', 'registryBurst', 'Image pulls at once beyond --registry-qps.'],
  ['event-qps', 'int32', 'eventRecordQPS', 'Events per second to the API server; 0 for no limit.'],
  ['event-burst', 'int32', 'eventBurst', 'Events at once beyond --event-qps.'],
  [
    'enable-debugging-handlers',
    'bool',
    'enableDebuggingHandlers',
    'Serve logs, exec, attach, port-forward and the like.',
  ],
  ['contention-profiling', 'bool', 'enableContentionProfiling', 'Profile lock contention when profiling is on.'],
  ['healthz-port', 'int32', 'healthzPort', 'Port of the local health endpoint; 0 to switch it off.'],
  ['healthz-bind-address', 'ip', 'healthzBindAddress', 'Address of the local health endpoint.'],
  ['oom-score-adj', 'int32', 'oomScoreAdj', "The kubelet's own oom_score_adj, -1000 to 1000."],
  ['cluster-domain', 'string', 'clusterDomain', 'Domain of this cluster; containers search it too.'],
  ['cluster-dns', 'strings', 'clusterDNS', 'Name servers for pods with dnsPolicy ClusterFirst, comma separated.'],
  ['volume-plugin-dir', 'string', 'volumePluginDir', 'Directory to look for FlexVolume drivers in.'],
  [
    'streaming-connection-idle-timeout',
    'duration',
    'streamingConnectionIdleTimeout',
    'How long a streaming connection may be idle; 0 for ever.',
  ],
  ['node-status-update-frequency', 'duration', 'nodeStatusUpdateFrequency', "How often the node's status is computed."],
  [
    'minimum-image-ttl-duration',
    'duration',
    'imageMinimumGCAge',
    'How old an unused image must be before it may be removed.',
  ],
  [
    'image-gc-high-threshold',
    'int32',
    'imageGCHighThresholdPercent',
    'Disk use, in percent, above which images are always collected.',
  ],
  [
    'image-gc-low-threshold',
    'int32',
    'imageGCLowThresholdPercent',
    'Disk use, in percent, down to which images are collected.',
  ],
  [
    'volume-stats-agg-period',
    'duration',
    'volumeStatsAggPeriod',
    'How often the disk use of volumes is measured; negative to switch it off.',
  ],
  [
    'feature-gates',
    'mapStringBool',
    'featureGates',
    'Switches for features that are not settled, Name=true|false pairs separated by commas.',
  ],
  ['kubelet-cgroups', 'string', 'kubeletCgroups', 'Absolute cgroup for the kubelet itself.'],
  ['system-cgroups', 'string', 'systemCgroups', 'Absolute cgroup for processes that are in none. Needs --cgroup-root.'],
  ['provider-id', 'string', 'providerID', 'What a cloud provider calls this machine.'],
  ['cgroups-per-qos', 'bool', 'cgroupsPerQOS', 'Keep one cgroup per quality-of-service class and per pod.'],
  [
    'cgroup-driver',
    'string',
    'cgroupDriver',
    "How cgroups are made: cgroupfs or systemd. The runtime's own answer wins.",
  ],
  ['cgroup-root', 'string', 'cgroupRoot', "Cgroup below which pods live. Empty for the runtime's default."],
  ['cpu-manager-policy', 'string', 'cpuManagerPolicy', 'none or static.'],
  [
    'cpu-manager-policy-options',
    'mapStringStringNoSplit',
    'cpuManagerPolicyOptions',
    'One key=value to tune --cpu-manager-policy. May be given several times.',
  ],
  [
    'cpu-manager-reconcile-period',
    'duration',
    'cpuManagerReconcilePeriod',
    'How often CPU assignments are enforced again.',
  ],
  [
    'qos-reserved',
    'mapStringString',
    'qosReserved',
    'Share of a resource kept for guaranteed pods, such as memory=50%. Needs the QOSReserved feature gate.',
  ],
  ['topology-manager-policy', 'string', 'topologyManagerPolicy', 'none, best-effort, restricted or single-numa-node.'],
  ['topology-manager-scope', 'string', 'topologyManagerScope', 'container or pod.'],
  [
    'topology-manager-policy-options',
    'mapStringString',
    'topologyManagerPolicyOptions',
    'key=value pairs to tune --topology-manager-policy.',
  ],
  [
    'runtime-request-timeout',
    'duration',
    'runtimeRequestTimeout',
    'Deadline of a request to the runtime, except pull, logs, exec and attach.',
  ],
  [
    'hairpin-mode',
    'string',
    'hairpinMode',
    'How a Service reaches its own pod: promiscuous-bridge, hairpin-veth or none.',
  ],
  ['max-pods', 'int32', 'maxPods', 'Most pods on this node.'],
  [
    'pod-cidr',
    'string',
    'podCIDR',
    'Addresses for pods, in standalone mode only. With an API server, the node object says.',
  ],
  ['pod-max-pids', 'int64', 'podPidsLimit', "Most processes in one pod; -1 for the node's allocatable."],
  ['resolv-conf', 'string', 'resolvConf', 'Resolver configuration that pods start from. Empty for none.'],
  ['runonce', 'bool', 'runOnce', 'Start the static pods, report on each and exit.'],
  ['cpu-cfs-quota', 'bool', 'cpuCFSQuota', 'Enforce CPU limits by quota.'],
  ['cpu-cfs-quota-period', 'duration', 'cpuCFSQuotaPeriod', 'Period of the CPU quota, 1ms to 1s.'],
  [
    'enable-controller-attach-detach',
    'bool',
    'enableControllerAttachDetach',
    'Let the attach/detach controller attach volumes, not the kubelet.',
  ],
  ['make-iptables-util-chains', 'bool', 'makeIPTablesUtilChains', 'Keep the iptables chains that other parts rely on.'],
  [
    'container-log-max-size',
    'string',
    'containerLogMaxSize',
    "Size at which a container's log is rotated, such as 10Mi.",
  ],
  ['container-log-max-files', 'int32', 'containerLogMaxFiles', 'Most log files per container, at least 2.'],
  [
    'allowed-unsafe-sysctls',
    'strings',
    'allowedUnsafeSysctls',
    'Unsafe sysctls, or patterns ending in *, that pods may set. Comma separated, at your own risk.',
  ],
  ['node-status-max-images', 'int32', 'nodeStatusMaxImages', "Most images in the node's status; -1 for all."],
  [
    'kernel-memcg-notification',
    'bool',
    'kernelMemcgNotification',
    'Let the kernel tell when memory crosses an eviction threshold, instead of polling alone.',
  ],
  [
    'local-storage-capacity-isolation',
    'bool',
    'localStorageCapacityIsolation',
    'Account for and limit local ephemeral storage.',
  ],
  ['max-open-files', 'int64', 'maxOpenFiles', 'Most files the kubelet may have open.'],
  ['kube-api-content-type', 'string', 'contentType', 'Content type of requests to the API server.'],
  ['kube-api-qps', 'int32', 'kubeAPIQPS', 'Requests per second to the API server, events aside.'],
  ['kube-api-burst', 'int32', 'kubeAPIBurst', 'Requests at once beyond --kube-api-qps.'],
  ['serialize-image-pulls', 'bool', 'serializeImagePulls', 'Pull one image at a time.'],
  [
    'eviction-hard',
    'langleMap',
    'evictionHard',
    'Thresholds at which pods are evicted at once, such as memory.available<100Mi.',
  ],
  [
    'eviction-soft',
    'langleMap',
    'evictionSoft',
    'Thresholds at which pods are evicted after a grace period, such as memory.available<1.5Gi.',
  ],
  [
    'eviction-soft-grace-period',
    'mapStringString',
    'evictionSoftGracePeriod',
    'Grace period of each soft threshold, such as memory.available=1m30s.',
  ],
  [
    'eviction-pressure-transition-period',
    'duration',
    'evictionPressureTransitionPeriod',
    'How long the node waits before it leaves a pressure condition.',
  ],
  [
    'eviction-max-pod-grace-period',
    'int32',
    'evictionMaxPodGracePeriod',
    'Longest grace period, in seconds, for pods evicted by a soft threshold.',
  ],
  [
    'eviction-minimum-reclaim',
    'mapStringString',
    'evictionMinimumReclaim',
    'How much to free at least once a threshold is met, such as imagefs.available=2Gi.',
  ],
  ['pods-per-core', 'int32', 'podsPerCore', 'Most pods per CPU, within --max-pods; 0 for no such limit.'],
  [
    'protect-kernel-defaults',
    'bool',
    'protectKernelDefaults',
    'Refuse to start, instead of changing kernel settings that differ from what the kubelet needs.',
  ],
  [
    'reserved-cpus',
    'string',
    'reservedSystemCPUs',
    'CPUs kept for the system and for Kubernetes, such as 0-3,8. Overrides the cpu of the two reservations below.',
  ],
  [
    'system-reserved',
    'mapStringString',
    'systemReserved',
    'Resources kept for the system: cpu, memory, ephemeral-storage, pid. Such as cpu=200m,memory=500Mi.',
  ],
  [
    'kube-reserved',
    'mapStringString',
    'kubeReserved',
    'Resources kept for Kubernetes: cpu, memory, ephemeral-storage, pid.',
  ],
  [
    'enforce-node-allocatable',
    'strings',
    'enforceNodeAllocatable',
    'What to enforce: none, pods, system-reserved, kube-reserved, and the -compressible forms of the last two.',
  ],
  [
    'system-reserved-cgroup',
    'string',
    'systemReservedCgroup',
    'Absolute cgroup on which --system-reserved is enforced.',
  ],
  ['kube-reserved-cgroup', 'string', 'kubeReservedCgroup', 'Absolute cgroup on which --kube-reserved is enforced.'],
  ['memory-manager-policy', 'string', 'memoryManagerPolicy', 'None or Static.'],
  [
    'reserved-memory',
    'reservedMemory',
    'reservedMemory',
    'Memory kept per NUMA node, such as 0:memory=1Gi,hugepages-1Gi=2Gi. May be given several times.',
  ],
  [
    'register-node',
    'bool',
    'registerNode',
    'Register this node with the API server. Meaningless without --kubeconfig.',
  ],
  [
    'register-with-taints',
    'taints',
    'registerWithTaints',
    'Taints to register with, key=value:Effect, comma separated.',
  ],
];

const LOGGING_ROWS: readonly (readonly [string, FlagType, string, string])[] = [
  ['logging-format', 'string', 'logging.format', 'text or json.'],
  [
    'log-flush-frequency',
    'duration',
    'logging.flushFrequency',
    'Longest time a log line may wait before it is written.',
  ],
  ['v', 'level', 'logging.verbosity', 'Verbosity of the log, 0 to 10.'],
  [
    'vmodule',
    'vmodule',
    'logging.vmodule',
    'Verbosity per component, pattern=N pairs separated by commas. Text format only.',
  ],
  [
    'log-text-split-stream',
    'bool',
    'logging.options.text.splitStream',
    'Text format: errors to standard error, the rest to standard output.',
  ],
  [
    'log-text-info-buffer-size',
    'quantity',
    'logging.options.text.infoBufferSize',
    'Text format with split streams: gather this many bytes of informational output before writing.',
  ],
  [
    'log-json-split-stream',
    'bool',
    'logging.options.json.splitStream',
    'JSON format: errors to standard error, the rest to standard output.',
  ],
  [
    'log-json-info-buffer-size',
    'quantity',
    'logging.options.json.infoBufferSize',
    'JSON format with split streams: gather this many bytes of informational output before writing.',
  ],
];

const define =
  (group: 'Configuration' | 'Logging') =>
  ([name, type, field, help]: (typeof CONFIG_ROWS)[number]): FlagDef => ({
    name,
    type,
    field,
    help,
    group,
    default: defaultOf(field),
    ...(name === 'v' ? { shorthand: 'v' } : {}),
    ...(NOT_DEPRECATED.has(name) ? {} : { deprecated: BY_FILE }),
  });

function defaultOf(path: string): unknown {
  if (Object.hasOwn(LEGACY_DEFAULTS, path)) return LEGACY_DEFAULTS[path];
  const field = fieldAt(CONFIG_FIELDS, path);
  if (field === undefined || field.kind === 'object') throw new Error(`no configuration field ${path}`);
  return field.kind === 'objects' ? [] : field.fallback;
}

export const CONFIG_FLAGS: readonly FlagDef[] = CONFIG_ROWS.map(define('Configuration'));
export const LOGGING_FLAGS: readonly FlagDef[] = LOGGING_ROWS.map(define('Logging'));
