// Gives inputs of one surface after the other to the agent, a batch at a time, and looks after each batch at what must hold.
// A batch after which something does not hold is given again input by input, so that what is told is one input.
import { AgentWorld, type Runtime } from './agent-world.ts';
import { described, inputOf, type Input } from './inputs.ts';
import { furnish, ordinaryPod } from './pod-inputs.ts';
import { base64, FairTime, SECRET, type Surface } from './surface.ts';

const TURN_MS = 100;
/** Of what only root writes. */
const TRUSTED_TURN_MS = 1000;
const RESIDENT_MB = 300;
const HEALTHZ_MS = 1000;
const LEASE_MS = 40_000;
/** How much longer another pod may take than one that was alone, and a moment. */
const USUAL = { factor: 3, slackMs: 3000 };
/** One that comes when what kept pods waiting is just over: the agent tries again with pauses. */
const RECOVERED = { factor: 3, slackMs: 15_000 };
/** Enough to look at. */
const MOST_FOUND = 10;
const PROGRAMMING = /TypeError|ReferenceError|RangeError|is not a function|Cannot read propert/;
const SECRETS = [SECRET, base64(SECRET), encodeURIComponent(SECRET)];

export type Options = {
  readonly runtime: Runtime;
  readonly seed: number;
  /** Inputs, of all surfaces together. */
  readonly inputs: number;
  /** Processor time of this process and of the agent. */
  readonly cpuSeconds: number;
  /** Of all inputs, those with a large value. */
  readonly largeShare?: number;
  /** Only this one. */
  readonly only?: number;
  readonly surfaces: readonly Surface[];
  /** Told each batch before it is given. */
  readonly trace?: (line: string) => void;
};

export type Outcome = {
  readonly inputs: Readonly<Record<string, number>>;
  readonly found: readonly string[];
  readonly longestTurnMs: number;
  readonly longestDelayMs: number;
  readonly mostMemoryMb: number;
};

type Held = { longestTurnMs: number; longestDelayMs: number; mostMemoryMb: number };

/** One agent, and everything that was seen of it. */
class Watched {
  readonly world: AgentWorld;
  readonly held: Held;
  readonly #leaks: string[] = [];
  #usualMs = { startMs: 0, stopMs: 0 };
  #ordinary = 0;

  constructor(world: AgentWorld, held: Held) {
    this.world = world;
    this.held = held;
    world.onLog = (text) => {
      this.#leak('the log', text);
      const line = PROGRAMMING.exec(text);
      if (line !== null)
        this.#leaks.push(`a mistake came to light: ${text.slice(Math.max(0, line.index - 300), line.index + 300)}`);
    };
  }

  /** Code is compiled, and what usual is, is known. */
  async warm(): Promise<void> {
    furnish(this.world);
    for (let i = 0; i < 5; i++) await this.#ordinaryPod();
    const times = [];
    for (let i = 0; i < 3; i++) times.push(await this.#ordinaryPod());
    this.#usualMs = {
      startMs: Math.max(...times.map(({ startMs }) => startMs)),
      stopMs: Math.max(...times.map(({ stopMs }) => stopMs)),
    };
    await this.world.turns();
    this.world.mostMemory();
    this.world.look();
  }

