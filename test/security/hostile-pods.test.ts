// Random pods that the API server takes, on a whole kubelet with a runtime in memory. It must stay the same process, start
// good pods beside them in their time, and not grow. `HOSTILE_PODS=10000 HOSTILE_SECONDS=600` makes it a soak of ten minutes
// with so many a second, `HOSTILE_AT_A_TIME=250` makes it crowded; `SEED=…` repeats a run. Pods that come and go cost the
// kubelet processor time whoever they are, so in a soak as many ordinary pods a second come in between for a while: how long a
// good pod takes beside hostile ones is held against how long it takes beside those, on the same machine in the same minutes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { it } from 'node:test';
import { startSoakWorld, type SoakWorld } from '../../bench/soak/soak-world.ts';
import { askMemory } from '../../bench/soak/vitals.ts';
import { cpuMs, median, percentile, residentMb } from '../../bench/statistics.ts';
import { PODS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { mutateJson, seeded } from '../fuzz/mutate.ts';
import { goodPod, hostileSpecs, namespace, ordinarySpecs, podOf } from './hostile-specs.ts';
import { timePasses } from '../harness/until.ts';

const COUNT = Number(process.env['HOSTILE_PODS'] ?? 60);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
const SECONDS = Number(process.env['HOSTILE_SECONDS'] ?? Infinity);
const AT_A_TIME = Number(process.env['HOSTILE_AT_A_TIME'] ?? 20);
/** Gone pods after which memory is held against; what a process needs for its work it has by then. */
const WARM = Math.max(500, COUNT / 10);
/** Good pods that are timed before the others come. */
const ALONE = SECONDS === Infinity ? 5 : 30;
/** How often the processes are looked at; what is held is asked for a few times only, since everything is collected for it. */
const LOOK_MS = 10_000;
const HELD_LOOKS = 8;
/** A soak goes to and fro between ordinary and hostile pods so often; the former have a tenth of its time beside the latter's. */
const SLICES = 5;
const ORDINARY_SHARE = 0.1;
/** How much longer a good pod may take beside hostile ones than beside ordinary ones, at the median. */
const MORE = 2;
/** Hostile pods live up to so long before they are deleted. */
const LIFE_MS = 2000;
const WITHIN_MS = 120_000;
const never = new AbortController().signal;
const random = seeded(SEED);

/** False when the API server does not take it. */
async function offer(world: SoakWorld, pod: object): Promise<boolean> {
  try {
    await world.client.create(PODS, { namespace }, pod, never);
    return true;
  } catch (err) {
    if (isFault(err, 'invalid', 'denied', 'internal', 'exists', 'conflict')) return false;
    throw err;
  }
}

async function remove(world: SoakWorld, name: string): Promise<void> {
  const options = random() < 0.3 ? { gracePeriodSeconds: 0 } : {};
  await world.client.delete(PODS, { namespace, name }, options, never).catch((err: unknown) => {
    if (!isFault(err, 'notFound')) throw err;
  });
  assert.ok(await world.pods.gone([name], WITHIN_MS), `${name} goes`);
  world.pods.forget(name);
}

/** How long a good pod takes until it is Ready. */
async function startGood(world: SoakWorld, name: string): Promise<number> {
  const begun = performance.now();
  assert.ok(await offer(world, goodPod(name)));
  assert.ok(await world.pods.ready([name], WITHIN_MS), `${name} becomes ready`);
  const took = performance.now() - begun;
  await remove(world, name);
  return took;
}

/** Takes connections on the loopback interface and never answers. */
async function startSilentServer(): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.unref();
}

/** What the kubelet holds on to once everything else was collected. */
async function heldBy({ kubelet }: SoakWorld): Promise<number> {
  const { heapUsed, external } = await askMemory(kubelet.process);
  return heapUsed + external;
}

type CrowdOptions = {
  readonly name: string;
  readonly specs: readonly object[];
  /** Whether a spec is changed at random. */
  readonly mutate: boolean;
  readonly count: number;
  readonly seconds: number;
};

