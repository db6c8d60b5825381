// Generated from src/cri/proto/cri.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';

export const Protocol = {
  TCP: 0,
  UDP: 1,
  SCTP: 2,
} as const;
export type Protocol = (typeof Protocol)[keyof typeof Protocol];

export const MountPropagation = {
  PROPAGATION_PRIVATE: 0,
  PROPAGATION_HOST_TO_CONTAINER: 1,
  PROPAGATION_BIDIRECTIONAL: 2,
} as const;
export type MountPropagation = (typeof MountPropagation)[keyof typeof MountPropagation];

export const NamespaceMode = {
  POD: 0,
  CONTAINER: 1,
  NODE: 2,
  TARGET: 3,
} as const;
export type NamespaceMode = (typeof NamespaceMode)[keyof typeof NamespaceMode];

export const SupplementalGroupsPolicy = {
  Merge: 0,
  Strict: 1,
} as const;
export type SupplementalGroupsPolicy = (typeof SupplementalGroupsPolicy)[keyof typeof SupplementalGroupsPolicy];

export const ProfileType = {
  RuntimeDefault: 0,
  Unconfined: 1,
  Localhost: 2,
} as const;
export type ProfileType = (typeof ProfileType)[keyof typeof ProfileType];

export const PodSandboxState = {
  SANDBOX_READY: 0,
  SANDBOX_NOTREADY: 1,
} as const;
export type PodSandboxState = (typeof PodSandboxState)[keyof typeof PodSandboxState];

export const Signal = {
  RUNTIME_DEFAULT: 0,
  SIGABRT: 1,
  SIGALRM: 2,
  SIGBUS: 3,
  SIGCHLD: 4,
  SIGCLD: 5,
  SIGCONT: 6,
  SIGFPE: 7,
  SIGHUP: 8,
  SIGILL: 9,
  SIGINT: 10,
  SIGIO: 11,
  SIGIOT: 12,
  SIGKILL: 13,
  SIGPIPE: 14,
  SIGPOLL: 15,
  SIGPROF: 16,
  SIGPWR: 17,
  SIGQUIT: 18,
  SIGSEGV: 19,
  SIGSTKFLT: 20,
  SIGSTOP: 21,
  SIGSYS: 22,
  SIGTERM: 23,
  SIGTRAP: 24,
  SIGTSTP: 25,
  SIGTTIN: 26,
  SIGTTOU: 27,
  SIGURG: 28,
  SIGUSR1: 29,
  SIGUSR2: 30,
  SIGVTALRM: 31,
  SIGWINCH: 32,
  SIGXCPU: 33,
  SIGXFSZ: 34,
  SIGRTMIN: 35,
  SIGRTMINPLUS1: 36,
  SIGRTMINPLUS2: 37,
  SIGRTMINPLUS3: 38,
  SIGRTMINPLUS4: 39,
  SIGRTMINPLUS5: 40,
  SIGRTMINPLUS6: 41,
  SIGRTMINPLUS7: 42,
  SIGRTMINPLUS8: 43,
  SIGRTMINPLUS9: 44,
  SIGRTMINPLUS10: 45,
  SIGRTMINPLUS11: 46,
  SIGRTMINPLUS12: 47,
  SIGRTMINPLUS13: 48,
  SIGRTMINPLUS14: 49,
  SIGRTMINPLUS15: 50,
  SIGRTMAXMINUS14: 51,
  SIGRTMAXMINUS13: 52,
  SIGRTMAXMINUS12: 53,
  SIGRTMAXMINUS11: 54,
  SIGRTMAXMINUS10: 55,
  SIGRTMAXMINUS9: 56,
  SIGRTMAXMINUS8: 57,
  SIGRTMAXMINUS7: 58,
  SIGRTMAXMINUS6: 59,
  SIGRTMAXMINUS5: 60,
  SIGRTMAXMINUS4: 61,
  SIGRTMAXMINUS3: 62,
  SIGRTMAXMINUS2: 63,
  SIGRTMAXMINUS1: 64,
  SIGRTMAX: 65,
} as const;
export type Signal = (typeof Signal)[keyof typeof Signal];

export const ContainerState = {
  CONTAINER_CREATED: 0,
  CONTAINER_RUNNING: 1,
  CONTAINER_EXITED: 2,
  CONTAINER_UNKNOWN: 3,
} as const;
export type ContainerState = (typeof ContainerState)[keyof typeof ContainerState];

export const ContainerEventType = {
  CONTAINER_CREATED_EVENT: 0,
  CONTAINER_STARTED_EVENT: 1,
  CONTAINER_STOPPED_EVENT: 2,
  CONTAINER_DELETED_EVENT: 3,
} as const;
export type ContainerEventType = (typeof ContainerEventType)[keyof typeof ContainerEventType];

export const MetricType = {
  COUNTER: 0,
  GAUGE: 1,
} as const;
export type MetricType = (typeof MetricType)[keyof typeof MetricType];

export const CgroupDriver = {
  SYSTEMD: 0,
  CGROUPFS: 1,
} as const;
export type CgroupDriver = (typeof CgroupDriver)[keyof typeof CgroupDriver];

export type VersionRequest = {
  version: string;
};

export type VersionResponse = {
  version: string;
  runtimeName: string;
  runtimeVersion: string;
  runtimeApiVersion: string;
};

export type DNSConfig = {
  servers: string[];
  searches: string[];
  options: string[];
};

export type PortMapping = {
  protocol: Protocol;
  containerPort: number;
  hostPort: number;
  hostIp: string;
};

export type Mount = {
  containerPath: string;
  hostPath: string;
  readonly: boolean;
  selinuxRelabel: boolean;
  propagation: MountPropagation;
  uidMappings: IDMapping[];
  gidMappings: IDMapping[];
  recursiveReadOnly: boolean;
  image?: ImageSpec | undefined;
  imageSubPath: string;
};

export type IDMapping = {
  hostId: number;
  containerId: number;
  length: number;
};

export type UserNamespace = {
  mode: NamespaceMode;
  uids: IDMapping[];
  gids: IDMapping[];
};

export type NamespaceOption = {
  network: NamespaceMode;
  pid: NamespaceMode;
  ipc: NamespaceMode;
  targetId: string;
  usernsOptions?: UserNamespace | undefined;
};

export type Int64Value = {
  value: number;
};

export type LinuxSandboxSecurityContext = {
  namespaceOptions?: NamespaceOption | undefined;
  selinuxOptions?: SELinuxOption | undefined;
  runAsUser?: Int64Value | undefined;
  runAsGroup?: Int64Value | undefined;
  readonlyRootfs: boolean;
  supplementalGroups: number[];
  supplementalGroupsPolicy: SupplementalGroupsPolicy;
  privileged: boolean;
  seccomp?: SecurityProfile | undefined;
  apparmor?: SecurityProfile | undefined;
  seccompProfilePath: string;
};

export type SecurityProfile = {
  profileType: ProfileType;
  localhostRef: string;
};

export type LinuxPodSandboxConfig = {
  cgroupParent: string;
  securityContext?: LinuxSandboxSecurityContext | undefined;
  sysctls: Record<string, string>;
  overhead?: LinuxContainerResources | undefined;
  resources?: LinuxContainerResources | undefined;
};

export type PodSandboxMetadata = {
  name: string;
  uid: string;
  namespace: string;
  attempt: number;
};

export type PodSandboxConfig = {
  metadata?: PodSandboxMetadata | undefined;
  hostname: string;
  logDirectory: string;
  dnsConfig?: DNSConfig | undefined;
  portMappings: PortMapping[];
  labels: Record<string, string>;
  annotations: Record<string, string>;
  linux?: LinuxPodSandboxConfig | undefined;
};

export type RunPodSandboxRequest = {
  config?: PodSandboxConfig | undefined;
  runtimeHandler: string;
};

export type RunPodSandboxResponse = {
  podSandboxId: string;
};

export type StopPodSandboxRequest = {
  podSandboxId: string;
};

export type StopPodSandboxResponse = {
};

export type RemovePodSandboxRequest = {
  podSandboxId: string;
};

export type RemovePodSandboxResponse = {
};

export type PodSandboxStatusRequest = {
  podSandboxId: string;
  verbose: boolean;
};

export type PodIP = {
  ip: string;
};

export type PodSandboxNetworkStatus = {
  ip: string;
  additionalIps: PodIP[];
};

export type Namespace = {
  options?: NamespaceOption | undefined;
};

export type LinuxPodSandboxStatus = {
  namespaces?: Namespace | undefined;
};

export type PodSandboxStatus = {
  id: string;
  metadata?: PodSandboxMetadata | undefined;
  state: PodSandboxState;
  createdAt: bigint;
  network?: PodSandboxNetworkStatus | undefined;
  linux?: LinuxPodSandboxStatus | undefined;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  runtimeHandler: string;
};

export type PodSandboxStatusResponse = {
  status?: PodSandboxStatus | undefined;
  info: Record<string, string>;
  containersStatuses: ContainerStatus[];
  timestamp: bigint;
};

export type PodSandboxStateValue = {
  state: PodSandboxState;
};

export type PodSandboxFilter = {
  id: string;
  state?: PodSandboxStateValue | undefined;
  labelSelector: Record<string, string>;
};

export type ListPodSandboxRequest = {
  filter?: PodSandboxFilter | undefined;
};

export type PodSandbox = {
  id: string;
  metadata?: PodSandboxMetadata | undefined;
  state: PodSandboxState;
  createdAt: bigint;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  runtimeHandler: string;
};

export type ListPodSandboxResponse = {
  items: PodSandbox[];
};

export type StreamPodSandboxesRequest = {
  filter?: PodSandboxFilter | undefined;
};

export type StreamPodSandboxesResponse = {
  podSandboxes: PodSandbox[];
};

export type PodSandboxStatsRequest = {
  podSandboxId: string;
};

export type PodSandboxStatsResponse = {
  stats?: PodSandboxStats | undefined;
};

export type PodSandboxStatsFilter = {
  id: string;
  labelSelector: Record<string, string>;
};

export type ListPodSandboxStatsRequest = {
  filter?: PodSandboxStatsFilter | undefined;
};

export type ListPodSandboxStatsResponse = {
  stats: PodSandboxStats[];
};

export type StreamPodSandboxStatsRequest = {
  filter?: PodSandboxStatsFilter | undefined;
};

export type StreamPodSandboxStatsResponse = {
  podSandboxStats: PodSandboxStats[];
};

export type PodSandboxAttributes = {
  id: string;
  metadata?: PodSandboxMetadata | undefined;
  labels: Record<string, string>;
  annotations: Record<string, string>;
};

export type PodSandboxStats = {
  attributes?: PodSandboxAttributes | undefined;
  linux?: LinuxPodSandboxStats | undefined;
};

export type LinuxPodSandboxStats = {
  cpu?: CpuUsage | undefined;
  memory?: MemoryUsage | undefined;
  network?: NetworkUsage | undefined;
  process?: ProcessUsage | undefined;
  containers: ContainerStats[];
  io?: IoUsage | undefined;
};

export type NetworkUsage = {
  timestamp: bigint;
  defaultInterface?: NetworkInterfaceUsage | undefined;
  interfaces: NetworkInterfaceUsage[];
};

export type NetworkInterfaceUsage = {
  name: string;
  rxBytes?: UInt64Value | undefined;
  rxErrors?: UInt64Value | undefined;
  txBytes?: UInt64Value | undefined;
  txErrors?: UInt64Value | undefined;
};

export type ProcessUsage = {
  timestamp: bigint;
  processCount?: UInt64Value | undefined;
};

export type ImageSpec = {
  image: string;
  annotations: Record<string, string>;
  userSpecifiedImage: string;
  runtimeHandler: string;
  imageRef: string;
};

export type KeyValue = {
  key: string;
  value: Uint8Array;
};

export type LinuxContainerResources = {
  cpuPeriod: number;
  cpuQuota: number;
  cpuShares: number;
  memoryLimitInBytes: number;
  oomScoreAdj: number;
  cpusetCpus: string;
  cpusetMems: string;
  hugepageLimits: HugepageLimit[];
  unified: Record<string, string>;
  memorySwapLimitInBytes: number;
};

export type HugepageLimit = {
  pageSize: string;
  limit: number;
};

export type SELinuxOption = {
  user: string;
  role: string;
  type: string;
  level: string;
};

export type Capability = {
  addCapabilities: string[];
  dropCapabilities: string[];
  addAmbientCapabilities: string[];
};

export type LinuxContainerSecurityContext = {
  capabilities?: Capability | undefined;
  privileged: boolean;
  namespaceOptions?: NamespaceOption | undefined;
  selinuxOptions?: SELinuxOption | undefined;
  runAsUser?: Int64Value | undefined;
  runAsGroup?: Int64Value | undefined;
  runAsUsername: string;
  readonlyRootfs: boolean;
  supplementalGroups: number[];
  supplementalGroupsPolicy: SupplementalGroupsPolicy;
  noNewPrivs: boolean;
  maskedPaths: string[];
  readonlyPaths: string[];
  seccomp?: SecurityProfile | undefined;
  apparmor?: SecurityProfile | undefined;
  apparmorProfile: string;
  seccompProfilePath: string;
};

export type LinuxContainerConfig = {
  resources?: LinuxContainerResources | undefined;
  securityContext?: LinuxContainerSecurityContext | undefined;
};

export type LinuxContainerUser = {
  uid: number;
  gid: number;
  supplementalGroups: number[];
};

export type ContainerMetadata = {
  name: string;
  attempt: number;
};

export type Device = {
  containerPath: string;
  hostPath: string;
  permissions: string;
};

export type CDIDevice = {
  name: string;
};

export type ContainerConfig = {
  metadata?: ContainerMetadata | undefined;
  image?: ImageSpec | undefined;
  command: string[];
  args: string[];
  workingDir: string;
  envs: KeyValue[];
  mounts: Mount[];
  devices: Device[];
  labels: Record<string, string>;
  annotations: Record<string, string>;
  logPath: string;
  stdin: boolean;
  stdinOnce: boolean;
  tty: boolean;
  linux?: LinuxContainerConfig | undefined;
  CDIDevices: CDIDevice[];
  stopSignal: Signal;
};

