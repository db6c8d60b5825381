// The last hour of the node in small series. Takes a sample when the kubelet measures the node anyway (eviction does,
// every ten seconds); reads nothing by itself.
import type { Clock } from '../lib/clock.ts';
import type { NodeFigures } from '../stats/summary-types.ts';
import type { HistoryView, SeriesName } from './model.ts';
import { diskView } from './node-use.ts';

const SAMPLE_MS = 10_000;
const SAMPLES = 360;
const NAMES: readonly SeriesName[] = [
  'cpu',
  'memory',
  'disk',
  'psiCpu',
  'psiMemory',
  'psiIo',
  'agentCpu',
  'agentMemory',
  'agentBusy',
  'runtimeMs',
  'apiMs',
  'pods',
];

export type Sample = Partial<Readonly<Record<SeriesName, number | undefined>>>;
type Seen = { readonly cpuMicros: number; readonly atMs: number; readonly idle: number; readonly active: number };

export class NodeHistory {
  readonly #clock: Clock;
  readonly #samples: { readonly slot: number; readonly sample: Sample }[] = [];
  readonly #others: (() => Sample)[] = [];
  #agent: { readonly cpuCores?: number; readonly busy?: number } = {};
  #before: Seen | undefined;
  #last: NodeFigures | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What goes into each sample beside the node's figures. */
  with(others: () => Sample): void {
    this.#others.push(others);
  }

  /** The node was measured. Measurements within one slot of time replace each other. */
  observe(figures: NodeFigures): void {
    this.#last = figures;
    this.#observeAgent();
    const slot = this.#slot();
    const sample: Sample = Object.assign({}, sampleOf(figures), this.#agentSample(), ...this.#others.map((of) => of()));
    if (this.#samples.at(-1)?.slot === slot) this.#samples.pop();
    this.#samples.push({ slot, sample });
    while ((this.#samples[0]?.slot ?? slot) <= slot - SAMPLES) this.#samples.shift();
  }

  /** The agent's own use since the sample before. */
  agent(): { readonly cpuCores?: number; readonly busy?: number } {
    return this.#agent;
  }

  /** The disk that images are on, as measured last. */
  imageFs(): { readonly usedBytes: number; readonly capacityBytes: number } | undefined {
    const found = diskView('images', this.#last?.runtime?.imageFs ?? this.#last?.fs);
    return found === undefined ? undefined : { usedBytes: found.usedBytes, capacityBytes: found.capacityBytes };
  }

  view(): HistoryView {
    const end = this.#slot();
    const first = Math.max(end - SAMPLES + 1, this.#samples[0]?.slot ?? end);
    const bySlot = new Map(this.#samples.map((s) => [s.slot, s.sample]));
    const series = {} as Record<SeriesName, (number | null)[]>;
    for (const name of NAMES) {
      const values: (number | null)[] = [];
      for (let slot = first; slot <= end; slot++) values.push(rounded(bySlot.get(slot)?.[name]));
      series[name] = values;
    }
    return { endMs: end * SAMPLE_MS, everyMs: SAMPLE_MS, series };
  }

  #slot(): number {
    return Math.floor(this.#clock.now() / SAMPLE_MS);
  }

  #observeAgent(): void {
    const { user, system } = process.cpuUsage();
    const { idle, active } = performance.eventLoopUtilization();
    const now: Seen = { cpuMicros: user + system, atMs: this.#clock.monotonic(), idle, active };
    const before = this.#before;
    if (before !== undefined && now.atMs - before.atMs < 1000) return;
    this.#before = now;
    if (before === undefined) return;
    const loop = now.idle - before.idle + (now.active - before.active);
    this.#agent = {
      cpuCores: (now.cpuMicros - before.cpuMicros) / 1000 / (now.atMs - before.atMs),
      ...(loop > 0 ? { busy: (now.active - before.active) / loop } : {}),
    };
  }

  #agentSample(): Sample {
    return { agentCpu: this.#agent.cpuCores, agentBusy: this.#agent.busy, agentMemory: process.memoryUsage.rss() };
  }
}

const sampleOf = ({ cpu, memory, io, fs }: NodeFigures): Sample => ({
  cpu: cpu?.usageNanoCores === undefined ? undefined : cpu.usageNanoCores / 1e9,
  memory: memory?.workingSetBytes,
  disk: diskView('node', fs)?.usedBytes,
  psiCpu: cpu?.psi?.some.avg10,
  psiMemory: memory?.psi?.some.avg10,
  psiIo: io?.psi?.some.avg10,
});

/** Four digits are enough for a line of a hundred pixels. */
const rounded = (value: number | undefined): number | null =>
  value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(4));
