// Calls to a driver on the simulated machine: one at a time for each thing it works on, as slow as was said, without an answer
// when the driver ends before.
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { World } from './world.ts';

const USUAL_MS = 20;

/** What a call is about. */
export type About = { readonly key: string };

export type Call<Verb, Subject extends About> = Subject & {
  readonly verb: Verb;
  /** Its caller is still there. */
  readonly isWaitedFor: () => boolean;
};

export class DriverCalls<Verb extends string = string, Subject extends About = About> {
  readonly #world: World;
  readonly #underWay = new Set<Call<Verb, Subject>>();
  readonly #busy = new Set<string>();
  readonly #slow = new Set<() => void>();
  /** Another one for each process that answers. */
  #life = 0;
  /** Runs before a call has any effect; a throw is its answer. */
  before: () => void = () => undefined;
  /** Runs when it had its effect. */
  after: () => void = () => undefined;
  slownessMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Calls under way for one thing, those whose callers still wait. */
  waitedFor(key: string): readonly Call<Verb, Subject>[] {
    return [...this.#underWay].filter((call) => call.key === key && call.isWaitedFor());
  }

  of(verb: Verb, subject: Subject, gone: AbortSignal): Call<Verb, Subject> {
    const { agent } = this.#world;
    const { starts } = agent;
    // Nobody tells of an agent that was killed.
    return { ...subject, verb, isWaitedFor: () => !gone.aborted && agent.starts === starts && agent.isRunning };
  }

  /** All of them in one; `act` has the effect. */
  async carryOut<T>(calls: readonly Call<Verb, Subject>[], act: () => T): Promise<T> {
    for (const call of calls) this.#underWay.add(call);
    try {
      await this.#takeTime(calls);
      const answer = act();
      this.after();
      return answer;
    } finally {
      for (const call of calls) this.#underWay.delete(call);
    }
  }

  async #takeTime(calls: readonly About[]): Promise<void> {
    const { scheduler } = this.#world;
    const life = this.#life;
    const busy = calls.find(({ key }) => this.#busy.has(key));
    if (busy !== undefined) throw new GrpcError(GrpcCode.Aborted, `a call for ${busy.key} is under way`);
    this.before();
    for (const { key } of calls) this.#busy.add(key);
    await this.#pass((this.slownessMs > 0 ? this.slownessMs : USUAL_MS) * scheduler.latency.next());
    if (life !== this.#life) throw new GrpcError(GrpcCode.Unavailable, 'the driver has ended');
    for (const { key } of calls) this.#busy.delete(key);
  }

  #pass(ms: number): Promise<void> {
    const { scheduler } = this.#world;
    return new Promise((resolve) => {
      const end = (): void => {
        this.#slow.delete(end);
        resolve();
      };
      this.#slow.add(end);
      scheduler.after(ms, end, scheduler.world);
    });
  }

  hurry(): void {
    const { scheduler } = this.#world;
    for (const end of this.#slow) scheduler.after(1000 * scheduler.latency.next(), end, scheduler.world);
    this.#slow.clear();
  }

  /** The process that worked on them has ended: none of them has an effect any more. */
  end(): void {
    this.#life++;
    this.#busy.clear();
  }

  /** So have those who called. */
  forget(): void {
    this.end();
    this.#underWay.clear();
  }
}
