// The v1 Pod as it is in JSON, and the few questions everybody asks of one. Types only cost nothing at run time.
import { podUid, type PodUid } from './ids.ts';
import type { KubeObject, LabelSelector } from './meta.ts';
import type { InlineCsiSource } from './storage.ts';

export type ResourceList = Readonly<Record<string, string>>;

export interface Pod extends KubeObject {
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export type PodSpec = {
  readonly volumes?: readonly Volume[];
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly ephemeralContainers?: readonly EphemeralContainer[];
  readonly restartPolicy?: RestartPolicy;
  readonly terminationGracePeriodSeconds?: number;
  readonly activeDeadlineSeconds?: number;
  readonly dnsPolicy?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly serviceAccountName?: string;
  readonly serviceAccount?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly nodeName?: string;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly securityContext?: PodSecurityContext;
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly hostname?: string;
  readonly subdomain?: string;
  readonly affinity?: Affinity;
  readonly schedulerName?: string;
  readonly tolerations?: readonly Toleration[];
  readonly hostAliases?: readonly { readonly ip: string; readonly hostnames?: readonly string[] }[];
  readonly priorityClassName?: string;
  readonly priority?: number;
  readonly preemptionPolicy?: string;
  readonly dnsConfig?: PodDnsConfig;
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly runtimeClassName?: string;
  readonly enableServiceLinks?: boolean;
  readonly overhead?: ResourceList;
  readonly topologySpreadConstraints?: readonly unknown[];
  readonly setHostnameAsFQDN?: boolean;
  readonly os?: { readonly name: string };
  readonly hostUsers?: boolean;
  readonly schedulingGates?: readonly { readonly name: string }[];
  readonly resourceClaims?: readonly PodResourceClaim[];
  readonly schedulingGroup?: { readonly podGroupName?: string };
  readonly resources?: ResourceRequirements;
  readonly hostnameOverride?: string;
};

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';
export type PodResourceClaim = {
  readonly name: string;
  readonly resourceClaimName?: string;
  readonly resourceClaimTemplateName?: string;
};

export type Container = {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly ports?: readonly ContainerPort[];
  readonly envFrom?: readonly EnvFromSource[];
  readonly env?: readonly EnvVar[];
  readonly resources?: ResourceRequirements;
  readonly resizePolicy?: readonly {
    readonly resourceName: string;
    readonly restartPolicy: 'NotRequired' | 'RestartContainer';
  }[];
  readonly restartPolicy?: RestartPolicy;
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly volumeDevices?: readonly { readonly name: string; readonly devicePath: string }[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: Lifecycle;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: 'File' | 'FallbackToLogsOnError';
  readonly imagePullPolicy?: 'Always' | 'Never' | 'IfNotPresent';
  readonly securityContext?: SecurityContext;
  readonly stdin?: boolean;
  readonly stdinOnce?: boolean;
  readonly tty?: boolean;
};

export type EphemeralContainer = Container & { readonly targetContainerName?: string };

export type ContainerRestartRule = {
  readonly action: 'Restart' | 'RestartAllContainers';
  readonly exitCodes?: { readonly operator: 'In' | 'NotIn'; readonly values?: readonly number[] };
};

export type ContainerPort = {
  readonly name?: string;
  readonly hostPort?: number;
  readonly containerPort: number;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  readonly hostIP?: string;
};

export type EnvVar = { readonly name: string; readonly value?: string; readonly valueFrom?: EnvVarSource };
export type EnvVarSource = {
  readonly fieldRef?: ObjectFieldSelector;
  readonly resourceFieldRef?: ResourceFieldSelector;
  readonly configMapKeyRef?: KeySelector;
  readonly secretKeyRef?: KeySelector;
  readonly fileKeyRef?: {
    readonly volumeName: string;
    readonly path: string;
    readonly key: string;
    readonly optional?: boolean;
  };
};
export type ObjectFieldSelector = { readonly apiVersion?: string; readonly fieldPath: string };
export type ResourceFieldSelector = {
  readonly containerName?: string;
  readonly resource: string;
  readonly divisor?: string;
};
export type KeySelector = { readonly name?: string; readonly key: string; readonly optional?: boolean };
export type EnvFromSource = {
  readonly prefix?: string;
  readonly configMapRef?: { readonly name?: string; readonly optional?: boolean };
  readonly secretRef?: { readonly name?: string; readonly optional?: boolean };
};

export type ResourceRequirements = {
  readonly limits?: ResourceList;
  readonly requests?: ResourceList;
  readonly claims?: readonly { readonly name: string; readonly request?: string }[];
};

export type VolumeMount = {
  readonly name: string;
  readonly readOnly?: boolean;
  readonly recursiveReadOnly?: 'Disabled' | 'IfPossible' | 'Enabled';
  readonly mountPath: string;
  readonly subPath?: string;
  readonly mountPropagation?: 'None' | 'HostToContainer' | 'Bidirectional';
  readonly subPathExpr?: string;
};

export type ExecAction = { readonly command?: readonly string[] };
export type HttpGetAction = {
  readonly path?: string;
  readonly port: number | string;
  readonly host?: string;
  readonly scheme?: 'HTTP' | 'HTTPS';
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
};
export type TcpSocketAction = { readonly port: number | string; readonly host?: string };

export type Probe = {
  readonly exec?: ExecAction;
  readonly httpGet?: HttpGetAction;
  readonly tcpSocket?: TcpSocketAction;
  readonly grpc?: { readonly port: number; readonly service?: string };
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly terminationGracePeriodSeconds?: number;
};

export type LifecycleHandler = {
  readonly exec?: ExecAction;
  readonly httpGet?: HttpGetAction;
  readonly tcpSocket?: TcpSocketAction;
  readonly sleep?: { readonly seconds: number };
};
export type Lifecycle = {
  readonly postStart?: LifecycleHandler;
  readonly preStop?: LifecycleHandler;
  readonly stopSignal?: string;
};

export type SeLinuxOptions = {
  readonly user?: string;
  readonly role?: string;
  readonly type?: string;
  readonly level?: string;
};
export type SeccompProfile = {
  readonly type: 'Unconfined' | 'RuntimeDefault' | 'Localhost';
  readonly localhostProfile?: string;
};
export type AppArmorProfile = SeccompProfile;

export type SecurityContext = {
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly privileged?: boolean;
  readonly seLinuxOptions?: SeLinuxOptions;
  readonly windowsOptions?: Readonly<Record<string, unknown>>;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsNonRoot?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly procMount?: 'Default' | 'Unmasked';
  readonly seccompProfile?: SeccompProfile;
  readonly appArmorProfile?: AppArmorProfile;
};

export type PodSecurityContext = {
  readonly seLinuxOptions?: SeLinuxOptions;
  readonly windowsOptions?: Readonly<Record<string, unknown>>;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsNonRoot?: boolean;
  readonly supplementalGroups?: readonly number[];
  readonly supplementalGroupsPolicy?: 'Merge' | 'Strict';
  readonly fsGroup?: number;
  readonly sysctls?: readonly { readonly name: string; readonly value: string }[];
  readonly fsGroupChangePolicy?: 'OnRootMismatch' | 'Always';
  readonly seccompProfile?: SeccompProfile;
  readonly appArmorProfile?: AppArmorProfile;
  readonly seLinuxChangePolicy?: string;
};

export type Affinity = {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
    };
    readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly unknown[];
  };
  readonly podAffinity?: Readonly<Record<string, unknown>>;
  readonly podAntiAffinity?: Readonly<Record<string, unknown>>;
};
export type NodeSelectorTerm = {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
};
export type NodeSelectorRequirement = {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
};

