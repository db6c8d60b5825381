// Two builds in turn, on the runtime in memory: processor time per pod started and stopped, fifty at once. Both run side by
// side against one API server, so that whatever the machine does happens to both; the order changes with every round.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFleet, type FleetNode, type FleetWorld } from '../fleet/fleet-world.ts';
import { names, PodWatch } from '../pods.ts';
import { interrupted, median } from '../statistics.ts';
import type { WorldOptions } from '../world.ts';

export type TurnsOptions = WorldOptions & {
  /** The folder of a bundle to compare with. */
  readonly against?: string;
  readonly pods: number;
  readonly rounds: number;
  readonly say: (line: string) => void;
};

/** Milliseconds of processor time per pod. */
type Round = { readonly start: number; readonly stop: number };
export type Build = { readonly name: string; readonly rounds: readonly Round[] };

/** Events of type Normal wait this long in a crowd; what belongs to a burst should be counted with it. */
const SETTLE_MS = 6000;
const TICK_MS = 10;

export async function takeTurns(options: TurnsOptions): Promise<Build[]> {
  const { against } = options;
  const each = [{}, ...(against === undefined ? [] : [{ env: { KUBELET_TS_DIST: against } }])];
  const world = await startFleet(each.length, { ...options, each });
  try {
    return await Promise.race([measure(world, options), interrupted()]);
  } finally {
    await world.stop();
  }
}

async function measure(world: FleetWorld, { pods, rounds: count, say }: TurnsOptions): Promise<Build[]> {
  const builds = world.nodes.map((node, i) => ({ name: i === 0 ? 'this' : 'other', node, rounds: [] as Round[] }));
  const watch = new PodWatch(world.client);
  await watch.start();
  await sleep(SETTLE_MS);
  for (let n = 0; n < count; n++) {
    for (const { name, node, rounds: taken } of n % 2 === 0 ? builds : builds.toReversed()) {
      const round = await burst(watch, node, names(`${name}-${n}`, pods));
      taken.push(round);
      say(`${name.padEnd(6)} ${round.start.toFixed(1)} ms a start, ${round.stop.toFixed(1)} ms a stop`);
    }
  }
  await watch.stop();
  return builds.map(({ name, rounds }) => ({ name, rounds }));
}

async function burst(watch: PodWatch, { name: nodeName, kubelet }: FleetNode, list: readonly string[]): Promise<Round> {
  const beforeStart = processMs(kubelet.pid);
  await Promise.all(list.map((name) => watch.create(name, { spec: { nodeName } })));
  if (!(await watch.ready(list))) throw new Error('not all pods became ready');
  await sleep(SETTLE_MS);
  const beforeStop = processMs(kubelet.pid);
  await watch.remove(list);
  await sleep(SETTLE_MS);
  const end = processMs(kubelet.pid);
  return { start: (beforeStop - beforeStart) / list.length, stop: (end - beforeStop) / list.length };
}

/** Processor time of the process, threads that ended included; in ticks, which are a fifth of a millisecond of fifty pods. */
function processMs(pid: number): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const [user, system] = fields.split(' ').slice(11);
  return (Number(user) + Number(system)) * TICK_MS;
}

export function turnsReport(builds: readonly Build[]): string {
  const line = (what: string, of: (round: Round) => number): string => {
    const cells = builds.map(({ rounds }) => {
      const sample = rounds.map(of);
      const first = sample[0] ?? Number.NaN;
      return `${first.toFixed(1)}, then ${median(sample.slice(1)).toFixed(1)} ms`.padStart(22);
    });
    return `${what.padEnd(16)}${cells.join('')}`;
  };
  return [
    `${'CPU per pod'.padEnd(16)}${builds.map(({ name }) => name.padStart(22)).join('')}`,
    line('start', ({ start }) => start),
    line('stop', ({ stop }) => stop),
  ].join('\n');
}
