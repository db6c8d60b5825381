// The kubelet 1.36's flags and configuration fields as its documentation lists them, written down apart from our own tables
// so that a test can compare the two. Columns: name, type, default; for flags that set a field: name, field.

export const FIELDS = `
enableServer *bool true
staticPodPath string
podLogsDir string /var/log/pods
syncFrequency dur 1m0s
fileCheckFrequency dur 20s
httpCheckFrequency dur 20s
staticPodURL string
staticPodURLHeader stringsMap
address string 0.0.0.0
port int32 10250
readOnlyPort int32 0
tlsCertFile string
tlsPrivateKeyFile string
tlsCipherSuites strings
tlsCurvePreferences int32s
tlsMinVersion string
rotateCertificates bool false
serverTLSBootstrap bool false
authentication.x509.clientCAFile string
authentication.webhook.enabled *bool true
authentication.webhook.cacheTTL dur 2m0s
authentication.anonymous.enabled *bool false
authorization.mode string Webhook
authorization.webhook.cacheAuthorizedTTL dur 5m0s
authorization.webhook.cacheUnauthorizedTTL dur 30s
registryPullQPS *int32 5
registryBurst int32 10
imagePullCredentialsVerificationPolicy string NeverVerifyPreloadedImages
preloadedImagesVerificationAllowlist strings
eventRecordQPS *int32 50
eventBurst int32 100
enableDebuggingHandlers *bool true
enableContentionProfiling bool false
healthzPort *int32 10248
healthzBindAddress string 127.0.0.1
oomScoreAdj *int32 -999
clusterDomain string
clusterDNS strings
streamingConnectionIdleTimeout dur 4h0m0s
nodeStatusUpdateFrequency dur 10s
nodeStatusReportFrequency dur 5m0s
nodeLeaseDurationSeconds int32 40
imageMinimumGCAge dur 2m0s
imageMaximumGCAge dur 0s
imageGCHighThresholdPercent *int32 85
imageGCLowThresholdPercent *int32 80
volumeStatsAggPeriod dur 1m0s
kubeletCgroups string
systemCgroups string
cgroupRoot string
cgroupsPerQOS *bool true
cgroupDriver string cgroupfs
cpuManagerPolicy string none
cpuManagerPolicyOptions stringMap
cpuManagerReconcilePeriod dur 10s
singleProcessOOMKill *bool
memoryManagerPolicy string None
topologyManagerPolicy string none
topologyManagerScope string container
topologyManagerPolicyOptions stringMap
qosReserved stringMap
runtimeRequestTimeout dur 2m0s
hairpinMode string promiscuous-bridge
maxPods int32 110
podCIDR string
podPidsLimit *int64 -1
resolvConf *string /etc/resolv.conf
runOnce bool false
cpuCFSQuota *bool true
cpuCFSQuotaPeriod *dur 100ms
nodeStatusMaxImages *int32 50
maxOpenFiles int64 1000000
contentType string application/vnd.kubernetes.protobuf
kubeAPIQPS *int32 50
kubeAPIBurst int32 100
serializeImagePulls *bool true
maxParallelImagePulls *int32
evictionHard stringMap
evictionSoft stringMap
evictionSoftGracePeriod stringMap
evictionMinimumReclaim stringMap
evictionPressureTransitionPeriod dur 5m0s
evictionMaxPodGracePeriod int32 0
mergeDefaultEvictionSettings *bool false
podsPerCore int32 0
enableControllerAttachDetach *bool true
protectKernelDefaults bool false
makeIPTablesUtilChains *bool true
iptablesMasqueradeBit *int32 14
iptablesDropBit *int32 15
featureGates boolMap
failSwapOn *bool true
memorySwap.swapBehavior string
containerLogMaxSize string 10Mi
containerLogMaxFiles *int32 5
containerLogMaxWorkers *int32 1
containerLogMonitorInterval *dur 10s
configMapAndSecretChangeDetectionStrategy string Watch
systemReserved stringMap
kubeReserved stringMap
reservedSystemCPUs string
showHiddenMetricsForVersion string
systemReservedCgroup string
kubeReservedCgroup string
enforceNodeAllocatable strings pods
allowedUnsafeSysctls strings
volumePluginDir string /usr/libexec/kubernetes/kubelet-plugins/volume/exec/
providerID string
kernelMemcgNotification bool false
logging.format string text
logging.flushFrequency dur 5s
logging.verbosity uint32 0
logging.vmodule objects
logging.options.text.splitStream bool false
logging.options.text.infoBufferSize quantity 0
logging.options.json.splitStream bool false
logging.options.json.infoBufferSize quantity 0
enableSystemLogHandler *bool true
enableSystemLogQuery *bool false
shutdownGracePeriod dur 0s
shutdownGracePeriodCriticalPods dur 0s
shutdownGracePeriodByPodPriority objects
crashLoopBackOff.maxContainerRestartPeriod *dur 5m0s
reservedMemory objects
enableProfilingHandler *bool true
enableDebugFlagsHandler *bool true
seccompDefault *bool false
memoryThrottlingFactor *float 0.9
memoryReservationPolicy string None
registerWithTaints objects
registerNode *bool true
tracing object
localStorageCapacityIsolation *bool true
containerRuntimeEndpoint string unix:///run/containerd/containerd.sock
imageServiceEndpoint string
failCgroupV1 *bool true
userNamespaces object
`;

