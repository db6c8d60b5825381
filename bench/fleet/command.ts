// `npm run bench -- fleet`: what a node costs the API server, and what many nodes do to it after an outage.
import { setTimeout as sleep } from 'node:timers/promises';
import { CONFIG_MAPS, PODS, SECRETS } from '../../src/kube/resources.ts';
import { benchPod, NAMESPACE } from '../pods.ts';
import { cpuMs, inParallel, interrupted, residentMb } from '../statistics.ts';
import type { WorldOptions } from '../world.ts';
import { startFleet, type FleetNode, type FleetWorld } from './fleet-world.ts';

const { signal } = new AbortController();

export type FleetOptions = WorldOptions & {
  readonly nodes: number;
  readonly quick: boolean;
  readonly say: (line: string) => void;
};

/** Means over all nodes. */
export type Quiet = {
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly cpuPercent: number;
  readonly residentMb: number;
};

export type FleetFigures = {
  readonly server: 'embedded' | 'real';
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly objectsPerNode: number;
  readonly idle: Quiet;
  readonly loaded: Quiet;
  readonly podStart: { readonly requests: number; readonly bytes: number };
  readonly outage: {
    readonly seconds: number;
    /** Most requests in any second after the return, of all nodes. */
    readonly peakPerSecond: number;
    readonly requests: number;
    /** From the return until a pod created then was ready, the slowest node. */
    readonly slowestPodMs: number;
  };
};

const PODS_PER_NODE = 10;
const OBJECTS_PER_NODE = 20;

export async function fleetCommand(options: FleetOptions): Promise<FleetFigures> {
  const world = await startFleet(options.nodes, options);
  try {
    return await Promise.race([measure(world, options), interrupted()]);
  } finally {
    await world.stop();
  }
}

async function measure(world: FleetWorld, { quick, say }: FleetOptions): Promise<FleetFigures> {
  const [settleMs, windowMs, awayMs] = quick ? [5000, 20_000, 15_000] : [15_000, 60_000, 60_000];
  say('without pods');
  await sleep(settleMs);
  const idle = await quiet(world, windowMs);
  say(`${PODS_PER_NODE} pods on each node`);
  const podStart = await startPods(world);
  await sleep(settleMs);
  const loaded = await quiet(world, windowMs);
  say(`the API server is away for ${awayMs / 1000} s`);
  const outage = await goAway(world, awayMs, quick ? 20_000 : 45_000);
  const { api, nodes } = world;
  return {
    server: api.kind,
    nodes: nodes.length,
    podsPerNode: PODS_PER_NODE,
    objectsPerNode: OBJECTS_PER_NODE,
    idle,
    loaded,
    podStart,
    outage,
  };
}

/** Moments at which the server answered the nodes' requests since `from`. */
async function requestsSince({ api }: FleetWorld, fromMs: number): Promise<number[]> {
  const served = await api.served();
  return served.filter((r) => r.user.startsWith('system:node:') && r.atMs >= fromMs).map((r) => r.atMs);
}

const bytesOf = (nodes: readonly FleetNode[]): number =>
  nodes.reduce((sum, { wire: { traffic } }) => sum + traffic.bytesUp + traffic.bytesDown, 0);
const sumOf = (nodes: readonly FleetNode[], of: (node: FleetNode) => number): number =>
  nodes.reduce((sum, node) => sum + of(node), 0);

async function quiet(world: FleetWorld, windowMs: number): Promise<Quiet> {
  const { nodes } = world;
  const from = Date.now();
  const started = performance.now();
  const bytes = bytesOf(nodes);
  const cpu = sumOf(nodes, ({ kubelet }) => cpuMs(kubelet.pid));
  await sleep(windowMs);
  const ms = performance.now() - started;
  const requests = (await requestsSince(world, from)).length;
  return {
    connections: sumOf(nodes, ({ wire }) => wire.traffic.open) / nodes.length,
    requestsPerSecond: requests / nodes.length / (ms / 1000),
    bytesPerSecond: (bytesOf(nodes) - bytes) / nodes.length / (ms / 1000),
    cpuPercent: ((sumOf(nodes, ({ kubelet }) => cpuMs(kubelet.pid)) - cpu) / nodes.length / ms) * 100,
    residentMb: sumOf(nodes, ({ kubelet }) => residentMb(kubelet.pid)) / nodes.length,
  };
}

