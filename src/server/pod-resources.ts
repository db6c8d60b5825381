// The pod resources API on its unix socket: which pods use which devices, processors and memory. Agents on the node read
// it; a limit keeps a busy one from using up the kubelet.
import type { PodUid } from '../core/ids.ts';
import { isSidecar, uidOf, type Container, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import type { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import type { Counter, Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import {
  PodResourcesLister,
  type ContainerDevices,
  type ContainerMemory,
  type ContainerResources,
  type DynamicResource,
  type PodResources,
  type TopologyInfo,
} from './gen/pod-resources.ts';
import { serveLocalSocket } from './local-socket.ts';

/** A device, or one of its places when it is near several NUMA nodes. */
type DevicePlace = { readonly resource: string; readonly id: string; readonly node?: number };

/** What the resource managers have given out, and what they could. One that is not there leaves its part empty. */
export type Assigned = {
  readonly devices?: {
    devicesOf(uid: PodUid, container: string): readonly DevicePlace[];
    allocatableDevices(): readonly DevicePlace[];
  };
  readonly cpus?: {
    /** CPUs of the container alone. */
    exclusiveCpus(uid: PodUid, container: string): readonly number[];
    allocatableCpus(): readonly number[];
  };
  readonly memory?: {
    memoryOf(uid: PodUid, container: string): readonly MemoryBlock[];
    allocatableMemory(): readonly MemoryBlock[];
  };
  readonly claims?: { claimsOf(pod: Pod, container: Container): readonly AssignedClaim[] };
};

type MemoryBlock = { readonly type: string; readonly bytes: number; readonly nodes: readonly number[] };

type AssignedClaim = {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly {
    readonly driver: string;
    readonly pool: string;
    readonly device: string;
    readonly shareId?: string;
    readonly cdiIds: readonly string[];
  }[];
};

export type PodResourcesDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Pods that run or may run, in no order. */
  readonly active: () => readonly Pod[];
  /** Every pod the kubelet knows; what the oldest version of the API lists. */
  readonly all: () => readonly Pod[];
  /** Whether List leaves out pods that are over (gate `KubeletPodResourcesListUseActivePods`). */
  readonly listsActiveOnly: boolean;
  readonly assigned: Assigned;
};

const PER_SECOND = 100;
const BURST = 10;
const SOCKET_MODE = 0o660;
/** The older service has the same List, with fewer fields and only main containers. */
const OLD_LIST = { ...PodResourcesLister.list, path: '/v1alpha1.PodResourcesLister/List' };

type Kind = 'list' | 'get' | 'get_allocatable';

export class PodResourcesServer implements Runnable {
  readonly name = 'pod-resources';
  readonly #deps: PodResourcesDeps;
  readonly #path: string;
  readonly #limit: TokenBucket;
  readonly #counters: PodResourcesCounters;

  constructor(deps: PodResourcesDeps, path: string) {
    this.#deps = deps;
    this.#path = path;
    this.#limit = new TokenBucket(deps.clock, PER_SECOND, BURST);
    this.#counters = new PodResourcesCounters(deps.registry);
  }

  run(signal: AbortSignal): Promise<void> {
    const register = (server: GrpcServer): void => this.#register(server);
    return serveLocalSocket(this.#deps, { path: this.#path, mode: SOCKET_MODE, register }, signal);
  }

  #register(server: GrpcServer): void {
    const { active, all, listsActiveOnly, assigned } = this.#deps;
    const listed = listsActiveOnly ? active : all;
    this.#serve(server, PodResourcesLister.list, 'v1', 'list', () => ({
      podResources: listed().map((pod) => podResources(pod, assigned)),
    }));
    this.#serve(server, OLD_LIST, 'v1alpha1', 'list', () => ({
      podResources: all().map((pod) => oldPodResources(pod, assigned)),
    }));
    this.#serve(server, PodResourcesLister.getAllocatableResources, 'v1', 'get_allocatable', () => ({
      devices: (assigned.devices?.allocatableDevices() ?? []).map(containerDevices),
      cpuIds: [...(assigned.cpus?.allocatableCpus() ?? [])],
      memory: (assigned.memory?.allocatableMemory() ?? []).map(containerMemory),
    }));
    this.#serve(server, PodResourcesLister.get, 'v1', 'get', ({ podName, podNamespace }) => {
      const pod = active().find((p) => p.metadata.name === podName && p.metadata.namespace === podNamespace);
      if (pod === undefined)
        throw new GrpcError(GrpcCode.Unknown, `pod ${podName} in namespace ${podNamespace} not found`);
      return { podResources: podResources(pod, assigned) };
    });
  }

  #serve<Req, Res>(
    server: GrpcServer,
    rpc: Rpc<Req, Res>,
    version: string,
    kind: Kind,
    answer: (request: Req) => Res,
  ): void {
    server.unary(rpc, async (request) => {
      if (!this.#limit.tryTake()) throw new GrpcError(GrpcCode.ResourceExhausted, 'rejected by rate limit');
      this.#counters.asked(kind, version);
      try {
        return answer(request);
      } catch (err) {
        this.#counters.failed(kind, version);
        throw err;
      }
    });
  }
}