/** Pods, so many at a time, each followed by another until enough have come. */
class Crowd {
  taken = 0;
  refused = 0;
  gone = 0;
  readonly #world: SoakWorld;
  readonly #o: CrowdOptions;
  readonly #from = performance.now();
  #begun = 0;

  constructor(world: SoakWorld, options: CrowdOptions) {
    this.#world = world;
    this.#o = options;
  }

  get isOver(): boolean {
    const { count, seconds } = this.#o;
    return this.taken >= count || performance.now() > this.#from + seconds * 1000 || this.refused > 50 * count;
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: AT_A_TIME }, () => this.#line()));
  }

  async #line(): Promise<void> {
    while (!this.isOver) {
      const index = this.#begun++;
      await timePasses(this.#early(index), 'another instant');
      const name = await this.#create(index);
      if (name === undefined) return;
      await timePasses(random() * LIFE_MS, 'another instant');
      await remove(this.#world, name);
      this.gone++;
    }
  }

  /** The name of a pod that the API server took; undefined when it is over before one was. */
  async #create(index: number): Promise<string | undefined> {
    for (let tries = 0; !this.isOver; tries++) {
      const name = `${this.#o.name}-${index}-${tries}`;
      if (await offer(this.#world, podOf(name, this.#next()))) {
        this.taken++;
        return name;
      }
      this.refused++;
    }
    return undefined;
  }

  /** How long it is until a pod's time, where they are to be spread over a time. */
  #early(index: number): number {
    const { count, seconds } = this.#o;
    if (seconds === Infinity) return 0;
    return Math.max(0, this.#from + (index * 0.95 * seconds * 1000) / count - performance.now());
  }

  #next(): object {
    const { specs, mutate } = this.#o;
    let spec: unknown = specs[Math.floor(random() * specs.length)];
    for (let changes = mutate ? Math.floor(random() * 3) : 0; changes > 0; changes--) spec = mutateJson(random, spec);
    return typeof spec === 'object' && spec !== null ? spec : {};
  }
}

/** What the kubelet and those around it use, from time to time. */
class Curve {
  readonly rows: string[] = [];
  readonly held: number[] = [];
  readonly #world: SoakWorld;
  readonly #begun = performance.now();
  #atMs = performance.now();
  #cpu: readonly number[];

  constructor(world: SoakWorld) {
    this.#world = world;
    this.#cpu = this.cpuNow();
  }