/** Pods that use two objects of their own each, all ready in the end. */
async function startPods(world: FleetWorld): Promise<FleetFigures['podStart']> {
  const { client, nodes } = world;
  const names = nodes.flatMap(({ name }) =>
    Array.from({ length: PODS_PER_NODE }, (_, i) => ({ node: name, name: `${name}-${i}` })),
  );
  await inParallel(names, 8, async ({ name }) => {
    await client.create(SECRETS, { namespace: NAMESPACE }, { metadata: { name }, data: { k: 'dg==' } }, signal);
    await client.create(CONFIG_MAPS, { namespace: NAMESPACE }, { metadata: { name }, data: { k: 'v' } }, signal);
  });
  const from = Date.now();
  const bytes = bytesOf(nodes);
  await inParallel(names, 8, async ({ node, name }) => {
    const volumes = [
      { name: 's', secret: { secretName: name } },
      { name: 'c', configMap: { name } },
    ];
    const container = {
      volumeMounts: [
        { name: 's', mountPath: '/s' },
        { name: 'c', mountPath: '/c' },
      ],
    };
    await client.create(
      PODS,
      { namespace: NAMESPACE },
      benchPod(name, { spec: { nodeName: node, volumes }, container }),
      signal,
    );
  });
  for (const { name } of names) await podReady(world, name);
  await sleep(2000); // events follow a moment later
  const count = names.length;
  return { requests: (await requestsSince(world, from)).length / count, bytes: (bytesOf(nodes) - bytes) / count };
}

async function podReady({ client }: FleetWorld, name: string): Promise<void> {
  for (let tries = 0; tries < 2000; tries++) {
    const pod = await client.get(PODS, { namespace: NAMESPACE, name }, signal);
    if (pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true) return;
    await sleep(20);
  }
  throw new Error(`${name} did not become ready`);
}

async function goAway(world: FleetWorld, awayMs: number, afterMs: number): Promise<FleetFigures['outage']> {
  const { client, nodes } = world;
  await Promise.all(nodes.map(({ wire }) => wire.cut()));
  await sleep(awayMs);
  const fresh = nodes.map(({ name }) => ({ node: name, name: `${name}-fresh` }));
  for (const { node, name } of fresh)
    await client.create(PODS, { namespace: NAMESPACE }, benchPod(name, { spec: { nodeName: node } }), signal);
  const from = Date.now();
  await Promise.all(nodes.map(({ wire }) => wire.start()));
  const back = performance.now();
  const took = await Promise.all(
    fresh.map(async ({ name }) => (await podReady(world, name), performance.now() - back)),
  );
  await sleep(Math.max(0, afterMs - (performance.now() - back)));
  const moments = await requestsSince(world, from);
  return {
    seconds: awayMs / 1000,
    peakPerSecond: peakOf(moments),
    requests: moments.length,
    slowestPodMs: Math.max(...took),
  };
}

/** Most moments within any one second. */
export function peakOf(moments: readonly number[]): number {
  const sorted = moments.toSorted((a, b) => a - b);
  let peak = 0;
  let first = 0;
  for (const [last, at] of sorted.entries()) {
    while (at - (sorted[first] ?? at) >= 1000) first++;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}

const LARGE = 5000;

export function fleetReport(figures: FleetFigures): string {
  const { idle, loaded, podStart, outage, nodes, podsPerNode, objectsPerNode, server } = figures;
  const n = (value: number, digits = 1): string => value.toFixed(digits);
  const line = (what: string, of: (quiet: Quiet) => number, digits: number, scale = true): string =>
    `${what.padEnd(28)} ${n(of(idle), digits).padStart(10)} ${n(of(loaded), digits).padStart(14)} ${(scale ? n(of(loaded) * LARGE, 0) : '').padStart(16)}`;
  return [
    `${nodes} kubelets on the ${server} API server; per node, without pods and with ${podsPerNode} pods that use ${objectsPerNode} objects`,
    `${''.padEnd(28)} ${'0 pods'.padStart(10)} ${`${podsPerNode} pods`.padStart(14)} ${`x ${LARGE} nodes`.padStart(16)}`,
    line('connections', (q) => q.connections, 1),
    line('requests a second', (q) => q.requestsPerSecond, 3),
    line('bytes a second', (q) => q.bytesPerSecond, 0),
    line('CPU, % of a core', (q) => q.cpuPercent, 2, false),
    line('resident memory, MB', (q) => q.residentMb, 1, false),
    `a pod start: ${n(podStart.requests)} requests, ${n(podStart.bytes / 1024)} KiB`,
    `after ${outage.seconds} s without the API server: at most ${outage.peakPerSecond} requests in a second (${n(outage.peakPerSecond / nodes)} a node), ${n(outage.requests / nodes)} a node in all; a new pod was ready after ${Math.round(outage.slowestPodMs)} ms on the slowest node`,
  ].join('\n');
}