export type CreateContainerRequest = {
  podSandboxId: string;
  config?: ContainerConfig | undefined;
  sandboxConfig?: PodSandboxConfig | undefined;
};

export type CreateContainerResponse = {
  containerId: string;
};

export type StartContainerRequest = {
  containerId: string;
};

export type StartContainerResponse = {
};

export type StopContainerRequest = {
  containerId: string;
  timeout: number;
};

export type StopContainerResponse = {
};

export type RemoveContainerRequest = {
  containerId: string;
};

export type RemoveContainerResponse = {
};

export type ContainerStateValue = {
  state: ContainerState;
};

export type ContainerFilter = {
  id: string;
  state?: ContainerStateValue | undefined;
  podSandboxId: string;
  labelSelector: Record<string, string>;
};

export type ListContainersRequest = {
  filter?: ContainerFilter | undefined;
};

export type Container = {
  id: string;
  podSandboxId: string;
  metadata?: ContainerMetadata | undefined;
  image?: ImageSpec | undefined;
  imageRef: string;
  state: ContainerState;
  createdAt: bigint;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  imageId: string;
};

export type ListContainersResponse = {
  containers: Container[];
};

export type StreamContainersRequest = {
  filter?: ContainerFilter | undefined;
};

export type StreamContainersResponse = {
  containers: Container[];
};

export type ContainerStatusRequest = {
  containerId: string;
  verbose: boolean;
};

export type ContainerStatus = {
  id: string;
  metadata?: ContainerMetadata | undefined;
  state: ContainerState;
  createdAt: bigint;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  image?: ImageSpec | undefined;
  imageRef: string;
  reason: string;
  message: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  mounts: Mount[];
  logPath: string;
  resources?: ContainerResources | undefined;
  imageId: string;
  user?: ContainerUser | undefined;
  stopSignal: Signal;
};

export type ContainerStatusResponse = {
  status?: ContainerStatus | undefined;
  info: Record<string, string>;
};

export type ContainerResources = {
  linux?: LinuxContainerResources | undefined;
};

export type ContainerUser = {
  linux?: LinuxContainerUser | undefined;
};

export type UpdateContainerResourcesRequest = {
  containerId: string;
  linux?: LinuxContainerResources | undefined;
  annotations: Record<string, string>;
};

export type UpdateContainerResourcesResponse = {
};

export type ExecSyncRequest = {
  containerId: string;
  cmd: string[];
  timeout: number;
};

export type ExecSyncResponse = {
  stdout: Uint8Array;
  stderr: Uint8Array;
  exitCode: number;
};

export type ExecRequest = {
  containerId: string;
  cmd: string[];
  tty: boolean;
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
};

export type ExecResponse = {
  url: string;
};

export type AttachRequest = {
  containerId: string;
  stdin: boolean;
  tty: boolean;
  stdout: boolean;
  stderr: boolean;
};

export type AttachResponse = {
  url: string;
};

export type PortForwardRequest = {
  podSandboxId: string;
  port: number[];
};

export type PortForwardResponse = {
  url: string;
};

export type ImageFilter = {
  image?: ImageSpec | undefined;
};

export type ListImagesRequest = {
  filter?: ImageFilter | undefined;
};

export type Image = {
  id: string;
  repoTags: string[];
  repoDigests: string[];
  size: number;
  uid?: Int64Value | undefined;
  username: string;
  spec?: ImageSpec | undefined;
  pinned: boolean;
};

export type ListImagesResponse = {
  images: Image[];
};

export type StreamImagesRequest = {
  filter?: ImageFilter | undefined;
};

export type StreamImagesResponse = {
  images: Image[];
};

export type ImageStatusRequest = {
  image?: ImageSpec | undefined;
  verbose: boolean;
};

export type ImageStatusResponse = {
  image?: Image | undefined;
  info: Record<string, string>;
};

export type AuthConfig = {
  username: string;
  password: string;
  auth: string;
  serverAddress: string;
  identityToken: string;
  registryToken: string;
};

export type PullImageRequest = {
  image?: ImageSpec | undefined;
  auth?: AuthConfig | undefined;
  sandboxConfig?: PodSandboxConfig | undefined;
};

export type PullImageResponse = {
  imageRef: string;
};

export type RemoveImageRequest = {
  image?: ImageSpec | undefined;
};

export type RemoveImageResponse = {
};

export type NetworkConfig = {
  podCidr: string;
};

export type RuntimeConfig = {
  networkConfig?: NetworkConfig | undefined;
};

export type UpdateRuntimeConfigRequest = {
  runtimeConfig?: RuntimeConfig | undefined;
};

export type UpdateRuntimeConfigResponse = {
};

export type RuntimeCondition = {
  type: string;
  status: boolean;
  reason: string;
  message: string;
};

export type RuntimeStatus = {
  conditions: RuntimeCondition[];
};

export type StatusRequest = {
  verbose: boolean;
};

export type RuntimeHandlerFeatures = {
  recursiveReadOnlyMounts: boolean;
  userNamespaces: boolean;
};

export type RuntimeHandler = {
  name: string;
  features?: RuntimeHandlerFeatures | undefined;
};

export type RuntimeFeatures = {
  supplementalGroupsPolicy: boolean;
  userNamespacesHostNetwork: boolean;
};

export type StatusResponse = {
  status?: RuntimeStatus | undefined;
  info: Record<string, string>;
  runtimeHandlers: RuntimeHandler[];
  features?: RuntimeFeatures | undefined;
};

export type ImageFsInfoRequest = {
};

export type UInt64Value = {
  value: number;
};

export type FilesystemIdentifier = {
  mountpoint: string;
};

export type FilesystemUsage = {
  timestamp: bigint;
  fsId?: FilesystemIdentifier | undefined;
  usedBytes?: UInt64Value | undefined;
  inodesUsed?: UInt64Value | undefined;
};

export type ImageFsInfoResponse = {
  imageFilesystems: FilesystemUsage[];
  containerFilesystems: FilesystemUsage[];
};

export type ContainerStatsRequest = {
  containerId: string;
};

export type ContainerStatsResponse = {
  stats?: ContainerStats | undefined;
};

export type ListContainerStatsRequest = {
  filter?: ContainerStatsFilter | undefined;
};

export type ContainerStatsFilter = {
  id: string;
  podSandboxId: string;
  labelSelector: Record<string, string>;
};

export type ListContainerStatsResponse = {
  stats: ContainerStats[];
};

export type StreamContainerStatsRequest = {
  filter?: ContainerStatsFilter | undefined;
};

export type StreamContainerStatsResponse = {
  containerStats: ContainerStats[];
};

export type ContainerAttributes = {
  id: string;
  metadata?: ContainerMetadata | undefined;
  labels: Record<string, string>;
  annotations: Record<string, string>;
};

export type ContainerStats = {
  attributes?: ContainerAttributes | undefined;
  cpu?: CpuUsage | undefined;
  memory?: MemoryUsage | undefined;
  writableLayer?: FilesystemUsage | undefined;
  swap?: SwapUsage | undefined;
  io?: IoUsage | undefined;
};

export type PsiStats = {
  Full?: PsiData | undefined;
  Some?: PsiData | undefined;
};

export type PsiData = {
  Total: number;
  Avg10: number;
  Avg60: number;
  Avg300: number;
};

export type CpuUsage = {
  timestamp: bigint;
  usageCoreNanoSeconds?: UInt64Value | undefined;
  usageNanoCores?: UInt64Value | undefined;
  psi?: PsiStats | undefined;
};

export type MemoryUsage = {
  timestamp: bigint;
  workingSetBytes?: UInt64Value | undefined;
  availableBytes?: UInt64Value | undefined;
  usageBytes?: UInt64Value | undefined;
  rssBytes?: UInt64Value | undefined;
  pageFaults?: UInt64Value | undefined;
  majorPageFaults?: UInt64Value | undefined;
  psi?: PsiStats | undefined;
};

export type IoUsage = {
  timestamp: bigint;
  psi?: PsiStats | undefined;
};

export type SwapUsage = {
  timestamp: bigint;
  swapAvailableBytes?: UInt64Value | undefined;
  swapUsageBytes?: UInt64Value | undefined;
};

export type ReopenContainerLogRequest = {
  containerId: string;
};

export type ReopenContainerLogResponse = {
};

export type CheckpointContainerRequest = {
  containerId: string;
  location: string;
  timeout: number;
};

export type CheckpointContainerResponse = {
};

export type GetEventsRequest = {
};

export type ContainerEventResponse = {
  containerId: string;
  containerEventType: ContainerEventType;
  createdAt: bigint;
  podSandboxStatus?: PodSandboxStatus | undefined;
  containersStatuses: ContainerStatus[];
};

export type ListMetricDescriptorsRequest = {
};

export type ListMetricDescriptorsResponse = {
  descriptors: MetricDescriptor[];
};

export type MetricDescriptor = {
  name: string;
  help: string;
  labelKeys: string[];
};

export type ListPodSandboxMetricsRequest = {
};

export type ListPodSandboxMetricsResponse = {
  podMetrics: PodSandboxMetrics[];
};

export type StreamPodSandboxMetricsRequest = {
};

export type StreamPodSandboxMetricsResponse = {
  podSandboxMetrics: PodSandboxMetrics[];
};

export type PodSandboxMetrics = {
  podSandboxId: string;
  metrics: Metric[];
  containerMetrics: ContainerMetrics[];
};

export type ContainerMetrics = {
  containerId: string;
  metrics: Metric[];
};

export type Metric = {
  name: string;
  timestamp: bigint;
  metricType: MetricType;
  labelValues: string[];
  value?: UInt64Value | undefined;
};

export type RuntimeConfigRequest = {
};

export type RuntimeConfigResponse = {
  linux?: LinuxRuntimeConfiguration | undefined;
};

export type LinuxRuntimeConfiguration = {
  cgroupDriver: CgroupDriver;
};

export type UpdatePodSandboxResourcesRequest = {
  podSandboxId: string;
  overhead?: LinuxContainerResources | undefined;
  resources?: LinuxContainerResources | undefined;
};

export type UpdatePodSandboxResourcesResponse = {
};

const VersionRequestFields = (): readonly FieldSpec[] => (VersionRequestTable ??= [
    { no: 1, name: 'version', type: 'string' },
  ]);
let VersionRequestTable: readonly FieldSpec[] | undefined;
export const VersionRequest: MessageType<VersionRequest> = { spec: { name: 'runtime.v1.VersionRequest', fields: VersionRequestFields } };

const VersionResponseFields = (): readonly FieldSpec[] => (VersionResponseTable ??= [
    { no: 1, name: 'version', type: 'string' },
    { no: 2, name: 'runtimeName', type: 'string' },
    { no: 3, name: 'runtimeVersion', type: 'string' },
    { no: 4, name: 'runtimeApiVersion', type: 'string' },
  ]);
let VersionResponseTable: readonly FieldSpec[] | undefined;
export const VersionResponse: MessageType<VersionResponse> = { spec: { name: 'runtime.v1.VersionResponse', fields: VersionResponseFields } };

const DNSConfigFields = (): readonly FieldSpec[] => (DNSConfigTable ??= [
    { no: 1, name: 'servers', type: 'string', repeated: true },
    { no: 2, name: 'searches', type: 'string', repeated: true },
    { no: 3, name: 'options', type: 'string', repeated: true },
  ]);
let DNSConfigTable: readonly FieldSpec[] | undefined;
export const DNSConfig: MessageType<DNSConfig> = { spec: { name: 'runtime.v1.DNSConfig', fields: DNSConfigFields } };

const PortMappingFields = (): readonly FieldSpec[] => (PortMappingTable ??= [
    { no: 1, name: 'protocol', type: 'enum' },
    { no: 2, name: 'containerPort', type: 'int32' },
    { no: 3, name: 'hostPort', type: 'int32' },
    { no: 4, name: 'hostIp', type: 'string' },
  ]);
let PortMappingTable: readonly FieldSpec[] | undefined;
export const PortMapping: MessageType<PortMapping> = { spec: { name: 'runtime.v1.PortMapping', fields: PortMappingFields } };

const MountFields = (): readonly FieldSpec[] => (MountTable ??= [
    { no: 1, name: 'containerPath', type: 'string' },
    { no: 2, name: 'hostPath', type: 'string' },
    { no: 3, name: 'readonly', type: 'bool' },
    { no: 4, name: 'selinuxRelabel', type: 'bool' },
    { no: 5, name: 'propagation', type: 'enum' },
    { no: 6, name: 'uidMappings', type: IDMapping.spec, repeated: true },
    { no: 7, name: 'gidMappings', type: IDMapping.spec, repeated: true },
    { no: 8, name: 'recursiveReadOnly', type: 'bool' },
    { no: 9, name: 'image', type: ImageSpec.spec },
    { no: 10, name: 'imageSubPath', type: 'string' },
  ]);
let MountTable: readonly FieldSpec[] | undefined;
export const Mount: MessageType<Mount> = { spec: { name: 'runtime.v1.Mount', fields: MountFields } };

const IDMappingFields = (): readonly FieldSpec[] => (IDMappingTable ??= [
    { no: 1, name: 'hostId', type: 'uint32' },
    { no: 2, name: 'containerId', type: 'uint32' },
    { no: 3, name: 'length', type: 'uint32' },
  ]);
let IDMappingTable: readonly FieldSpec[] | undefined;
export const IDMapping: MessageType<IDMapping> = { spec: { name: 'runtime.v1.IDMapping', fields: IDMappingFields } };

const UserNamespaceFields = (): readonly FieldSpec[] => (UserNamespaceTable ??= [
    { no: 1, name: 'mode', type: 'enum' },
    { no: 2, name: 'uids', type: IDMapping.spec, repeated: true },
    { no: 3, name: 'gids', type: IDMapping.spec, repeated: true },
  ]);
let UserNamespaceTable: readonly FieldSpec[] | undefined;
export const UserNamespace: MessageType<UserNamespace> = { spec: { name: 'runtime.v1.UserNamespace', fields: UserNamespaceFields } };

const NamespaceOptionFields = (): readonly FieldSpec[] => (NamespaceOptionTable ??= [
    { no: 1, name: 'network', type: 'enum' },
    { no: 2, name: 'pid', type: 'enum' },
    { no: 3, name: 'ipc', type: 'enum' },
    { no: 4, name: 'targetId', type: 'string' },
    { no: 5, name: 'usernsOptions', type: UserNamespace.spec },
  ]);