export type Toleration = {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
};

export type PodDnsConfig = {
  readonly nameservers?: readonly string[];
  readonly searches?: readonly string[];
  readonly options?: readonly { readonly name?: string; readonly value?: string }[];
};

export type KeyToPath = { readonly key: string; readonly path: string; readonly mode?: number };
export type DownwardApiFile = {
  readonly path: string;
  readonly fieldRef?: ObjectFieldSelector;
  readonly resourceFieldRef?: ResourceFieldSelector;
  readonly mode?: number;
};
export type ProjectedSource = {
  readonly secret?: { readonly name?: string; readonly items?: readonly KeyToPath[]; readonly optional?: boolean };
  readonly configMap?: { readonly name?: string; readonly items?: readonly KeyToPath[]; readonly optional?: boolean };
  readonly downwardAPI?: { readonly items?: readonly DownwardApiFile[] };
  readonly serviceAccountToken?: {
    readonly audience?: string;
    readonly expirationSeconds?: number;
    readonly path: string;
  };
  readonly clusterTrustBundle?: {
    readonly name?: string;
    readonly signerName?: string;
    readonly labelSelector?: LabelSelector;
    readonly optional?: boolean;
    readonly path: string;
  };
  readonly podCertificate?: PodCertificateProjection;
};
export type PodCertificateProjection = {
  readonly signerName: string;
  readonly keyType: string;
  readonly maxExpirationSeconds?: number;
  /** Key and chain in one file; the others are for programs that cannot read that. */
  readonly credentialBundlePath?: string;
  readonly keyPath?: string;
  readonly certificateChainPath?: string;
  readonly userAnnotations?: Readonly<Record<string, string>>;
};

