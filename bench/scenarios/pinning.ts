// What the CPU, memory, topology and device managers add to the admission of a pod, on a machine larger than this one. The
// device plugin is a process of its own, as real ones are.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../src/core/pod.ts';
import { fromUnits, quantity } from '../../src/core/quantity.ts';
import { DeviceManager } from '../../src/devices/device-manager.ts';
import { Plugins } from '../../src/devices/plugins.ts';
import { DeviceRegistration } from '../../src/devices/registration.ts';
import type { MachineTopology } from '../../src/host/topology/machine-topology.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { chooseCpuPolicy } from '../../src/resources/cpu/choose-policy.ts';
import { CpuManager } from '../../src/resources/cpu/cpu-manager.ts';
import { alignmentMetrics, CpuMetrics } from '../../src/resources/cpu/cpu-metrics.ts';
import { chooseMemoryPolicy } from '../../src/resources/memory/choose-policy.ts';
import { MemoryManager, memoryMetrics } from '../../src/resources/memory/memory-manager.ts';
import { PinningHook } from '../../src/resources/pinning-hook.ts';
import { TopologyManager, topologyMetrics } from '../../src/resources/topology/topology-manager.ts';
import { topologySettings } from '../../src/resources/topology/topology-options.ts';
import { until } from '../../test/harness/until.ts';
import { median } from '../statistics.ts';
import type { Scenario } from './scenario.ts';

const NODES = 8;
const CORES_PER_NODE = 8;
const PODS = 24;
const RESOURCE = 'example.com/card';
const CARDS = 64;
const PLUGIN = join(import.meta.dirname, '..', '..', 'test', 'fakes', 'device-plugin-main.ts');
const { signal } = new AbortController();

/** Two sockets, eight NUMA nodes, 128 CPUs. */
const MACHINE: MachineTopology = {
  sockets: 2,
  nodes: Array.from({ length: NODES }, (_, id) => ({
    id,
    memoryBytes: 64 * 2 ** 30,
    hugePages: [],
    distances: Array.from({ length: NODES }, (__, to) => (to === id ? 10 : 20)),
    cores: Array.from({ length: CORES_PER_NODE }, (__, core) => {
      const first = id * CORES_PER_NODE + core;
      return {
        socket: id < NODES / 2 ? 0 : 1,
        threads: [first, first + NODES * CORES_PER_NODE],
        uncoreCache: undefined,
      };
    }),
  })),
};

const podOf = (uid: string, more: Record<string, string> = {}): Pod => {
  const amounts = { cpu: '2', memory: '1Gi', ...more };
  const container = { resources: { requests: amounts, limits: amounts } };
  return {
    metadata: { name: uid, uid },
    spec: {
      containers: [
        { ...container, name: 'a' },
        { ...container, name: 'b' },
      ],
    },
  };
};

async function managersIn(dir: string, pods: readonly Pod[], devices: readonly DeviceManager[]): Promise<PinningHook> {
  const registry = new Registry();
  const alignment = alignmentMetrics(registry);
  const known = { unfinished: () => pods, sourcesReady: () => true, runningId: () => undefined };
  const infra = { clock: systemClock, log: silentLogger, pods: known };
  const cpu = new CpuManager(
    {
      ...infra,
      cpusets: { setCpus: () => Promise.resolve() },
      metrics: new CpuMetrics(registry, alignment, undefined),
    },
    {
      policy: chooseCpuPolicy(MACHINE, {
        policy: 'static',
        options: { 'full-pcpus-only': 'true' },
        gates: { alpha: true, beta: true },
        reservation: fromUnits(2),
        reservedCpus: new Set([0, NODES * CORES_PER_NODE]),
        topologyPolicy: 'restricted',
        podLevelManagers: false,
      }),
      stateFile: join(dir, 'cpu_manager_state'),
      reconcileEveryMs: 10_000,
      podLevelManagers: false,
      liftQuota: true,
    },
  );
  const memory = new MemoryManager(
    { ...infra, metrics: memoryMetrics(registry, undefined) },
    {
      policy: chooseMemoryPolicy(MACHINE.nodes, {
        policy: 'Static',
        reservations: [{ numaNode: 0, limits: { memory: '1Gi' } }],
        reservedOfNode: new Map([['memory', quantity('1Gi')]]),
        podLevelManagers: false,
      }),
      stateFile: join(dir, 'memory_manager_state'),
      podLevelManagers: false,
    },
  );
  const settings = topologySettings({ policy: 'restricted', scope: 'container', options: {} }, MACHINE.nodes);
  const topology = new TopologyManager(
    { providers: [...devices, cpu, memory], clock: systemClock, metrics: topologyMetrics(registry, alignment) },
    { ...settings, podLevelManagers: false },
  );
  await Promise.all([cpu.load(), memory.load()]);
  return new PinningHook({ cpu, memory, topology });
}