export const PLAIN_FLAGS = `
config string
config-dir string
kubeconfig string
bootstrap-kubeconfig string
hostname-override string
node-ip string
cert-dir string /var/lib/kubelet/pki
cloud-provider string
root-dir string /var/lib/kubelet
seccomp-default bool false
node-labels labels
lock-file string
exit-on-lock-contention bool false
runtime-cgroups string
image-credential-provider-config string
image-credential-provider-bin-dir string
minimum-container-ttl-duration duration 0s D
maximum-dead-containers-per-container int32 1 D
maximum-dead-containers int32 -1 D
experimental-mounter-path string  D
experimental-allocatable-ignore-eviction bool false D
housekeeping-interval duration 10s
application-metrics-count-limit int 100 D
boot-id-file string /proc/sys/kernel/random/boot_id D
container-hints string /etc/cadvisor/container_hints.json D
containerd string /run/containerd/containerd.sock D
containerd-namespace string k8s.io D
enable-load-reader bool false D
event-storage-age-limit string default=0 D
event-storage-event-limit string default=0 D
global-housekeeping-interval duration 1m0s D
log-cadvisor-usage bool false D
machine-id-file string /etc/machine-id,/var/lib/dbus/machine-id D
storage-driver-user string root D
storage-driver-password string root D
storage-driver-host string localhost:8086 D
storage-driver-db string cadvisor D
storage-driver-table string stats D
storage-driver-secure bool false D
storage-driver-buffer-duration duration 1m0s D
version version false
help bool false
`;

