// The pod resources API on its unix socket: which pods use which devices, processors and memory. Agents on the node read
// it; a limit keeps a busy one from using up the kubelet.
import { chmod, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Container, Pod } from '../core/pod.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import type { Counter, Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import {
  PodResourcesLister,
  type AllocatableResourcesResponse,
  type ContainerResources,
  type PodResources,
} from './gen/pod-resources.ts';

/** What the resource managers have given out. Without them containers are listed bare. */
export interface AssignedResources {
  ofContainer(pod: Pod, container: Container): Partial<Omit<ContainerResources, 'name'>>;
  allocatable(): Partial<AllocatableResourcesResponse>;
}

export type PodResourcesDeps = {
  readonly clock: Clock;
  readonly registry: Registry;
  /** Pods that run or may run, in no order. */
  readonly active: () => readonly Pod[];
  readonly assigned?: AssignedResources;
};

const PER_SECOND = 100;
const BURST = 10;
const DIRECTORY_MODE = 0o750;
const SOCKET_MODE = 0o660;
/** The older service has the same List, with fewer fields. */
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

  async run(signal: AbortSignal): Promise<void> {
    const server = new GrpcServer();
    this.#register(server);
    await mkdir(dirname(this.#path), { recursive: true, mode: DIRECTORY_MODE });
    await rm(this.#path, { force: true });
    await server.listen(this.#path);
    await chmod(this.#path, SOCKET_MODE);
    await aborted(signal);
    await server.close();
    await rm(this.#path, { force: true });
  }

  #register(server: GrpcServer): void {
    const { active, assigned } = this.#deps;
    const list = () => ({ podResources: active().map((pod) => this.#podResources(pod)) });
    this.#serve(server, PodResourcesLister.list, 'v1', 'list', list);
    this.#serve(server, OLD_LIST, 'v1alpha1', 'list', list);
    this.#serve(server, PodResourcesLister.getAllocatableResources, 'v1', 'get_allocatable', () => ({
      devices: [],
      cpuIds: [],
      memory: [],
      ...assigned?.allocatable(),
    }));
    this.#serve(server, PodResourcesLister.get, 'v1', 'get', ({ podName, podNamespace }) => {
      const pod = active().find((p) => p.metadata.name === podName && p.metadata.namespace === podNamespace);
      if (pod === undefined)
        throw new GrpcError(GrpcCode.Unknown, `pod ${podName} in namespace ${podNamespace} not found`);
      return { podResources: this.#podResources(pod) };
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

  #podResources(pod: Pod): PodResources {
    const { initContainers = [], containers } = pod.spec;
    const sidecars = initContainers.filter((c) => c.restartPolicy === 'Always');
    return {
      name: pod.metadata.name,
      namespace: pod.metadata.namespace ?? '',
      containers: [...sidecars, ...containers].map((container) => ({
        name: container.name,
        devices: [],
        cpuIds: [],
        memory: [],
        dynamicResources: [],
        ...this.#deps.assigned?.ofContainer(pod, container),
      })),
    };
  }
}

class PodResourcesCounters {
  readonly #total: Counter;
  readonly #asked: Readonly<Record<Kind, Counter>>;
  readonly #failed: Readonly<Record<Kind, Counter>>;

  constructor(registry: Registry) {
    const counter = (name: string, help: string): Counter =>
      registry.counter(`kubelet_pod_resources_endpoint_${name}`, help, ['server_api_version']);
    const each = (what: string, help: string): Record<Kind, Counter> => ({
      list: counter(`${what}_list`, `${help} List. Broken down by server api version.`),
      get: counter(`${what}_get`, `${help} Get. Broken down by server api version.`),
      get_allocatable: counter(
        `${what}_get_allocatable`,
        `${help} GetAllocatableResources. Broken down by server api version.`,
      ),
    });
    this.#total = counter(
      'requests_total',
      'Cumulative number of requests to the PodResource endpoint. Broken down by server api version.',
    );
    this.#asked = each('requests', 'Number of requests to the PodResource endpoint for');
    this.#failed = each('errors', 'Number of requests to the PodResource endpoint which returned error for');
  }

  asked(kind: Kind, version: string): void {
    this.#total.inc({ server_api_version: version });
    this.#asked[kind].inc({ server_api_version: version });
  }

  failed(kind: Kind, version: string): void {
    this.#failed[kind].inc({ server_api_version: version });
  }
}