let NamespaceOptionTable: readonly FieldSpec[] | undefined;
export const NamespaceOption: MessageType<NamespaceOption> = { spec: { name: 'runtime.v1.NamespaceOption', fields: NamespaceOptionFields } };

const Int64ValueFields = (): readonly FieldSpec[] => (Int64ValueTable ??= [
    { no: 1, name: 'value', type: 'int64' },
  ]);
let Int64ValueTable: readonly FieldSpec[] | undefined;
export const Int64Value: MessageType<Int64Value> = { spec: { name: 'runtime.v1.Int64Value', fields: Int64ValueFields } };

const LinuxSandboxSecurityContextFields = (): readonly FieldSpec[] => (LinuxSandboxSecurityContextTable ??= [
    { no: 1, name: 'namespaceOptions', type: NamespaceOption.spec },
    { no: 2, name: 'selinuxOptions', type: SELinuxOption.spec },
    { no: 3, name: 'runAsUser', type: Int64Value.spec },
    { no: 8, name: 'runAsGroup', type: Int64Value.spec },
    { no: 4, name: 'readonlyRootfs', type: 'bool' },
    { no: 5, name: 'supplementalGroups', type: 'int64', repeated: true },
    { no: 11, name: 'supplementalGroupsPolicy', type: 'enum' },
    { no: 6, name: 'privileged', type: 'bool' },
    { no: 9, name: 'seccomp', type: SecurityProfile.spec },
    { no: 10, name: 'apparmor', type: SecurityProfile.spec },
    { no: 7, name: 'seccompProfilePath', type: 'string' },
  ]);
let LinuxSandboxSecurityContextTable: readonly FieldSpec[] | undefined;
export const LinuxSandboxSecurityContext: MessageType<LinuxSandboxSecurityContext> = { spec: { name: 'runtime.v1.LinuxSandboxSecurityContext', fields: LinuxSandboxSecurityContextFields } };

const SecurityProfileFields = (): readonly FieldSpec[] => (SecurityProfileTable ??= [
    { no: 1, name: 'profileType', type: 'enum' },
    { no: 2, name: 'localhostRef', type: 'string' },
  ]);
let SecurityProfileTable: readonly FieldSpec[] | undefined;
export const SecurityProfile: MessageType<SecurityProfile> = { spec: { name: 'runtime.v1.SecurityProfile', fields: SecurityProfileFields } };

const LinuxPodSandboxConfigFields = (): readonly FieldSpec[] => (LinuxPodSandboxConfigTable ??= [
    { no: 1, name: 'cgroupParent', type: 'string' },
    { no: 2, name: 'securityContext', type: LinuxSandboxSecurityContext.spec },
    { no: 3, name: 'sysctls', type: 'map' },
    { no: 4, name: 'overhead', type: LinuxContainerResources.spec },
    { no: 5, name: 'resources', type: LinuxContainerResources.spec },
  ]);
let LinuxPodSandboxConfigTable: readonly FieldSpec[] | undefined;
export const LinuxPodSandboxConfig: MessageType<LinuxPodSandboxConfig> = { spec: { name: 'runtime.v1.LinuxPodSandboxConfig', fields: LinuxPodSandboxConfigFields } };

const PodSandboxMetadataFields = (): readonly FieldSpec[] => (PodSandboxMetadataTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'uid', type: 'string' },
    { no: 3, name: 'namespace', type: 'string' },
    { no: 4, name: 'attempt', type: 'uint32' },
  ]);
let PodSandboxMetadataTable: readonly FieldSpec[] | undefined;
export const PodSandboxMetadata: MessageType<PodSandboxMetadata> = { spec: { name: 'runtime.v1.PodSandboxMetadata', fields: PodSandboxMetadataFields } };

const PodSandboxConfigFields = (): readonly FieldSpec[] => (PodSandboxConfigTable ??= [
    { no: 1, name: 'metadata', type: PodSandboxMetadata.spec },
    { no: 2, name: 'hostname', type: 'string' },
    { no: 3, name: 'logDirectory', type: 'string' },
    { no: 4, name: 'dnsConfig', type: DNSConfig.spec },
    { no: 5, name: 'portMappings', type: PortMapping.spec, repeated: true },
    { no: 6, name: 'labels', type: 'map' },
    { no: 7, name: 'annotations', type: 'map' },
    { no: 8, name: 'linux', type: LinuxPodSandboxConfig.spec },
  ]);
let PodSandboxConfigTable: readonly FieldSpec[] | undefined;
export const PodSandboxConfig: MessageType<PodSandboxConfig> = { spec: { name: 'runtime.v1.PodSandboxConfig', fields: PodSandboxConfigFields } };

const RunPodSandboxRequestFields = (): readonly FieldSpec[] => (RunPodSandboxRequestTable ??= [
    { no: 1, name: 'config', type: PodSandboxConfig.spec },
    { no: 2, name: 'runtimeHandler', type: 'string' },
  ]);
let RunPodSandboxRequestTable: readonly FieldSpec[] | undefined;
export const RunPodSandboxRequest: MessageType<RunPodSandboxRequest> = { spec: { name: 'runtime.v1.RunPodSandboxRequest', fields: RunPodSandboxRequestFields } };

const RunPodSandboxResponseFields = (): readonly FieldSpec[] => (RunPodSandboxResponseTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
  ]);
let RunPodSandboxResponseTable: readonly FieldSpec[] | undefined;
export const RunPodSandboxResponse: MessageType<RunPodSandboxResponse> = { spec: { name: 'runtime.v1.RunPodSandboxResponse', fields: RunPodSandboxResponseFields } };

const StopPodSandboxRequestFields = (): readonly FieldSpec[] => (StopPodSandboxRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
  ]);
let StopPodSandboxRequestTable: readonly FieldSpec[] | undefined;
export const StopPodSandboxRequest: MessageType<StopPodSandboxRequest> = { spec: { name: 'runtime.v1.StopPodSandboxRequest', fields: StopPodSandboxRequestFields } };

const StopPodSandboxResponseFields = (): readonly FieldSpec[] => (StopPodSandboxResponseTable ??= [
  ]);
let StopPodSandboxResponseTable: readonly FieldSpec[] | undefined;
export const StopPodSandboxResponse: MessageType<StopPodSandboxResponse> = { spec: { name: 'runtime.v1.StopPodSandboxResponse', fields: StopPodSandboxResponseFields } };

const RemovePodSandboxRequestFields = (): readonly FieldSpec[] => (RemovePodSandboxRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
  ]);
let RemovePodSandboxRequestTable: readonly FieldSpec[] | undefined;
export const RemovePodSandboxRequest: MessageType<RemovePodSandboxRequest> = { spec: { name: 'runtime.v1.RemovePodSandboxRequest', fields: RemovePodSandboxRequestFields } };

const RemovePodSandboxResponseFields = (): readonly FieldSpec[] => (RemovePodSandboxResponseTable ??= [
  ]);
let RemovePodSandboxResponseTable: readonly FieldSpec[] | undefined;
export const RemovePodSandboxResponse: MessageType<RemovePodSandboxResponse> = { spec: { name: 'runtime.v1.RemovePodSandboxResponse', fields: RemovePodSandboxResponseFields } };

const PodSandboxStatusRequestFields = (): readonly FieldSpec[] => (PodSandboxStatusRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
    { no: 2, name: 'verbose', type: 'bool' },
  ]);
let PodSandboxStatusRequestTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatusRequest: MessageType<PodSandboxStatusRequest> = { spec: { name: 'runtime.v1.PodSandboxStatusRequest', fields: PodSandboxStatusRequestFields } };

const PodIPFields = (): readonly FieldSpec[] => (PodIPTable ??= [
    { no: 1, name: 'ip', type: 'string' },
  ]);
let PodIPTable: readonly FieldSpec[] | undefined;
export const PodIP: MessageType<PodIP> = { spec: { name: 'runtime.v1.PodIP', fields: PodIPFields } };

const PodSandboxNetworkStatusFields = (): readonly FieldSpec[] => (PodSandboxNetworkStatusTable ??= [
    { no: 1, name: 'ip', type: 'string' },
    { no: 2, name: 'additionalIps', type: PodIP.spec, repeated: true },
  ]);
let PodSandboxNetworkStatusTable: readonly FieldSpec[] | undefined;
export const PodSandboxNetworkStatus: MessageType<PodSandboxNetworkStatus> = { spec: { name: 'runtime.v1.PodSandboxNetworkStatus', fields: PodSandboxNetworkStatusFields } };

const NamespaceFields = (): readonly FieldSpec[] => (NamespaceTable ??= [
    { no: 2, name: 'options', type: NamespaceOption.spec },
  ]);
let NamespaceTable: readonly FieldSpec[] | undefined;
export const Namespace: MessageType<Namespace> = { spec: { name: 'runtime.v1.Namespace', fields: NamespaceFields } };

const LinuxPodSandboxStatusFields = (): readonly FieldSpec[] => (LinuxPodSandboxStatusTable ??= [
    { no: 1, name: 'namespaces', type: Namespace.spec },
  ]);
let LinuxPodSandboxStatusTable: readonly FieldSpec[] | undefined;
export const LinuxPodSandboxStatus: MessageType<LinuxPodSandboxStatus> = { spec: { name: 'runtime.v1.LinuxPodSandboxStatus', fields: LinuxPodSandboxStatusFields } };

const PodSandboxStatusFields = (): readonly FieldSpec[] => (PodSandboxStatusTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'metadata', type: PodSandboxMetadata.spec },
    { no: 3, name: 'state', type: 'enum' },
    { no: 4, name: 'createdAt', type: 'bigint64' },
    { no: 5, name: 'network', type: PodSandboxNetworkStatus.spec },
    { no: 6, name: 'linux', type: LinuxPodSandboxStatus.spec },
    { no: 7, name: 'labels', type: 'map' },
    { no: 8, name: 'annotations', type: 'map' },
    { no: 9, name: 'runtimeHandler', type: 'string' },
  ]);
let PodSandboxStatusTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatus: MessageType<PodSandboxStatus> = { spec: { name: 'runtime.v1.PodSandboxStatus', fields: PodSandboxStatusFields } };

const PodSandboxStatusResponseFields = (): readonly FieldSpec[] => (PodSandboxStatusResponseTable ??= [
    { no: 1, name: 'status', type: PodSandboxStatus.spec },
    { no: 2, name: 'info', type: 'map' },
    { no: 3, name: 'containersStatuses', type: ContainerStatus.spec, repeated: true },
    { no: 4, name: 'timestamp', type: 'bigint64' },
  ]);
let PodSandboxStatusResponseTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatusResponse: MessageType<PodSandboxStatusResponse> = { spec: { name: 'runtime.v1.PodSandboxStatusResponse', fields: PodSandboxStatusResponseFields } };

const PodSandboxStateValueFields = (): readonly FieldSpec[] => (PodSandboxStateValueTable ??= [
    { no: 1, name: 'state', type: 'enum' },
  ]);
let PodSandboxStateValueTable: readonly FieldSpec[] | undefined;
export const PodSandboxStateValue: MessageType<PodSandboxStateValue> = { spec: { name: 'runtime.v1.PodSandboxStateValue', fields: PodSandboxStateValueFields } };

const PodSandboxFilterFields = (): readonly FieldSpec[] => (PodSandboxFilterTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'state', type: PodSandboxStateValue.spec },
    { no: 3, name: 'labelSelector', type: 'map' },
  ]);
let PodSandboxFilterTable: readonly FieldSpec[] | undefined;
export const PodSandboxFilter: MessageType<PodSandboxFilter> = { spec: { name: 'runtime.v1.PodSandboxFilter', fields: PodSandboxFilterFields } };

const ListPodSandboxRequestFields = (): readonly FieldSpec[] => (ListPodSandboxRequestTable ??= [
    { no: 1, name: 'filter', type: PodSandboxFilter.spec },
  ]);
let ListPodSandboxRequestTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxRequest: MessageType<ListPodSandboxRequest> = { spec: { name: 'runtime.v1.ListPodSandboxRequest', fields: ListPodSandboxRequestFields } };

const PodSandboxFields = (): readonly FieldSpec[] => (PodSandboxTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'metadata', type: PodSandboxMetadata.spec },
    { no: 3, name: 'state', type: 'enum' },
    { no: 4, name: 'createdAt', type: 'bigint64' },
    { no: 5, name: 'labels', type: 'map' },
    { no: 6, name: 'annotations', type: 'map' },
    { no: 7, name: 'runtimeHandler', type: 'string' },
  ]);
let PodSandboxTable: readonly FieldSpec[] | undefined;
export const PodSandbox: MessageType<PodSandbox> = { spec: { name: 'runtime.v1.PodSandbox', fields: PodSandboxFields } };

const ListPodSandboxResponseFields = (): readonly FieldSpec[] => (ListPodSandboxResponseTable ??= [
    { no: 1, name: 'items', type: PodSandbox.spec, repeated: true },
  ]);
let ListPodSandboxResponseTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxResponse: MessageType<ListPodSandboxResponse> = { spec: { name: 'runtime.v1.ListPodSandboxResponse', fields: ListPodSandboxResponseFields } };

const StreamPodSandboxesRequestFields = (): readonly FieldSpec[] => (StreamPodSandboxesRequestTable ??= [
    { no: 1, name: 'filter', type: PodSandboxFilter.spec },
  ]);
let StreamPodSandboxesRequestTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxesRequest: MessageType<StreamPodSandboxesRequest> = { spec: { name: 'runtime.v1.StreamPodSandboxesRequest', fields: StreamPodSandboxesRequestFields } };

const StreamPodSandboxesResponseFields = (): readonly FieldSpec[] => (StreamPodSandboxesResponseTable ??= [
    { no: 1, name: 'podSandboxes', type: PodSandbox.spec, repeated: true },
  ]);
let StreamPodSandboxesResponseTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxesResponse: MessageType<StreamPodSandboxesResponse> = { spec: { name: 'runtime.v1.StreamPodSandboxesResponse', fields: StreamPodSandboxesResponseFields } };

const PodSandboxStatsRequestFields = (): readonly FieldSpec[] => (PodSandboxStatsRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
  ]);
let PodSandboxStatsRequestTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatsRequest: MessageType<PodSandboxStatsRequest> = { spec: { name: 'runtime.v1.PodSandboxStatsRequest', fields: PodSandboxStatsRequestFields } };

const PodSandboxStatsResponseFields = (): readonly FieldSpec[] => (PodSandboxStatsResponseTable ??= [
    { no: 1, name: 'stats', type: PodSandboxStats.spec },
  ]);
let PodSandboxStatsResponseTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatsResponse: MessageType<PodSandboxStatsResponse> = { spec: { name: 'runtime.v1.PodSandboxStatsResponse', fields: PodSandboxStatsResponseFields } };

const PodSandboxStatsFilterFields = (): readonly FieldSpec[] => (PodSandboxStatsFilterTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'labelSelector', type: 'map' },
  ]);
let PodSandboxStatsFilterTable: readonly FieldSpec[] | undefined;
export const PodSandboxStatsFilter: MessageType<PodSandboxStatsFilter> = { spec: { name: 'runtime.v1.PodSandboxStatsFilter', fields: PodSandboxStatsFilterFields } };

const ListPodSandboxStatsRequestFields = (): readonly FieldSpec[] => (ListPodSandboxStatsRequestTable ??= [
    { no: 1, name: 'filter', type: PodSandboxStatsFilter.spec },
  ]);
let ListPodSandboxStatsRequestTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxStatsRequest: MessageType<ListPodSandboxStatsRequest> = { spec: { name: 'runtime.v1.ListPodSandboxStatsRequest', fields: ListPodSandboxStatsRequestFields } };

const ListPodSandboxStatsResponseFields = (): readonly FieldSpec[] => (ListPodSandboxStatsResponseTable ??= [
    { no: 1, name: 'stats', type: PodSandboxStats.spec, repeated: true },
  ]);
let ListPodSandboxStatsResponseTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxStatsResponse: MessageType<ListPodSandboxStatsResponse> = { spec: { name: 'runtime.v1.ListPodSandboxStatsResponse', fields: ListPodSandboxStatsResponseFields } };

const StreamPodSandboxStatsRequestFields = (): readonly FieldSpec[] => (StreamPodSandboxStatsRequestTable ??= [
    { no: 1, name: 'filter', type: PodSandboxStatsFilter.spec },
  ]);
let StreamPodSandboxStatsRequestTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxStatsRequest: MessageType<StreamPodSandboxStatsRequest> = { spec: { name: 'runtime.v1.StreamPodSandboxStatsRequest', fields: StreamPodSandboxStatsRequestFields } };

const StreamPodSandboxStatsResponseFields = (): readonly FieldSpec[] => (StreamPodSandboxStatsResponseTable ??= [
    { no: 1, name: 'podSandboxStats', type: PodSandboxStats.spec, repeated: true },
  ]);
let StreamPodSandboxStatsResponseTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxStatsResponse: MessageType<StreamPodSandboxStatsResponse> = { spec: { name: 'runtime.v1.StreamPodSandboxStatsResponse', fields: StreamPodSandboxStatsResponseFields } };

const PodSandboxAttributesFields = (): readonly FieldSpec[] => (PodSandboxAttributesTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'metadata', type: PodSandboxMetadata.spec },
    { no: 3, name: 'labels', type: 'map' },
    { no: 4, name: 'annotations', type: 'map' },
  ]);
let PodSandboxAttributesTable: readonly FieldSpec[] | undefined;
export const PodSandboxAttributes: MessageType<PodSandboxAttributes> = { spec: { name: 'runtime.v1.PodSandboxAttributes', fields: PodSandboxAttributesFields } };

const PodSandboxStatsFields = (): readonly FieldSpec[] => (PodSandboxStatsTable ??= [
    { no: 1, name: 'attributes', type: PodSandboxAttributes.spec },
    { no: 2, name: 'linux', type: LinuxPodSandboxStats.spec },
  ]);
let PodSandboxStatsTable: readonly FieldSpec[] | undefined;
export const PodSandboxStats: MessageType<PodSandboxStats> = { spec: { name: 'runtime.v1.PodSandboxStats', fields: PodSandboxStatsFields } };

const LinuxPodSandboxStatsFields = (): readonly FieldSpec[] => (LinuxPodSandboxStatsTable ??= [
    { no: 1, name: 'cpu', type: CpuUsage.spec },
    { no: 2, name: 'memory', type: MemoryUsage.spec },
    { no: 3, name: 'network', type: NetworkUsage.spec },
    { no: 4, name: 'process', type: ProcessUsage.spec },
    { no: 5, name: 'containers', type: ContainerStats.spec, repeated: true },
    { no: 6, name: 'io', type: IoUsage.spec },
  ]);
let LinuxPodSandboxStatsTable: readonly FieldSpec[] | undefined;
export const LinuxPodSandboxStats: MessageType<LinuxPodSandboxStats> = { spec: { name: 'runtime.v1.LinuxPodSandboxStats', fields: LinuxPodSandboxStatsFields } };

const NetworkUsageFields = (): readonly FieldSpec[] => (NetworkUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'defaultInterface', type: NetworkInterfaceUsage.spec },
    { no: 3, name: 'interfaces', type: NetworkInterfaceUsage.spec, repeated: true },
  ]);
let NetworkUsageTable: readonly FieldSpec[] | undefined;
export const NetworkUsage: MessageType<NetworkUsage> = { spec: { name: 'runtime.v1.NetworkUsage', fields: NetworkUsageFields } };

const NetworkInterfaceUsageFields = (): readonly FieldSpec[] => (NetworkInterfaceUsageTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'rxBytes', type: UInt64Value.spec },
    { no: 3, name: 'rxErrors', type: UInt64Value.spec },
    { no: 4, name: 'txBytes', type: UInt64Value.spec },
    { no: 5, name: 'txErrors', type: UInt64Value.spec },
  ]);
let NetworkInterfaceUsageTable: readonly FieldSpec[] | undefined;
export const NetworkInterfaceUsage: MessageType<NetworkInterfaceUsage> = { spec: { name: 'runtime.v1.NetworkInterfaceUsage', fields: NetworkInterfaceUsageFields } };

const ProcessUsageFields = (): readonly FieldSpec[] => (ProcessUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'processCount', type: UInt64Value.spec },
  ]);
let ProcessUsageTable: readonly FieldSpec[] | undefined;
export const ProcessUsage: MessageType<ProcessUsage> = { spec: { name: 'runtime.v1.ProcessUsage', fields: ProcessUsageFields } };

const ImageSpecFields = (): readonly FieldSpec[] => (ImageSpecTable ??= [
    { no: 1, name: 'image', type: 'string' },
    { no: 2, name: 'annotations', type: 'map' },
    { no: 18, name: 'userSpecifiedImage', type: 'string' },
    { no: 19, name: 'runtimeHandler', type: 'string' },
    { no: 20, name: 'imageRef', type: 'string' },
  ]);
let ImageSpecTable: readonly FieldSpec[] | undefined;
export const ImageSpec: MessageType<ImageSpec> = { spec: { name: 'runtime.v1.ImageSpec', fields: ImageSpecFields } };

const KeyValueFields = (): readonly FieldSpec[] => (KeyValueTable ??= [
    { no: 1, name: 'key', type: 'string' },
    { no: 2, name: 'value', type: 'bytes' },
  ]);
let KeyValueTable: readonly FieldSpec[] | undefined;
export const KeyValue: MessageType<KeyValue> = { spec: { name: 'runtime.v1.KeyValue', fields: KeyValueFields } };

const LinuxContainerResourcesFields = (): readonly FieldSpec[] => (LinuxContainerResourcesTable ??= [
    { no: 1, name: 'cpuPeriod', type: 'int64' },
    { no: 2, name: 'cpuQuota', type: 'int64' },
    { no: 3, name: 'cpuShares', type: 'int64' },
    { no: 4, name: 'memoryLimitInBytes', type: 'int64' },
    { no: 5, name: 'oomScoreAdj', type: 'int64' },
    { no: 6, name: 'cpusetCpus', type: 'string' },
    { no: 7, name: 'cpusetMems', type: 'string' },
    { no: 8, name: 'hugepageLimits', type: HugepageLimit.spec, repeated: true },
    { no: 9, name: 'unified', type: 'map' },
    { no: 10, name: 'memorySwapLimitInBytes', type: 'int64' },
  ]);
let LinuxContainerResourcesTable: readonly FieldSpec[] | undefined;
export const LinuxContainerResources: MessageType<LinuxContainerResources> = { spec: { name: 'runtime.v1.LinuxContainerResources', fields: LinuxContainerResourcesFields } };

const HugepageLimitFields = (): readonly FieldSpec[] => (HugepageLimitTable ??= [
    { no: 1, name: 'pageSize', type: 'string' },
    { no: 2, name: 'limit', type: 'uint64' },
  ]);
let HugepageLimitTable: readonly FieldSpec[] | undefined;
export const HugepageLimit: MessageType<HugepageLimit> = { spec: { name: 'runtime.v1.HugepageLimit', fields: HugepageLimitFields } };

const SELinuxOptionFields = (): readonly FieldSpec[] => (SELinuxOptionTable ??= [
    { no: 1, name: 'user', type: 'string' },
    { no: 2, name: 'role', type: 'string' },
    { no: 3, name: 'type', type: 'string' },
    { no: 4, name: 'level', type: 'string' },
  ]);
let SELinuxOptionTable: readonly FieldSpec[] | undefined;
export const SELinuxOption: MessageType<SELinuxOption> = { spec: { name: 'runtime.v1.SELinuxOption', fields: SELinuxOptionFields } };

const CapabilityFields = (): readonly FieldSpec[] => (CapabilityTable ??= [
    { no: 1, name: 'addCapabilities', type: 'string', repeated: true },
    { no: 2, name: 'dropCapabilities', type: 'string', repeated: true },
    { no: 3, name: 'addAmbientCapabilities', type: 'string', repeated: true },
  ]);
let CapabilityTable: readonly FieldSpec[] | undefined;
export const Capability: MessageType<Capability> = { spec: { name: 'runtime.v1.Capability', fields: CapabilityFields } };

const LinuxContainerSecurityContextFields = (): readonly FieldSpec[] => (LinuxContainerSecurityContextTable ??= [
    { no: 1, name: 'capabilities', type: Capability.spec },
    { no: 2, name: 'privileged', type: 'bool' },
    { no: 3, name: 'namespaceOptions', type: NamespaceOption.spec },
    { no: 4, name: 'selinuxOptions', type: SELinuxOption.spec },
    { no: 5, name: 'runAsUser', type: Int64Value.spec },
    { no: 12, name: 'runAsGroup', type: Int64Value.spec },
    { no: 6, name: 'runAsUsername', type: 'string' },
    { no: 7, name: 'readonlyRootfs', type: 'bool' },
    { no: 8, name: 'supplementalGroups', type: 'int64', repeated: true },
    { no: 17, name: 'supplementalGroupsPolicy', type: 'enum' },
    { no: 11, name: 'noNewPrivs', type: 'bool' },
    { no: 13, name: 'maskedPaths', type: 'string', repeated: true },
    { no: 14, name: 'readonlyPaths', type: 'string', repeated: true },
    { no: 15, name: 'seccomp', type: SecurityProfile.spec },
    { no: 16, name: 'apparmor', type: SecurityProfile.spec },
    { no: 9, name: 'apparmorProfile', type: 'string' },
    { no: 10, name: 'seccompProfilePath', type: 'string' },
  ]);
let LinuxContainerSecurityContextTable: readonly FieldSpec[] | undefined;
export const LinuxContainerSecurityContext: MessageType<LinuxContainerSecurityContext> = { spec: { name: 'runtime.v1.LinuxContainerSecurityContext', fields: LinuxContainerSecurityContextFields } };

const LinuxContainerConfigFields = (): readonly FieldSpec[] => (LinuxContainerConfigTable ??= [
    { no: 1, name: 'resources', type: LinuxContainerResources.spec },
    { no: 2, name: 'securityContext', type: LinuxContainerSecurityContext.spec },
  ]);
let LinuxContainerConfigTable: readonly FieldSpec[] | undefined;
export const LinuxContainerConfig: MessageType<LinuxContainerConfig> = { spec: { name: 'runtime.v1.LinuxContainerConfig', fields: LinuxContainerConfigFields } };

const LinuxContainerUserFields = (): readonly FieldSpec[] => (LinuxContainerUserTable ??= [
    { no: 1, name: 'uid', type: 'int64' },
    { no: 2, name: 'gid', type: 'int64' },
    { no: 3, name: 'supplementalGroups', type: 'int64', repeated: true },
  ]);
let LinuxContainerUserTable: readonly FieldSpec[] | undefined;
export const LinuxContainerUser: MessageType<LinuxContainerUser> = { spec: { name: 'runtime.v1.LinuxContainerUser', fields: LinuxContainerUserFields } };

const ContainerMetadataFields = (): readonly FieldSpec[] => (ContainerMetadataTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'attempt', type: 'uint32' },
  ]);
let ContainerMetadataTable: readonly FieldSpec[] | undefined;
export const ContainerMetadata: MessageType<ContainerMetadata> = { spec: { name: 'runtime.v1.ContainerMetadata', fields: ContainerMetadataFields } };

const DeviceFields = (): readonly FieldSpec[] => (DeviceTable ??= [
    { no: 1, name: 'containerPath', type: 'string' },
    { no: 2, name: 'hostPath', type: 'string' },
    { no: 3, name: 'permissions', type: 'string' },
  ]);
let DeviceTable: readonly FieldSpec[] | undefined;
export const Device: MessageType<Device> = { spec: { name: 'runtime.v1.Device', fields: DeviceFields } };

const CDIDeviceFields = (): readonly FieldSpec[] => (CDIDeviceTable ??= [
    { no: 1, name: 'name', type: 'string' },
  ]);
let CDIDeviceTable: readonly FieldSpec[] | undefined;
export const CDIDevice: MessageType<CDIDevice> = { spec: { name: 'runtime.v1.CDIDevice', fields: CDIDeviceFields } };

