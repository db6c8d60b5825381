// Random pods that the API server takes, on a whole kubelet with a runtime in memory. It must stay the same process, start
// good pods beside them in their time, and not grow. `HOSTILE_PODS=10000 HOSTILE_SECONDS=600` makes it a soak of ten minutes
// with so many a second, `HOSTILE_AT_A_TIME=250` makes it crowded; `SEED=…` repeats a run.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { it } from 'node:test';
import { startSoakWorld, type SoakWorld } from '../../bench/soak/soak-world.ts';
import { askInsides } from '../../bench/soak/vitals.ts';
import { median } from '../../bench/statistics.ts';
import { PODS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { mutateJson, seeded } from '../fuzz/mutate.ts';
import { goodPod, hostileSpecs, namespace, podOf } from './hostile-specs.ts';
import { timePasses } from '../harness/until.ts';

const COUNT = Number(process.env['HOSTILE_PODS'] ?? 60);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));
const SECONDS = Number(process.env['HOSTILE_SECONDS'] ?? Infinity);
const AT_A_TIME = Number(process.env['HOSTILE_AT_A_TIME'] ?? 20);
/** Gone pods after which memory is held against; what a process needs for its work it has by then. */
const WARM = Math.max(500, COUNT / 10);
/** Good pods that are timed before the others come. */
const ALONE = 5;
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
  const { heapUsed, external } = await askInsides(kubelet.process);
  return heapUsed + external;
}

/** Hostile pods, so many at a time, each followed by another until enough have come. */
class Crowd {
  taken = 0;
  refused = 0;
  gone = 0;
  readonly #world: SoakWorld;
  readonly #specs: readonly object[];
  readonly #from = performance.now();
  #begun = 0;

  constructor(world: SoakWorld, specs: readonly object[]) {
    this.#world = world;
    this.#specs = specs;
  }

  get isOver(): boolean {
    return this.taken >= COUNT || performance.now() > this.#from + SECONDS * 1000 || this.refused > 50 * COUNT;
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
      const name = `hostile-${index}-${tries}`;
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
    if (SECONDS === Infinity) return 0;
    return Math.max(0, this.#from + (index * 0.95 * SECONDS * 1000) / COUNT - performance.now());
  }

  #next(): object {
    let spec: unknown = this.#specs[Math.floor(random() * this.#specs.length)];
    for (let changes = Math.floor(random() * 3); changes > 0; changes--) spec = mutateJson(random, spec);
    return typeof spec === 'object' && spec !== null ? spec : {};
  }
}

it(`${COUNT} hostile pods, SEED=${SEED}`, { timeout: 3_600_000 }, async (t) => {
  const silent = await startSilentServer();
  const command = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
  const world = await startSoakWorld({ runtime: 'fake', command, env: { KUBELET_TS_SOURCE: '1' } });
  try {
    const { pid } = world.kubelet;
    const alone: number[] = [];
    for (let i = 0; i < ALONE; i++) alone.push(await startGood(world, `alone-${i}`));
    const crowd = new Crowd(world, hostileSpecs((silent.address() as AddressInfo).port));
    const begun = performance.now();
    const crowded = crowd.run();
    const beside: number[] = [];
    let first = 0;
    for (let i = 0; !crowd.isOver || i === 0; i++) {
      beside.push(await startGood(world, `beside-${i}`));
      assert.equal(world.kubelet.pid, pid, 'still the same process');
      if (first === 0 && crowd.gone >= WARM) first = await heldBy(world);
    }
    await crowded;
    const seconds = Math.round((performance.now() - begun) / 1000);
    assert.equal(world.kubelet.pid, pid, 'still the same process');
    const after = await startGood(world, 'after');
    const grown = first === 0 ? 0 : (await heldBy(world)) - first;
    const slowest = Math.max(...beside);
    const ms = (n: number): string => `${Math.round(n)} ms`;
    t.diagnostic(
      `${crowd.taken} taken and ${crowd.refused} refused in ${seconds} s, ${AT_A_TIME} at a time; good pods: alone ${ms(median(alone))}, ` +
        `beside them ${ms(median(beside))} (${beside.length}, slowest ${ms(slowest)}), after ${ms(after)}; ` +
        `${Math.round(first / 2 ** 20)} MiB held when warm, ${Math.round(grown / 2 ** 20)} MiB more at the end`,
    );
    assert.ok(crowd.taken >= COUNT || performance.now() - begun >= SECONDS * 1000, `only ${crowd.taken} were taken`);
    assert.ok(slowest < 20_000, 'good pods start beside them');
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
