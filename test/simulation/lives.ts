// The life of each pod in a run, as text and as a picture: when its containers ran, what was done to it, and what was broken
// at that time.
import { ContainerEventType } from '../../src/cri/gen/cri.ts';
import { picture } from './lives-picture.ts';
import type { Action } from './workload/actions.ts';
import type { World } from './world/world.ts';

export type Bar = {
  readonly pod: string;
  readonly container: string;
  readonly fromMs: number;
  toMs: number;
  exitCode: number;
};
export type Mark = { readonly atMs: number; readonly pod: string; readonly text: string };
export type Band = { readonly fromMs: number; readonly toMs: number; readonly text: string };

const LABEL = 'io.kubernetes';

export class Lives {
  readonly bars: Bar[] = [];
  readonly marks: Mark[] = [];
  readonly bands: Band[] = [];
  #endMs = 0;

  constructor(world: World, actions: readonly Action[]) {
    const { state } = world.runtime;
    const open = new Map<string, Bar>();
    const send = state.onEvent;
    state.onEvent = (event) => {
      send(event);
      const now = world.scheduler.monotonic();
      const container = state.containers.get(event.containerId);
      if (container === undefined) return;
      if (event.containerEventType === ContainerEventType.CONTAINER_STARTED_EVENT) {
        const { labels } = container.config;
        const names = { pod: labels[`${LABEL}.pod.name`] ?? '', container: labels[`${LABEL}.container.name`] ?? '' };
        const bar = { ...names, fromMs: now, toMs: Infinity, exitCode: 0 };
        open.set(container.id, bar);
        this.bars.push(bar);
      }
      const bar = open.get(container.id);
      if (event.containerEventType !== ContainerEventType.CONTAINER_STOPPED_EVENT || bar === undefined) return;
      Object.assign(bar, { toMs: now, exitCode: container.exitCode });
      open.delete(container.id);
    };
    for (const { atMs, do: what, name, forMs } of actions) {
      if (name !== undefined) this.marks.push({ atMs, pod: String(name), text: what });
      else this.bands.push({ fromMs: atMs, toMs: atMs + Number(forMs ?? 0), text: what });
    }
  }

  end(atMs: number): void {
    this.#endMs = atMs;
    for (const bar of this.bars) bar.toMs = Math.min(bar.toMs, atMs);
  }

  text(): string {
    const lines: { atMs: number; text: string }[] = [
      ...this.marks.map(({ atMs, pod, text }) => ({ atMs, text: `${pod}: ${text}` })),
      ...this.bands.map(({ fromMs, toMs, text }) => ({
        atMs: fromMs,
        text: `== ${text}${toMs > fromMs ? ` for ${seconds(toMs - fromMs)}` : ''}`,
      })),
      ...this.bars.flatMap(({ pod, container, fromMs, toMs, exitCode }) => [
        { atMs: fromMs, text: `${pod}: ${container} starts` },
        ...(toMs < this.#endMs ? [{ atMs: toMs, text: `${pod}: ${container} ends with ${exitCode}` }] : []),
      ]),
    ];
    return lines
      .filter(({ atMs }) => atMs <= this.#endMs)
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ atMs, text }) => `${seconds(atMs).padStart(12)}  ${text}`)
      .join('\n');
  }

  svg(): string {
    return picture(this, this.#endMs);
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
