// The rest of the core group: nodes, namespaces, services, events, configuration. How to read it: messages.ts.

export const CORE = `
AttachedVolume: 1 name s!; 2 devicePath s!
Binding: 1 metadata mmeta.ObjectMeta; 2 target mObjectReference!
ClientIPConfig: 1 timeoutSeconds *i
ConfigMap: 1 metadata mmeta.ObjectMeta; 4 immutable *b; 2 data {s; 3 binaryData {y
ConfigMapNodeConfigSource: 1 namespace s!; 2 name s!; 3 uid s; 4 resourceVersion s; 5 kubeletConfigKey s!
ContainerImage: 1 names [s!; 2 sizeBytes i
DaemonEndpoint: 1 Port i!
EndpointAddress: 1 ip s!; 3 hostname s; 4 nodeName *s; 2 targetRef *mObjectReference
EndpointPort: 1 name s; 2 port i!; 3 protocol s; 4 appProtocol *s
EndpointSubset: 1 addresses [mEndpointAddress; 2 notReadyAddresses [mEndpointAddress; 3 ports [mEndpointPort
Endpoints: 1 metadata mmeta.ObjectMeta; 2 subsets [mEndpointSubset
Event: 1 metadata mmeta.ObjectMeta!; 2 involvedObject mObjectReference!; 3 reason s; 4 message s;
  5 source mEventSource; 6 firstTimestamp t; 7 lastTimestamp t; 8 count i; 9 type s; 10 eventTime u;
  11 series *mEventSeries; 12 action s; 13 related *mObjectReference; 14 reportingComponent s!;
  15 reportingInstance s!
EventSeries: 1 count i; 2 lastObservedTime u
EventSource: 1 component s; 2 host s
LimitRange: 1 metadata mmeta.ObjectMeta; 2 spec mLimitRangeSpec
LimitRangeItem: 1 type s!; 2 max {q; 3 min {q; 4 default {q; 5 defaultRequest {q; 6 maxLimitRequestRatio {q
LimitRangeSpec: 1 limits [mLimitRangeItem!
LoadBalancerIngress: 1 ip s; 2 hostname s; 3 ipMode *s; 4 ports [mPortStatus
LoadBalancerStatus: 1 ingress [mLoadBalancerIngress
Namespace: 1 metadata mmeta.ObjectMeta; 2 spec mNamespaceSpec; 3 status mNamespaceStatus
NamespaceCondition: 1 type s!; 2 status s!; 4 lastTransitionTime t; 5 reason s; 6 message s
NamespaceSpec: 1 finalizers [s
NamespaceStatus: 1 phase s; 2 conditions [mNamespaceCondition
Node: 1 metadata mmeta.ObjectMeta; 2 spec mNodeSpec; 3 status mNodeStatus
NodeAddress: 1 type s!; 2 address s!
NodeCondition: 1 type s!; 2 status s!; 3 lastHeartbeatTime t; 4 lastTransitionTime t; 5 reason s; 6 message s
NodeConfigSource: 2 configMap *mConfigMapNodeConfigSource
NodeConfigStatus: 1 assigned *mNodeConfigSource; 2 active *mNodeConfigSource; 3 lastKnownGood *mNodeConfigSource;
  4 error s
NodeDaemonEndpoints: 1 kubeletEndpoint mDaemonEndpoint
NodeFeatures: 1 supplementalGroupsPolicy *b
NodePodPreemptionPolicy: 1 disableResizePreemption [s
NodeRuntimeHandler: 1 name s!; 2 features *mNodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: 1 recursiveReadOnlyMounts *b; 2 userNamespaces *b
NodeSpec: 1 podCIDR s; 7 podCIDRs [s; 3 providerID s; 4 unschedulable b; 5 taints [mTaint;
  6 configSource *mNodeConfigSource; 2 externalID s; 8 podPreemptionPolicy *mNodePodPreemptionPolicy
NodeStatus: 1 capacity {q; 2 allocatable {q; 3 phase s; 4 conditions [mNodeCondition; 5 addresses [mNodeAddress;
  6 daemonEndpoints mNodeDaemonEndpoints; 7 nodeInfo mNodeSystemInfo; 8 images [mContainerImage; 9 volumesInUse [s;
  10 volumesAttached [mAttachedVolume; 11 config *mNodeConfigStatus; 12 runtimeHandlers [mNodeRuntimeHandler;
  13 features *mNodeFeatures; 14 declaredFeatures [s
NodeSwapStatus: 1 capacity *i
NodeSystemInfo: 1 machineID s!; 2 systemUUID s!; 3 bootID s!; 4 kernelVersion s!; 5 osImage s!;
  6 containerRuntimeVersion s!; 7 kubeletVersion s!; 8 kubeProxyVersion s!; 9 operatingSystem s!; 10 architecture s!;
  11 swap *mNodeSwapStatus
ObjectReference: 1 kind s; 2 namespace s; 3 name s; 4 uid s; 5 apiVersion s; 6 resourceVersion s; 7 fieldPath s
PodTemplateSpec: 1 metadata mmeta.ObjectMeta; 2 spec mPodSpec
PortStatus: 1 port i!; 2 protocol s!; 3 error *s
ResourceQuota: 1 metadata mmeta.ObjectMeta; 2 spec mResourceQuotaSpec; 3 status mResourceQuotaStatus
ResourceQuotaSpec: 1 hard {q; 2 scopes [s; 3 scopeSelector *mScopeSelector
ResourceQuotaStatus: 1 hard {q; 2 used {q
ScopeSelector: 1 matchExpressions [mScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: 1 scopeName s!; 2 operator s!; 3 values [s
Secret: 1 metadata mmeta.ObjectMeta; 5 immutable *b; 2 data {y; 4 stringData {s; 3 type s
SecretReference: 1 name s; 2 namespace s
Service: 1 metadata mmeta.ObjectMeta; 2 spec mServiceSpec; 3 status mServiceStatus
ServiceAccount: 1 metadata mmeta.ObjectMeta; 2 secrets [mObjectReference; 3 imagePullSecrets [mLocalObjectReference;
  4 automountServiceAccountToken *b
ServicePort: 1 name s; 2 protocol s; 6 appProtocol *s; 3 port i!; 4 targetPort x; 5 nodePort i
ServiceSpec: 1 ports [mServicePort; 2 selector {s; 3 clusterIP s; 18 clusterIPs [s; 4 type s; 5 externalIPs [s;
  7 sessionAffinity s; 8 loadBalancerIP s; 9 loadBalancerSourceRanges [s; 10 externalName s;
  11 externalTrafficPolicy s; 12 healthCheckNodePort i; 13 publishNotReadyAddresses b;
  14 sessionAffinityConfig *mSessionAffinityConfig; 19 ipFamilies [s; 17 ipFamilyPolicy *s;
  20 allocateLoadBalancerNodePorts *b; 21 loadBalancerClass *s; 22 internalTrafficPolicy *s;
  23 trafficDistribution *s
ServiceStatus: 1 loadBalancer mLoadBalancerStatus; 2 conditions [mmeta.Condition
SessionAffinityConfig: 1 clientIP *mClientIPConfig
Taint: 1 key s!; 2 value s; 3 effect s!; 4 timeAdded *t
TopologySelectorLabelRequirement: 1 key s!; 2 values [s!
TopologySelectorTerm: 1 matchLabelExpressions [mTopologySelectorLabelRequirement
`;
