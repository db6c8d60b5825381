// Many pods at once against the same number by bare calls, four at a time. Floor and kubelet take turns, because what a
// disk and a kernel have been through shows in both: only rounds side by side can be compared.
import { setTimeout as sleep } from 'node:timers/promises';
import { LIFE_MS, names } from '../pods.ts';
import type { Row } from '../rows.ts';
import type { FloorBurst } from '../floor.ts';
import { busyMs, cpuMs, median, percentile } from '../statistics.ts';
import { removeSandboxes, type World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const AT_A_TIME = 4;
/** Until the kubelet has taken note of what was removed. */
const SETTLE_MS = 1000;

/** Wanted as shares of the floor's time for the whole burst, taken from the Go kubelet's table. */
type Wanted = {
  readonly rate: number;
  readonly p50: number;
  readonly p99?: number;
  readonly goRate: number;
  readonly goP50: number;
};

/** One round: the floor's burst, then ours. */
type Round = {
  readonly bare: FloorBurst;
  readonly starts: readonly number[];
  readonly tookMs: number;
  readonly stopMs: number;
  readonly busyMs: number;
  readonly kubeletMs: number;
  readonly kubeletStopMs: number;
};

const burst = (count: number, rounds: number, wanted: Wanted | undefined): Scenario => ({
  name: `burst-${count}`,
  asks: `${count} pods at once: pods per second, p50, p99${rounds > 1 ? ` (the middle one of ${rounds} rounds)` : ''}`,
  run: async (world, { say, quick }) => {
    const all: Round[] = [];
    for (let n = 0; n < (quick ? 1 : rounds); n++) {
      const round = await play(world, names(`burst${count}-${n}`, count));
      const { bare, tookMs, stopMs } = round;
      say(
        `${count} pods in ${Math.round(tookMs)} ms (floor ${Math.round(bare.startMs)}), gone in ${Math.round(stopMs)} ms (floor ${Math.round(bare.stopMs)})`,
      );
      all.push(round);
    }
    const paces = all.map(({ bare, tookMs }) => tookMs / bare.startMs);
    const middle = all[paces.indexOf(median(paces))];
    return middle === undefined ? [] : rowsOf(middle, count, wanted);
  },
});

async function play(world: World, list: readonly string[]): Promise<Round> {
  const { floor, pods, kubelet } = world;
  await removeSandboxes(world);
  await sleep(SETTLE_MS);
  const bare = await floor.burst(list.length, AT_A_TIME);
  const [kubeletBefore, busyBefore] = [cpuMs(kubelet.pid), busyMs()];
  const from = performance.now();
  await Promise.all(list.map((name) => pods.create(name)));
  await pods.ready(list, 300_000);
  const tookMs = performance.now() - from;
  const measured = { tookMs, kubeletMs: cpuMs(kubelet.pid) - kubeletBefore, busyMs: busyMs() - busyBefore };
  const starts = list.map((name) => pods.startMs(name)).filter((ms) => !Number.isNaN(ms));
  await sleep(LIFE_MS);
  const [stopFrom, kubeletThen] = [performance.now(), cpuMs(kubelet.pid)];
  await pods.remove(list);
  const stopMs = performance.now() - stopFrom;
  return { bare, starts, ...measured, stopMs, kubeletStopMs: cpuMs(kubelet.pid) - kubeletThen };
}

function rowsOf(round: Round, count: number, wanted: Wanted | undefined): Row[] {
  const { bare, starts, tookMs, stopMs } = round;
  const missing = starts.length === count ? {} : { note: `only ${starts.length} of ${count} became Ready` };
  const row = (key: string, what: string, unit: Row['unit'], value: number, more: Partial<Row>): Row => ({
    key: `burst-${count}.${key}`,
    what: `burst of ${count}: ${what}`,
    value,
    unit,
    ...more,
    ...missing,
  });
  const whole = { floor: bare.startMs / 1000 };
  const atMost = (ratio: number | undefined): Partial<Row> =>
    ratio === undefined ? {} : { wanted: { atMost: ratio } };
  return [
    row('rate', 'pods/s', 'pods/s', (starts.length * 1000) / tookMs, {
      floor: (count * 1000) / bare.startMs,
      ...(wanted === undefined ? {} : { wanted: { atLeast: wanted.rate }, go: wanted.goRate }),
    }),
    row('p50', "created to Ready p50 (of the floor's whole burst)", 's', median(starts) / 1000, {
      ...whole,
      ...atMost(wanted?.p50),
      ...(wanted === undefined ? {} : { go: wanted.goP50 }),
    }),
    row('p99', "created to Ready p99 (of the floor's whole burst)", 's', percentile(starts, 0.99) / 1000, {
      ...whole,
      ...atMost(wanted?.p99),
    }),
    row('gone', 'all deleted to all gone', 's', stopMs / 1000, { floor: bare.stopMs / 1000 }),
    row('cpu', 'CPU of the kubelet per pod started', 'ms', round.kubeletMs / count, { ...atMost(38), go: 57 }),
    row('cpu.stop', 'CPU of the kubelet per pod stopped', 'ms', round.kubeletStopMs / count, {}),
    row('machine', 'CPU of the whole machine per pod started', 'ms', round.busyMs / count, {
      floor: bare.startBusyMs / count,
    }),
  ];
}

export const bursts: readonly Scenario[] = [
  burst(20, 1, undefined),
  burst(50, 3, { rate: 0.9, p50: 0.61, p99: 1.22, goRate: 0.64, goP50: 1.49 }),
  burst(100, 3, { rate: 0.9, p50: 0.55, goRate: 0.61, goP50: 1.56 }),
];
