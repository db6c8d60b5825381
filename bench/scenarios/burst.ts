// Many pods at once against the same number by bare calls, four at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { LIFE_MS, names } from '../pods.ts';
import type { Row } from '../rows.ts';
import { cpuMs, median, percentile } from '../statistics.ts';
import type { World } from '../world.ts';
import type { Scenario, ScenarioOptions } from './scenario.ts';

const AT_A_TIME = 4;

/** Wanted as shares of the floor's time for the whole burst, taken from the Go kubelet's table. */
type Wanted = {
  readonly rate: number;
  readonly p50: number;
  readonly p99?: number;
  readonly goRate: number;
  readonly goP50: number;
};

const burst = (count: number, wanted: Wanted | undefined): Scenario => ({
  name: `burst-${count}`,
  asks: `${count} pods at once: pods per second, p50, p99`,
  run: (world, options) => run(world, options, count, wanted),
});

async function run(world: World, { say }: ScenarioOptions, count: number, wanted: Wanted | undefined): Promise<Row[]> {
  const { floor, pods, kubelet } = world;
  const bare = await floor.burst(count, AT_A_TIME);
  const list = names(`burst${count}`, count);
  const cpuBefore = cpuMs(kubelet.pid);
  const from = performance.now();
  await Promise.all(list.map((name) => pods.create(name)));
  const all = await pods.ready(list, 300_000);
  const tookMs = performance.now() - from;
  const cpu = (cpuMs(kubelet.pid) - cpuBefore) / count;
  const starts = list.map((name) => pods.startMs(name)).filter((ms) => !Number.isNaN(ms));
  await sleep(LIFE_MS);
  const stopFrom = performance.now();
  await pods.remove(list);
  const stopMs = performance.now() - stopFrom;
  say(
    `${count} pods in ${Math.round(tookMs)} ms (floor ${Math.round(bare.startMs)}), gone in ${Math.round(stopMs)} ms (floor ${Math.round(bare.stopMs)})`,
  );
  const rate = (starts.length * 1000) / tookMs;
  const floorRate = (count * 1000) / bare.startMs;
  const missing = all ? {} : { note: `only ${starts.length} of ${count} became Ready` };
  const row = (
    key: string,
    what: string,
    value: number,
    unit: Row['unit'],
    against: number,
    more: Partial<Row> = {},
  ): Row => ({
    key: `burst-${count}.${key}`,
    what: `burst of ${count}: ${what}`,
    value,
    unit,
    floor: against,
    ...more,
    ...missing,
  });
  const seconds = (ms: number): number => ms / 1000;
  return [
    row(
      'rate',
      'pods/s',
      rate,
      'pods/s',
      floorRate,
      wanted === undefined ? {} : { wanted: { atLeast: wanted.rate }, go: wanted.goRate },
    ),
    row(
      'p50',
      "created to Ready p50 (of the floor's whole burst)",
      seconds(median(starts)),
      's',
      seconds(bare.startMs),
      wanted === undefined ? {} : { wanted: { atMost: wanted.p50 }, go: wanted.goP50 },
    ),
    row(
      'p99',
      "created to Ready p99 (of the floor's whole burst)",
      seconds(percentile(starts, 0.99)),
      's',
      seconds(bare.startMs),
      wanted?.p99 === undefined ? {} : { wanted: { atMost: wanted.p99 } },
    ),
    row('gone', 'all deleted to all gone', seconds(stopMs), 's', seconds(bare.stopMs)),
    {
      key: `burst-${count}.cpu`,
      what: `burst of ${count}: CPU of the kubelet per pod started`,
      value: cpu,
      unit: 'ms',
      wanted: { atMost: 38 },
      go: 57,
    },
  ];
}

export const bursts: readonly Scenario[] = [
  burst(20, undefined),
  burst(50, { rate: 0.9, p50: 0.61, p99: 1.22, goRate: 0.64, goP50: 1.49 }),
  burst(100, { rate: 0.9, p50: 0.55, goRate: 0.61, goP50: 1.56 }),
];
