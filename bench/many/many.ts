// Five hundred pods on one node, on the runtime in memory: what the last ones cost against the first, what all of them cost
// while nothing happens, and how the kubelet comes back to them. A machine's containerd would be the limit long before.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFleet, type FleetNode } from '../fleet/fleet-world.ts';
import { names, PodWatch, type Shape } from '../pods.ts';
import type { Row, Unit } from '../rows.ts';
import { cpuMs, interrupted, memoryMb } from '../statistics.ts';
import type { WorldOptions } from '../world.ts';

export type ManyOptions = WorldOptions & { readonly quick: boolean; readonly say: (line: string) => void };

const STEP = 50;
/** Longer than the kubelet waits before it tidies up its memory. */
const SETTLE_MS = 15_000;
const WITHIN_MS = 600_000;
/** Anonymous megabytes that are wanted at most. */
const WANTED_MB: Readonly<Record<number, number>> = { 0: 30, 50: 40, 100: 48, 500: 120 };
/** Of one core, for a pod without probes. */
const PERCENT_PER_POD = 0.02;
/** Pods with an exec and a TCP probe each every five seconds, and what they may take of one core. */
const OFTEN_PROBED = 30;
const OFTEN_PROBED_PERCENT = 2;

/** A pod takes three requests until it is Ready: by default (50 a second) no more than 17 start in a second, at any number. */
const UNLIMITED = ['--kube-api-qps=1000', '--kube-api-burst=2000'];

export async function manyPods(options: ManyOptions): Promise<Row[]> {
  const world = await startFleet(1, { ...options, flags: UNLIMITED });
  const web = createServer((_, answer) => answer.end('ok')).listen(0, '127.0.0.1');
  const watch = new PodWatch(world.client);
  try {
    await once(web, 'listening');
    await watch.start();
    const [node] = world.nodes;
    if (node === undefined) throw new Error('no node was started');
    const { port } = web.address() as AddressInfo;
    return await Promise.race([new Many(node, watch, options).measure(port), interrupted()]);
  } finally {
    web.close();
    await watch.stop();
    await world.stop();
  }
}

/** One exec and one HTTP probe every ten seconds. */
const probedShape = (port: number): Shape => ({
  container: {
    livenessProbe: { exec: { command: ['/bin/true'] }, periodSeconds: 10 },
    readinessProbe: { httpGet: { host: '127.0.0.1', port, path: '/' }, periodSeconds: 10 },
  },
});

/** One exec and one TCP probe every five seconds. */
const oftenProbedShape = (port: number): Shape => ({
  container: {
    livenessProbe: { exec: { command: ['/bin/true'] }, periodSeconds: 5 },
    readinessProbe: { tcpSocket: { host: '127.0.0.1', port }, periodSeconds: 5 },
  },
});

type Burst = { readonly tookMs: number; readonly cpuMs: number };

class Many {
  readonly #node: FleetNode;
  /** Asking for all pods again and again would be the API server's work, on one of two processors. */
  readonly #watch: PodWatch;
  readonly #o: ManyOptions;
  readonly #most: number;
  readonly #windowMs: number;
  readonly #rows: Row[] = [];

  constructor(node: FleetNode, watch: PodWatch, options: ManyOptions) {
    this.#node = node;
    this.#watch = watch;
    this.#o = options;
    this.#most = options.quick ? 100 : 500;
    this.#windowMs = options.quick ? 10_000 : 30_000;
  }