  #ordinaryPod(): Promise<{ startMs: number; stopMs: number }> {
    return ordinaryPod(this.world, `ordinary-${this.#ordinary++}`);
  }

  async offer(surface: Surface, inputs: readonly Input[]): Promise<string[]> {
    const { world } = this;
    const beside = surface.disturbs === true ? undefined : this.#ordinaryPod();
    const health = this.#health();
    const wrong = [...(await surface.offer(world, inputs))];
    const { startMs, stopMs } = await (beside ?? this.#ordinaryPod());
    wrong.push(...(await health));
    if (!world.runs) return [...wrong, `the agent ended: ${world.log.slice(-1500)}`];
    const { factor, slackMs } = surface.disturbs === true ? RECOVERED : USUAL;
    if (startMs > factor * this.#usualMs.startMs + slackMs)
      wrong.push(`another pod took ${Math.round(startMs)} ms to start`);
    if (stopMs > factor * this.#usualMs.stopMs + slackMs)
      wrong.push(`another pod took ${Math.round(stopMs)} ms to stop`);
    return [...wrong, ...(await this.#look(surface))];
  }

  async #look({ trusted }: Surface): Promise<string[]> {
    const { world, held } = this;
    const wrong: string[] = [];
    const { longestMs, delayMs } = await world.turns();
    const memory = world.mostMemory();
    held.longestTurnMs = Math.max(held.longestTurnMs, longestMs);
    held.longestDelayMs = Math.max(held.longestDelayMs, delayMs);
    held.mostMemoryMb = Math.max(held.mostMemoryMb, memory);
    if (longestMs > (trusted === true ? TRUSTED_TURN_MS : TURN_MS))
      wrong.push(`a turn of the event loop took ${longestMs} ms of processor time`);
    if (memory > RESIDENT_MB) wrong.push(`${memory} MB were resident`);
    const renewed = world.api.renewals.at(-1) ?? 0;
    if (performance.now() - renewed > LEASE_MS) wrong.push('the lease was not renewed');
    world.look();
    for (const event of world.api.events.splice(0)) this.#leak('an event', event);
    this.#leak('a status', world.api.statuses());
    return [...wrong, ...this.#leaks.splice(0)];
  }

  /** Its pages, once in a while: nothing in them that was to be kept. */
  async pages(): Promise<string[]> {
    for (const path of ['/metrics', '/pods', '/stats/summary', '/configz', '/metrics/cadvisor', '/problems'])
      this.#leak(path, (await this.world.page(path)).body);
    return this.#leaks.splice(0);
  }

  async #health(): Promise<string[]> {
    const time = new FairTime(this.world);
    const answer = await this.world.healthz().catch((err: unknown) => ({ status: 0, body: String(err) }));
    const wrong = time.ms > HEALTHZ_MS ? [`/healthz took ${Math.round(time.ms)} ms`] : [];
    return answer.status === 200 ? wrong : [...wrong, `/healthz: ${answer.status} ${answer.body}`];
  }

  #leak(where: string, text: string): void {
    for (const secret of SECRETS) {
      const at = text.indexOf(secret);
      if (at >= 0) this.#leaks.push(`a secret in ${where}: ${text.slice(Math.max(0, at - 200), at + 100)}`);
    }
  }
}

export async function search(options: Options, tell: (line: string) => void): Promise<Outcome> {
  const { runtime, surfaces, seed } = options;
  const held: Held = { longestTurnMs: 0, longestDelayMs: 0, mostMemoryMb: 0 };
  const inputs: Record<string, number> = Object.fromEntries(surfaces.map(({ name }) => [name, 0]));
  const found: string[] = [];
  const fresh = async (): Promise<Watched> => {
    const watched = new Watched(await AgentWorld.start(runtime), held);
    await watched.warm();
    return watched;
  };
  let watched = await fresh();
  const began = process.cpuUsage();
  const cpuSeconds = (): number => {
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1e6 + (watched.world.runs ? watched.world.cpuMs() / 1000 : 0);
  };
  /** One input alone, on an agent of its own where the last did not live. */
  const alone = async (surface: Surface, input: Input): Promise<void> => {
    if (!watched.world.runs) {
      await watched.world.stop();
      watched = await fresh();
    }
    const wrong = await watched.offer(surface, [input]);
    for (const what of wrong) found.push(`${surface.name}, SEED=${seed} ${described(input)}: ${what}`);
  };
  const give = async (surface: Surface, batch: readonly Input[]): Promise<void> => {
    options.trace?.(`${surface.name}: ${batch.map(described).join(', ')} ${JSON.stringify(held)}`);
    inputs[surface.name] = (inputs[surface.name] ?? 0) + batch.reduce((n, { what }) => n + what.length, 0);
    const wrong = await watched.offer(surface, batch);
    if (wrong.length === 0) return;
    const before = found.length;
    for (const input of batch) if (found.length < MOST_FOUND) await alone(surface, input);
    if (found.length === before)
      found.push(
        `${surface.name}, SEED=${seed}, only together: ${batch.map(described).join(', ')}: ${wrong.join('; ')}`,
      );
    for (const line of found.slice(before)) tell(line);
  };
  try {
    for (let next = 0; found.length < MOST_FOUND; next++) {
      const total = Object.values(inputs).reduce((a, b) => a + b, 0);
      if (options.only === undefined && (total >= options.inputs || cpuSeconds() > options.cpuSeconds)) break;
      for (const surface of surfaces) {
        const { schema, batch, most } = surface;
        const numbers = Array.from({ length: batch }, (_, i) => options.only ?? next * batch + i);
        const drawn = [...new Set(numbers)].map((number) => inputOf(schema, seed, number, most, options.largeShare));
        const large = drawn.filter(({ isLarge }) => isLarge);
        const small = drawn.filter(({ isLarge }) => !isLarge);
        if (small.length > 0) await give(surface, small);
        for (const input of large) await give(surface, [input]);
        if (next % 20 === 0) found.push(...(await watched.pages()));
      }
      if (next % 50 === 49) tell(`${JSON.stringify(inputs)}, ${JSON.stringify(held)}`);
      if (options.only !== undefined) break;
    }
    found.push(...(await watched.pages().catch((err: unknown) => [String(err)])));
  } finally {
    await watched.world.stop();
  }
  return { inputs, found, ...held };
}
