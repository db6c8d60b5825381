// Many lives of pods, and a look into the kubelet whenever another share of them is over and everything is quiet.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuMs, residentMb } from '../statistics.ts';
import { live, makeObjects } from './lives.ts';
import type { SoakWorld } from './soak-world.ts';
import { askInsides, leftovers, least, openFiles, type Vitals } from './vitals.ts';

export type SoakOptions = {
  readonly pods: number;
  /** Looks after the one that the others are held against. */
  readonly looks: number;
  /** Lives before that one. */
  readonly warmUp: number;
  readonly atATime: number;
  /** A real process needs a moment until it listens to signals. */
  readonly minLifeMs: number;
  /** Tidy up in the runtime before a look instead of waiting for the kubelet to do it. */
  readonly tidy: boolean;
  /** How much more memory than at the first look is still flat. */
  readonly moreMemory: number;
  readonly say: (line: string) => void;
};

export type Soaked = {
  /** One look after the warm-up, which the later ones are held against. */
  readonly vitals: readonly Vitals[];
  /** What became more; empty is what is wanted. */
  readonly leftovers: readonly string[];
  /** Resident memory while pods came and went. */
  readonly resident: readonly Resident[];
  readonly seconds: number;
};
export type Resident = { readonly seconds: number; readonly pods: number; readonly mb: number };

const QUIET_WITHIN_MS = 90_000;
/** Longer than answers, events and connections that are just being closed take. */
const SETTLE_MS = 2500;
const LOOKS = 3;

export async function soak(world: SoakWorld, options: SoakOptions): Promise<Soaked> {
  const { pods, warmUp, looks, say } = options;
  await makeObjects(world.client);
  const from = performance.now();
  const vitals: Vitals[] = [];
  const resident: Resident[] = [];
  let done = 0;
  for (let look = 0; look <= looks; look++) {
    const upTo = Math.round(warmUp + ((pods - warmUp) * look) / looks);
    const cpuBefore = cpuMs(world.kubelet.pid);
    await someLives(world, done, upTo, options, (over) => {
      const seconds = (performance.now() - from) / 1000;
      if (seconds - (resident.at(-1)?.seconds ?? 0) >= 1)
        resident.push({ seconds, pods: over, mb: residentMb(world.kubelet.pid) });
    });
    const cpuMsPerPod = (cpuMs(world.kubelet.pid) - cpuBefore) / (upTo - done);
    done = upTo;
    await quiet(world, options.tidy);
    const at = { pods: done, seconds: (performance.now() - from) / 1000, cpuMsPerPod };
    const seen = await vitalsOf(world, at);
    vitals.push(seen);
    say(line(seen));
  }
  const [first, ...later] = vitals;
  return {
    vitals,
    leftovers: first === undefined ? [] : later.flatMap((look) => leftovers(first, look, options.moreMemory)),
    resident,
    seconds: (performance.now() - from) / 1000,
  };
}

async function someLives(
  { pods }: SoakWorld,
  from: number,
  to: number,
  { atATime, minLifeMs }: SoakOptions,
  onOver: (count: number) => void,
): Promise<void> {
  let next = from;
  await Promise.all(
    Array.from({ length: atATime }, async () => {
      while (next < to) {
        await live(pods, next++, minLifeMs);
        onOver(next);
      }
    }),
  );
}

/** Nothing is left in the runtime, and what the last lives began is over. */
async function quiet(world: SoakWorld, tidy: boolean): Promise<void> {
  const end = performance.now() + QUIET_WITHIN_MS;
  for (let left = await world.leftInRuntime(); left > 0; left = await world.leftInRuntime()) {
    if (tidy) await world.tidyRuntime();
    if (performance.now() > end) throw new Error(`${left} sandboxes and containers are left in the runtime`);
    await sleep(200);
  }
  await sleep(SETTLE_MS);
}

type At = Pick<Vitals, 'pods' | 'seconds' | 'cpuMsPerPod'>;

async function vitalsOf({ kubelet }: SoakWorld, at: At): Promise<Vitals> {
  const looks: Vitals[] = [];
  for (let i = 0; i < LOOKS; i++) {
    const insides = await askInsides(kubelet.process);
    looks.push({ ...insides, ...at, files: openFiles(kubelet.pid) });
    await sleep(300);
  }
  return least(looks);
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
const counts = (of: Readonly<Record<string, number>>): string =>
  Object.entries(of)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ');

const line = ({ pods, seconds, cpuMsPerPod, rss, heapUsed, code, resources, objects, files }: Vitals): string =>
  `${String(pods).padStart(6)} pods, ${seconds.toFixed(0)} s, ${cpuMsPerPod.toFixed(1)} ms of CPU each: ${mb(rss)} MB resident, ${mb(heapUsed)} MB heap, ${mb(code)} of it code; ${counts(resources)}; ${counts(files)}; ${counts(objects)}`;