const ContainerConfigFields = (): readonly FieldSpec[] => (ContainerConfigTable ??= [
    { no: 1, name: 'metadata', type: ContainerMetadata.spec },
    { no: 2, name: 'image', type: ImageSpec.spec },
    { no: 3, name: 'command', type: 'string', repeated: true },
    { no: 4, name: 'args', type: 'string', repeated: true },
    { no: 5, name: 'workingDir', type: 'string' },
    { no: 6, name: 'envs', type: KeyValue.spec, repeated: true },
    { no: 7, name: 'mounts', type: Mount.spec, repeated: true },
    { no: 8, name: 'devices', type: Device.spec, repeated: true },
    { no: 9, name: 'labels', type: 'map' },
    { no: 10, name: 'annotations', type: 'map' },
    { no: 11, name: 'logPath', type: 'string' },
    { no: 12, name: 'stdin', type: 'bool' },
    { no: 13, name: 'stdinOnce', type: 'bool' },
    { no: 14, name: 'tty', type: 'bool' },
    { no: 15, name: 'linux', type: LinuxContainerConfig.spec },
    { no: 17, name: 'CDIDevices', type: CDIDevice.spec, repeated: true },
    { no: 18, name: 'stopSignal', type: 'enum' },
  ]);
let ContainerConfigTable: readonly FieldSpec[] | undefined;
export const ContainerConfig: MessageType<ContainerConfig> = { spec: { name: 'runtime.v1.ContainerConfig', fields: ContainerConfigFields } };

const CreateContainerRequestFields = (): readonly FieldSpec[] => (CreateContainerRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
    { no: 2, name: 'config', type: ContainerConfig.spec },
    { no: 3, name: 'sandboxConfig', type: PodSandboxConfig.spec },
  ]);
let CreateContainerRequestTable: readonly FieldSpec[] | undefined;
export const CreateContainerRequest: MessageType<CreateContainerRequest> = { spec: { name: 'runtime.v1.CreateContainerRequest', fields: CreateContainerRequestFields } };

const CreateContainerResponseFields = (): readonly FieldSpec[] => (CreateContainerResponseTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let CreateContainerResponseTable: readonly FieldSpec[] | undefined;
export const CreateContainerResponse: MessageType<CreateContainerResponse> = { spec: { name: 'runtime.v1.CreateContainerResponse', fields: CreateContainerResponseFields } };

const StartContainerRequestFields = (): readonly FieldSpec[] => (StartContainerRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let StartContainerRequestTable: readonly FieldSpec[] | undefined;
export const StartContainerRequest: MessageType<StartContainerRequest> = { spec: { name: 'runtime.v1.StartContainerRequest', fields: StartContainerRequestFields } };

const StartContainerResponseFields = (): readonly FieldSpec[] => (StartContainerResponseTable ??= [
  ]);
let StartContainerResponseTable: readonly FieldSpec[] | undefined;
export const StartContainerResponse: MessageType<StartContainerResponse> = { spec: { name: 'runtime.v1.StartContainerResponse', fields: StartContainerResponseFields } };

const StopContainerRequestFields = (): readonly FieldSpec[] => (StopContainerRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'timeout', type: 'int64' },
  ]);
let StopContainerRequestTable: readonly FieldSpec[] | undefined;
export const StopContainerRequest: MessageType<StopContainerRequest> = { spec: { name: 'runtime.v1.StopContainerRequest', fields: StopContainerRequestFields } };

const StopContainerResponseFields = (): readonly FieldSpec[] => (StopContainerResponseTable ??= [
  ]);
let StopContainerResponseTable: readonly FieldSpec[] | undefined;
export const StopContainerResponse: MessageType<StopContainerResponse> = { spec: { name: 'runtime.v1.StopContainerResponse', fields: StopContainerResponseFields } };

const RemoveContainerRequestFields = (): readonly FieldSpec[] => (RemoveContainerRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let RemoveContainerRequestTable: readonly FieldSpec[] | undefined;
export const RemoveContainerRequest: MessageType<RemoveContainerRequest> = { spec: { name: 'runtime.v1.RemoveContainerRequest', fields: RemoveContainerRequestFields } };

const RemoveContainerResponseFields = (): readonly FieldSpec[] => (RemoveContainerResponseTable ??= [
  ]);
let RemoveContainerResponseTable: readonly FieldSpec[] | undefined;
export const RemoveContainerResponse: MessageType<RemoveContainerResponse> = { spec: { name: 'runtime.v1.RemoveContainerResponse', fields: RemoveContainerResponseFields } };

const ContainerStateValueFields = (): readonly FieldSpec[] => (ContainerStateValueTable ??= [
    { no: 1, name: 'state', type: 'enum' },
  ]);
let ContainerStateValueTable: readonly FieldSpec[] | undefined;
export const ContainerStateValue: MessageType<ContainerStateValue> = { spec: { name: 'runtime.v1.ContainerStateValue', fields: ContainerStateValueFields } };

const ContainerFilterFields = (): readonly FieldSpec[] => (ContainerFilterTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'state', type: ContainerStateValue.spec },
    { no: 3, name: 'podSandboxId', type: 'string' },
    { no: 4, name: 'labelSelector', type: 'map' },
  ]);
let ContainerFilterTable: readonly FieldSpec[] | undefined;
export const ContainerFilter: MessageType<ContainerFilter> = { spec: { name: 'runtime.v1.ContainerFilter', fields: ContainerFilterFields } };

const ListContainersRequestFields = (): readonly FieldSpec[] => (ListContainersRequestTable ??= [
    { no: 1, name: 'filter', type: ContainerFilter.spec },
  ]);
let ListContainersRequestTable: readonly FieldSpec[] | undefined;
export const ListContainersRequest: MessageType<ListContainersRequest> = { spec: { name: 'runtime.v1.ListContainersRequest', fields: ListContainersRequestFields } };

const ContainerFields = (): readonly FieldSpec[] => (ContainerTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'podSandboxId', type: 'string' },
    { no: 3, name: 'metadata', type: ContainerMetadata.spec },
    { no: 4, name: 'image', type: ImageSpec.spec },
    { no: 5, name: 'imageRef', type: 'string' },
    { no: 6, name: 'state', type: 'enum' },
    { no: 7, name: 'createdAt', type: 'bigint64' },
    { no: 8, name: 'labels', type: 'map' },
    { no: 9, name: 'annotations', type: 'map' },
    { no: 10, name: 'imageId', type: 'string' },
  ]);
let ContainerTable: readonly FieldSpec[] | undefined;
export const Container: MessageType<Container> = { spec: { name: 'runtime.v1.Container', fields: ContainerFields } };

const ListContainersResponseFields = (): readonly FieldSpec[] => (ListContainersResponseTable ??= [
    { no: 1, name: 'containers', type: Container.spec, repeated: true },
  ]);
let ListContainersResponseTable: readonly FieldSpec[] | undefined;
export const ListContainersResponse: MessageType<ListContainersResponse> = { spec: { name: 'runtime.v1.ListContainersResponse', fields: ListContainersResponseFields } };

const StreamContainersRequestFields = (): readonly FieldSpec[] => (StreamContainersRequestTable ??= [
    { no: 1, name: 'filter', type: ContainerFilter.spec },
  ]);
let StreamContainersRequestTable: readonly FieldSpec[] | undefined;
export const StreamContainersRequest: MessageType<StreamContainersRequest> = { spec: { name: 'runtime.v1.StreamContainersRequest', fields: StreamContainersRequestFields } };

const StreamContainersResponseFields = (): readonly FieldSpec[] => (StreamContainersResponseTable ??= [
    { no: 1, name: 'containers', type: Container.spec, repeated: true },
  ]);
let StreamContainersResponseTable: readonly FieldSpec[] | undefined;
export const StreamContainersResponse: MessageType<StreamContainersResponse> = { spec: { name: 'runtime.v1.StreamContainersResponse', fields: StreamContainersResponseFields } };

const ContainerStatusRequestFields = (): readonly FieldSpec[] => (ContainerStatusRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'verbose', type: 'bool' },
  ]);
let ContainerStatusRequestTable: readonly FieldSpec[] | undefined;
export const ContainerStatusRequest: MessageType<ContainerStatusRequest> = { spec: { name: 'runtime.v1.ContainerStatusRequest', fields: ContainerStatusRequestFields } };

const ContainerStatusFields = (): readonly FieldSpec[] => (ContainerStatusTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'metadata', type: ContainerMetadata.spec },
    { no: 3, name: 'state', type: 'enum' },
    { no: 4, name: 'createdAt', type: 'bigint64' },
    { no: 5, name: 'startedAt', type: 'bigint64' },
    { no: 6, name: 'finishedAt', type: 'bigint64' },
    { no: 7, name: 'exitCode', type: 'int32' },
    { no: 8, name: 'image', type: ImageSpec.spec },
    { no: 9, name: 'imageRef', type: 'string' },
    { no: 10, name: 'reason', type: 'string' },
    { no: 11, name: 'message', type: 'string' },
    { no: 12, name: 'labels', type: 'map' },
    { no: 13, name: 'annotations', type: 'map' },
    { no: 14, name: 'mounts', type: Mount.spec, repeated: true },
    { no: 15, name: 'logPath', type: 'string' },
    { no: 16, name: 'resources', type: ContainerResources.spec },
    { no: 17, name: 'imageId', type: 'string' },
    { no: 18, name: 'user', type: ContainerUser.spec },
    { no: 19, name: 'stopSignal', type: 'enum' },
  ]);
let ContainerStatusTable: readonly FieldSpec[] | undefined;
export const ContainerStatus: MessageType<ContainerStatus> = { spec: { name: 'runtime.v1.ContainerStatus', fields: ContainerStatusFields } };

const ContainerStatusResponseFields = (): readonly FieldSpec[] => (ContainerStatusResponseTable ??= [
    { no: 1, name: 'status', type: ContainerStatus.spec },
    { no: 2, name: 'info', type: 'map' },
  ]);
let ContainerStatusResponseTable: readonly FieldSpec[] | undefined;
export const ContainerStatusResponse: MessageType<ContainerStatusResponse> = { spec: { name: 'runtime.v1.ContainerStatusResponse', fields: ContainerStatusResponseFields } };

const ContainerResourcesFields = (): readonly FieldSpec[] => (ContainerResourcesTable ??= [
    { no: 1, name: 'linux', type: LinuxContainerResources.spec },
  ]);
let ContainerResourcesTable: readonly FieldSpec[] | undefined;
export const ContainerResources: MessageType<ContainerResources> = { spec: { name: 'runtime.v1.ContainerResources', fields: ContainerResourcesFields } };

const ContainerUserFields = (): readonly FieldSpec[] => (ContainerUserTable ??= [
    { no: 1, name: 'linux', type: LinuxContainerUser.spec },
  ]);
let ContainerUserTable: readonly FieldSpec[] | undefined;
export const ContainerUser: MessageType<ContainerUser> = { spec: { name: 'runtime.v1.ContainerUser', fields: ContainerUserFields } };

const UpdateContainerResourcesRequestFields = (): readonly FieldSpec[] => (UpdateContainerResourcesRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'linux', type: LinuxContainerResources.spec },
    { no: 4, name: 'annotations', type: 'map' },
  ]);
let UpdateContainerResourcesRequestTable: readonly FieldSpec[] | undefined;
export const UpdateContainerResourcesRequest: MessageType<UpdateContainerResourcesRequest> = { spec: { name: 'runtime.v1.UpdateContainerResourcesRequest', fields: UpdateContainerResourcesRequestFields } };

const UpdateContainerResourcesResponseFields = (): readonly FieldSpec[] => (UpdateContainerResourcesResponseTable ??= [
  ]);
let UpdateContainerResourcesResponseTable: readonly FieldSpec[] | undefined;
export const UpdateContainerResourcesResponse: MessageType<UpdateContainerResourcesResponse> = { spec: { name: 'runtime.v1.UpdateContainerResourcesResponse', fields: UpdateContainerResourcesResponseFields } };

const ExecSyncRequestFields = (): readonly FieldSpec[] => (ExecSyncRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'cmd', type: 'string', repeated: true },
    { no: 3, name: 'timeout', type: 'int64' },
  ]);
let ExecSyncRequestTable: readonly FieldSpec[] | undefined;
export const ExecSyncRequest: MessageType<ExecSyncRequest> = { spec: { name: 'runtime.v1.ExecSyncRequest', fields: ExecSyncRequestFields } };

const ExecSyncResponseFields = (): readonly FieldSpec[] => (ExecSyncResponseTable ??= [
    { no: 1, name: 'stdout', type: 'bytes' },
    { no: 2, name: 'stderr', type: 'bytes' },
    { no: 3, name: 'exitCode', type: 'int32' },
  ]);
let ExecSyncResponseTable: readonly FieldSpec[] | undefined;
export const ExecSyncResponse: MessageType<ExecSyncResponse> = { spec: { name: 'runtime.v1.ExecSyncResponse', fields: ExecSyncResponseFields } };

const ExecRequestFields = (): readonly FieldSpec[] => (ExecRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'cmd', type: 'string', repeated: true },
    { no: 3, name: 'tty', type: 'bool' },
    { no: 4, name: 'stdin', type: 'bool' },
    { no: 5, name: 'stdout', type: 'bool' },
    { no: 6, name: 'stderr', type: 'bool' },
  ]);
let ExecRequestTable: readonly FieldSpec[] | undefined;
export const ExecRequest: MessageType<ExecRequest> = { spec: { name: 'runtime.v1.ExecRequest', fields: ExecRequestFields } };

const ExecResponseFields = (): readonly FieldSpec[] => (ExecResponseTable ??= [
    { no: 1, name: 'url', type: 'string' },
  ]);
let ExecResponseTable: readonly FieldSpec[] | undefined;
export const ExecResponse: MessageType<ExecResponse> = { spec: { name: 'runtime.v1.ExecResponse', fields: ExecResponseFields } };

const AttachRequestFields = (): readonly FieldSpec[] => (AttachRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'stdin', type: 'bool' },
    { no: 3, name: 'tty', type: 'bool' },
    { no: 4, name: 'stdout', type: 'bool' },
    { no: 5, name: 'stderr', type: 'bool' },
  ]);
let AttachRequestTable: readonly FieldSpec[] | undefined;
export const AttachRequest: MessageType<AttachRequest> = { spec: { name: 'runtime.v1.AttachRequest', fields: AttachRequestFields } };

