// The fields of `v1.Pod` and all it is made of, as Kubernetes numbers them in protobuf. A line is a message: its name, then
// `number:field:type` for each field. No type is a string; `i` integer, `b` boolean, `y` bytes; `*` after a type is a list,
// `%` a map from strings. `^` before a field: JSON has its fields one level up.
export const POD_MESSAGES = `
AWSElasticBlockStoreVolumeSource 1:volumeID 2:fsType 3:partition:i 4:readOnly:b
Affinity 1:nodeAffinity:NodeAffinity 2:podAffinity:PodAffinity 3:podAntiAffinity:PodAntiAffinity
AppArmorProfile 1:type 2:localhostProfile
AzureDiskVolumeSource 1:diskName 2:diskURI 3:cachingMode 4:fsType 5:readOnly:b 6:kind
AzureFileVolumeSource 1:secretName 2:shareName 3:readOnly:b
CSIVolumeSource 1:driver 2:readOnly:b 3:fsType 4:volumeAttributes:s% 5:nodePublishSecretRef:LocalObjectReference
Capabilities 1:add:s* 2:drop:s*
CephFSVolumeSource 1:monitors:s* 2:path 3:user 4:secretFile 5:secretRef:LocalObjectReference 6:readOnly:b
CinderVolumeSource 1:volumeID 2:fsType 3:readOnly:b 4:secretRef:LocalObjectReference
ClusterTrustBundleProjection 1:name 2:signerName 3:labelSelector:LabelSelector 5:optional:b 4:path
ConfigMapEnvSource 1:^localObjectReference:LocalObjectReference 2:optional:b
ConfigMapKeySelector 1:^localObjectReference:LocalObjectReference 2:key 3:optional:b
ConfigMapProjection 1:^localObjectReference:LocalObjectReference 2:items:KeyToPath* 4:optional:b
ConfigMapVolumeSource 1:^localObjectReference:LocalObjectReference 2:items:KeyToPath* 3:defaultMode:i 4:optional:b
Container 1:name 2:image 3:command:s* 4:args:s* 5:workingDir 6:ports:ContainerPort* 19:envFrom:EnvFromSource* 7:env:EnvVar* 8:resources:ResourceRequirements 23:resizePolicy:ContainerResizePolicy* 24:restartPolicy 25:restartPolicyRules:ContainerRestartRule* 9:volumeMounts:VolumeMount* 21:volumeDevices:VolumeDevice* 10:livenessProbe:Probe 11:readinessProbe:Probe 22:startupProbe:Probe 12:lifecycle:Lifecycle 13:terminationMessagePath 20:terminationMessagePolicy 14:imagePullPolicy 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
ContainerExtendedResourceRequest 1:containerName 2:resourceName 3:requestName
ContainerPort 1:name 2:hostPort:i 3:containerPort:i 4:protocol 5:hostIP
ContainerResizePolicy 1:resourceName 2:restartPolicy
ContainerRestartRule 1:action 2:exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes 1:operator 2:values:i*
ContainerState 1:waiting:ContainerStateWaiting 2:running:ContainerStateRunning 3:terminated:ContainerStateTerminated
ContainerStateRunning 1:startedAt:Time
ContainerStateTerminated 1:exitCode:i 2:signal:i 3:reason 4:message 5:startedAt:Time 6:finishedAt:Time 7:containerID
ContainerStateWaiting 1:reason 2:message
ContainerStatus 1:name 2:state:ContainerState 3:lastState:ContainerState 4:ready:b 5:restartCount:i 6:image 7:imageID 8:containerID 9:started:b 10:allocatedResources:Quantity% 11:resources:ResourceRequirements 12:volumeMounts:VolumeMountStatus* 13:user:ContainerUser 14:allocatedResourcesStatus:ResourceStatus* 15:stopSignal
ContainerUser 1:linux:LinuxContainerUser
DownwardAPIProjection 1:items:DownwardAPIVolumeFile*
DownwardAPIVolumeFile 1:path 2:fieldRef:ObjectFieldSelector 3:resourceFieldRef:ResourceFieldSelector 4:mode:i
DownwardAPIVolumeSource 1:items:DownwardAPIVolumeFile* 2:defaultMode:i
EmptyDirVolumeSource 1:medium 2:sizeLimit:Quantity
EnvFromSource 1:prefix 2:configMapRef:ConfigMapEnvSource 3:secretRef:SecretEnvSource
EnvVar 1:name 2:value 3:valueFrom:EnvVarSource
EnvVarSource 1:fieldRef:ObjectFieldSelector 2:resourceFieldRef:ResourceFieldSelector 3:configMapKeyRef:ConfigMapKeySelector 4:secretKeyRef:SecretKeySelector 5:fileKeyRef:FileKeySelector
EphemeralContainer 1:^ephemeralContainerCommon:EphemeralContainerCommon 2:targetContainerName
EphemeralContainerCommon 1:name 2:image 3:command:s* 4:args:s* 5:workingDir 6:ports:ContainerPort* 19:envFrom:EnvFromSource* 7:env:EnvVar* 8:resources:ResourceRequirements 23:resizePolicy:ContainerResizePolicy* 24:restartPolicy 25:restartPolicyRules:ContainerRestartRule* 9:volumeMounts:VolumeMount* 21:volumeDevices:VolumeDevice* 10:livenessProbe:Probe 11:readinessProbe:Probe 22:startupProbe:Probe 12:lifecycle:Lifecycle 13:terminationMessagePath 20:terminationMessagePolicy 14:imagePullPolicy 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
EphemeralVolumeSource 1:volumeClaimTemplate:PersistentVolumeClaimTemplate
ExecAction 1:command:s*
FCVolumeSource 1:targetWWNs:s* 2:lun:i 3:fsType 4:readOnly:b 5:wwids:s*
FileKeySelector 1:volumeName 2:path 3:key 4:optional:b
FlexVolumeSource 1:driver 2:fsType 3:secretRef:LocalObjectReference 4:readOnly:b 5:options:s%
FlockerVolumeSource 1:datasetName 2:datasetUUID
GCEPersistentDiskVolumeSource 1:pdName 2:fsType 3:partition:i 4:readOnly:b
GRPCAction 1:port:i 2:service
GitRepoVolumeSource 1:repository 2:revision 3:directory
GlusterfsVolumeSource 1:endpoints 2:path 3:readOnly:b
HTTPGetAction 1:path 2:port:IntOrString 3:host 4:scheme 5:httpHeaders:HTTPHeader*
HTTPHeader 1:name 2:value
HostAlias 1:ip 2:hostnames:s*
HostIP 1:ip
HostPathVolumeSource 1:path 2:type
ISCSIVolumeSource 1:targetPortal 2:iqn 3:lun:i 4:iscsiInterface 5:fsType 6:readOnly:b 7:portals:s* 8:chapAuthDiscovery:b 11:chapAuthSession:b 10:secretRef:LocalObjectReference 12:initiatorName
ImageVolumeSource 1:reference 2:pullPolicy
ImageVolumeStatus 1:imageRef
KeyToPath 1:key 2:path 3:mode:i
LabelSelector 1:matchLabels:s% 2:matchExpressions:LabelSelectorRequirement*
LabelSelectorRequirement 1:key 2:operator 3:values:s*
Lifecycle 1:postStart:LifecycleHandler 2:preStop:LifecycleHandler 3:stopSignal
LifecycleHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction 4:sleep:SleepAction
LinuxContainerUser 1:uid:i 2:gid:i 3:supplementalGroups:i*
LocalObjectReference 1:name
ManagedFieldsEntry 1:manager 2:operation 3:apiVersion 4:time:Time 6:fieldsType 7:fieldsV1:FieldsV1 8:subresource
NFSVolumeSource 1:server 2:path 3:readOnly:b
NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:NodeSelector 2:preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm*
NodeAllocatableResourceClaimStatus 1:resourceClaimName 2:containers:s* 3:resources:Quantity%
NodeSelector 1:nodeSelectorTerms:NodeSelectorTerm*
NodeSelectorRequirement 1:key 2:operator 3:values:s*
NodeSelectorTerm 1:matchExpressions:NodeSelectorRequirement* 2:matchFields:NodeSelectorRequirement*
ObjectFieldSelector 1:apiVersion 2:fieldPath
ObjectMeta 1:name 2:generateName 3:namespace 4:selfLink 5:uid 6:resourceVersion 7:generation:i 8:creationTimestamp:Time 9:deletionTimestamp:Time 10:deletionGracePeriodSeconds:i 11:labels:s% 12:annotations:s% 13:ownerReferences:OwnerReference* 14:finalizers:s* 17:managedFields:ManagedFieldsEntry*
OwnerReference 5:apiVersion 1:kind 3:name 4:uid 6:controller:b 7:blockOwnerDeletion:b
PersistentVolumeClaimSpec 1:accessModes:s* 4:selector:LabelSelector 2:resources:VolumeResourceRequirements 3:volumeName 5:storageClassName 6:volumeMode 7:dataSource:TypedLocalObjectReference 8:dataSourceRef:TypedObjectReference 9:volumeAttributesClassName
PersistentVolumeClaimTemplate 1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource 1:claimName 2:readOnly:b
PhotonPersistentDiskVolumeSource 1:pdID 2:fsType
Pod 1:metadata:ObjectMeta 2:spec:PodSpec 3:status:PodStatus
PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm* 2:preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm*
PodAffinityTerm 1:labelSelector:LabelSelector 2:namespaces:s* 3:topologyKey 4:namespaceSelector:LabelSelector 5:matchLabelKeys:s* 6:mismatchLabelKeys:s*
PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm* 2:preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm*
PodCertificateProjection 1:signerName 2:keyType 3:maxExpirationSeconds:i 4:credentialBundlePath 5:keyPath 6:certificateChainPath 7:userAnnotations:s%
PodCondition 1:type 7:observedGeneration:i 2:status 3:lastProbeTime:Time 4:lastTransitionTime:Time 5:reason 6:message
PodDNSConfig 1:nameservers:s* 2:searches:s* 3:options:PodDNSConfigOption*
PodDNSConfigOption 1:name 2:value
PodExtendedResourceClaimStatus 1:requestMappings:ContainerExtendedResourceRequest* 2:resourceClaimName
PodIP 1:ip
PodOS 1:name
PodReadinessGate 1:conditionType
PodResourceClaim 1:name 3:resourceClaimName 4:resourceClaimTemplateName
PodResourceClaimStatus 1:name 2:resourceClaimName
PodSchedulingGate 1:name
PodSchedulingGroup 1:podGroupName
PodSecurityContext 1:seLinuxOptions:SELinuxOptions 8:windowsOptions:WindowsSecurityContextOptions 2:runAsUser:i 6:runAsGroup:i 3:runAsNonRoot:b 4:supplementalGroups:i* 12:supplementalGroupsPolicy 5:fsGroup:i 7:sysctls:Sysctl* 9:fsGroupChangePolicy 10:seccompProfile:SeccompProfile 11:appArmorProfile:AppArmorProfile 13:seLinuxChangePolicy
PodSpec 1:volumes:Volume* 20:initContainers:Container* 2:containers:Container* 34:ephemeralContainers:EphemeralContainer* 3:restartPolicy 4:terminationGracePeriodSeconds:i 5:activeDeadlineSeconds:i 6:dnsPolicy 7:nodeSelector:s% 8:serviceAccountName 9:serviceAccount 21:automountServiceAccountToken:b 10:nodeName 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b 27:shareProcessNamespace:b 14:securityContext:PodSecurityContext 15:imagePullSecrets:LocalObjectReference* 16:hostname 17:subdomain 18:affinity:Affinity 19:schedulerName 22:tolerations:Toleration* 23:hostAliases:HostAlias* 24:priorityClassName 25:priority:i 26:dnsConfig:PodDNSConfig 28:readinessGates:PodReadinessGate* 29:runtimeClassName 30:enableServiceLinks:b 31:preemptionPolicy 32:overhead:Quantity% 33:topologySpreadConstraints:TopologySpreadConstraint* 35:setHostnameAsFQDN:b 36:os:PodOS 37:hostUsers:b 38:schedulingGates:PodSchedulingGate* 39:resourceClaims:PodResourceClaim* 40:resources:ResourceRequirements 41:hostnameOverride 43:schedulingGroup:PodSchedulingGroup
PodStatus 17:observedGeneration:i 1:phase 2:conditions:PodCondition* 3:message 4:reason 11:nominatedNodeName 5:hostIP 16:hostIPs:HostIP* 6:podIP 12:podIPs:PodIP* 7:startTime:Time 10:initContainerStatuses:ContainerStatus* 8:containerStatuses:ContainerStatus* 9:qosClass 13:ephemeralContainerStatuses:ContainerStatus* 14:resize 15:resourceClaimStatuses:PodResourceClaimStatus* 18:extendedResourceClaimStatus:PodExtendedResourceClaimStatus 19:allocatedResources:Quantity% 20:resources:ResourceRequirements 21:nodeAllocatableResourceClaimStatuses:NodeAllocatableResourceClaimStatus*
PortworxVolumeSource 1:volumeID 2:fsType 3:readOnly:b
PreferredSchedulingTerm 1:weight:i 2:preference:NodeSelectorTerm
Probe 1:^handler:ProbeHandler 2:initialDelaySeconds:i 3:timeoutSeconds:i 4:periodSeconds:i 5:successThreshold:i 6:failureThreshold:i 7:terminationGracePeriodSeconds:i
ProbeHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction 4:grpc:GRPCAction
ProjectedVolumeSource 1:sources:VolumeProjection* 2:defaultMode:i
QuobyteVolumeSource 1:registry 2:volume 3:readOnly:b 4:user 5:group 6:tenant
RBDVolumeSource 1:monitors:s* 2:image 3:fsType 4:pool 5:user 6:keyring 7:secretRef:LocalObjectReference 8:readOnly:b
ResourceClaim 1:name 2:request
ResourceFieldSelector 1:containerName 2:resource 3:divisor:Quantity
ResourceHealth 1:resourceID 2:health 6:message
ResourceRequirements 1:limits:Quantity% 2:requests:Quantity% 3:claims:ResourceClaim*
ResourceStatus 1:name 2:resources:ResourceHealth*
SELinuxOptions 1:user 2:role 3:type 4:level
ScaleIOVolumeSource 1:gateway 2:system 3:secretRef:LocalObjectReference 4:sslEnabled:b 5:protectionDomain 6:storagePool 7:storageMode 8:volumeName 9:fsType 10:readOnly:b
SeccompProfile 1:type 2:localhostProfile
SecretEnvSource 1:^localObjectReference:LocalObjectReference 2:optional:b
SecretKeySelector 1:^localObjectReference:LocalObjectReference 2:key 3:optional:b
SecretProjection 1:^localObjectReference:LocalObjectReference 2:items:KeyToPath* 4:optional:b
SecretVolumeSource 1:secretName 2:items:KeyToPath* 3:defaultMode:i 4:optional:b
SecurityContext 1:capabilities:Capabilities 2:privileged:b 3:seLinuxOptions:SELinuxOptions 10:windowsOptions:WindowsSecurityContextOptions 4:runAsUser:i 8:runAsGroup:i 5:runAsNonRoot:b 6:readOnlyRootFilesystem:b 7:allowPrivilegeEscalation:b 9:procMount 11:seccompProfile:SeccompProfile 12:appArmorProfile:AppArmorProfile
ServiceAccountTokenProjection 1:audience 2:expirationSeconds:i 3:path
SleepAction 1:seconds:i
StorageOSVolumeSource 1:volumeName 2:volumeNamespace 3:fsType 4:readOnly:b 5:secretRef:LocalObjectReference
Sysctl 1:name 2:value
TCPSocketAction 1:port:IntOrString 2:host
Toleration 1:key 2:operator 3:value 4:effect 5:tolerationSeconds:i
TopologySpreadConstraint 1:maxSkew:i 2:topologyKey 3:whenUnsatisfiable 4:labelSelector:LabelSelector 5:minDomains:i 6:nodeAffinityPolicy 7:nodeTaintsPolicy 8:matchLabelKeys:s*
TypedLocalObjectReference 1:apiGroup 2:kind 3:name
TypedObjectReference 1:apiGroup 2:kind 3:name 4:namespace
Volume 1:name 2:^volumeSource:VolumeSource
VolumeDevice 1:name 2:devicePath
VolumeMount 1:name 2:readOnly:b 7:recursiveReadOnly 3:mountPath 4:subPath 5:mountPropagation 6:subPathExpr
VolumeMountStatus 1:name 2:mountPath 3:readOnly:b 4:recursiveReadOnly 5:volumeStatus:VolumeStatus
VolumeProjection 1:secret:SecretProjection 2:downwardAPI:DownwardAPIProjection 3:configMap:ConfigMapProjection 4:serviceAccountToken:ServiceAccountTokenProjection 5:clusterTrustBundle:ClusterTrustBundleProjection 6:podCertificate:PodCertificateProjection
VolumeResourceRequirements 1:limits:Quantity% 2:requests:Quantity%
VolumeSource 1:hostPath:HostPathVolumeSource 2:emptyDir:EmptyDirVolumeSource 3:gcePersistentDisk:GCEPersistentDiskVolumeSource 4:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 5:gitRepo:GitRepoVolumeSource 6:secret:SecretVolumeSource 7:nfs:NFSVolumeSource 8:iscsi:ISCSIVolumeSource 9:glusterfs:GlusterfsVolumeSource 10:persistentVolumeClaim:PersistentVolumeClaimVolumeSource 11:rbd:RBDVolumeSource 12:flexVolume:FlexVolumeSource 13:cinder:CinderVolumeSource 14:cephfs:CephFSVolumeSource 15:flocker:FlockerVolumeSource 16:downwardAPI:DownwardAPIVolumeSource 17:fc:FCVolumeSource 18:azureFile:AzureFileVolumeSource 19:configMap:ConfigMapVolumeSource 20:vsphereVolume:VsphereVirtualDiskVolumeSource 21:quobyte:QuobyteVolumeSource 22:azureDisk:AzureDiskVolumeSource 23:photonPersistentDisk:PhotonPersistentDiskVolumeSource 26:projected:ProjectedVolumeSource 24:portworxVolume:PortworxVolumeSource 25:scaleIO:ScaleIOVolumeSource 27:storageos:StorageOSVolumeSource 28:csi:CSIVolumeSource 29:ephemeral:EphemeralVolumeSource 30:image:ImageVolumeSource
VolumeStatus 1:image:ImageVolumeStatus
VsphereVirtualDiskVolumeSource 1:volumePath 2:fsType 3:storagePolicyName 4:storagePolicyID
WeightedPodAffinityTerm 1:weight:i 2:podAffinityTerm:PodAffinityTerm
WindowsSecurityContextOptions 1:gmsaCredentialSpecName 2:gmsaCredentialSpec 3:runAsUserName 4:hostProcess:b
`;
