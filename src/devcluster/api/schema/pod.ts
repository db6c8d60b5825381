// Pods and what is in them. How to read it: messages.ts.

export const POD = `
Affinity: 1 nodeAffinity *mNodeAffinity; 2 podAffinity *mPodAffinity; 3 podAntiAffinity *mPodAntiAffinity
AppArmorProfile: 1 type s!; 2 localhostProfile *s
Capabilities: 1 add [s; 2 drop [s
ConfigMapEnvSource: 1 ~ mLocalObjectReference; 2 optional *b
ConfigMapKeySelector: 1 ~ mLocalObjectReference; 2 key s!; 3 optional *b
Container: 1 name s!; 2 image s; 3 command [s; 4 args [s; 5 workingDir s; 6 ports [mContainerPort;
  19 envFrom [mEnvFromSource; 7 env [mEnvVar; 8 resources mResourceRequirements;
  23 resizePolicy [mContainerResizePolicy; 24 restartPolicy *s; 25 restartPolicyRules [mContainerRestartRule;
  9 volumeMounts [mVolumeMount; 21 volumeDevices [mVolumeDevice; 10 livenessProbe *mProbe; 11 readinessProbe *mProbe;
  22 startupProbe *mProbe; 12 lifecycle *mLifecycle; 13 terminationMessagePath s; 20 terminationMessagePolicy s;
  14 imagePullPolicy s; 15 securityContext *mSecurityContext; 16 stdin b; 17 stdinOnce b; 18 tty b
ContainerExtendedResourceRequest: 1 containerName s!; 2 resourceName s!; 3 requestName s!
ContainerPort: 1 name s; 2 hostPort i; 3 containerPort i!; 4 protocol s; 5 hostIP s
ContainerResizePolicy: 1 resourceName s!; 2 restartPolicy s!
ContainerRestartRule: 1 action s; 2 exitCodes *mContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: 1 operator s; 2 values [i
ContainerState: 1 waiting *mContainerStateWaiting; 2 running *mContainerStateRunning;
  3 terminated *mContainerStateTerminated
ContainerStateRunning: 1 startedAt t
ContainerStateTerminated: 1 exitCode i!; 2 signal i; 3 reason s; 4 message s; 5 startedAt t; 6 finishedAt t;
  7 containerID s
ContainerStateWaiting: 1 reason s; 2 message s
ContainerStatus: 1 name s!; 2 state mContainerState; 3 lastState mContainerState; 4 ready b!; 5 restartCount i!;
  6 image s!; 7 imageID s!; 8 containerID s; 9 started *b; 10 allocatedResources {q;
  11 resources *mResourceRequirements; 12 volumeMounts [mVolumeMountStatus; 13 user *mContainerUser;
  14 allocatedResourcesStatus [mResourceStatus; 15 stopSignal *s
ContainerUser: 1 linux *mLinuxContainerUser
EnvFromSource: 1 prefix s; 2 configMapRef *mConfigMapEnvSource; 3 secretRef *mSecretEnvSource
EnvVar: 1 name s!; 2 value s; 3 valueFrom *mEnvVarSource
EnvVarSource: 1 fieldRef *mObjectFieldSelector; 2 resourceFieldRef *mResourceFieldSelector;
  3 configMapKeyRef *mConfigMapKeySelector; 4 secretKeyRef *mSecretKeySelector; 5 fileKeyRef *mFileKeySelector
EphemeralContainer: 1 ~ mEphemeralContainerCommon; 2 targetContainerName s
EphemeralContainerCommon: 1 name s!; 2 image s; 3 command [s; 4 args [s; 5 workingDir s; 6 ports [mContainerPort;
  19 envFrom [mEnvFromSource; 7 env [mEnvVar; 8 resources mResourceRequirements;
  23 resizePolicy [mContainerResizePolicy; 24 restartPolicy *s; 25 restartPolicyRules [mContainerRestartRule;
  9 volumeMounts [mVolumeMount; 21 volumeDevices [mVolumeDevice; 10 livenessProbe *mProbe; 11 readinessProbe *mProbe;
  22 startupProbe *mProbe; 12 lifecycle *mLifecycle; 13 terminationMessagePath s; 20 terminationMessagePolicy s;
  14 imagePullPolicy s; 15 securityContext *mSecurityContext; 16 stdin b; 17 stdinOnce b; 18 tty b
EvictionResponder: 1 name s!; 2 priority *i!
ExecAction: 1 command [s
FileKeySelector: 1 volumeName s!; 2 path s!; 3 key s!; 4 optional *b
GRPCAction: 1 port i!; 2 service *s!; 3 mode *s
HTTPGetAction: 1 path s; 2 port x!; 3 host s; 4 scheme s; 5 httpHeaders [mHTTPHeader; 6 protocol *s
HTTPHeader: 1 name s!; 2 value s!
HostAlias: 1 ip s!; 2 hostnames [s
HostIP: 1 ip s!
ImageVolumeStatus: 1 imageRef s
Lifecycle: 1 postStart *mLifecycleHandler; 2 preStop *mLifecycleHandler; 3 stopSignal *s
LifecycleHandler: 1 exec *mExecAction; 2 httpGet *mHTTPGetAction; 3 tcpSocket *mTCPSocketAction;
  4 sleep *mSleepAction
LinuxContainerUser: 1 uid i!; 2 gid i!; 3 supplementalGroups [i
LocalObjectReference: 1 name s
NodeAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution *mNodeSelector;
  2 preferredDuringSchedulingIgnoredDuringExecution [mPreferredSchedulingTerm
NodeAllocatableMappedResources: 1 name s!; 2 quantity *q!
NodeAllocatableOverheadResources: 1 name s!; 2 perPod *q; 3 perContainer *q
NodeAllocatableResourceClaimStatus: 1 resourceClaimName s!; 2 containers [s;
  4 mapping [mNodeAllocatableMappedResources; 5 overhead [mNodeAllocatableOverheadResources
NodeSelector: 1 nodeSelectorTerms [mNodeSelectorTerm!
NodeSelectorRequirement: 1 key s!; 2 operator s!; 3 values [s
NodeSelectorTerm: 1 matchExpressions [mNodeSelectorRequirement; 2 matchFields [mNodeSelectorRequirement
ObjectFieldSelector: 1 apiVersion s; 2 fieldPath s!
Pod: 1 metadata mmeta.ObjectMeta; 2 spec mPodSpec; 3 status mPodStatus
PodAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution [mPodAffinityTerm;
  2 preferredDuringSchedulingIgnoredDuringExecution [mWeightedPodAffinityTerm
PodAffinityTerm: 1 labelSelector *mmeta.LabelSelector; 2 namespaces [s; 3 topologyKey s!;
  4 namespaceSelector *mmeta.LabelSelector; 5 matchLabelKeys [s; 6 mismatchLabelKeys [s
PodAntiAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution [mPodAffinityTerm;
  2 preferredDuringSchedulingIgnoredDuringExecution [mWeightedPodAffinityTerm
PodCondition: 1 type s!; 7 observedGeneration i; 2 status s!; 3 lastProbeTime t; 4 lastTransitionTime t; 5 reason s;
  6 message s
PodDNSConfig: 1 nameservers [s; 2 searches [s; 3 options [mPodDNSConfigOption
PodDNSConfigOption: 1 name s; 2 value *s
PodExtendedResourceClaimStatus: 1 requestMappings [mContainerExtendedResourceRequest!; 2 resourceClaimName s!
PodIP: 1 ip s!
PodOS: 1 name s!
PodReadinessGate: 1 conditionType s!
PodResourceClaim: 1 name s!; 3 resourceClaimName *s; 4 resourceClaimTemplateName *s
PodResourceClaimStatus: 1 name s!; 2 resourceClaimName *s
PodSchedulingGate: 1 name s!
PodSchedulingGroup: 1 podGroupName *s
PodSecurityContext: 1 seLinuxOptions *mSELinuxOptions; 8 windowsOptions *mWindowsSecurityContextOptions;
  2 runAsUser *i; 6 runAsGroup *i; 3 runAsNonRoot *b; 4 supplementalGroups [i; 12 supplementalGroupsPolicy *s;
  5 fsGroup *i; 7 sysctls [mSysctl; 9 fsGroupChangePolicy *s; 10 seccompProfile *mSeccompProfile;
  11 appArmorProfile *mAppArmorProfile; 13 seLinuxChangePolicy *s
PodSpec: 1 volumes [mVolume; 20 initContainers [mContainer; 2 containers [mContainer!;
  34 ephemeralContainers [mEphemeralContainer; 3 restartPolicy s; 4 terminationGracePeriodSeconds *i;
  5 activeDeadlineSeconds *i; 6 dnsPolicy s; 7 nodeSelector {s; 8 serviceAccountName s; 9 serviceAccount s;
  21 automountServiceAccountToken *b; 10 nodeName s; 11 hostNetwork b; 12 hostPID b; 13 hostIPC b;
  27 shareProcessNamespace *b; 14 securityContext *mPodSecurityContext; 15 imagePullSecrets [mLocalObjectReference;
  16 hostname s; 17 subdomain s; 18 affinity *mAffinity; 19 schedulerName s; 22 tolerations [mToleration;
  23 hostAliases [mHostAlias; 24 priorityClassName s; 25 priority *i; 26 dnsConfig *mPodDNSConfig;
  28 readinessGates [mPodReadinessGate; 29 runtimeClassName *s; 30 enableServiceLinks *b; 31 preemptionPolicy *s;
  32 overhead {q; 33 topologySpreadConstraints [mTopologySpreadConstraint; 35 setHostnameAsFQDN *b; 36 os *mPodOS;
  37 hostUsers *b; 38 schedulingGates [mPodSchedulingGate; 39 resourceClaims [mPodResourceClaim;
  40 resources *mResourceRequirements; 41 hostnameOverride *s; 43 schedulingGroup *mPodSchedulingGroup;
  44 evictionResponders [mEvictionResponder
PodStatus: 17 observedGeneration i; 1 phase s; 2 conditions [mPodCondition; 3 message s; 4 reason s;
  11 nominatedNodeName s; 5 hostIP s; 16 hostIPs [mHostIP; 6 podIP s; 12 podIPs [mPodIP; 7 startTime *t;
  10 initContainerStatuses [mContainerStatus; 8 containerStatuses [mContainerStatus; 9 qosClass s;
  13 ephemeralContainerStatuses [mContainerStatus; 14 resize s; 15 resourceClaimStatuses [mPodResourceClaimStatus;
  18 extendedResourceClaimStatus *mPodExtendedResourceClaimStatus; 19 allocatedResources {q;
  20 resources *mResourceRequirements; 21 nodeAllocatableResourceClaimStatuses [mNodeAllocatableResourceClaimStatus;
  22 volumeHealth [mPodVolumeHealth
PodVolumeHealth: 1 name s!; 2 healthConditions [mVolumeHealthCondition; 3 lastTransitionTime t
PreferredSchedulingTerm: 1 weight i!; 2 preference mNodeSelectorTerm!
Probe: 1 ~ mProbeHandler; 2 initialDelaySeconds i; 3 timeoutSeconds i; 4 periodSeconds i; 5 successThreshold i;
  6 failureThreshold i; 7 terminationGracePeriodSeconds *i
ProbeHandler: 1 exec *mExecAction; 2 httpGet *mHTTPGetAction; 3 tcpSocket *mTCPSocketAction; 4 grpc *mGRPCAction
ResourceClaim: 1 name s!; 2 request s
ResourceFieldSelector: 1 containerName s; 2 resource s!; 3 divisor q
ResourceHealth: 1 resourceID s!; 2 health s; 6 message *s
ResourceRequirements: 1 limits {q; 2 requests {q; 3 claims [mResourceClaim
ResourceStatus: 1 name s!; 2 resources [mResourceHealth
SELinuxOptions: 1 user s; 2 role s; 3 type s; 4 level s
SeccompProfile: 1 type s!; 2 localhostProfile *s
SecretEnvSource: 1 ~ mLocalObjectReference; 2 optional *b
SecretKeySelector: 1 ~ mLocalObjectReference; 2 key s!; 3 optional *b
SecurityContext: 1 capabilities *mCapabilities; 2 privileged *b; 3 seLinuxOptions *mSELinuxOptions;
  10 windowsOptions *mWindowsSecurityContextOptions; 4 runAsUser *i; 8 runAsGroup *i; 5 runAsNonRoot *b;
  6 readOnlyRootFilesystem *b; 7 allowPrivilegeEscalation *b; 9 procMount *s; 11 seccompProfile *mSeccompProfile;
  12 appArmorProfile *mAppArmorProfile
SleepAction: 1 seconds i!
Sysctl: 1 name s!; 2 value s!
TCPSocketAction: 1 port x!; 2 host s
Toleration: 1 key s; 2 operator s; 3 value s; 4 effect s; 5 tolerationSeconds *i
TopologySpreadConstraint: 1 maxSkew i!; 2 topologyKey s!; 3 whenUnsatisfiable s!;
  4 labelSelector *mmeta.LabelSelector; 5 minDomains *i; 6 nodeAffinityPolicy *s; 7 nodeTaintsPolicy *s;
  8 matchLabelKeys [s
VolumeDevice: 1 name s!; 2 devicePath s!
VolumeHealthCondition: 1 status s!; 2 reason s!; 3 message s
VolumeMount: 1 name s!; 2 readOnly b; 7 recursiveReadOnly *s; 3 mountPath s!; 4 subPath s; 5 mountPropagation *s;
  6 subPathExpr s; 8 bindMountOptions [s
VolumeMountStatus: 1 name s!; 2 mountPath s!; 3 readOnly b; 4 recursiveReadOnly *s; 5 volumeStatus *mVolumeStatus
VolumeStatus: 1 image *mImageVolumeStatus
WeightedPodAffinityTerm: 1 weight i!; 2 podAffinityTerm mPodAffinityTerm!
WindowsSecurityContextOptions: 1 gmsaCredentialSpecName *s; 2 gmsaCredentialSpec *s; 3 runAsUserName *s;
  4 hostProcess *b
`;