type Cards = {
  readonly manager: DeviceManager;
  /** What the plugin itself takes for a pod of two containers. */
  bareMs(): Promise<number>;
  stop(): Promise<void>;
};

/** A device manager with a plugin whose cards are spread over the NUMA nodes. */
async function startCards(dir: string, pods: readonly Pod[]): Promise<Cards> {
  const directory = join(dir, 'device-plugins');
  mkdirSync(directory);
  const log = silentLogger;
  const registry = new Registry();
  const plugins = new Plugins({
    clock: systemClock,
    log,
    events: {
      onConnected: (resource) => manager.connected(resource),
      onDevices: (resource, devices) => manager.listed(resource, devices),
      onStopped: (resource) => manager.stopped(resource),
    },
  });
  const manager = new DeviceManager(
    {
      clock: systemClock,
      log,
      plugins,
      pods: { alive: () => pods, sourcesReady: () => true, isRunning: () => false },
      numaNodes: () => MACHINE.nodes.map(({ id }) => id),
      onHealthChange: () => {},
      onAmounts: () => {},
      durations: registry.histogram('allocation', 'allocation', ['resource_name']),
    },
    { checkpoint: join(directory, 'kubelet_internal_checkpoint') },
  );
  await manager.load();
  const registrations = registry.counter('registrations', 'registrations', ['resource_name']);
  const life = new AbortController();
  const running = new DeviceRegistration({ clock: systemClock, plugins, log, registrations }, { directory }).run(
    life.signal,
  );
  const cards = Array.from({ length: CARDS }, (_, i) => `card${i}@${i % NODES}`);
  const plugin = spawn(process.execPath, ['--no-warnings', PLUGIN, directory, RESOURCE, ...cards], {
    stdio: 'inherit',
  });
  await until('the cards are listed', () => (manager.amounts().capacity.get(RESOURCE) ?? 0) === CARDS);
  return {
    manager,
    bareMs: async () => {
      const begin = performance.now();
      for (const card of ['card0', 'card1']) await plugins.get(RESOURCE)?.allocate([card], signal);
      return performance.now() - begin;
    },
    stop: async () => {
      plugin.kill();
      await once(plugin, 'exit');
      life.abort();
      await Promise.all([running, plugins.close()]);
    },
  };
}

type Times = { readonly admitted: number[]; readonly bare: number[] };

async function admissions(rounds: number, withCards: boolean): Promise<Times> {
  const times: Times = { admitted: [], bare: [] };
  for (let round = 0; round < rounds; round++) {
    const dir = mkdtempSync(join(tmpdir(), 'bench-pinning-'));
    const pods: Pod[] = [];
    const cards = withCards ? await startCards(dir, pods) : undefined;
    const hook = await managersIn(dir, pods, cards === undefined ? [] : [cards.manager]);
    for (let i = 0; i < PODS; i++) {
      const pod = podOf(`p${round}-${i}`, withCards ? { [RESOURCE]: '1' } : {});
      pods.push(pod);
      const begin = performance.now();
      const verdict = await hook.admit(pod, signal);
      times.admitted.push(performance.now() - begin);
      if (!verdict.ok) throw new Error(`${verdict.reason}: ${verdict.message}`);
      if (cards !== undefined) times.bare.push(await cards.bareMs());
    }
    await hook.preCreate(pods[0] ?? podOf(''), { name: 'a' });
    await cards?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
  return times;
}

export const pinning: Scenario = {
  name: 'pinning',
  asks: 'admission of a pod with two pinned containers on 128 CPUs and 8 NUMA nodes',
  async run(_world, { quick }) {
    const rounds = quick ? 2 : 10;
    const plain = await admissions(rounds, false);
    const cards = await admissions(rounds, true);
    const bare = median(cards.bare);
    return [
      {
        key: 'pinning.admit.p50',
        what: 'admission with CPU, memory and topology manager, p50',
        value: median(plain.admitted),
        unit: 'ms',
        wanted: { atMost: 2 },
        note: 'without the managers it is nothing',
      },
      {
        key: 'pinning.devices-beyond-plugin.p50',
        what: "admission with these and two cards, p50, beyond the device plugin's own two answers",
        value: median(cards.admitted) - bare,
        unit: 'ms',
        wanted: { atMost: 2 },
        note: `the plugin takes ${bare.toFixed(2)} ms for the two`,
      },
    ];
  },
};
