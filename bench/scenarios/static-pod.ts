// A manifest in the static pod folder: written to running, removed to stopped.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ContainerEventType, type ContainerEventResponse } from '../../src/cri/gen/cri.ts';
import { benchPod, LIFE_MS, NODE_NAME } from '../pods.ts';
import { median } from '../statistics.ts';
import type { World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const WITHIN_MS = 20_000;

export const staticPod: Scenario = {
  name: 'static',
  asks: 'static pod: manifest written to started, removed to stopped',
  async run(world, { quick, say }) {
    const stop = new AbortController();
    const events = new EventTimes();
    const stream = world.containerd.runtime
      .containerEvents((event) => events.saw(event), stop.signal)
      .catch(() => undefined);
    const seen = { start: [] as number[], stop: [] as number[], floorStart: [] as number[], floorStop: [] as number[] };
    try {
      for (let round = 0; round < (quick ? 3 : 10); round++) {
        const bare = await world.floor.start();
        seen.floorStart.push(bare.ms);
        await sleep(LIFE_MS);
        seen.floorStop.push(await world.floor.stop(bare.pod));
        await world.floor.remove(bare.pod);
        const { startMs, stopMs } = await oneLife(world, events, `static-${round}`);
        seen.start.push(startMs);
        seen.stop.push(stopMs);
      }
    } finally {
      stop.abort();
      await stream;
    }
    say(`start ${seen.start.map(Math.round).join(' ')}; stop ${seen.stop.map(Math.round).join(' ')}`);
    return [
      {
        key: 'static.started.p50',
        what: 'static pod: manifest written to container started, p50',
        value: median(seen.start),
        unit: 'ms',
        floor: median(seen.floorStart),
      },
      {
        key: 'static.stopped.p50',
        what: 'static pod: manifest removed to sandbox stopped, p50',
        value: median(seen.stop),
        unit: 'ms',
        floor: median(seen.floorStop),
      },
    ];
  },
};

async function oneLife(
  { dir, manifests }: World,
  events: EventTimes,
  name: string,
): Promise<{ startMs: number; stopMs: number }> {
  const manifest = join(manifests, `${name}.json`);
  const draft = join(dir, `${name}.json`);
  writeFileSync(draft, JSON.stringify(benchPod(name, { spec: { automountServiceAccountToken: false } })));
  const from = performance.now();
  renameSync(draft, manifest);
  const started = await events.next(name, ContainerEventType.CONTAINER_STARTED_EVENT, 2);
  await sleep(LIFE_MS);
  const removedAt = performance.now();
  rmSync(manifest);
  const stopped = await events.next(name, ContainerEventType.CONTAINER_STOPPED_EVENT, 2);
  return { startMs: started - from, stopMs: stopped - removedAt };
}

/** When the runtime said that something of a pod started or stopped: its sandbox and its container, two in all. */
class EventTimes {
  readonly #times = new Map<string, number[]>();
  #wake: () => void = () => undefined;

  saw({ containerEventType, podSandboxStatus }: ContainerEventResponse): void {
    this.#of(`${podSandboxStatus?.metadata?.name ?? ''}/${containerEventType}`).push(performance.now());
    this.#wake();
  }

  /** The moment of the `count`-th event of this kind; NaN when it does not come. */
  async next(pod: string, type: ContainerEventType, count: number): Promise<number> {
    const times = this.#of(`${pod}-${NODE_NAME}/${type}`);
    const end = performance.now() + WITHIN_MS;
    while (times.length < count && performance.now() < end)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    return times[count - 1] ?? Number.NaN;
  }

  #of(key: string): number[] {
    let times = this.#times.get(key);
    if (times === undefined) this.#times.set(key, (times = []));
    return times;
  }
}
