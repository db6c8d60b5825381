// The v1 Node and the other API objects the kubelet reads or writes, as they are in JSON.
import type { KubeObject } from './meta.ts';
import type { ResourceList } from './pod.ts';

export type Taint = {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
};
export type NodeCondition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly lastHeartbeatTime?: string | null;
  readonly lastTransitionTime?: string | null;
  readonly reason?: string;
  readonly message?: string;
};
export type NodeAddress = { readonly type: string; readonly address: string };
export type RuntimeHandlerStatus = {
  readonly name?: string;
  readonly features?: { readonly recursiveReadOnlyMounts?: boolean; readonly userNamespaces?: boolean };
};
export type NodeSystemInfo = {
  readonly machineID: string;
  readonly systemUUID: string;
  readonly bootID: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  readonly containerRuntimeVersion: string;
  readonly kubeletVersion: string;
  readonly kubeProxyVersion: string;
  readonly operatingSystem: string;
  readonly architecture: string;
  readonly swap?: { readonly capacity?: number };
};
export type NodeStatus = {
  readonly capacity?: ResourceList;
  readonly allocatable?: ResourceList;
  readonly phase?: string;
  readonly conditions?: readonly NodeCondition[];
  readonly addresses?: readonly NodeAddress[];
  readonly daemonEndpoints?: { readonly kubeletEndpoint?: { readonly Port: number } };
  readonly nodeInfo?: NodeSystemInfo;
  readonly images?: readonly { readonly names?: readonly string[]; readonly sizeBytes?: number }[];
  readonly volumesInUse?: readonly string[];
  readonly volumesAttached?: readonly { readonly name: string; readonly devicePath: string }[];
  readonly config?: unknown;
  readonly runtimeHandlers?: readonly RuntimeHandlerStatus[];
  readonly features?: { readonly supplementalGroupsPolicy?: boolean };
  readonly declaredFeatures?: readonly string[];
};
export interface Node extends KubeObject {
  readonly spec?: {
    readonly podCIDR?: string;
    readonly podCIDRs?: readonly string[];
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly Taint[];
  };
  readonly status?: NodeStatus;
}

export interface ConfigMap extends KubeObject {
  readonly immutable?: boolean;
  readonly data?: Readonly<Record<string, string>>;
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>>;
}
export interface Secret extends KubeObject {
  readonly immutable?: boolean;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly type?: string;
}
export interface Service extends KubeObject {
  readonly spec?: {
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly type?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly {
      readonly name?: string;
      readonly protocol?: string;
      readonly port: number;
      readonly targetPort?: number | string;
      readonly nodePort?: number;
    }[];
  };
}
export interface RuntimeClass extends KubeObject {
  readonly handler: string;
  readonly overhead?: { readonly podFixed?: ResourceList };
  readonly scheduling?: Readonly<Record<string, unknown>>;
}
/** Trust anchors for pods to mount. */
export interface ClusterTrustBundle extends KubeObject {
  /** PEM certificates. */
  readonly spec: { readonly signerName?: string; readonly trustBundle: string };
}
export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}
export interface KubeEvent extends KubeObject {
  readonly involvedObject: {
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
    readonly apiVersion?: string;
    readonly resourceVersion?: string;
    readonly fieldPath?: string;
  };
  readonly reason?: string;
  readonly message?: string;
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly count?: number;
  readonly type?: string;
  readonly eventTime?: string | null;
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}
