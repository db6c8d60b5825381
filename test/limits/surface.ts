// What an engine needs of a surface: something the agent reads that others write.
import type { AgentWorld } from './agent-world.ts';
import type { Input, Schema } from './inputs.ts';

export type Surface = {
  readonly name: string;
  readonly schema: Schema;
  /** Inputs at a time, and values in each at most. */
  readonly batch: number;
  readonly most: number;
  /** Only root can write it, and it is read once. */
  readonly trusted?: true;
  /** While they are there other pods may have to wait. */
  readonly disturbs?: true;
  /** Gives them to the agent, waits until it has dealt with them, takes them back; what was wrong, in words. */
  readonly offer: (world: AgentWorld, inputs: readonly Input[]) => Promise<readonly string[]>;
};

export const SECRET = 'planted-4711';
export const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** No time is stretched more than so. */
const MOST_STRETCHED = 8;

/** Time in which the agent did not wait for a processor, and this process neither waited for one nor computed. */
export class FairTime {
  readonly #world: AgentWorld;
  readonly #wall = performance.now();
  readonly #before: ReturnType<AgentWorld['excusedMs']>;

  constructor(world: AgentWorld) {
    this.#world = world;
    this.#before = world.excusedMs();
  }

  get ms(): number {
    const wall = performance.now() - this.#wall;
    if (!this.#world.runs) return wall;
    const { agent, own } = this.#world.excusedMs();
    const excused = Math.max(agent - this.#before.agent, own - this.#before.own);
    return Math.max(wall / MOST_STRETCHED, wall - excused);
  }
}
