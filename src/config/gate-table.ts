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
    `AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors
     BtreeWatchCache CRDValidationRatcheting CSIMigrationPortworx ConsistentListFromCache HonorPVReclaimPolicy
     JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown
     MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread
     OrderedNamespaceDeletion PodSchedulingReadiness RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
     ResilientWatchCacheInitialization SchedulerQueueingHints SeparateTaintEvictionController
     ServiceAccountTokenNodeBinding ServiceTrafficDistribution StreamingCollectionEncodingToJSON
     StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration TopologyAwareHints
     PreferSameTrafficDistribution VolumeAttributesClass`,
  ),
  ...gates('GA', true, false, 'DisableAllocatorDualWrite'),
  ...gates(
    'Beta',
    true,
    false,
    `AllowParsingUserUIDFromCertAuth APIResponseCompression APIServerIdentity APIServerTracing
     ClearingNominatedNodeNameAfterBinding DRAAdminAccess DRAConsumableCapacity DRADeviceBindingConditions
     DRADeviceTaints DRAPrioritizedList DRAResourceClaimDeviceStatus DRASchedulerFilterTimeout DeclarativeValidation
     DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency ExternalServiceAccountTokenSigner
     HPAConfigurableTolerance InformerResourceVersion ListFromCacheSnapshot MatchLabelKeysInPodTopologySpread
     MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet NominatedNodeNameForExpectation
     OpenAPIEnums PodDeletionCost PodTopologyLabelsAdmission PortForwardWebsockets RelaxedServiceNameValidation
     RemoteRequestHeaderUID SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ
     SizeBasedListCostEstimate StorageVersionHash StructuredAuthenticationConfigurationEgressSelector
     StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
     TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation WatchCacheInitializationPostStartHook
     WatchList WinDSR WinOverlay`,
  ),
  ...gates(
    'Beta',
    false,
    false,
    `ConcurrentWatchObjectDecode CoordinatedLeaderElection DeclarativeValidationTakeover
     MutatingAdmissionPolicy StorageVersionMigrator`,
  ),
  ...gates(
    'Alpha',
    false,
    false,
    `APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage ClientsAllowCBOR ClientsPreferCBOR
     CloudControllerManagerWebhook ConstrainedImpersonation CrossNamespaceVolumeDataSource DRADeviceTaintRules
     GangScheduling GenericWorkload HPAScaleToZero InOrderInformers InTreePluginPortworxUnregister
     MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs NodeLifecycleControllerFixes OpportunisticBatching
     PersistentVolumeClaimUnusedSinceTime StorageCapacityScoring StorageVersionAPI StrictIPCIDRValidation
     UnknownVersionInteroperabilityProxy UserNamespacesPodSecurityStandards`,
  ),
  ...gates(
    'Deprecated',
    false,
    false,
    `AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
     InPlacePodVerticalScalingAllocatedStatus KMSv1 LegacySidecarContainers SeparateCacheWatchRPC WindowsHostNetwork`,
  ),
  ...gates('Deprecated', true, false, 'AggregatedDiscoveryRemoveBetaType StorageNamespaceIndex'),
  ...gates('Deprecated', false, true, 'AllowServiceLBStatusOnNonLB WatchFromStorageWithoutResourceVersion'),
];

export const GATES: ReadonlyMap<string, Gate> = new Map([...OTHER_GATES, ...NODE_GATES]);

/** A gate that is on needs these to be on too. */
export const GATE_NEEDS: Readonly<Record<string, readonly string[]>> = {
  ClusterTrustBundleProjection: ['ClusterTrustBundle'],
  DRAExtendedResource: ['DynamicResourceAllocation'],
  ExtendWebSocketsToKubelet: ['NodeDeclaredFeatures'],
  GracefulNodeShutdownBasedOnPodPriority: ['GracefulNodeShutdown'],
  ImageVolumeWithDigest: ['ImageVolume'],
  InPlacePodLevelResourcesVerticalScaling: ['InPlacePodVerticalScaling', 'PodLevelResources', 'NodeDeclaredFeatures'],
  InPlacePodVerticalScalingInitContainers: ['InPlacePodVerticalScaling', 'NodeDeclaredFeatures'],
  PodCertificateRequest: ['AuthorizeNodeWithSelectors'],
  PodLevelResourceManagers: ['PodLevelResources'],
  ResourceHealthStatus: ['DynamicResourceAllocation'],
  ResourceHealthStatusMessage: ['ResourceHealthStatus'],
  RestartAllContainersOnContainerExits: ['ContainerRestartRules', 'NodeDeclaredFeatures'],
  UserNamespacesHostNetworkSupport: ['UserNamespacesSupport', 'NodeDeclaredFeatures'],
  WindowsGracefulNodeShutdown: ['GracefulNodeShutdown'],
};
