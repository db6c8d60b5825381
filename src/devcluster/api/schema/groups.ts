// Everything outside the core group, and the metadata all objects share. How to read it: messages.ts.

export const GROUPS = `
apps.ControllerRevision: 1 metadata mmeta.ObjectMeta; 2 data r; 3 revision i!
apps.DaemonSet: 1 metadata mmeta.ObjectMeta; 2 spec mapps.DaemonSetSpec; 3 status mapps.DaemonSetStatus
apps.DaemonSetCondition: 1 type s!; 2 status s!; 3 lastTransitionTime t; 4 reason s; 5 message s
apps.DaemonSetSpec: 1 selector *mmeta.LabelSelector!; 2 template mPodTemplateSpec!;
  3 updateStrategy mapps.DaemonSetUpdateStrategy; 4 minReadySeconds i; 6 revisionHistoryLimit *i
apps.DaemonSetStatus: 1 currentNumberScheduled i!; 2 numberMisscheduled i!; 3 desiredNumberScheduled i!;
  4 numberReady i!; 5 observedGeneration i; 6 updatedNumberScheduled i; 7 numberAvailable i; 8 numberUnavailable i;
  9 collisionCount *i; 10 conditions [mapps.DaemonSetCondition
apps.DaemonSetUpdateStrategy: 1 type s; 2 rollingUpdate *mapps.RollingUpdateDaemonSet
apps.Deployment: 1 metadata mmeta.ObjectMeta; 2 spec mapps.DeploymentSpec; 3 status mapps.DeploymentStatus
apps.DeploymentCondition: 1 type s!; 2 status s!; 6 lastUpdateTime t; 7 lastTransitionTime t; 4 reason s;
  5 message s
apps.DeploymentSpec: 1 replicas *i; 2 selector *mmeta.LabelSelector!; 3 template mPodTemplateSpec!;
  4 strategy mapps.DeploymentStrategy; 5 minReadySeconds i; 6 revisionHistoryLimit *i; 7 paused b;
  9 progressDeadlineSeconds *i
apps.DeploymentStatus: 1 observedGeneration i; 2 replicas i; 3 updatedReplicas i; 7 readyReplicas i;
  4 availableReplicas i; 5 unavailableReplicas i; 9 terminatingReplicas *i; 6 conditions [mapps.DeploymentCondition;
  8 collisionCount *i
apps.DeploymentStrategy: 1 type s; 2 rollingUpdate *mapps.RollingUpdateDeployment
apps.ReplicaSet: 1 metadata mmeta.ObjectMeta; 2 spec mapps.ReplicaSetSpec; 3 status mapps.ReplicaSetStatus
apps.ReplicaSetCondition: 1 type s!; 2 status s!; 3 lastTransitionTime t; 4 reason s; 5 message s
apps.ReplicaSetSpec: 1 replicas *i; 4 minReadySeconds i; 2 selector *mmeta.LabelSelector!;
  3 template mPodTemplateSpec
apps.ReplicaSetStatus: 1 replicas i!; 2 fullyLabeledReplicas i; 4 readyReplicas i; 5 availableReplicas i;
  7 terminatingReplicas *i; 3 observedGeneration i; 6 conditions [mapps.ReplicaSetCondition
apps.RollingUpdateDaemonSet: 1 maxUnavailable *x; 2 maxSurge *x
apps.RollingUpdateDeployment: 1 maxUnavailable *x; 2 maxSurge *x
apps.RollingUpdateStatefulSetStrategy: 1 partition *i; 2 maxUnavailable *x
apps.StatefulSet: 1 metadata mmeta.ObjectMeta; 2 spec mapps.StatefulSetSpec; 3 status mapps.StatefulSetStatus
apps.StatefulSetCondition: 1 type s!; 2 status s!; 3 lastTransitionTime t; 4 reason s; 5 message s
apps.StatefulSetOrdinals: 1 start i!
apps.StatefulSetPersistentVolumeClaimRetentionPolicy: 1 whenDeleted s; 2 whenScaled s
apps.StatefulSetSpec: 1 replicas *i; 2 selector *mmeta.LabelSelector!; 3 template mPodTemplateSpec!;
  4 volumeClaimTemplates [mPersistentVolumeClaim; 5 serviceName s!; 6 podManagementPolicy s;
  7 updateStrategy mapps.StatefulSetUpdateStrategy; 8 revisionHistoryLimit *i; 9 minReadySeconds i;
  10 persistentVolumeClaimRetentionPolicy *mapps.StatefulSetPersistentVolumeClaimRetentionPolicy;
  11 ordinals *mapps.StatefulSetOrdinals
apps.StatefulSetStatus: 1 observedGeneration i; 2 replicas i!; 3 readyReplicas i; 4 currentReplicas i;
  5 updatedReplicas i; 6 currentRevision s; 7 updateRevision s; 9 collisionCount *i;
  10 conditions [mapps.StatefulSetCondition; 11 availableReplicas i!
apps.StatefulSetUpdateStrategy: 1 type s; 2 rollingUpdate *mapps.RollingUpdateStatefulSetStrategy
authentication.BoundObjectReference: 1 kind s; 2 apiVersion s; 3 name s; 4 uid s
authentication.SelfSubjectReview: 1 metadata mmeta.ObjectMeta; 2 status mauthentication.SelfSubjectReviewStatus
authentication.SelfSubjectReviewStatus: 1 userInfo mauthentication.UserInfo
authentication.TokenRequest: 1 metadata mmeta.ObjectMeta; 2 spec mauthentication.TokenRequestSpec!;
  3 status mauthentication.TokenRequestStatus
authentication.TokenRequestSpec: 1 audiences [s!; 4 expirationSeconds *i!;
  3 boundObjectRef *mauthentication.BoundObjectReference!; 5 attestations {es
authentication.TokenRequestStatus: 1 token s!; 2 expirationTimestamp t!
authentication.TokenReview: 1 metadata mmeta.ObjectMeta; 2 spec mauthentication.TokenReviewSpec!;
  3 status mauthentication.TokenReviewStatus
authentication.TokenReviewSpec: 1 token s; 2 audiences [s
authentication.TokenReviewStatus: 1 authenticated b; 2 user mauthentication.UserInfo; 4 audiences [s; 3 error s
authentication.UserInfo: 1 username s; 2 uid s; 3 groups [s; 4 extra {es
authorization.FieldSelectorAttributes: 1 rawSelector s; 2 requirements [mmeta.FieldSelectorRequirement
authorization.LabelSelectorAttributes: 1 rawSelector s; 2 requirements [mmeta.LabelSelectorRequirement
authorization.LocalSubjectAccessReview: 1 metadata mmeta.ObjectMeta; 2 spec mauthorization.SubjectAccessReviewSpec!;
  3 status mauthorization.SubjectAccessReviewStatus
authorization.NonResourceAttributes: 1 path s; 2 verb s
authorization.NonResourceRule: 1 verbs [s!; 2 nonResourceURLs [s
authorization.ResourceAttributes: 1 namespace s; 2 verb s; 3 group s; 4 version s; 5 resource s; 6 subresource s;
  7 name s; 8 fieldSelector *mauthorization.FieldSelectorAttributes;
  9 labelSelector *mauthorization.LabelSelectorAttributes
authorization.ResourceRule: 1 verbs [s!; 2 apiGroups [s; 3 resources [s; 4 resourceNames [s
authorization.SelfSubjectAccessReview: 1 metadata mmeta.ObjectMeta;
  2 spec mauthorization.SelfSubjectAccessReviewSpec!; 3 status mauthorization.SubjectAccessReviewStatus
authorization.SelfSubjectAccessReviewSpec: 1 resourceAttributes *mauthorization.ResourceAttributes;
  2 nonResourceAttributes *mauthorization.NonResourceAttributes
authorization.SelfSubjectRulesReview: 1 metadata mmeta.ObjectMeta; 2 spec mauthorization.SelfSubjectRulesReviewSpec!;
  3 status mauthorization.SubjectRulesReviewStatus
authorization.SelfSubjectRulesReviewSpec: 1 namespace s
authorization.SubjectAccessReview: 1 metadata mmeta.ObjectMeta; 2 spec mauthorization.SubjectAccessReviewSpec!;
  3 status mauthorization.SubjectAccessReviewStatus
authorization.SubjectAccessReviewSpec: 1 resourceAttributes *mauthorization.ResourceAttributes;
  2 nonResourceAttributes *mauthorization.NonResourceAttributes; 3 user s; 4 groups [s; 5 extra {es; 6 uid s
authorization.SubjectAccessReviewStatus: 1 allowed b!; 4 denied b; 2 reason s; 3 evaluationError s
authorization.SubjectRulesReviewStatus: 1 resourceRules [mauthorization.ResourceRule!;
  2 nonResourceRules [mauthorization.NonResourceRule!; 3 incomplete b!; 4 evaluationError s
autoscaling.Scale: 1 metadata mmeta.ObjectMeta; 2 spec mautoscaling.ScaleSpec; 3 status mautoscaling.ScaleStatus
autoscaling.ScaleSpec: 1 replicas i
autoscaling.ScaleStatus: 1 replicas i!; 2 selector s
batch.CronJob: 1 metadata mmeta.ObjectMeta; 2 spec mbatch.CronJobSpec; 3 status mbatch.CronJobStatus
batch.CronJobSpec: 1 schedule s!; 8 timeZone *s; 2 startingDeadlineSeconds *i; 3 concurrencyPolicy s; 4 suspend *b;
  5 jobTemplate mbatch.JobTemplateSpec!; 6 successfulJobsHistoryLimit *i; 7 failedJobsHistoryLimit *i
batch.CronJobStatus: 1 active [mObjectReference; 4 lastScheduleTime *t; 5 lastSuccessfulTime *t
batch.Job: 1 metadata mmeta.ObjectMeta; 2 spec mbatch.JobSpec; 3 status mbatch.JobStatus
batch.JobCondition: 1 type s!; 2 status s!; 3 lastProbeTime t; 4 lastTransitionTime t; 5 reason s; 6 message s
batch.JobSchedulingConfiguration:
batch.JobSpec: 1 parallelism *i; 2 completions *i; 3 activeDeadlineSeconds *i;
  11 podFailurePolicy *mbatch.PodFailurePolicy; 16 successPolicy *mbatch.SuccessPolicy; 7 backoffLimit *i;
  12 backoffLimitPerIndex *i; 13 maxFailedIndexes *i; 4 selector *mmeta.LabelSelector; 5 manualSelector *b;
  6 template mPodTemplateSpec!; 8 ttlSecondsAfterFinished *i; 9 completionMode *s; 10 suspend *b;
  14 podReplacementPolicy *s; 15 managedBy *s; 17 scheduling *mbatch.JobSchedulingConfiguration
batch.JobStatus: 1 conditions [mbatch.JobCondition; 2 startTime *t; 3 completionTime *t; 4 active i; 5 succeeded i;
  6 failed i; 11 terminating *i; 7 completedIndexes s; 10 failedIndexes *s;
  8 uncountedTerminatedPods *mbatch.UncountedTerminatedPods; 9 ready *i
batch.JobTemplateSpec: 1 metadata mmeta.ObjectMeta; 2 spec mbatch.JobSpec
batch.PodFailurePolicy: 1 rules [mbatch.PodFailurePolicyRule!
batch.PodFailurePolicyOnExitCodesRequirement: 1 containerName *s; 2 operator s!; 3 values [i!
batch.PodFailurePolicyOnPodConditionsPattern: 1 type s!; 2 status s!
batch.PodFailurePolicyRule: 1 action s!; 2 onExitCodes *mbatch.PodFailurePolicyOnExitCodesRequirement;
  3 onPodConditions [mbatch.PodFailurePolicyOnPodConditionsPattern
batch.SuccessPolicy: 1 rules [mbatch.SuccessPolicyRule!
batch.SuccessPolicyRule: 1 succeededIndexes *s; 2 succeededCount *i
batch.UncountedTerminatedPods: 1 succeeded [s; 2 failed [s
certificates.CertificateSigningRequest: 1 metadata mmeta.ObjectMeta;
  2 spec mcertificates.CertificateSigningRequestSpec!; 3 status mcertificates.CertificateSigningRequestStatus
certificates.CertificateSigningRequestCondition: 1 type s!; 6 status s!; 2 reason s; 3 message s; 4 lastUpdateTime t;
  5 lastTransitionTime t
certificates.CertificateSigningRequestSpec: 1 request y!; 7 signerName s!; 8 expirationSeconds *i; 5 usages [s;
  2 username s; 3 uid s; 4 groups [s; 6 extra {es
certificates.CertificateSigningRequestStatus: 1 conditions [mcertificates.CertificateSigningRequestCondition;
  2 certificate y
coordination.Lease: 1 metadata mmeta.ObjectMeta; 2 spec mcoordination.LeaseSpec
coordination.LeaseSpec: 1 holderIdentity *s; 2 leaseDurationSeconds *i; 3 acquireTime *u; 4 renewTime *u;
  5 leaseTransitions *i; 6 strategy *s; 7 preferredHolder *s
discovery.Endpoint: 1 addresses [s!; 2 conditions mdiscovery.EndpointConditions; 3 hostname *s;
  4 targetRef *mObjectReference; 5 deprecatedTopology {s; 6 nodeName *s; 7 zone *s;
  8 hints *mdiscovery.EndpointHints
discovery.EndpointConditions: 1 ready *b; 2 serving *b; 3 terminating *b
discovery.EndpointHints: 1 forZones [mdiscovery.ForZone; 2 forNodes [mdiscovery.ForNode
discovery.EndpointPort: 1 name *s; 2 protocol *s; 3 port *i; 4 appProtocol *s
discovery.EndpointSlice: 1 metadata mmeta.ObjectMeta; 4 addressType s!; 2 endpoints [mdiscovery.Endpoint!;
  3 ports [mdiscovery.EndpointPort!
discovery.ForNode: 1 name s!
discovery.ForZone: 1 name s!
events.Event: 1 metadata mmeta.ObjectMeta!; 2 eventTime u!; 3 series *mevents.EventSeries; 4 reportingController s;
  5 reportingInstance s; 6 action s; 7 reason s; 8 regarding mObjectReference; 9 related *mObjectReference;
  10 note s; 11 type s; 12 deprecatedSource mEventSource; 13 deprecatedFirstTimestamp t;
  14 deprecatedLastTimestamp t; 15 deprecatedCount i
events.EventSeries: 1 count i!; 2 lastObservedTime u!
meta.Condition: 1 type s!; 2 status s!; 3 observedGeneration i; 4 lastTransitionTime t!; 5 reason s!; 6 message s!
meta.DeleteOptions: 1 gracePeriodSeconds *i; 2 preconditions *mmeta.Preconditions; 3 orphanDependents *b;
  4 propagationPolicy *s; 5 dryRun [s; 6 ignoreStoreReadErrorWithClusterBreakingPotential *b
meta.FieldSelectorRequirement: 1 key s!; 2 operator s!; 3 values [s
meta.LabelSelector: 1 matchLabels {s; 2 matchExpressions [mmeta.LabelSelectorRequirement
meta.LabelSelectorRequirement: 1 key s!; 2 operator s!; 3 values [s
meta.ManagedFieldsEntry: 1 manager s; 2 operation s; 3 apiVersion s; 4 time *t; 6 fieldsType s; 7 fieldsV1 *r; 8 subresource s
meta.ObjectMeta: 1 name s; 2 generateName s; 3 namespace s; 4 selfLink s; 5 uid s; 6 resourceVersion s;
  7 generation i; 8 creationTimestamp t; 9 deletionTimestamp *t; 10 deletionGracePeriodSeconds *i; 11 labels {s;
  12 annotations {s; 13 ownerReferences [mmeta.OwnerReference; 14 finalizers [s;
  17 managedFields [mmeta.ManagedFieldsEntry
meta.OwnerReference: 5 apiVersion s!; 1 kind s!; 3 name s!; 4 uid s!; 6 controller *b; 7 blockOwnerDeletion *b
meta.Preconditions: 1 uid *s; 2 resourceVersion *s
node.Overhead: 1 podFixed {q
node.RuntimeClass: 1 metadata mmeta.ObjectMeta; 2 handler s!; 3 overhead *mnode.Overhead;
  4 scheduling *mnode.Scheduling
node.Scheduling: 1 nodeSelector {s; 2 tolerations [mToleration
policy.Eviction: 1 metadata mmeta.ObjectMeta; 2 deleteOptions *mmeta.DeleteOptions
policy.PodDisruptionBudget: 1 metadata mmeta.ObjectMeta; 2 spec mpolicy.PodDisruptionBudgetSpec;
  3 status mpolicy.PodDisruptionBudgetStatus
policy.PodDisruptionBudgetSpec: 1 minAvailable *x; 2 selector *mmeta.LabelSelector; 3 maxUnavailable *x;
  4 unhealthyPodEvictionPolicy *s
policy.PodDisruptionBudgetStatus: 1 observedGeneration i; 2 disruptedPods {t; 3 disruptionsAllowed i!;
  4 currentHealthy i!; 5 desiredHealthy i!; 6 expectedPods i!; 7 conditions [mmeta.Condition
rbac.AggregationRule: 1 clusterRoleSelectors [mmeta.LabelSelector
rbac.ClusterRole: 1 metadata mmeta.ObjectMeta; 2 rules [mrbac.PolicyRule!; 3 aggregationRule *mrbac.AggregationRule
rbac.ClusterRoleBinding: 1 metadata mmeta.ObjectMeta; 2 subjects [mrbac.Subject; 3 roleRef mrbac.RoleRef!
rbac.PolicyRule: 1 verbs [s!; 2 apiGroups [s; 3 resources [s; 4 resourceNames [s; 5 nonResourceURLs [s
rbac.Role: 1 metadata mmeta.ObjectMeta; 2 rules [mrbac.PolicyRule!
rbac.RoleBinding: 1 metadata mmeta.ObjectMeta; 2 subjects [mrbac.Subject; 3 roleRef mrbac.RoleRef!
rbac.RoleRef: 1 apiGroup s!; 2 kind s!; 3 name s!
rbac.Subject: 1 kind s!; 2 apiGroup s; 3 name s!; 4 namespace s
scheduling.PriorityClass: 1 metadata mmeta.ObjectMeta; 2 value i!; 3 globalDefault b; 4 description s;
  5 preemptionPolicy *s
storage.CSIDriver: 1 metadata mmeta.ObjectMeta; 2 spec mstorage.CSIDriverSpec!
storage.CSIDriverSpec: 1 attachRequired *b; 2 podInfoOnMount *b; 3 volumeLifecycleModes [s; 4 storageCapacity *b;
  5 fsGroupPolicy *s; 6 tokenRequests [mstorage.TokenRequest; 7 requiresRepublish *b; 8 seLinuxMount *b;
  9 nodeAllocatableUpdatePeriodSeconds *i; 10 serviceAccountTokenInSecrets *b; 11 preventPodSchedulingIfMissing *b
storage.CSINode: 1 metadata mmeta.ObjectMeta; 2 spec mstorage.CSINodeSpec!; 3 status mstorage.CSINodeStatus
storage.CSINodeDriver: 1 name s!; 2 nodeID s!; 3 topologyKeys [s!; 4 allocatable *mstorage.VolumeNodeResources
storage.CSINodeSpec: 1 drivers [mstorage.CSINodeDriver!
storage.CSINodeStatus: 1 storageHealth [mstorage.StorageHealth
storage.CSIStorageCapacity: 1 metadata mmeta.ObjectMeta; 2 nodeTopology *mmeta.LabelSelector; 3 storageClassName s!;
  4 capacity *q; 5 maximumVolumeSize *q
storage.StorageClass: 1 metadata mmeta.ObjectMeta; 2 provisioner s!; 3 parameters {s; 4 reclaimPolicy *s;
  5 mountOptions [s; 6 allowVolumeExpansion *b; 7 volumeBindingMode *s; 8 allowedTopologies [mTopologySelectorTerm
storage.StorageHealth: 1 name s!; 2 healthConditions [mstorage.StorageHealthCondition
storage.StorageHealthCondition: 1 status s!; 2 reason s!; 3 message s; 4 accessMode *s; 5 volumeMode *s;
  6 lastTransitionTime t
storage.TokenRequest: 1 audience s!; 2 expirationSeconds *i
storage.VolumeAttachment: 1 metadata mmeta.ObjectMeta; 2 spec mstorage.VolumeAttachmentSpec!;
  3 status mstorage.VolumeAttachmentStatus
storage.VolumeAttachmentSource: 1 persistentVolumeName *s; 2 inlineVolumeSpec *mPersistentVolumeSpec
storage.VolumeAttachmentSpec: 1 attacher s!; 2 source mstorage.VolumeAttachmentSource!; 3 nodeName s!
storage.VolumeAttachmentStatus: 1 attached b!; 2 attachmentMetadata {s; 3 attachError *mstorage.VolumeError;
  4 detachError *mstorage.VolumeError
storage.VolumeError: 1 time t; 2 message s; 3 errorCode *i
storage.VolumeNodeResources: 1 count *i
`;
