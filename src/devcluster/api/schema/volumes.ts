// Volumes of pods, and persistent ones. How to read it: messages.ts.

export const VOLUMES = `
AWSElasticBlockStoreVolumeSource: 1 volumeID s!; 2 fsType s; 3 partition i; 4 readOnly b
AzureDiskVolumeSource: 1 diskName s!; 2 diskURI s!; 3 cachingMode *s; 4 fsType *s; 5 readOnly *b; 6 kind *s
AzureFilePersistentVolumeSource: 1 secretName s!; 2 shareName s!; 3 readOnly b; 4 secretNamespace *s!
AzureFileVolumeSource: 1 secretName s!; 2 shareName s!; 3 readOnly b
CSIPersistentVolumeSource: 1 driver s!; 2 volumeHandle s!; 3 readOnly b; 4 fsType s; 5 volumeAttributes {s;
  6 controllerPublishSecretRef *mSecretReference; 7 nodeStageSecretRef *mSecretReference;
  8 nodePublishSecretRef *mSecretReference; 9 controllerExpandSecretRef *mSecretReference;
  10 nodeExpandSecretRef *mSecretReference
CSIVolumeSource: 1 driver s!; 2 readOnly *b; 3 fsType *s; 4 volumeAttributes {s;
  5 nodePublishSecretRef *mLocalObjectReference
CephFSPersistentVolumeSource: 1 monitors [s!; 2 path s; 3 user s; 4 secretFile s; 5 secretRef *mSecretReference;
  6 readOnly b
CephFSVolumeSource: 1 monitors [s!; 2 path s; 3 user s; 4 secretFile s; 5 secretRef *mLocalObjectReference;
  6 readOnly b
CinderPersistentVolumeSource: 1 volumeID s!; 2 fsType s; 3 readOnly b; 4 secretRef *mSecretReference
CinderVolumeSource: 1 volumeID s!; 2 fsType s; 3 readOnly b; 4 secretRef *mLocalObjectReference
ClusterTrustBundleProjection: 1 name *s; 2 signerName *s; 3 labelSelector *mmeta.LabelSelector; 5 optional *b;
  4 path s!; 6 user *i
ConfigMapProjection: 1 ~ mLocalObjectReference; 2 items [mKeyToPath; 4 optional *b
ConfigMapVolumeSource: 1 ~ mLocalObjectReference; 2 items [mKeyToPath; 3 defaultMode *i; 4 optional *b;
  5 defaultUser *i
DownwardAPIProjection: 1 items [mDownwardAPIVolumeFile
DownwardAPIVolumeFile: 1 path s!; 2 fieldRef *mObjectFieldSelector; 3 resourceFieldRef *mResourceFieldSelector;
  4 mode *i; 5 user *i
DownwardAPIVolumeSource: 1 items [mDownwardAPIVolumeFile; 2 defaultMode *i; 3 defaultUser *i
EmptyDirVolumeSource: 1 medium s; 2 sizeLimit *q; 3 mode *i
EphemeralVolumeSource: 1 volumeClaimTemplate *mPersistentVolumeClaimTemplate
FCVolumeSource: 1 targetWWNs [s; 2 lun *i; 3 fsType s; 4 readOnly b; 5 wwids [s
FlexPersistentVolumeSource: 1 driver s!; 2 fsType s; 3 secretRef *mSecretReference; 4 readOnly b; 5 options {s
FlexVolumeSource: 1 driver s!; 2 fsType s; 3 secretRef *mLocalObjectReference; 4 readOnly b; 5 options {s
FlockerVolumeSource: 1 datasetName s; 2 datasetUUID s
GCEPersistentDiskVolumeSource: 1 pdName s!; 2 fsType s; 3 partition i; 4 readOnly b
GitRepoVolumeSource: 1 repository s!; 2 revision s; 3 directory s
GlusterfsPersistentVolumeSource: 1 endpoints s!; 2 path s!; 3 readOnly b; 4 endpointsNamespace *s
GlusterfsVolumeSource: 1 endpoints s!; 2 path s!; 3 readOnly b
HostPathVolumeSource: 1 path s!; 2 type *s
ISCSIPersistentVolumeSource: 1 targetPortal s!; 2 iqn s!; 3 lun i!; 4 iscsiInterface s; 5 fsType s; 6 readOnly b;
  7 portals [s; 8 chapAuthDiscovery b; 11 chapAuthSession b; 10 secretRef *mSecretReference; 12 initiatorName *s
ISCSIVolumeSource: 1 targetPortal s!; 2 iqn s!; 3 lun i!; 4 iscsiInterface s; 5 fsType s; 6 readOnly b; 7 portals [s;
  8 chapAuthDiscovery b; 11 chapAuthSession b; 10 secretRef *mLocalObjectReference; 12 initiatorName *s
ImageVolumeSource: 1 reference s; 2 pullPolicy s
KeyToPath: 1 key s!; 2 path s!; 3 mode *i; 4 user *i
LocalVolumeSource: 1 path s!; 2 fsType *s
ModifyVolumeStatus: 1 targetVolumeAttributesClassName s; 2 status s!
NFSVolumeSource: 1 server s!; 2 path s!; 3 readOnly b
PersistentVolume: 1 metadata mmeta.ObjectMeta; 2 spec mPersistentVolumeSpec; 3 status mPersistentVolumeStatus
PersistentVolumeClaim: 1 metadata mmeta.ObjectMeta; 2 spec mPersistentVolumeClaimSpec;
  3 status mPersistentVolumeClaimStatus
PersistentVolumeClaimCondition: 1 type s!; 2 status s!; 3 lastProbeTime t; 4 lastTransitionTime t; 5 reason s;
  6 message s
PersistentVolumeClaimSpec: 1 accessModes [s; 4 selector *mmeta.LabelSelector;
  2 resources mVolumeResourceRequirements; 3 volumeName s; 5 storageClassName *s; 6 volumeMode *s;
  7 dataSource *mTypedLocalObjectReference; 8 dataSourceRef *mTypedObjectReference; 9 volumeAttributesClassName *s
PersistentVolumeClaimStatus: 1 phase s; 2 accessModes [s; 3 capacity {q;
  4 conditions [mPersistentVolumeClaimCondition; 5 allocatedResources {q; 7 allocatedResourceStatuses {s;
  8 currentVolumeAttributesClassName *s; 9 modifyVolumeStatus *mModifyVolumeStatus;
  10 healthStatus *mVolumeHealthStatus
PersistentVolumeClaimTemplate: 1 metadata mmeta.ObjectMeta; 2 spec mPersistentVolumeClaimSpec!
PersistentVolumeClaimVolumeSource: 1 claimName s!; 2 readOnly b
PersistentVolumeSource: 1 gcePersistentDisk *mGCEPersistentDiskVolumeSource;
  2 awsElasticBlockStore *mAWSElasticBlockStoreVolumeSource; 3 hostPath *mHostPathVolumeSource;
  4 glusterfs *mGlusterfsPersistentVolumeSource; 5 nfs *mNFSVolumeSource; 6 rbd *mRBDPersistentVolumeSource;
  7 iscsi *mISCSIPersistentVolumeSource; 8 cinder *mCinderPersistentVolumeSource;
  9 cephfs *mCephFSPersistentVolumeSource; 10 fc *mFCVolumeSource; 11 flocker *mFlockerVolumeSource;
  12 flexVolume *mFlexPersistentVolumeSource; 13 azureFile *mAzureFilePersistentVolumeSource;
  14 vsphereVolume *mVsphereVirtualDiskVolumeSource; 15 quobyte *mQuobyteVolumeSource;
  16 azureDisk *mAzureDiskVolumeSource; 17 photonPersistentDisk *mPhotonPersistentDiskVolumeSource;
  18 portworxVolume *mPortworxVolumeSource; 19 scaleIO *mScaleIOPersistentVolumeSource; 20 local *mLocalVolumeSource;
  21 storageos *mStorageOSPersistentVolumeSource; 22 csi *mCSIPersistentVolumeSource
PersistentVolumeSpec: 1 capacity {q; 2 ~ mPersistentVolumeSource; 3 accessModes [s; 4 claimRef *mObjectReference;
  5 persistentVolumeReclaimPolicy s; 6 storageClassName s; 7 mountOptions [s; 8 volumeMode *s;
  9 nodeAffinity *mVolumeNodeAffinity; 10 volumeAttributesClassName *s
PersistentVolumeStatus: 1 phase s; 2 message s; 3 reason s; 4 lastPhaseTransitionTime *t
PhotonPersistentDiskVolumeSource: 1 pdID s!; 2 fsType s
PodCertificateProjection: 1 signerName s; 2 keyType s; 3 maxExpirationSeconds *i; 4 credentialBundlePath s;
  5 keyPath s; 6 certificateChainPath s; 7 userAnnotations {s; 8 user *i
PortworxVolumeSource: 1 volumeID s!; 2 fsType s; 3 readOnly b
ProjectedVolumeSource: 1 sources [mVolumeProjection!; 2 defaultMode *i; 3 defaultUser *i
QuobyteVolumeSource: 1 registry s!; 2 volume s!; 3 readOnly b; 4 user s; 5 group s; 6 tenant s
RBDPersistentVolumeSource: 1 monitors [s!; 2 image s!; 3 fsType s; 4 pool s; 5 user s; 6 keyring s;
  7 secretRef *mSecretReference; 8 readOnly b
RBDVolumeSource: 1 monitors [s!; 2 image s!; 3 fsType s; 4 pool s; 5 user s; 6 keyring s;
  7 secretRef *mLocalObjectReference; 8 readOnly b
ScaleIOPersistentVolumeSource: 1 gateway s!; 2 system s!; 3 secretRef *mSecretReference!; 4 sslEnabled b;
  5 protectionDomain s; 6 storagePool s; 7 storageMode s; 8 volumeName s; 9 fsType s; 10 readOnly b
ScaleIOVolumeSource: 1 gateway s!; 2 system s!; 3 secretRef *mLocalObjectReference!; 4 sslEnabled b;
  5 protectionDomain s; 6 storagePool s; 7 storageMode s; 8 volumeName s; 9 fsType s; 10 readOnly b
SecretProjection: 1 ~ mLocalObjectReference; 2 items [mKeyToPath; 4 optional *b
SecretVolumeSource: 1 secretName s; 2 items [mKeyToPath; 3 defaultMode *i; 4 optional *b; 5 defaultUser *i
ServiceAccountTokenProjection: 1 audience s; 2 expirationSeconds *i; 3 path s!; 4 user *i
StorageOSPersistentVolumeSource: 1 volumeName s; 2 volumeNamespace s; 3 fsType s; 4 readOnly b;
  5 secretRef *mObjectReference
StorageOSVolumeSource: 1 volumeName s; 2 volumeNamespace s; 3 fsType s; 4 readOnly b;
  5 secretRef *mLocalObjectReference
TypedLocalObjectReference: 1 apiGroup *s!; 2 kind s!; 3 name s!
TypedObjectReference: 1 apiGroup *s!; 2 kind s!; 3 name s!; 4 namespace *s
Volume: 1 name s!; 2 ~ mVolumeSource
VolumeHealthStatus: 1 healthConditions [mVolumeHealthCondition; 2 lastTransitionTime t
VolumeNodeAffinity: 1 required *mNodeSelector
VolumeProjection: 1 secret *mSecretProjection; 2 downwardAPI *mDownwardAPIProjection;
  3 configMap *mConfigMapProjection; 4 serviceAccountToken *mServiceAccountTokenProjection;
  5 clusterTrustBundle *mClusterTrustBundleProjection; 6 podCertificate *mPodCertificateProjection
VolumeResourceRequirements: 1 limits {q; 2 requests {q
VolumeSource: 1 hostPath *mHostPathVolumeSource; 2 emptyDir *mEmptyDirVolumeSource;
  3 gcePersistentDisk *mGCEPersistentDiskVolumeSource; 4 awsElasticBlockStore *mAWSElasticBlockStoreVolumeSource;
  5 gitRepo *mGitRepoVolumeSource; 6 secret *mSecretVolumeSource; 7 nfs *mNFSVolumeSource;
  8 iscsi *mISCSIVolumeSource; 9 glusterfs *mGlusterfsVolumeSource;
  10 persistentVolumeClaim *mPersistentVolumeClaimVolumeSource; 11 rbd *mRBDVolumeSource;
  12 flexVolume *mFlexVolumeSource; 13 cinder *mCinderVolumeSource; 14 cephfs *mCephFSVolumeSource;
  15 flocker *mFlockerVolumeSource; 16 downwardAPI *mDownwardAPIVolumeSource; 17 fc *mFCVolumeSource;
  18 azureFile *mAzureFileVolumeSource; 19 configMap *mConfigMapVolumeSource;
  20 vsphereVolume *mVsphereVirtualDiskVolumeSource; 21 quobyte *mQuobyteVolumeSource;
  22 azureDisk *mAzureDiskVolumeSource; 23 photonPersistentDisk *mPhotonPersistentDiskVolumeSource;
  26 projected *mProjectedVolumeSource; 24 portworxVolume *mPortworxVolumeSource; 25 scaleIO *mScaleIOVolumeSource;
  27 storageos *mStorageOSVolumeSource; 28 csi *mCSIVolumeSource; 29 ephemeral *mEphemeralVolumeSource;
  30 image *mImageVolumeSource
VsphereVirtualDiskVolumeSource: 1 volumePath s!; 2 fsType s; 3 storagePolicyName s; 4 storagePolicyID s
`;
