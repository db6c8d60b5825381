// The feature gates of Kubernetes 1.36: stage, default, lock, and which gates need which. The kubelet accepts the names of
// the other components too, since one map is often shared by all of them.

export type Stage = 'GA' | 'Beta' | 'Alpha' | 'Deprecated';
export type Gate = { readonly stage: Stage; readonly on: boolean; readonly locked: boolean };

const gates = (stage: Stage, on: boolean, locked: boolean, names: string): [string, Gate][] =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => [name, { stage, on, locked }]);

/** Gates that the node reads. */
const NODE_GATES = [
  ...gates('Deprecated', true, true, 'DisableNodeKubeProxyVersion'),
  ...gates(
    'GA',
    true,
    true,
    `DynamicResourceAllocation ExecProbeTimeout ImageMaximumGCAge ImageVolume InPlacePodVerticalScaling
     KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesGet
     KubeletPodResourcesDynamicResources KubeletTracing MutableCSINodeAllocatableCount NodeLogQuery NodeSwap
     PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking ProcMountType
     RecoverVolumeExpansionFailure RecursiveReadOnlyMounts SELinuxChangePolicy SELinuxMountReadWriteOncePod
     SidecarContainers SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions CPUManagerPolicyOptions
     UserNamespacesSupport CSIServiceAccountTokenSecrets`,
  ),
  ...gates('GA', true, false, 'CustomCPUCFSQuotaPeriod'),
  ...gates(
    'Beta',
    true,
    false,
    `ComponentFlagz ComponentStatusz ContainerCheckpoint ContainerRestartRules ContextualLogging
     CPUManagerPolicyBetaOptions DRAExtendedResource DRAPartitionableDevices EnvFiles ExtendWebSocketsToKubelet
     GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HostnameOverride
     InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax
     KubeletEnsureSecretPulledImages KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
     LoggingBetaOptions NodeDeclaredFeatures PLEGOnDemandRelist PodLevelResources PodReadyToStartContainersCondition
     PreventStaticPodAPIReferences ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile ResourceHealthStatus
     ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
     ServiceAccountNodeAudienceRestriction TopologyManagerPolicyBetaOptions WatchListClient
     WindowsGracefulNodeShutdown`,
  ),
  ...gates(
    'Beta',
    false,
    false,
    `ClusterTrustBundle ClusterTrustBundleProjection LocalStorageCapacityIsolationFSQuotaMonitoring
     PodCertificateRequest SELinuxMount`,
  ),
  ...gates(
    'Alpha',
    false,
    false,
    `CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ContainerStopSignals DRAWorkloadResourceClaims
     DRANodeAllocatableResources EventedPLEG ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
     InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions MemoryQoS NativeHistograms
     PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved
     ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi TaintTolerationComparisonOperators
     TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport WindowsCPUAndMemoryAffinity`,
  ),
  ...gates(
    'Deprecated',
    false,
    false,
    `AllowDNSOnlyNodeCSR ChangeContainerStatusOnKubeletRestart KubeletRegistrationGetOnExistsOnly`,
  ),
  ...gates('Deprecated', true, false, 'DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods'),
  ...gates('Deprecated', false, true, 'GitRepoVolumeDriver'),
];

/** Gates of the API server, the controllers, the scheduler and the proxy: known, and of no effect here. */
const OTHER_GATES = [
  ...gates(
    'GA',
    true,
    true,
    `APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
     AuthorizeWithSelectors BtreeWatchCache CRDValidationRatcheting ConsistentListFromCache
     CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
     ExternalServiceAccountTokenSigner InOrderInformers JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
     JobSuccessPolicy LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator NFTablesProxyMode
     NodeInclusionPolicyInPodTopologySpread OrderedNamespaceDeletion PodSchedulingReadiness
     PreferSameTrafficDistribution RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
     ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints SeparateTaintEvictionController
     ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
     ServiceAccountTokenPodNodeInfo StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
     StructuredAuthenticationConfiguration VolumeAttributesClass WinDSR WinOverlay`,
  ),
  ...gates(
    'GA',
    true,
    false,
    `AllowServiceExternalIPs DRAPrioritizedList InformerResourceVersion MutatingAdmissionPolicy`,
  ),
  ...gates(
    'Beta',
    true,
    false,
    `APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
     AuthorizePodWebsocketUpgradeCreatePermission CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
     ClientsAllowCARotation ClientsAllowTLSCacheGC ConstrainedImpersonation DRAConsumableCapacity
     DRADeviceBindingConditions DRADeviceTaints DRAResourceClaimDeviceStatus
     DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
     DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency HPAConfigurableTolerance
     InOrderInformersBatchProcess ListFromCacheSnapshot MatchLabelKeysInPodTopologySpread
     MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
     MutableSchedulingDirectivesForSuspendedJobs NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
     PodDeletionCost PodTopologyLabelsAdmission PortForwardWebsockets RelaxedServiceNameValidation
     RemoteRequestHeaderUID SchedulerAsyncPreemption SchedulerPopFromBackoffQ SizeBasedListCostEstimate
     StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
     StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
     StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
     StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
     TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
     UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList`,
  ),
  ...gates(
    'Beta',
    false,
    false,
    `ConcurrentWatchObjectDecode CoordinatedLeaderElection DRADeviceTaintRules MaxUnavailableStatefulSet
     SchedulerAsyncAPICalls StorageVersionMigrator`,
  ),
  ...gates(
    'Alpha',
    false,
    false,
    `APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage ClientsAllowCBOR
     ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
     ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRAListTypeAttributes
     DRAResourcePoolStatus GangScheduling GenericWorkload HPAScaleToZero ManifestBasedAdmissionControlConfig
     MutablePVNodeAffinity PersistentVolumeClaimUnusedSinceTime ShardedListAndWatch StorageCapacityScoring
     StorageVersionAPI TopologyAwareWorkloadScheduling VolumeLimitScaling WorkloadAwarePreemption WorkloadWithJob`,
  ),
  ...gates(
    'Deprecated',
    false,
    false,
    `AllowInsecureKubeletCertificateSigningRequests DeclarativeValidationTakeover KMSv1 WindowsHostNetwork`,
  ),
  ...gates('Deprecated', true, false, 'ServiceCIDRStatusFieldWiping StorageNamespaceIndex'),
  ...gates('Deprecated', false, true, 'AllowOverwriteTerminationGracePeriodSeconds SeparateCacheWatchRPC'),
  ...gates('Deprecated', true, true, 'AggregatedDiscoveryRemoveBetaType'),
];