const AttachResponseFields = (): readonly FieldSpec[] => (AttachResponseTable ??= [
    { no: 1, name: 'url', type: 'string' },
  ]);
let AttachResponseTable: readonly FieldSpec[] | undefined;
export const AttachResponse: MessageType<AttachResponse> = { spec: { name: 'runtime.v1.AttachResponse', fields: AttachResponseFields } };

const PortForwardRequestFields = (): readonly FieldSpec[] => (PortForwardRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
    { no: 2, name: 'port', type: 'int32', repeated: true },
  ]);
let PortForwardRequestTable: readonly FieldSpec[] | undefined;
export const PortForwardRequest: MessageType<PortForwardRequest> = { spec: { name: 'runtime.v1.PortForwardRequest', fields: PortForwardRequestFields } };

const PortForwardResponseFields = (): readonly FieldSpec[] => (PortForwardResponseTable ??= [
    { no: 1, name: 'url', type: 'string' },
  ]);
let PortForwardResponseTable: readonly FieldSpec[] | undefined;
export const PortForwardResponse: MessageType<PortForwardResponse> = { spec: { name: 'runtime.v1.PortForwardResponse', fields: PortForwardResponseFields } };

const ImageFilterFields = (): readonly FieldSpec[] => (ImageFilterTable ??= [
    { no: 1, name: 'image', type: ImageSpec.spec },
  ]);
let ImageFilterTable: readonly FieldSpec[] | undefined;
export const ImageFilter: MessageType<ImageFilter> = { spec: { name: 'runtime.v1.ImageFilter', fields: ImageFilterFields } };

const ListImagesRequestFields = (): readonly FieldSpec[] => (ListImagesRequestTable ??= [
    { no: 1, name: 'filter', type: ImageFilter.spec },
  ]);
let ListImagesRequestTable: readonly FieldSpec[] | undefined;
export const ListImagesRequest: MessageType<ListImagesRequest> = { spec: { name: 'runtime.v1.ListImagesRequest', fields: ListImagesRequestFields } };

const ImageFields = (): readonly FieldSpec[] => (ImageTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'repoTags', type: 'string', repeated: true },
    { no: 3, name: 'repoDigests', type: 'string', repeated: true },
    { no: 4, name: 'size', type: 'uint64' },
    { no: 5, name: 'uid', type: Int64Value.spec },
    { no: 6, name: 'username', type: 'string' },
    { no: 7, name: 'spec', type: ImageSpec.spec },
    { no: 8, name: 'pinned', type: 'bool' },
  ]);
let ImageTable: readonly FieldSpec[] | undefined;
export const Image: MessageType<Image> = { spec: { name: 'runtime.v1.Image', fields: ImageFields } };

const ListImagesResponseFields = (): readonly FieldSpec[] => (ListImagesResponseTable ??= [
    { no: 1, name: 'images', type: Image.spec, repeated: true },
  ]);
let ListImagesResponseTable: readonly FieldSpec[] | undefined;
export const ListImagesResponse: MessageType<ListImagesResponse> = { spec: { name: 'runtime.v1.ListImagesResponse', fields: ListImagesResponseFields } };

const StreamImagesRequestFields = (): readonly FieldSpec[] => (StreamImagesRequestTable ??= [
    { no: 1, name: 'filter', type: ImageFilter.spec },
  ]);
let StreamImagesRequestTable: readonly FieldSpec[] | undefined;
export const StreamImagesRequest: MessageType<StreamImagesRequest> = { spec: { name: 'runtime.v1.StreamImagesRequest', fields: StreamImagesRequestFields } };

const StreamImagesResponseFields = (): readonly FieldSpec[] => (StreamImagesResponseTable ??= [
    { no: 1, name: 'images', type: Image.spec, repeated: true },
  ]);
let StreamImagesResponseTable: readonly FieldSpec[] | undefined;
export const StreamImagesResponse: MessageType<StreamImagesResponse> = { spec: { name: 'runtime.v1.StreamImagesResponse', fields: StreamImagesResponseFields } };

const ImageStatusRequestFields = (): readonly FieldSpec[] => (ImageStatusRequestTable ??= [
    { no: 1, name: 'image', type: ImageSpec.spec },
    { no: 2, name: 'verbose', type: 'bool' },
  ]);
let ImageStatusRequestTable: readonly FieldSpec[] | undefined;
export const ImageStatusRequest: MessageType<ImageStatusRequest> = { spec: { name: 'runtime.v1.ImageStatusRequest', fields: ImageStatusRequestFields } };

const ImageStatusResponseFields = (): readonly FieldSpec[] => (ImageStatusResponseTable ??= [
    { no: 1, name: 'image', type: Image.spec },
    { no: 2, name: 'info', type: 'map' },
  ]);
let ImageStatusResponseTable: readonly FieldSpec[] | undefined;
export const ImageStatusResponse: MessageType<ImageStatusResponse> = { spec: { name: 'runtime.v1.ImageStatusResponse', fields: ImageStatusResponseFields } };

const AuthConfigFields = (): readonly FieldSpec[] => (AuthConfigTable ??= [
    { no: 1, name: 'username', type: 'string' },
    { no: 2, name: 'password', type: 'string' },
    { no: 3, name: 'auth', type: 'string' },
    { no: 4, name: 'serverAddress', type: 'string' },
    { no: 5, name: 'identityToken', type: 'string' },
    { no: 6, name: 'registryToken', type: 'string' },
  ]);
let AuthConfigTable: readonly FieldSpec[] | undefined;
export const AuthConfig: MessageType<AuthConfig> = { spec: { name: 'runtime.v1.AuthConfig', fields: AuthConfigFields } };

const PullImageRequestFields = (): readonly FieldSpec[] => (PullImageRequestTable ??= [
    { no: 1, name: 'image', type: ImageSpec.spec },
    { no: 2, name: 'auth', type: AuthConfig.spec },
    { no: 3, name: 'sandboxConfig', type: PodSandboxConfig.spec },
  ]);
let PullImageRequestTable: readonly FieldSpec[] | undefined;
export const PullImageRequest: MessageType<PullImageRequest> = { spec: { name: 'runtime.v1.PullImageRequest', fields: PullImageRequestFields } };

const PullImageResponseFields = (): readonly FieldSpec[] => (PullImageResponseTable ??= [
    { no: 1, name: 'imageRef', type: 'string' },
  ]);
let PullImageResponseTable: readonly FieldSpec[] | undefined;
export const PullImageResponse: MessageType<PullImageResponse> = { spec: { name: 'runtime.v1.PullImageResponse', fields: PullImageResponseFields } };

const RemoveImageRequestFields = (): readonly FieldSpec[] => (RemoveImageRequestTable ??= [
    { no: 1, name: 'image', type: ImageSpec.spec },
  ]);
let RemoveImageRequestTable: readonly FieldSpec[] | undefined;
export const RemoveImageRequest: MessageType<RemoveImageRequest> = { spec: { name: 'runtime.v1.RemoveImageRequest', fields: RemoveImageRequestFields } };

const RemoveImageResponseFields = (): readonly FieldSpec[] => (RemoveImageResponseTable ??= [
  ]);
let RemoveImageResponseTable: readonly FieldSpec[] | undefined;
export const RemoveImageResponse: MessageType<RemoveImageResponse> = { spec: { name: 'runtime.v1.RemoveImageResponse', fields: RemoveImageResponseFields } };

const NetworkConfigFields = (): readonly FieldSpec[] => (NetworkConfigTable ??= [
    { no: 1, name: 'podCidr', type: 'string' },
  ]);
let NetworkConfigTable: readonly FieldSpec[] | undefined;
export const NetworkConfig: MessageType<NetworkConfig> = { spec: { name: 'runtime.v1.NetworkConfig', fields: NetworkConfigFields } };

const RuntimeConfigFields = (): readonly FieldSpec[] => (RuntimeConfigTable ??= [
    { no: 1, name: 'networkConfig', type: NetworkConfig.spec },
  ]);
let RuntimeConfigTable: readonly FieldSpec[] | undefined;
export const RuntimeConfig: MessageType<RuntimeConfig> = { spec: { name: 'runtime.v1.RuntimeConfig', fields: RuntimeConfigFields } };

const UpdateRuntimeConfigRequestFields = (): readonly FieldSpec[] => (UpdateRuntimeConfigRequestTable ??= [
    { no: 1, name: 'runtimeConfig', type: RuntimeConfig.spec },
  ]);
let UpdateRuntimeConfigRequestTable: readonly FieldSpec[] | undefined;
export const UpdateRuntimeConfigRequest: MessageType<UpdateRuntimeConfigRequest> = { spec: { name: 'runtime.v1.UpdateRuntimeConfigRequest', fields: UpdateRuntimeConfigRequestFields } };

const UpdateRuntimeConfigResponseFields = (): readonly FieldSpec[] => (UpdateRuntimeConfigResponseTable ??= [
  ]);
let UpdateRuntimeConfigResponseTable: readonly FieldSpec[] | undefined;
export const UpdateRuntimeConfigResponse: MessageType<UpdateRuntimeConfigResponse> = { spec: { name: 'runtime.v1.UpdateRuntimeConfigResponse', fields: UpdateRuntimeConfigResponseFields } };

const RuntimeConditionFields = (): readonly FieldSpec[] => (RuntimeConditionTable ??= [
    { no: 1, name: 'type', type: 'string' },
    { no: 2, name: 'status', type: 'bool' },
    { no: 3, name: 'reason', type: 'string' },
    { no: 4, name: 'message', type: 'string' },
  ]);
let RuntimeConditionTable: readonly FieldSpec[] | undefined;
export const RuntimeCondition: MessageType<RuntimeCondition> = { spec: { name: 'runtime.v1.RuntimeCondition', fields: RuntimeConditionFields } };

const RuntimeStatusFields = (): readonly FieldSpec[] => (RuntimeStatusTable ??= [
    { no: 1, name: 'conditions', type: RuntimeCondition.spec, repeated: true },
  ]);
let RuntimeStatusTable: readonly FieldSpec[] | undefined;
export const RuntimeStatus: MessageType<RuntimeStatus> = { spec: { name: 'runtime.v1.RuntimeStatus', fields: RuntimeStatusFields } };

const StatusRequestFields = (): readonly FieldSpec[] => (StatusRequestTable ??= [
    { no: 1, name: 'verbose', type: 'bool' },
  ]);
let StatusRequestTable: readonly FieldSpec[] | undefined;
export const StatusRequest: MessageType<StatusRequest> = { spec: { name: 'runtime.v1.StatusRequest', fields: StatusRequestFields } };

const RuntimeHandlerFeaturesFields = (): readonly FieldSpec[] => (RuntimeHandlerFeaturesTable ??= [
    { no: 1, name: 'recursiveReadOnlyMounts', type: 'bool' },
    { no: 2, name: 'userNamespaces', type: 'bool' },
  ]);
let RuntimeHandlerFeaturesTable: readonly FieldSpec[] | undefined;
export const RuntimeHandlerFeatures: MessageType<RuntimeHandlerFeatures> = { spec: { name: 'runtime.v1.RuntimeHandlerFeatures', fields: RuntimeHandlerFeaturesFields } };

const RuntimeHandlerFields = (): readonly FieldSpec[] => (RuntimeHandlerTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'features', type: RuntimeHandlerFeatures.spec },
  ]);
let RuntimeHandlerTable: readonly FieldSpec[] | undefined;
export const RuntimeHandler: MessageType<RuntimeHandler> = { spec: { name: 'runtime.v1.RuntimeHandler', fields: RuntimeHandlerFields } };

const RuntimeFeaturesFields = (): readonly FieldSpec[] => (RuntimeFeaturesTable ??= [
    { no: 1, name: 'supplementalGroupsPolicy', type: 'bool' },
    { no: 2, name: 'userNamespacesHostNetwork', type: 'bool' },
  ]);
let RuntimeFeaturesTable: readonly FieldSpec[] | undefined;
export const RuntimeFeatures: MessageType<RuntimeFeatures> = { spec: { name: 'runtime.v1.RuntimeFeatures', fields: RuntimeFeaturesFields } };

const StatusResponseFields = (): readonly FieldSpec[] => (StatusResponseTable ??= [
    { no: 1, name: 'status', type: RuntimeStatus.spec },
    { no: 2, name: 'info', type: 'map' },
    { no: 3, name: 'runtimeHandlers', type: RuntimeHandler.spec, repeated: true },
    { no: 4, name: 'features', type: RuntimeFeatures.spec },
  ]);
let StatusResponseTable: readonly FieldSpec[] | undefined;
export const StatusResponse: MessageType<StatusResponse> = { spec: { name: 'runtime.v1.StatusResponse', fields: StatusResponseFields } };

const ImageFsInfoRequestFields = (): readonly FieldSpec[] => (ImageFsInfoRequestTable ??= [
  ]);
let ImageFsInfoRequestTable: readonly FieldSpec[] | undefined;
export const ImageFsInfoRequest: MessageType<ImageFsInfoRequest> = { spec: { name: 'runtime.v1.ImageFsInfoRequest', fields: ImageFsInfoRequestFields } };

const UInt64ValueFields = (): readonly FieldSpec[] => (UInt64ValueTable ??= [
    { no: 1, name: 'value', type: 'uint64' },
  ]);
let UInt64ValueTable: readonly FieldSpec[] | undefined;
export const UInt64Value: MessageType<UInt64Value> = { spec: { name: 'runtime.v1.UInt64Value', fields: UInt64ValueFields } };

const FilesystemIdentifierFields = (): readonly FieldSpec[] => (FilesystemIdentifierTable ??= [
    { no: 1, name: 'mountpoint', type: 'string' },
  ]);
let FilesystemIdentifierTable: readonly FieldSpec[] | undefined;
export const FilesystemIdentifier: MessageType<FilesystemIdentifier> = { spec: { name: 'runtime.v1.FilesystemIdentifier', fields: FilesystemIdentifierFields } };

const FilesystemUsageFields = (): readonly FieldSpec[] => (FilesystemUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'fsId', type: FilesystemIdentifier.spec },
    { no: 3, name: 'usedBytes', type: UInt64Value.spec },
    { no: 4, name: 'inodesUsed', type: UInt64Value.spec },
  ]);
let FilesystemUsageTable: readonly FieldSpec[] | undefined;
export const FilesystemUsage: MessageType<FilesystemUsage> = { spec: { name: 'runtime.v1.FilesystemUsage', fields: FilesystemUsageFields } };