/** Exactly one source is set. Kinds that have no plugin yet are rejected by name, so the rest stays untyped. */
export type Volume = {
  readonly name: string;
  readonly emptyDir?: { readonly medium?: string; readonly sizeLimit?: string };
  readonly hostPath?: { readonly path: string; readonly type?: string };
  readonly configMap?: {
    readonly name?: string;
    readonly items?: readonly KeyToPath[];
    readonly defaultMode?: number;
    readonly optional?: boolean;
  };
  readonly secret?: {
    readonly secretName?: string;
    readonly items?: readonly KeyToPath[];
    readonly defaultMode?: number;
    readonly optional?: boolean;
  };
  readonly downwardAPI?: { readonly items?: readonly DownwardApiFile[]; readonly defaultMode?: number };
  readonly projected?: { readonly sources?: readonly ProjectedSource[]; readonly defaultMode?: number };
  readonly image?: { readonly reference?: string; readonly pullPolicy?: 'Always' | 'Never' | 'IfNotPresent' };
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean };
  readonly ephemeral?: Readonly<Record<string, unknown>>;
  readonly csi?: InlineCsiSource;
  readonly nfs?: { readonly server: string; readonly path: string; readonly readOnly?: boolean };
  readonly iscsi?: Readonly<Record<string, unknown>>;
  readonly fc?: Readonly<Record<string, unknown>>;
  readonly gitRepo?: Readonly<Record<string, unknown>>;
  readonly flexVolume?: Readonly<Record<string, unknown>>;
  readonly [kind: string]: unknown;
};

// ---- status ----

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export type PodCondition = {
  readonly type: string;
  readonly observedGeneration?: number;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly lastProbeTime?: string | null;
  readonly lastTransitionTime?: string | null;
  readonly reason?: string;
  readonly message?: string;
};

export type PodStatus = {
  readonly observedGeneration?: number;
  readonly phase?: PodPhase;
  readonly conditions?: readonly PodCondition[];
  readonly message?: string;
  readonly reason?: string;
  readonly nominatedNodeName?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  readonly qosClass?: QosClass;
  readonly resize?: string;
  readonly resourceClaimStatuses?: readonly { readonly name: string; readonly resourceClaimName?: string }[];
  readonly extendedResourceClaimStatus?: ExtendedResourceClaimStatus;
  readonly nodeAllocatableResourceClaimStatuses?: unknown;
  readonly allocatedResources?: ResourceList;
  readonly resources?: ResourceRequirements;
};

/** The claim that the scheduler made for extended resources which DRA serves. */
export type ExtendedResourceClaimStatus = {
  readonly resourceClaimName: string;
  readonly requestMappings?: readonly {
    readonly containerName: string;
    readonly resourceName: string;
    readonly requestName: string;
  }[];
};

/** How the devices of one resource are that a container has. */
export type AllocatedResourceStatus = {
  readonly name: string;
  readonly resources?: readonly {
    readonly resourceID: string;
    readonly health?: 'Healthy' | 'Unhealthy' | 'Unknown';
    readonly message?: string;
  }[];
};

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