  /** Probes go to `port`, where somebody answers. */
  async measure(port: number): Promise<Row[]> {
    const idle = await this.#quiet(0);
    const bursts: Burst[] = [];
    for (let count = STEP; count <= this.#most; count += STEP) {
      bursts.push(await this.#start(names('plain', count).slice(-STEP)));
      if (count in WANTED_MB || count === this.#most / 2) await this.#quiet(count, idle);
    }
    this.#burstRows(bursts);
    await this.#restart();
    await this.#remove([...names('plain', this.#most), 'after-restart']);
    const often = names('often', OFTEN_PROBED);
    await this.#start(often, oftenProbedShape(port));
    await this.#probed(OFTEN_PROBED, ', an exec and a TCP probe each every 5 s', { atMost: OFTEN_PROBED_PERCENT });
    await this.#remove(often);
    for (const count of [this.#most / 2, this.#most]) {
      await this.#start(names('probed', count).slice(-this.#most / 2), probedShape(port));
      await this.#probed(count, ', an exec and an HTTP probe each every 10 s');
    }
    return this.#rows;
  }

  #row(key: string, what: string, unit: Unit, value: number, more: Partial<Row> = {}): void {
    this.#rows.push({ key: `many.${key}`, what, unit, value, ...more });
    this.#o.say(`${what}: ${value.toFixed(2)} ${unit}`);
  }

  async #start(list: readonly string[], shape: Shape = {}): Promise<Burst> {
    const { name: nodeName, kubelet } = this.#node;
    const [from, cpu] = [performance.now(), cpuMs(kubelet.pid)];
    await Promise.all(list.map((name) => this.#watch.create(name, { ...shape, spec: { nodeName, ...shape.spec } })));
    if (!(await this.#watch.ready(list, WITHIN_MS))) throw new Error('not all pods became ready');
    return { tookMs: performance.now() - from, cpuMs: cpuMs(kubelet.pid) - cpu };
  }

  /** CPU in percent of a core while nothing happens. */
  async #idlePercent(): Promise<number> {
    const { kubelet } = this.#node;
    await sleep(SETTLE_MS);
    const [from, cpu] = [performance.now(), cpuMs(kubelet.pid)];
    await sleep(this.#windowMs);
    return ((cpuMs(kubelet.pid) - cpu) / (performance.now() - from)) * 100;
  }

  async #probed(count: number, probes: string, wanted?: Row['wanted']): Promise<void> {
    const what = `${count} pods${probes}: CPU while nothing happens (of one core)`;
    const percent = await this.#idlePercent();
    this.#row(`probed-${count}.cpu`, what, '%', percent, wanted === undefined ? {} : { wanted });
  }

  /** Memory and, against what it was without pods, CPU. Returns the CPU in percent of a core. */
  async #quiet(count: number, idle?: number): Promise<number> {
    const { kubelet } = this.#node;
    const percent = await this.#idlePercent();
    const what = `${count} pods`;
    const key = String(count);
    const wanted = idle === undefined || count === 0 ? {} : { wanted: { atMost: idle + PERCENT_PER_POD * count } };
    this.#row(`${key}.cpu`, `${what}: CPU while nothing happens (of one core)`, '%', percent, wanted);
    const { resident, anonymous, proportional } = memoryMb(kubelet.pid);
    const most = WANTED_MB[count];
    this.#row(
      `${key}.anonymous`,
      `${what}: anonymous memory`,
      'MB',
      anonymous,
      most === undefined ? {} : { wanted: { atMost: most } },
    );
    this.#row(`${key}.resident`, `${what}: resident memory`, 'MB', resident);
    this.#row(`${key}.proportional`, `${what}: proportional memory`, 'MB', proportional);
    return percent;
  }

  #burstRows(bursts: readonly Burst[]): void {
    const [first, last] = [bursts[0], bursts.at(-1)];
    if (first === undefined || last === undefined) return;
    const rate = ({ tookMs }: Burst): number => (STEP * 1000) / tookMs;
    this.#row('rate', `pods/s of the last ${STEP} of ${this.#most} (floor: the first ${STEP})`, 'pods/s', rate(last), {
      floor: rate(first),
      wanted: { atLeast: 0.9 },
    });
    this.#row(
      'cpu',
      `CPU per pod started of the last ${STEP} of ${this.#most} (floor: the first)`,
      'ms',
      last.cpuMs / STEP,
      {
        floor: first.cpuMs / STEP,
      },
    );
  }

  /** The kubelet goes and comes back; a new pod says when it is of use again. */
  async #restart(): Promise<void> {
    const { kubelet } = this.#node;
    const before = new Set(this.#node.cri.state.containers.keys());
    await kubelet.stop();
    const from = performance.now();
    await kubelet.start();
    await this.#start(['after-restart']);
    const tookMs = performance.now() - from;
    await sleep(SETTLE_MS);
    const left = [...this.#node.cri.state.containers.keys()].filter((id) => before.has(id)).length;
    const note =
      left === before.size ? 'no container touched' : `${before.size - left} of ${before.size} containers went`;
    this.#row('restart', `restart with ${this.#most} pods: exec to a new pod Ready`, 's', tookMs / 1000, {
      wanted: { atMost: 3 },
      note,
    });
    this.#row('restart-cpu', `restart with ${this.#most} pods: CPU until quiet`, 'ms', cpuMs(kubelet.pid));
  }

  async #remove(list: readonly string[]): Promise<void> {
    await Promise.all(list.map((name) => this.#watch.delete(name, 1)));
    if (!(await this.#watch.gone(list, WITHIN_MS))) throw new Error('not all pods are gone');
  }
}