const ImageFsInfoResponseFields = (): readonly FieldSpec[] => (ImageFsInfoResponseTable ??= [
    { no: 1, name: 'imageFilesystems', type: FilesystemUsage.spec, repeated: true },
    { no: 2, name: 'containerFilesystems', type: FilesystemUsage.spec, repeated: true },
  ]);
let ImageFsInfoResponseTable: readonly FieldSpec[] | undefined;
export const ImageFsInfoResponse: MessageType<ImageFsInfoResponse> = { spec: { name: 'runtime.v1.ImageFsInfoResponse', fields: ImageFsInfoResponseFields } };

const ContainerStatsRequestFields = (): readonly FieldSpec[] => (ContainerStatsRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let ContainerStatsRequestTable: readonly FieldSpec[] | undefined;
export const ContainerStatsRequest: MessageType<ContainerStatsRequest> = { spec: { name: 'runtime.v1.ContainerStatsRequest', fields: ContainerStatsRequestFields } };

const ContainerStatsResponseFields = (): readonly FieldSpec[] => (ContainerStatsResponseTable ??= [
    { no: 1, name: 'stats', type: ContainerStats.spec },
  ]);
let ContainerStatsResponseTable: readonly FieldSpec[] | undefined;
export const ContainerStatsResponse: MessageType<ContainerStatsResponse> = { spec: { name: 'runtime.v1.ContainerStatsResponse', fields: ContainerStatsResponseFields } };

const ListContainerStatsRequestFields = (): readonly FieldSpec[] => (ListContainerStatsRequestTable ??= [
    { no: 1, name: 'filter', type: ContainerStatsFilter.spec },
  ]);
let ListContainerStatsRequestTable: readonly FieldSpec[] | undefined;
export const ListContainerStatsRequest: MessageType<ListContainerStatsRequest> = { spec: { name: 'runtime.v1.ListContainerStatsRequest', fields: ListContainerStatsRequestFields } };

const ContainerStatsFilterFields = (): readonly FieldSpec[] => (ContainerStatsFilterTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'podSandboxId', type: 'string' },
    { no: 3, name: 'labelSelector', type: 'map' },
  ]);
let ContainerStatsFilterTable: readonly FieldSpec[] | undefined;
export const ContainerStatsFilter: MessageType<ContainerStatsFilter> = { spec: { name: 'runtime.v1.ContainerStatsFilter', fields: ContainerStatsFilterFields } };

const ListContainerStatsResponseFields = (): readonly FieldSpec[] => (ListContainerStatsResponseTable ??= [
    { no: 1, name: 'stats', type: ContainerStats.spec, repeated: true },
  ]);
let ListContainerStatsResponseTable: readonly FieldSpec[] | undefined;
export const ListContainerStatsResponse: MessageType<ListContainerStatsResponse> = { spec: { name: 'runtime.v1.ListContainerStatsResponse', fields: ListContainerStatsResponseFields } };

const StreamContainerStatsRequestFields = (): readonly FieldSpec[] => (StreamContainerStatsRequestTable ??= [
    { no: 1, name: 'filter', type: ContainerStatsFilter.spec },
  ]);
let StreamContainerStatsRequestTable: readonly FieldSpec[] | undefined;
export const StreamContainerStatsRequest: MessageType<StreamContainerStatsRequest> = { spec: { name: 'runtime.v1.StreamContainerStatsRequest', fields: StreamContainerStatsRequestFields } };

const StreamContainerStatsResponseFields = (): readonly FieldSpec[] => (StreamContainerStatsResponseTable ??= [
    { no: 1, name: 'containerStats', type: ContainerStats.spec, repeated: true },
  ]);
let StreamContainerStatsResponseTable: readonly FieldSpec[] | undefined;
export const StreamContainerStatsResponse: MessageType<StreamContainerStatsResponse> = { spec: { name: 'runtime.v1.StreamContainerStatsResponse', fields: StreamContainerStatsResponseFields } };

const ContainerAttributesFields = (): readonly FieldSpec[] => (ContainerAttributesTable ??= [
    { no: 1, name: 'id', type: 'string' },
    { no: 2, name: 'metadata', type: ContainerMetadata.spec },
    { no: 3, name: 'labels', type: 'map' },
    { no: 4, name: 'annotations', type: 'map' },
  ]);
let ContainerAttributesTable: readonly FieldSpec[] | undefined;
export const ContainerAttributes: MessageType<ContainerAttributes> = { spec: { name: 'runtime.v1.ContainerAttributes', fields: ContainerAttributesFields } };

const ContainerStatsFields = (): readonly FieldSpec[] => (ContainerStatsTable ??= [
    { no: 1, name: 'attributes', type: ContainerAttributes.spec },
    { no: 2, name: 'cpu', type: CpuUsage.spec },
    { no: 3, name: 'memory', type: MemoryUsage.spec },
    { no: 4, name: 'writableLayer', type: FilesystemUsage.spec },
    { no: 5, name: 'swap', type: SwapUsage.spec },
    { no: 6, name: 'io', type: IoUsage.spec },
  ]);
let ContainerStatsTable: readonly FieldSpec[] | undefined;
export const ContainerStats: MessageType<ContainerStats> = { spec: { name: 'runtime.v1.ContainerStats', fields: ContainerStatsFields } };

const PsiStatsFields = (): readonly FieldSpec[] => (PsiStatsTable ??= [
    { no: 1, name: 'Full', type: PsiData.spec },
    { no: 2, name: 'Some', type: PsiData.spec },
  ]);
let PsiStatsTable: readonly FieldSpec[] | undefined;
export const PsiStats: MessageType<PsiStats> = { spec: { name: 'runtime.v1.PsiStats', fields: PsiStatsFields } };

const PsiDataFields = (): readonly FieldSpec[] => (PsiDataTable ??= [
    { no: 1, name: 'Total', type: 'uint64' },
    { no: 2, name: 'Avg10', type: 'double' },
    { no: 3, name: 'Avg60', type: 'double' },
    { no: 4, name: 'Avg300', type: 'double' },
  ]);
let PsiDataTable: readonly FieldSpec[] | undefined;
export const PsiData: MessageType<PsiData> = { spec: { name: 'runtime.v1.PsiData', fields: PsiDataFields } };

const CpuUsageFields = (): readonly FieldSpec[] => (CpuUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'usageCoreNanoSeconds', type: UInt64Value.spec },
    { no: 3, name: 'usageNanoCores', type: UInt64Value.spec },
    { no: 4, name: 'psi', type: PsiStats.spec },
  ]);
let CpuUsageTable: readonly FieldSpec[] | undefined;
export const CpuUsage: MessageType<CpuUsage> = { spec: { name: 'runtime.v1.CpuUsage', fields: CpuUsageFields } };

const MemoryUsageFields = (): readonly FieldSpec[] => (MemoryUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'workingSetBytes', type: UInt64Value.spec },
    { no: 3, name: 'availableBytes', type: UInt64Value.spec },
    { no: 4, name: 'usageBytes', type: UInt64Value.spec },
    { no: 5, name: 'rssBytes', type: UInt64Value.spec },
    { no: 6, name: 'pageFaults', type: UInt64Value.spec },
    { no: 7, name: 'majorPageFaults', type: UInt64Value.spec },
    { no: 8, name: 'psi', type: PsiStats.spec },
  ]);
let MemoryUsageTable: readonly FieldSpec[] | undefined;
export const MemoryUsage: MessageType<MemoryUsage> = { spec: { name: 'runtime.v1.MemoryUsage', fields: MemoryUsageFields } };

const IoUsageFields = (): readonly FieldSpec[] => (IoUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'psi', type: PsiStats.spec },
  ]);
let IoUsageTable: readonly FieldSpec[] | undefined;
export const IoUsage: MessageType<IoUsage> = { spec: { name: 'runtime.v1.IoUsage', fields: IoUsageFields } };

const SwapUsageFields = (): readonly FieldSpec[] => (SwapUsageTable ??= [
    { no: 1, name: 'timestamp', type: 'bigint64' },
    { no: 2, name: 'swapAvailableBytes', type: UInt64Value.spec },
    { no: 3, name: 'swapUsageBytes', type: UInt64Value.spec },
  ]);
let SwapUsageTable: readonly FieldSpec[] | undefined;
export const SwapUsage: MessageType<SwapUsage> = { spec: { name: 'runtime.v1.SwapUsage', fields: SwapUsageFields } };

const ReopenContainerLogRequestFields = (): readonly FieldSpec[] => (ReopenContainerLogRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
  ]);
let ReopenContainerLogRequestTable: readonly FieldSpec[] | undefined;
export const ReopenContainerLogRequest: MessageType<ReopenContainerLogRequest> = { spec: { name: 'runtime.v1.ReopenContainerLogRequest', fields: ReopenContainerLogRequestFields } };

const ReopenContainerLogResponseFields = (): readonly FieldSpec[] => (ReopenContainerLogResponseTable ??= [
  ]);
let ReopenContainerLogResponseTable: readonly FieldSpec[] | undefined;
export const ReopenContainerLogResponse: MessageType<ReopenContainerLogResponse> = { spec: { name: 'runtime.v1.ReopenContainerLogResponse', fields: ReopenContainerLogResponseFields } };

const CheckpointContainerRequestFields = (): readonly FieldSpec[] => (CheckpointContainerRequestTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'location', type: 'string' },
    { no: 3, name: 'timeout', type: 'int64' },
  ]);
let CheckpointContainerRequestTable: readonly FieldSpec[] | undefined;
export const CheckpointContainerRequest: MessageType<CheckpointContainerRequest> = { spec: { name: 'runtime.v1.CheckpointContainerRequest', fields: CheckpointContainerRequestFields } };

const CheckpointContainerResponseFields = (): readonly FieldSpec[] => (CheckpointContainerResponseTable ??= [
  ]);
let CheckpointContainerResponseTable: readonly FieldSpec[] | undefined;
export const CheckpointContainerResponse: MessageType<CheckpointContainerResponse> = { spec: { name: 'runtime.v1.CheckpointContainerResponse', fields: CheckpointContainerResponseFields } };

const GetEventsRequestFields = (): readonly FieldSpec[] => (GetEventsRequestTable ??= [
  ]);
let GetEventsRequestTable: readonly FieldSpec[] | undefined;
export const GetEventsRequest: MessageType<GetEventsRequest> = { spec: { name: 'runtime.v1.GetEventsRequest', fields: GetEventsRequestFields } };

const ContainerEventResponseFields = (): readonly FieldSpec[] => (ContainerEventResponseTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'containerEventType', type: 'enum' },
    { no: 3, name: 'createdAt', type: 'bigint64' },
    { no: 4, name: 'podSandboxStatus', type: PodSandboxStatus.spec },
    { no: 5, name: 'containersStatuses', type: ContainerStatus.spec, repeated: true },
  ]);
let ContainerEventResponseTable: readonly FieldSpec[] | undefined;
export const ContainerEventResponse: MessageType<ContainerEventResponse> = { spec: { name: 'runtime.v1.ContainerEventResponse', fields: ContainerEventResponseFields } };

const ListMetricDescriptorsRequestFields = (): readonly FieldSpec[] => (ListMetricDescriptorsRequestTable ??= [
  ]);
let ListMetricDescriptorsRequestTable: readonly FieldSpec[] | undefined;
export const ListMetricDescriptorsRequest: MessageType<ListMetricDescriptorsRequest> = { spec: { name: 'runtime.v1.ListMetricDescriptorsRequest', fields: ListMetricDescriptorsRequestFields } };

const ListMetricDescriptorsResponseFields = (): readonly FieldSpec[] => (ListMetricDescriptorsResponseTable ??= [
    { no: 1, name: 'descriptors', type: MetricDescriptor.spec, repeated: true },
  ]);
let ListMetricDescriptorsResponseTable: readonly FieldSpec[] | undefined;
export const ListMetricDescriptorsResponse: MessageType<ListMetricDescriptorsResponse> = { spec: { name: 'runtime.v1.ListMetricDescriptorsResponse', fields: ListMetricDescriptorsResponseFields } };

const MetricDescriptorFields = (): readonly FieldSpec[] => (MetricDescriptorTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'help', type: 'string' },
    { no: 3, name: 'labelKeys', type: 'string', repeated: true },
  ]);
let MetricDescriptorTable: readonly FieldSpec[] | undefined;
export const MetricDescriptor: MessageType<MetricDescriptor> = { spec: { name: 'runtime.v1.MetricDescriptor', fields: MetricDescriptorFields } };

const ListPodSandboxMetricsRequestFields = (): readonly FieldSpec[] => (ListPodSandboxMetricsRequestTable ??= [
  ]);
let ListPodSandboxMetricsRequestTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxMetricsRequest: MessageType<ListPodSandboxMetricsRequest> = { spec: { name: 'runtime.v1.ListPodSandboxMetricsRequest', fields: ListPodSandboxMetricsRequestFields } };

const ListPodSandboxMetricsResponseFields = (): readonly FieldSpec[] => (ListPodSandboxMetricsResponseTable ??= [
    { no: 1, name: 'podMetrics', type: PodSandboxMetrics.spec, repeated: true },
  ]);
let ListPodSandboxMetricsResponseTable: readonly FieldSpec[] | undefined;
export const ListPodSandboxMetricsResponse: MessageType<ListPodSandboxMetricsResponse> = { spec: { name: 'runtime.v1.ListPodSandboxMetricsResponse', fields: ListPodSandboxMetricsResponseFields } };

const StreamPodSandboxMetricsRequestFields = (): readonly FieldSpec[] => (StreamPodSandboxMetricsRequestTable ??= [
  ]);
let StreamPodSandboxMetricsRequestTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxMetricsRequest: MessageType<StreamPodSandboxMetricsRequest> = { spec: { name: 'runtime.v1.StreamPodSandboxMetricsRequest', fields: StreamPodSandboxMetricsRequestFields } };

const StreamPodSandboxMetricsResponseFields = (): readonly FieldSpec[] => (StreamPodSandboxMetricsResponseTable ??= [
    { no: 1, name: 'podSandboxMetrics', type: PodSandboxMetrics.spec, repeated: true },
  ]);
