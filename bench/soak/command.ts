// `npm run bench -- soak`: a day of pods in minutes. Says whether anything is left of them, draws the memory.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIFE_MS } from '../pods.ts';
import { interrupted } from '../statistics.ts';
import { drawLines } from '../svg.ts';
import { soak, type Soaked } from './soak.ts';
import { startSoakWorld, type Runtime } from './soak-world.ts';
import type { Vitals } from './vitals.ts';

export type SoakCommand = {
  readonly runtime: Runtime;
  readonly pods: number;
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
  readonly nodeOptions: readonly string[];
  readonly machine: object;
  readonly say: (line: string) => void;
};

const FOLDER = join(import.meta.dirname, '..');
const BINS = 100;

/** What the first tenth needs at least: until then what is kept of past pods on purpose is still filling up. */
const MIN_WARM_UP = 250;

export async function soakCommand(options: SoakCommand): Promise<Soaked> {
  const { runtime, pods, command, env, nodeOptions, machine, say } = options;
  const isFake = runtime === 'fake';
  const world = await startSoakWorld({ runtime, command, env, nodeOptions });
  try {
    const running = soak(world, {
      pods,
      warmUp: Math.min(pods / 2, Math.max(pods / 10, MIN_WARM_UP)),
      looks: 3,
      atATime: isFake ? 16 : 8,
      minLifeMs: isFake ? 0 : LIFE_MS,
      tidy: false,
      moreMemory: 1.05,
      say,
    });
    const soaked = await Promise.race([running, interrupted()]);
    const [first, ...later] = soaked.vitals;
    const line = {
      at: new Date().toISOString(),
      runtime,
      pods,
      machine,
      seconds: Math.round(soaked.seconds),
      first,
      last: later.at(-1),
      leftovers: soaked.leftovers,
    };
    appendFileSync(join(FOLDER, 'soak.jsonl'), `${JSON.stringify(line)}\n`);
    writeFileSync(join(FOLDER, `soak-${runtime}.svg`), drawing(runtime, pods, soaked));
    return soaked;
  } finally {
    await world.stop();
  }
}

/** Memory over the lives of pods: as it was in between, and at the looks, with everything collected. */
function drawing(runtime: Runtime, pods: number, { resident, vitals, seconds }: Soaked): string {
  const bin = (n: number): number => Math.min(BINS - 1, Math.floor((n / pods) * BINS));
  const empty = (): (number | undefined)[] => Array.from({ length: BINS }, () => undefined);
  const [busy, quiet, heap] = [empty(), empty(), empty()];
  for (const { pods: at, mb } of resident) busy[bin(at)] = mb;
  for (const look of vitals) {
    quiet[bin(look.pods)] = look.rss / 1e6;
    heap[bin(look.pods)] = look.heapUsed / 1e6;
  }
  const title = `${pods} pods come and go (${runtime}), ${Math.round(seconds)} s: memory of the kubelet in MB`;
  return drawLines(title, [
    { name: 'resident, busy', values: busy },
    { name: 'resident, quiet', values: quiet },
    { name: 'heap, quiet', values: heap },
  ]);
}

export const soakReport = (runtime: Runtime, pods: number, { vitals, leftovers, seconds }: Soaked): string => {
  const [first, last] = [vitals[0], vitals.at(-1)];
  if (first === undefined || last === undefined) return 'nothing was looked at';
  const ratio = (of: (look: Vitals) => number): string =>
    `${(of(last) / of(first)).toFixed(3)} x (${(of(first) / 1e6).toFixed(1)} to ${(of(last) / 1e6).toFixed(1)} MB)`;
  return [
    `${pods} pods on ${runtime === 'fake' ? 'the runtime in memory' : 'containerd'} in ${Math.round(seconds)} s; CPU per life ${first.cpuMsPerPod.toFixed(1)} ms at first, ${last.cpuMsPerPod.toFixed(1)} ms at the end`,
    `resident memory, ${first.pods} to ${last.pods} pods: ${ratio(({ rss }) => rss)}`,
    `heap, ${first.pods} to ${last.pods} pods: ${ratio(({ heapUsed }) => heapUsed)}`,
    `  without compiled code: ${ratio(({ heapUsed, code }) => heapUsed - code)}, code: ${ratio(({ code }) => code)}`,
    ...(leftovers.length === 0 ? ['nothing left over'] : leftovers.map((what) => `LEFT OVER ${what}`)),
  ].join('\n');
};