export const FIELD_FLAGS = `
enable-server enableServer
fail-swap-on failSwapOn
pod-manifest-path staticPodPath
sync-frequency syncFrequency
file-check-frequency fileCheckFrequency
http-check-frequency httpCheckFrequency
manifest-url staticPodURL
manifest-url-header staticPodURLHeader
address address
port port
read-only-port readOnlyPort
fail-cgroupv1 failCgroupV1
container-runtime-endpoint containerRuntimeEndpoint
image-service-endpoint imageServiceEndpoint
anonymous-auth authentication.anonymous.enabled
authentication-token-webhook authentication.webhook.enabled
authentication-token-webhook-cache-ttl authentication.webhook.cacheTTL
client-ca-file authentication.x509.clientCAFile
authorization-mode authorization.mode
authorization-webhook-cache-authorized-ttl authorization.webhook.cacheAuthorizedTTL
authorization-webhook-cache-unauthorized-ttl authorization.webhook.cacheUnauthorizedTTL
tls-cert-file tlsCertFile
tls-private-key-file tlsPrivateKeyFile
rotate-server-certificates serverTLSBootstrap
tls-cipher-suites tlsCipherSuites
tls-min-version tlsMinVersion
rotate-certificates rotateCertificates
registry-qps registryPullQPS
registry-burst registryBurst
event-qps eventRecordQPS
event-burst eventBurst
enable-debugging-handlers enableDebuggingHandlers
contention-profiling enableContentionProfiling
healthz-port healthzPort
healthz-bind-address healthzBindAddress
oom-score-adj oomScoreAdj
cluster-domain clusterDomain
cluster-dns clusterDNS
volume-plugin-dir volumePluginDir
streaming-connection-idle-timeout streamingConnectionIdleTimeout
node-status-update-frequency nodeStatusUpdateFrequency
minimum-image-ttl-duration imageMinimumGCAge
image-gc-high-threshold imageGCHighThresholdPercent
image-gc-low-threshold imageGCLowThresholdPercent
volume-stats-agg-period volumeStatsAggPeriod
feature-gates featureGates
kubelet-cgroups kubeletCgroups
system-cgroups systemCgroups
provider-id providerID
cgroups-per-qos cgroupsPerQOS
cgroup-driver cgroupDriver
cgroup-root cgroupRoot
cpu-manager-policy cpuManagerPolicy
cpu-manager-policy-options cpuManagerPolicyOptions
cpu-manager-reconcile-period cpuManagerReconcilePeriod
qos-reserved qosReserved
topology-manager-policy topologyManagerPolicy
topology-manager-scope topologyManagerScope
topology-manager-policy-options topologyManagerPolicyOptions
runtime-request-timeout runtimeRequestTimeout
hairpin-mode hairpinMode
max-pods maxPods
pod-cidr podCIDR
pod-max-pids podPidsLimit
resolv-conf resolvConf
runonce runOnce
cpu-cfs-quota cpuCFSQuota
cpu-cfs-quota-period cpuCFSQuotaPeriod
enable-controller-attach-detach enableControllerAttachDetach
make-iptables-util-chains makeIPTablesUtilChains
container-log-max-size containerLogMaxSize
container-log-max-files containerLogMaxFiles
allowed-unsafe-sysctls allowedUnsafeSysctls
node-status-max-images nodeStatusMaxImages
kernel-memcg-notification kernelMemcgNotification
local-storage-capacity-isolation localStorageCapacityIsolation
max-open-files maxOpenFiles
kube-api-content-type contentType
kube-api-qps kubeAPIQPS
kube-api-burst kubeAPIBurst
serialize-image-pulls serializeImagePulls
eviction-hard evictionHard
eviction-soft evictionSoft
eviction-soft-grace-period evictionSoftGracePeriod
eviction-pressure-transition-period evictionPressureTransitionPeriod
eviction-max-pod-grace-period evictionMaxPodGracePeriod
eviction-minimum-reclaim evictionMinimumReclaim
pods-per-core podsPerCore
protect-kernel-defaults protectKernelDefaults
reserved-cpus reservedSystemCPUs
system-reserved systemReserved
kube-reserved kubeReserved
enforce-node-allocatable enforceNodeAllocatable
system-reserved-cgroup systemReservedCgroup
kube-reserved-cgroup kubeReservedCgroup
memory-manager-policy memoryManagerPolicy
reserved-memory reservedMemory
register-node registerNode
register-with-taints registerWithTaints
logging-format logging.format
log-flush-frequency logging.flushFrequency
v logging.verbosity
vmodule logging.vmodule
log-text-split-stream logging.options.text.splitStream
log-text-info-buffer-size logging.options.text.infoBufferSize
log-json-split-stream logging.options.json.splitStream
log-json-info-buffer-size logging.options.json.infoBufferSize
`;

/** Flags that print a warning are all those that set a field, except these. */
export const SETTLED_FLAGS = ['v', 'vmodule', 'log-flush-frequency', 'provider-id', 'fail-cgroupv1'];