let StreamPodSandboxMetricsResponseTable: readonly FieldSpec[] | undefined;
export const StreamPodSandboxMetricsResponse: MessageType<StreamPodSandboxMetricsResponse> = { spec: { name: 'runtime.v1.StreamPodSandboxMetricsResponse', fields: StreamPodSandboxMetricsResponseFields } };

const PodSandboxMetricsFields = (): readonly FieldSpec[] => (PodSandboxMetricsTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
    { no: 2, name: 'metrics', type: Metric.spec, repeated: true },
    { no: 3, name: 'containerMetrics', type: ContainerMetrics.spec, repeated: true },
  ]);
let PodSandboxMetricsTable: readonly FieldSpec[] | undefined;
export const PodSandboxMetrics: MessageType<PodSandboxMetrics> = { spec: { name: 'runtime.v1.PodSandboxMetrics', fields: PodSandboxMetricsFields } };

const ContainerMetricsFields = (): readonly FieldSpec[] => (ContainerMetricsTable ??= [
    { no: 1, name: 'containerId', type: 'string' },
    { no: 2, name: 'metrics', type: Metric.spec, repeated: true },
  ]);
let ContainerMetricsTable: readonly FieldSpec[] | undefined;
export const ContainerMetrics: MessageType<ContainerMetrics> = { spec: { name: 'runtime.v1.ContainerMetrics', fields: ContainerMetricsFields } };

const MetricFields = (): readonly FieldSpec[] => (MetricTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'timestamp', type: 'bigint64' },
    { no: 3, name: 'metricType', type: 'enum' },
    { no: 4, name: 'labelValues', type: 'string', repeated: true },
    { no: 5, name: 'value', type: UInt64Value.spec },
  ]);
let MetricTable: readonly FieldSpec[] | undefined;
export const Metric: MessageType<Metric> = { spec: { name: 'runtime.v1.Metric', fields: MetricFields } };

const RuntimeConfigRequestFields = (): readonly FieldSpec[] => (RuntimeConfigRequestTable ??= [
  ]);
let RuntimeConfigRequestTable: readonly FieldSpec[] | undefined;
export const RuntimeConfigRequest: MessageType<RuntimeConfigRequest> = { spec: { name: 'runtime.v1.RuntimeConfigRequest', fields: RuntimeConfigRequestFields } };

const RuntimeConfigResponseFields = (): readonly FieldSpec[] => (RuntimeConfigResponseTable ??= [
    { no: 1, name: 'linux', type: LinuxRuntimeConfiguration.spec },
  ]);
let RuntimeConfigResponseTable: readonly FieldSpec[] | undefined;
export const RuntimeConfigResponse: MessageType<RuntimeConfigResponse> = { spec: { name: 'runtime.v1.RuntimeConfigResponse', fields: RuntimeConfigResponseFields } };

const LinuxRuntimeConfigurationFields = (): readonly FieldSpec[] => (LinuxRuntimeConfigurationTable ??= [
    { no: 1, name: 'cgroupDriver', type: 'enum' },
  ]);
let LinuxRuntimeConfigurationTable: readonly FieldSpec[] | undefined;
export const LinuxRuntimeConfiguration: MessageType<LinuxRuntimeConfiguration> = { spec: { name: 'runtime.v1.LinuxRuntimeConfiguration', fields: LinuxRuntimeConfigurationFields } };

const UpdatePodSandboxResourcesRequestFields = (): readonly FieldSpec[] => (UpdatePodSandboxResourcesRequestTable ??= [
    { no: 1, name: 'podSandboxId', type: 'string' },
    { no: 2, name: 'overhead', type: LinuxContainerResources.spec },
    { no: 3, name: 'resources', type: LinuxContainerResources.spec },
  ]);
let UpdatePodSandboxResourcesRequestTable: readonly FieldSpec[] | undefined;
export const UpdatePodSandboxResourcesRequest: MessageType<UpdatePodSandboxResourcesRequest> = { spec: { name: 'runtime.v1.UpdatePodSandboxResourcesRequest', fields: UpdatePodSandboxResourcesRequestFields } };

const UpdatePodSandboxResourcesResponseFields = (): readonly FieldSpec[] => (UpdatePodSandboxResourcesResponseTable ??= [
  ]);
let UpdatePodSandboxResourcesResponseTable: readonly FieldSpec[] | undefined;
export const UpdatePodSandboxResourcesResponse: MessageType<UpdatePodSandboxResourcesResponse> = { spec: { name: 'runtime.v1.UpdatePodSandboxResourcesResponse', fields: UpdatePodSandboxResourcesResponseFields } };

export const RuntimeService = {
  version: { path: '/runtime.v1.RuntimeService/Version', request: VersionRequest, response: VersionResponse } satisfies Rpc<VersionRequest, VersionResponse>,
  runPodSandbox: { path: '/runtime.v1.RuntimeService/RunPodSandbox', request: RunPodSandboxRequest, response: RunPodSandboxResponse } satisfies Rpc<RunPodSandboxRequest, RunPodSandboxResponse>,
  stopPodSandbox: { path: '/runtime.v1.RuntimeService/StopPodSandbox', request: StopPodSandboxRequest, response: StopPodSandboxResponse } satisfies Rpc<StopPodSandboxRequest, StopPodSandboxResponse>,
  removePodSandbox: { path: '/runtime.v1.RuntimeService/RemovePodSandbox', request: RemovePodSandboxRequest, response: RemovePodSandboxResponse } satisfies Rpc<RemovePodSandboxRequest, RemovePodSandboxResponse>,
  podSandboxStatus: { path: '/runtime.v1.RuntimeService/PodSandboxStatus', request: PodSandboxStatusRequest, response: PodSandboxStatusResponse } satisfies Rpc<PodSandboxStatusRequest, PodSandboxStatusResponse>,
  listPodSandbox: { path: '/runtime.v1.RuntimeService/ListPodSandbox', request: ListPodSandboxRequest, response: ListPodSandboxResponse } satisfies Rpc<ListPodSandboxRequest, ListPodSandboxResponse>,
  streamPodSandboxes: { path: '/runtime.v1.RuntimeService/StreamPodSandboxes', request: StreamPodSandboxesRequest, response: StreamPodSandboxesResponse } satisfies Rpc<StreamPodSandboxesRequest, StreamPodSandboxesResponse>,
  createContainer: { path: '/runtime.v1.RuntimeService/CreateContainer', request: CreateContainerRequest, response: CreateContainerResponse } satisfies Rpc<CreateContainerRequest, CreateContainerResponse>,
  startContainer: { path: '/runtime.v1.RuntimeService/StartContainer', request: StartContainerRequest, response: StartContainerResponse } satisfies Rpc<StartContainerRequest, StartContainerResponse>,
  stopContainer: { path: '/runtime.v1.RuntimeService/StopContainer', request: StopContainerRequest, response: StopContainerResponse } satisfies Rpc<StopContainerRequest, StopContainerResponse>,
  removeContainer: { path: '/runtime.v1.RuntimeService/RemoveContainer', request: RemoveContainerRequest, response: RemoveContainerResponse } satisfies Rpc<RemoveContainerRequest, RemoveContainerResponse>,
  listContainers: { path: '/runtime.v1.RuntimeService/ListContainers', request: ListContainersRequest, response: ListContainersResponse } satisfies Rpc<ListContainersRequest, ListContainersResponse>,
  streamContainers: { path: '/runtime.v1.RuntimeService/StreamContainers', request: StreamContainersRequest, response: StreamContainersResponse } satisfies Rpc<StreamContainersRequest, StreamContainersResponse>,
  containerStatus: { path: '/runtime.v1.RuntimeService/ContainerStatus', request: ContainerStatusRequest, response: ContainerStatusResponse } satisfies Rpc<ContainerStatusRequest, ContainerStatusResponse>,
  updateContainerResources: { path: '/runtime.v1.RuntimeService/UpdateContainerResources', request: UpdateContainerResourcesRequest, response: UpdateContainerResourcesResponse } satisfies Rpc<UpdateContainerResourcesRequest, UpdateContainerResourcesResponse>,
  reopenContainerLog: { path: '/runtime.v1.RuntimeService/ReopenContainerLog', request: ReopenContainerLogRequest, response: ReopenContainerLogResponse } satisfies Rpc<ReopenContainerLogRequest, ReopenContainerLogResponse>,
  execSync: { path: '/runtime.v1.RuntimeService/ExecSync', request: ExecSyncRequest, response: ExecSyncResponse } satisfies Rpc<ExecSyncRequest, ExecSyncResponse>,
  exec: { path: '/runtime.v1.RuntimeService/Exec', request: ExecRequest, response: ExecResponse } satisfies Rpc<ExecRequest, ExecResponse>,
  attach: { path: '/runtime.v1.RuntimeService/Attach', request: AttachRequest, response: AttachResponse } satisfies Rpc<AttachRequest, AttachResponse>,
  portForward: { path: '/runtime.v1.RuntimeService/PortForward', request: PortForwardRequest, response: PortForwardResponse } satisfies Rpc<PortForwardRequest, PortForwardResponse>,
  containerStats: { path: '/runtime.v1.RuntimeService/ContainerStats', request: ContainerStatsRequest, response: ContainerStatsResponse } satisfies Rpc<ContainerStatsRequest, ContainerStatsResponse>,
  listContainerStats: { path: '/runtime.v1.RuntimeService/ListContainerStats', request: ListContainerStatsRequest, response: ListContainerStatsResponse } satisfies Rpc<ListContainerStatsRequest, ListContainerStatsResponse>,
  streamContainerStats: { path: '/runtime.v1.RuntimeService/StreamContainerStats', request: StreamContainerStatsRequest, response: StreamContainerStatsResponse } satisfies Rpc<StreamContainerStatsRequest, StreamContainerStatsResponse>,
  podSandboxStats: { path: '/runtime.v1.RuntimeService/PodSandboxStats', request: PodSandboxStatsRequest, response: PodSandboxStatsResponse } satisfies Rpc<PodSandboxStatsRequest, PodSandboxStatsResponse>,
  listPodSandboxStats: { path: '/runtime.v1.RuntimeService/ListPodSandboxStats', request: ListPodSandboxStatsRequest, response: ListPodSandboxStatsResponse } satisfies Rpc<ListPodSandboxStatsRequest, ListPodSandboxStatsResponse>,
  streamPodSandboxStats: { path: '/runtime.v1.RuntimeService/StreamPodSandboxStats', request: StreamPodSandboxStatsRequest, response: StreamPodSandboxStatsResponse } satisfies Rpc<StreamPodSandboxStatsRequest, StreamPodSandboxStatsResponse>,
  updateRuntimeConfig: { path: '/runtime.v1.RuntimeService/UpdateRuntimeConfig', request: UpdateRuntimeConfigRequest, response: UpdateRuntimeConfigResponse } satisfies Rpc<UpdateRuntimeConfigRequest, UpdateRuntimeConfigResponse>,
  status: { path: '/runtime.v1.RuntimeService/Status', request: StatusRequest, response: StatusResponse } satisfies Rpc<StatusRequest, StatusResponse>,
  checkpointContainer: { path: '/runtime.v1.RuntimeService/CheckpointContainer', request: CheckpointContainerRequest, response: CheckpointContainerResponse } satisfies Rpc<CheckpointContainerRequest, CheckpointContainerResponse>,
  getContainerEvents: { path: '/runtime.v1.RuntimeService/GetContainerEvents', request: GetEventsRequest, response: ContainerEventResponse } satisfies Rpc<GetEventsRequest, ContainerEventResponse>,
  listMetricDescriptors: { path: '/runtime.v1.RuntimeService/ListMetricDescriptors', request: ListMetricDescriptorsRequest, response: ListMetricDescriptorsResponse } satisfies Rpc<ListMetricDescriptorsRequest, ListMetricDescriptorsResponse>,
  listPodSandboxMetrics: { path: '/runtime.v1.RuntimeService/ListPodSandboxMetrics', request: ListPodSandboxMetricsRequest, response: ListPodSandboxMetricsResponse } satisfies Rpc<ListPodSandboxMetricsRequest, ListPodSandboxMetricsResponse>,
  streamPodSandboxMetrics: { path: '/runtime.v1.RuntimeService/StreamPodSandboxMetrics', request: StreamPodSandboxMetricsRequest, response: StreamPodSandboxMetricsResponse } satisfies Rpc<StreamPodSandboxMetricsRequest, StreamPodSandboxMetricsResponse>,
  runtimeConfig: { path: '/runtime.v1.RuntimeService/RuntimeConfig', request: RuntimeConfigRequest, response: RuntimeConfigResponse } satisfies Rpc<RuntimeConfigRequest, RuntimeConfigResponse>,
  updatePodSandboxResources: { path: '/runtime.v1.RuntimeService/UpdatePodSandboxResources', request: UpdatePodSandboxResourcesRequest, response: UpdatePodSandboxResourcesResponse } satisfies Rpc<UpdatePodSandboxResourcesRequest, UpdatePodSandboxResourcesResponse>,
} as const;

export const ImageService = {
  listImages: { path: '/runtime.v1.ImageService/ListImages', request: ListImagesRequest, response: ListImagesResponse } satisfies Rpc<ListImagesRequest, ListImagesResponse>,
  streamImages: { path: '/runtime.v1.ImageService/StreamImages', request: StreamImagesRequest, response: StreamImagesResponse } satisfies Rpc<StreamImagesRequest, StreamImagesResponse>,
  imageStatus: { path: '/runtime.v1.ImageService/ImageStatus', request: ImageStatusRequest, response: ImageStatusResponse } satisfies Rpc<ImageStatusRequest, ImageStatusResponse>,
  pullImage: { path: '/runtime.v1.ImageService/PullImage', request: PullImageRequest, response: PullImageResponse } satisfies Rpc<PullImageRequest, PullImageResponse>,
  removeImage: { path: '/runtime.v1.ImageService/RemoveImage', request: RemoveImageRequest, response: RemoveImageResponse } satisfies Rpc<RemoveImageRequest, RemoveImageResponse>,
  imageFsInfo: { path: '/runtime.v1.ImageService/ImageFsInfo', request: ImageFsInfoRequest, response: ImageFsInfoResponse } satisfies Rpc<ImageFsInfoRequest, ImageFsInfoResponse>,
} as const;