export type ContainerStateWaiting = { readonly reason?: string; readonly message?: string };
export type ContainerStateRunning = { readonly startedAt?: string | null };
export type ContainerStateTerminated = {
  readonly exitCode: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly containerID?: string;
};
/** At most one is set. */
export type ContainerState = {
  readonly waiting?: ContainerStateWaiting;
  readonly running?: ContainerStateRunning;
  readonly terminated?: ContainerStateTerminated;
};

export type ContainerStatus = {
  readonly name: string;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly started?: boolean;
  readonly allocatedResources?: ResourceList;
  readonly resources?: ResourceRequirements;
  readonly volumeMounts?: readonly VolumeMountStatus[];
  readonly user?: {
    readonly linux?: { readonly uid: number; readonly gid: number; readonly supplementalGroups?: readonly number[] };
  };
  readonly allocatedResourcesStatus?: readonly AllocatedResourceStatus[];
  readonly stopSignal?: string;
};

export type VolumeMountStatus = {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly recursiveReadOnly?: string;
  readonly volumeStatus?: { readonly image?: { readonly imageRef: string } };
};

// ---- questions ----

export const uidOf = (pod: Pod): PodUid => podUid(pod.metadata.uid ?? '');
export const namespaceOf = (pod: Pick<Pod, 'metadata'>): string => pod.metadata.namespace ?? 'default';

/** `name_namespace(uid)`, upstream's way to name a pod in messages. */
export const podRef = (pod: Pod): string => `${pod.metadata.name}_${namespaceOf(pod)}(${pod.metadata.uid ?? ''})`;

/** `namespace/name`, the way logs name a pod. */
export const podKey = (pod: Pod): string => `${namespaceOf(pod)}/${pod.metadata.name}`;

/** `name_namespace`: what a static pod and its mirror share. */
export const fullName = (pod: Pick<Pod, 'metadata'>): string => `${pod.metadata.name}_${namespaceOf(pod)}`;

export const CONFIG_SOURCE = 'kubernetes.io/config.source';
export const CONFIG_SEEN = 'kubernetes.io/config.seen';
export const CONFIG_HASH = 'kubernetes.io/config.hash';
export const CONFIG_MIRROR = 'kubernetes.io/config.mirror';

export const isStaticPod = (pod: Pod): boolean => {
  const source = pod.metadata.annotations?.[CONFIG_SOURCE];
  return source !== undefined && source !== 'api';
};
export const isMirrorPod = (pod: Pod): boolean => pod.metadata.annotations?.[CONFIG_MIRROR] !== undefined;

const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;
export const isCriticalPod = (pod: Pod): boolean =>
  isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;

/** A sidecar is an init container that keeps running beside the main ones. */
export const isSidecar = (container: Container): boolean => container.restartPolicy === 'Always';

export type ContainerKind = 'init' | 'main' | 'ephemeral';
export type PodContainer = { readonly kind: ContainerKind; readonly container: Container };

/** All containers of a pod in spec order: init, main, ephemeral. */
export function* containersOf(pod: Pod): Iterable<PodContainer> {
  for (const container of pod.spec.initContainers ?? []) yield { kind: 'init', container };
  for (const container of pod.spec.containers) yield { kind: 'main', container };
  for (const container of pod.spec.ephemeralContainers ?? []) yield { kind: 'ephemeral', container };
}

const FIELD_OF: Record<ContainerKind, string> = {
  init: 'initContainers',
  main: 'containers',
  ephemeral: 'ephemeralContainers',
};

/** The fieldPath of events about a container: `spec.containers{web}`. */
export const containerFieldPath = (kind: ContainerKind, name: string): string => `spec.${FIELD_OF[kind]}{${name}}`;

/** The name in `spec.containers{name}`, if there is one. */
export const containerOfFieldPath = (path: string): string | undefined => {
  const at = path.indexOf('{');
  return at >= 0 && path.endsWith('}') && path.length > at + 2 ? path.slice(at + 1, -1) : undefined;
};

export const findContainer = (pod: Pod, name: string): PodContainer | undefined => {
  for (const entry of containersOf(pod)) if (entry.container.name === name) return entry;
  return undefined;
};