function podResources(pod: Pod, assigned: Assigned): PodResources {
  const { initContainers = [], containers } = pod.spec;
  const listed = [...initContainers.filter(isSidecar), ...containers];
  return { ...identity(pod), containers: listed.map((container) => containerResources(pod, container, assigned)) };
}

function oldPodResources(pod: Pod, { devices }: Assigned): PodResources {
  const containers = pod.spec.containers.map(({ name }) => ({
    ...NOTHING,
    name,
    devices: (devices?.devicesOf(uidOf(pod), name) ?? []).map(({ resource, id }) => ({
      resourceName: resource,
      deviceIds: [id],
    })),
  }));
  return { ...identity(pod), containers };
}

const identity = (pod: Pod): Pick<PodResources, 'name' | 'namespace'> => ({
  name: pod.metadata.name,
  namespace: pod.metadata.namespace ?? '',
});

const NOTHING = { devices: [], cpuIds: [], memory: [], dynamicResources: [] };

function containerResources(pod: Pod, container: Container, assigned: Assigned): ContainerResources {
  const { name } = container;
  const uid = uidOf(pod);
  return {
    name,
    devices: (assigned.devices?.devicesOf(uid, name) ?? []).map(containerDevices),
    cpuIds: [...(assigned.cpus?.exclusiveCpus(uid, name) ?? [])],
    memory: (assigned.memory?.memoryOf(uid, name) ?? []).map(containerMemory),
    dynamicResources: (assigned.claims?.claimsOf(pod, container) ?? []).map(dynamicResource),
  };
}

const topology = (nodes: readonly number[]): TopologyInfo => ({ nodes: nodes.map((ID) => ({ ID })) });

const containerDevices = ({ resource, id, node }: DevicePlace): ContainerDevices => ({
  resourceName: resource,
  deviceIds: [id],
  ...(node === undefined ? {} : { topology: topology([node]) }),
});

const containerMemory = ({ type, bytes, nodes }: MemoryBlock): ContainerMemory => ({
  memoryType: type,
  size: bytes,
  topology: topology(nodes),
});

/** As upstream has it, a device is listed with the CDI devices of those before it of the same driver. */
function dynamicResource({ name, namespace, devices }: AssignedClaim): DynamicResource {
  const sofar = new Map<string, string[]>();
  return {
    claimName: name,
    claimNamespace: namespace,
    claimResources: devices.map(({ driver, pool, device, shareId, cdiIds }) => {
      const cdi = [...(sofar.get(driver) ?? []), ...cdiIds];
      sofar.set(driver, cdi);
      return {
        cdiDevices: cdi.map((id) => ({ name: id })),
        driverName: driver,
        poolName: pool,
        deviceName: device,
        shareId: shareId ?? '',
      };
    }),
  };
}

class PodResourcesCounters {
  readonly #total: Counter;
  readonly #asked: Readonly<Record<Kind, Counter>>;
  readonly #failed: Readonly<Record<Kind, Counter>>;

  constructor(registry: Registry) {
    const counter = (name: string, help: string): Counter =>
      registry.counter(`kubelet_pod_resources_endpoint_${name}`, help, ['server_api_version']);
    const each = (what: string, outcome: string): Record<Kind, Counter> => {
      const help = (verb: string): string =>
        `[ALPHA] Number of requests to the PodResource ${verb} endpoint${outcome}. Broken down by server api version.`;
      return {
        list: counter(`${what}_list`, help('List')),
        get: counter(`${what}_get`, help('Get')),
        get_allocatable: counter(`${what}_get_allocatable`, help('GetAllocatableResources')),
      };
    };
    this.#total = counter(
      'requests_total',
      '[ALPHA] Cumulative number of requests to the PodResource endpoint. Broken down by server api version.',
    );
    this.#asked = each('requests', '');
    this.#failed = each('errors', ' which returned error');
  }

  asked(kind: Kind, version: string): void {
    this.#total.inc({ server_api_version: version });
    this.#asked[kind].inc({ server_api_version: version });
  }

  failed(kind: Kind, version: string): void {
    this.#failed[kind].inc({ server_api_version: version });
  }
}