export const GATES: ReadonlyMap<string, Gate> = new Map([...OTHER_GATES, ...NODE_GATES]);

/** A gate that is on needs these to be on too. */
export const GATE_NEEDS: Readonly<Record<string, readonly string[]>> = {
  AuthorizeNodeWithSelectors: ['AuthorizeWithSelectors'],
  ClusterTrustBundleProjection: ['ClusterTrustBundle'],
  DRAAdminAccess: ['DynamicResourceAllocation'],
  DRAConsumableCapacity: ['DynamicResourceAllocation'],
  DRADeviceBindingConditions: ['DynamicResourceAllocation', 'DRAResourceClaimDeviceStatus'],
  DRADeviceTaintRules: ['DRADeviceTaints'],
  DRADeviceTaints: ['DynamicResourceAllocation'],
  DRAExtendedResource: ['DynamicResourceAllocation'],
  DRAListTypeAttributes: ['DynamicResourceAllocation'],
  DRANodeAllocatableResources: ['DynamicResourceAllocation'],
  DRAPartitionableDevices: ['DynamicResourceAllocation'],
  DRAPrioritizedList: ['DynamicResourceAllocation'],
  DRAResourceClaimGranularStatusAuthorization: ['DynamicResourceAllocation', 'DRAResourceClaimDeviceStatus'],
  DRAResourcePoolStatus: ['DynamicResourceAllocation'],
  DRASchedulerFilterTimeout: ['DynamicResourceAllocation'],
  DRAWorkloadResourceClaims: ['DynamicResourceAllocation', 'GenericWorkload'],
  DeclarativeValidationBeta: ['DeclarativeValidation'],
  DeclarativeValidationTakeover: ['DeclarativeValidation'],
  DisableAllocatorDualWrite: ['MultiCIDRServiceAllocator'],
  ExtendWebSocketsToKubelet: ['NodeDeclaredFeatures'],
  GangScheduling: ['GenericWorkload'],
  GracefulNodeShutdownBasedOnPodPriority: ['GracefulNodeShutdown'],
  ImageVolumeWithDigest: ['ImageVolume'],
  InPlacePodLevelResourcesVerticalScaling: ['InPlacePodVerticalScaling', 'PodLevelResources', 'NodeDeclaredFeatures'],
  InPlacePodVerticalScalingExclusiveCPUs: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingExclusiveMemory: ['InPlacePodVerticalScaling'],
  InPlacePodVerticalScalingInitContainers: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures'],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ['MatchLabelKeysInPodTopologySpread'],
  PodCertificateRequest: ['AuthorizeNodeWithSelectors'],
  PodLevelResourceManagers: ['PodLevelResources'],
  PodLifecycleSleepActionAllowZero: ['PodLifecycleSleepAction'],
  ProcMountType: ['UserNamespacesSupport'],
  ResourceHealthStatus: ['DynamicResourceAllocation'],
  ResourceHealthStatusMessage: ['ResourceHealthStatus'],
  RestartAllContainersOnContainerExits: ['ContainerRestartRules', 'NodeDeclaredFeatures'],
  ServiceAccountTokenNodeBinding: ['ServiceAccountTokenNodeBindingValidation'],
  StaleControllerConsistencyDaemonSet: ['AtomicFIFO'],
  StaleControllerConsistencyJob: ['AtomicFIFO'],
  StaleControllerConsistencyReplicaSet: ['AtomicFIFO'],
  StaleControllerConsistencyStatefulSet: ['AtomicFIFO'],
  StorageVersionAPI: ['APIServerIdentity'],
  StructuredAuthenticationConfigurationEgressSelector: ['StructuredAuthenticationConfiguration'],
  StructuredAuthenticationConfigurationJWKSMetrics: ['StructuredAuthenticationConfiguration'],
  TopologyAwareWorkloadScheduling: ['GenericWorkload'],
  UnknownVersionInteroperabilityProxy: ['APIServerIdentity'],
  UserNamespacesHostNetworkSupport: ['UserNamespacesSupport', 'NodeDeclaredFeatures'],
  WindowsGracefulNodeShutdown: ['GracefulNodeShutdown'],
  WorkloadAwarePreemption: ['GangScheduling'],
  WorkloadWithJob: ['GenericWorkload'],
};
