// The edge to the machine: the container runtime, what is observed of it, cgroups and the node's resources.
import {
  openCri,
  readCgroupDriver,
  readSandboxImage,
  validateCri,
  type CriConnection,
  type RuntimeVersion,
} from '../cri/connection.ts';
import { criMetrics, losingSupport } from '../cri/metrics.ts';
import type { Cgroups } from '../host/cgroups/cgroups.ts';
import type { CgroupDriver } from '../host/cgroups/cgroup-names.ts';
import { openCgroups } from '../host/cgroups/open.ts';
import { limitsSwap } from '../host/cgroups/swap-limits.ts';
import { PodCidr } from '../node/pod-cidr.ts';
import { Observer } from '../observe/observer.ts';
import { RuntimeHealth } from '../observe/runtime-health.ts';
import { createNodeResources } from '../resources/create.ts';
import type { NodeResources } from '../resources/node-resources.ts';
import { followRuntime } from '../page/records.ts';
import type { Foundation } from './foundation.ts';
import { nodeChecks } from '../server/kubelet-health.ts';
import { joinedCalls, tracedCalls } from '../trace/traced-ports.ts';

export type RuntimeEdge = {
  readonly cri: CriConnection;
  readonly version: RuntimeVersion;
  readonly observer: Observer;
  readonly health: RuntimeHealth;
  readonly cgroups: Cgroups;
  readonly cgroupDriver: CgroupDriver;
  /** Whether the kernel limits swap per cgroup. */
  readonly limitsSwap: boolean;
  readonly resources: NodeResources;
  readonly podCidr: PodCidr;
  /** The image sandboxes are made of, where the runtime tells. */
  readonly sandboxImage: string | undefined;
};

export async function buildRuntimeEdge(base: Foundation, signal: AbortSignal): Promise<RuntimeEdge> {
  const { config, clock, log, registry } = base;
  const cri = openCri(clock, {
    runtimeEndpoint: config.containerRuntimeEndpoint,
    imageEndpoint: config.imageServiceEndpoint,
    timeoutMs: config.runtimeRequestTimeoutMs,
    streamLists: base.gates.enabled('CRIListStreaming'),
    intercept: tracedCalls(base.tracer, joinedCalls(base.records.calls.intercept, criMetrics(clock, registry))),
  });
  const [version, driver, sandboxImage] = await Promise.all([
    validateCri(cri, signal),
    readCgroupDriver(cri.runtime, () => losingSupport(registry), signal),
    readSandboxImage(cri.runtime, signal),
  ]);
  const cgroupDriver = driver ?? config.cgroupDriver;
  const observer = new Observer(
    {
      runtime: cri.runtime,
      channel: cri.channel,
      clock,
      log: log.child({ component: 'observe' }),
      registry,
    },
    { onStream: () => health.checkSoon() },
  );
  const resources = createNodeResources(base);
  const [cgroups] = await Promise.all([openCgroups(clock, cgroupDriver, base.systemBus.units), resources.refresh()]);
  const health = new RuntimeHealth({
    runtime: cri.runtime,
    clock,
    log: log.child({ component: 'runtime-health' }),
    relist: observer,
  });
  base.health.push(...nodeChecks(health, config.syncFrequencyMs));
  followRuntime(base.records, observer.cache, health);
  const setPodCidr = async (podCidr: string, stop: AbortSignal): Promise<void> => {
    await cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, stop);
  };
  const podCidr = new PodCidr({ runtime: { setPodCidr }, log });
  await podCidr.set(config.podCIDR, signal);
  return {
    cri,
    version,
    observer,
    health,
    cgroups,
    cgroupDriver,
    limitsSwap: await limitsSwap(cgroups.version),
    resources,
    podCidr,
    sandboxImage,
  };
}