  /** A row when one is due. */
  async look({ name, taken, gone, times }: Beside): Promise<void> {
    const now = performance.now();
    if (this.held.length === 0 ? gone >= WARM : this.held.length < (HELD_LOOKS * (now - this.#begun)) / 1000 / SECONDS)
      this.held.push(await heldBy(this.#world));
    const overMs = now - this.#atMs;
    if (overMs < LOOK_MS) return;
    const cpu = this.cpuNow();
    const [kubelet, api, test] = cpu.map((ms, at) => Math.round(((ms - (this.#cpu[at] ?? 0)) / overMs) * 100));
    this.#cpu = cpu;
    this.#atMs = now;
    const held = this.held.at(-1);
    this.rows.push(
      `${Math.round((now - this.#begun) / 1000)} s, ${name}: ${taken} taken, good pods ${spread(times.slice(-50))}; ` +
        `CPU of the kubelet ${kubelet} %, API server ${api} %, runtime and test ${test} %; ` +
        `resident ${Math.round(residentMb(this.#world.kubelet.pid))} MB${held === undefined ? '' : `, held ${mib(held)}`}`,
    );
  }

  cpuNow(): readonly number[] {
    return [this.#world.kubelet.pid, this.#world.apiPid, process.pid].map(cpuMs);
  }
}

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
const spread = (times: readonly number[]): string =>
  [median(times), percentile(times, 0.99)].map((ms) => Math.round(ms)).join('/') + ' ms (p50/p99)';

/** Good pods one after the other while crowds of one kind come and go: how long each took. */
class Beside {
  taken = 0;
  refused = 0;
  gone = 0;
  readonly times: number[] = [];
  readonly name: string;
  readonly #world: SoakWorld;
  readonly #curve: Curve;
  #cpu = 0;

  constructor(world: SoakWorld, curve: Curve, name: string) {
    this.#world = world;
    this.#curve = curve;
    this.name = name;
  }

  async run(options: Omit<CrowdOptions, 'name'>): Promise<void> {
    const { pid } = this.#world.kubelet;
    const [before = 0] = this.#curve.cpuNow();
    const [taken, refused, gone] = [this.taken, this.refused, this.gone];
    const crowd = new Crowd(this.#world, { ...options, name: `${this.name}-${this.times.length}` });
    const crowded = crowd.run();
    do {
      this.times.push(await startGood(this.#world, `beside-${this.name}-${this.times.length}`));
      assert.equal(this.#world.kubelet.pid, pid, 'still the same process');
      [this.taken, this.refused, this.gone] = [taken + crowd.taken, refused + crowd.refused, gone + crowd.gone];
      await this.#curve.look(this);
    } while (!crowd.isOver);
    await crowded;
    assert.equal(this.#world.kubelet.pid, pid, 'still the same process');
    [this.taken, this.refused, this.gone] = [taken + crowd.taken, refused + crowd.refused, gone + crowd.gone];
    this.#cpu += (this.#curve.cpuNow()[0] ?? 0) - before;
  }

  get slowestMs(): number {
    return Math.max(...this.times);
  }

  toString(): string {
    const { times, taken } = this;
    if (times.length === 0) return 'not tried';
    const each = Math.round(this.#cpu / (taken + times.length));
    return `${spread(times)} (${times.length}, slowest ${Math.round(this.slowestMs)} ms; ${each} ms of CPU a pod)`;
  }
}

it(`${COUNT} hostile pods, SEED=${SEED}`, { timeout: 3_600_000 }, async (t) => {
  const silent = await startSilentServer();
  const command = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
  const world = await startSoakWorld({ runtime: 'fake', command, env: { KUBELET_TS_SOURCE: '1' } });
  try {
    const alone: number[] = [];
    for (let i = 0; i < ALONE; i++) alone.push(await startGood(world, `alone-${i}`));
    const curve = new Curve(world);
    const [usual, beside] = [new Beside(world, curve, 'ordinary'), new Beside(world, curve, 'hostile')];
    const specs = hostileSpecs((silent.address() as AddressInfo).port);
    const slices = SECONDS === Infinity ? 1 : SLICES;
    const begun = performance.now();
    for (let i = 0; i < slices; i++) {
      const [count, seconds] = [COUNT / slices, SECONDS / slices];
      const some = { count: count * ORDINARY_SHARE, seconds: seconds * ORDINARY_SHARE };
      if (SECONDS !== Infinity) await usual.run({ specs: ordinarySpecs(), mutate: false, ...some });
      await beside.run({ specs, mutate: true, count, seconds });
    }
    const tookMs = performance.now() - begun;
    const after = await startGood(world, 'after');
    const [first] = curve.held;
    const grown = first === undefined ? 0 : (await heldBy(world)) - first;
    for (const row of curve.rows) t.diagnostic(row);
    t.diagnostic(
      `${beside.taken} taken and ${beside.refused} refused in ${Math.round(tookMs / 1000)} s, ${AT_A_TIME} at a time; ` +
        `good pods: alone ${spread(alone)}, beside as many ordinary ones ${usual}, beside hostile ones ${beside}, ` +
        `after ${Math.round(after)} ms; ${mib(first ?? 0)} held when warm, ${mib(grown)} more at the end`,
    );
    assert.ok(beside.taken >= COUNT || tookMs >= SECONDS * 1000, `only ${beside.taken} were taken`);
    if (usual.times.length > 0)
      assert.ok(
        median(beside.times) <= MORE * median(usual.times),
        'hostile pods hold up good ones as ordinary pods do',
      );
    assert.ok(grown < 64 * 1024 * 1024, 'no memory stays');
    const log = readFileSync(join(world.dir, 'kubelet.log'), 'utf8');
    assert.doesNotMatch(
      log,
      /TypeError|ReferenceError|is not a function|Cannot read propert/,
      'no programming error came to light',
    );
  } finally {
    silent.close();
    await world.stop();
  }
});
