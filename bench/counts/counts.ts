// What a pod's start and stop cost in calls, allocations and context switches, on the runtime in memory: figures that are the
// same on every machine, where times are not.
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PODS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { startFleet, type FleetNode, type FleetWorld } from '../fleet/fleet-world.ts';
import { benchPod, NAMESPACE } from '../pods.ts';
import { interrupted, median, percentile } from '../statistics.ts';
import type { WorldOptions } from '../world.ts';

const { signal } = new AbortController();

/** Medians per pod. */
export type Counts = {
  readonly criCalls: number;
  readonly apiRequests: number;
  readonly allocatedKb: number;
  readonly contextSwitches: number;
  /** CRI calls by name. */
  readonly calls: Readonly<Record<string, number>>;
};
export type Counted = { readonly start: Counts; readonly stop: Counts };

export type CountsOptions = WorldOptions & { readonly pods: number };

const PROBE = `--import=${join(import.meta.dirname, 'allocations-probe.ts')}`;
/** Cold code allocates more: these come and go first. */
const WARM_UP = 10;
const WITHIN_MS = 60_000;
/** Allocations grow with the time a pod takes: of those, what the quickest tenth needed. */
const LEAST = 0.1;
/** What is asked whether pods come or go. */
const BACKGROUND: ReadonlySet<string> = new Set(['Status', 'ImageFsInfo', 'ListImages', 'Version', 'RuntimeConfig']);

export async function countPods(options: CountsOptions): Promise<Counted> {
  const nodeOptions = [...(options.nodeOptions ?? []), PROBE];
  const world = await startFleet(1, { ...options, nodeOptions, channel: true, recordCalls: true });
  try {
    return await Promise.race([count(world, options.pods), interrupted()]);
  } finally {
    await world.stop();
  }
}

async function count(world: FleetWorld, pods: number): Promise<Counted> {
  const [node] = world.nodes;
  if (node === undefined) throw new Error('no node was started');
  const names = (prefix: string, n: number): string[] => Array.from({ length: n }, (_, i) => `${prefix}-${i}`);
  for (const name of names('warm', WARM_UP)) await startPod(world, node, name);
  for (const name of names('warm', WARM_UP)) await stopPod(world, node, name);
  const counted = names('counted', pods);
  return {
    start: await each(world, node, counted, (name) => startPod(world, node, name)),
    stop: await each(world, node, counted, (name) => stopPod(world, node, name)),
  };
}

export async function startPod(
  { client }: FleetWorld,
  { name: nodeName, cri }: FleetNode,
  name: string,
): Promise<void> {
  const pod = benchPod(name, { spec: { nodeName } });
  await client.create(PODS, { namespace: NAMESPACE }, pod, signal);
  await until(`${name} is ready`, async () => {
    const seen = await client.get(PODS, { namespace: NAMESPACE, name }, signal);
    return seen.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
  });
  if (cri.calls.length === 0) throw new Error('no call was recorded');
}

/** Until the API server and the runtime have nothing of it any more but a sandbox that is no longer ready. */
export async function stopPod({ client }: FleetWorld, { cri }: FleetNode, name: string): Promise<void> {
  await client.delete(PODS, { namespace: NAMESPACE, name }, {}, signal);
  await until(`${name} is gone`, async () => {
    try {
      await client.get(PODS, { namespace: NAMESPACE, name }, signal);
      return false;
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
      return ![...cri.state.containers.values()].some((c) => c.config.labels?.['io.kubernetes.pod.name'] === name);
    }
  });
}

/** Of the pods one after the other, the median: now and then a relist comes in between, or the machine is busy. */
async function each(
  world: FleetWorld,
  node: FleetNode,
  names: readonly string[],
  work: (name: string) => Promise<void>,
): Promise<Counts> {
  const samples: (Omit<Figures, 'calls'> & { readonly calls: readonly string[] })[] = [];
  let before = await figures(world, node);
  for (const name of names) {
    await work(name);
    const after = await figures(world, node);
    const calls = node.cri.calls.slice(before.calls, after.calls).map(({ verb }) => verb);
    samples.push({
      calls: calls.filter((verb) => !BACKGROUND.has(verb)),
      requests: after.requests - before.requests,
      allocated: after.allocated - before.allocated,
      switches: after.switches - before.switches,
    });
    before = after;
  }
  const verbs = new Set(samples.flatMap(({ calls }) => calls));
  const times = (verb: string): number => median(samples.map(({ calls }) => calls.filter((v) => v === verb).length));
  const calls = [...verbs].map((verb) => [verb, times(verb)] as const).filter(([, n]) => n > 0);
  return {
    criCalls: median(samples.map((s) => s.calls.length)),
    apiRequests: median(samples.map((s) => s.requests)),
    allocatedKb: Math.round(
      percentile(
        samples.map((s) => s.allocated),
        LEAST,
      ) / 1000,
    ),
    contextSwitches: median(samples.map((s) => s.switches)),
    calls: Object.fromEntries(calls),
  };
}

type Figures = {
  readonly calls: number;
  readonly requests: number;
  readonly allocated: number;
  readonly switches: number;
};

async function figures({ api }: FleetWorld, { kubelet, cri }: FleetNode): Promise<Figures> {
  const served = await api.served();
  return {
    calls: cri.calls.length,
    requests: served.filter((r) => r.user.startsWith('system:node:') && !isHeartbeat(r.url)).length,
    allocated: await allocatedBytes(kubelet.process),
    switches: contextSwitches(kubelet.pid),
  };
}

const isHeartbeat = (url: string): boolean => /\/(leases|nodes)\//.test(url);

const allocatedBytes = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once('message', (answer) => resolve((answer as { bytes: number }).bytes));
    child.send('allocated');
  });

/** Of all threads of a process: those it waited for and those forced on it. */
function contextSwitches(pid: number): number {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
    for (const [, n] of status.matchAll(/ctxt_switches:\s+(\d+)/g)) sum += Number(n);
  }
  return sum;
}

const LOOK_EVERY_MS = 20;

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + WITHIN_MS;
  while (!(await done())) {
    if (performance.now() > end) throw new Error(`not within ${WITHIN_MS / 1000} s: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}
