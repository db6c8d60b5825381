// The life of each pod in a run, as text and as a picture: when its containers ran, what was done to it, and what was broken
// at that time.
import { ContainerEventType } from '../../src/cri/gen/cri.ts';
import type { Action } from './workload/actions.ts';
import type { World } from './world/world.ts';

type Bar = {
  readonly pod: string;
  readonly container: string;
  readonly fromMs: number;
  toMs: number;
  exitCode: number;
};
type Mark = { readonly atMs: number; readonly pod: string; readonly text: string };
type Band = { readonly fromMs: number; readonly toMs: number; readonly text: string };

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
    const pods = [...new Set([...this.bars.map((b) => b.pod), ...this.marks.map((m) => m.pod)])].sort();
    const width = 1600;
    const left = 120;
    const x = (ms: number): string =>
      (left + ((width - left - 10) * Math.min(ms, this.#endMs)) / this.#endMs).toFixed(1);
    const row = (pod: string): number => 30 + 12 * pods.indexOf(pod);
    const height = 40 + 12 * pods.length;
    const seen = <T extends { readonly fromMs: number }>(items: readonly T[]): T[] =>
      items.filter(({ fromMs }) => fromMs <= this.#endMs);
    const span = (fromMs: number, toMs: number): string =>
      Math.max(1.5, Number(x(toMs)) - Number(x(fromMs))).toFixed(1);
    const parts = [
      ...seen(this.bands).map(
        (b) =>
          `<rect x="${x(b.fromMs)}" y="18" width="${span(b.fromMs, b.toMs)}" height="${height - 28}" fill="#d62" opacity=".25"><title>${b.text}, ${seconds(b.fromMs)}</title></rect>`,
      ),
      ...pods.map((pod) => `<text x="4" y="${row(pod) + 9}">${pod}</text>`),
      ...seen(this.bars).map(
        (b) =>
          `<rect x="${x(b.fromMs)}" y="${row(b.pod) + 1}" width="${span(b.fromMs, b.toMs)}" height="9" fill="${b.exitCode === 0 ? '#3a7' : '#b34'}"><title>${b.pod}/${b.container}: ${seconds(b.fromMs)} to ${seconds(b.toMs)}, exit code ${b.exitCode}</title></rect>`,
      ),
      ...this.marks
        .filter(({ atMs }) => atMs <= this.#endMs)
        .map(
          (m) =>
            `<line x1="${x(m.atMs)}" x2="${x(m.atMs)}" y1="${row(m.pod)}" y2="${row(m.pod) + 11}" stroke="#225"><title>${m.text}, ${seconds(m.atMs)}</title></line>`,
        ),
    ];
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="9">
<rect width="100%" height="100%" fill="#fff"/><text x="${left}" y="12">0 to ${seconds(this.#endMs)}: containers (green: ended well or run, red: ended otherwise), actions, faults</text>
${parts.join('\n')}
</svg>
`;
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
