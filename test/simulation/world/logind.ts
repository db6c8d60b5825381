// logind of the simulated machine, and a machine that is shut down in order: it waits for whoever holds an inhibitor, for two
// minutes at most, and then goes down.
import type { Logind } from '../engine/machine.ts';
import type { Owner } from '../engine/scheduler.ts';
import type { World } from './world.ts';

type Listener = { readonly owner: Owner; readonly on: (down: boolean) => void; readonly lost: () => void };

const MAX_DELAY_MS = 120_000;
const SIGNAL_MS = 0.5;
/** What was begun is ended, whether or not the shutdown is called off. */
const AFTERMATH_MS = 180_000;

export class SimLogind implements Logind {
  readonly #world: World;
  readonly #inhibitors = new Set<object>();
  readonly #listeners = new Set<Listener>();
  #isPreparing = false;
  #lastMs = -Infinity;
  /** Of the shutdown under way. */
  #number = 0;
  isReachable = true;
  /** Told when a shutdown is announced, and when the machine goes down. */
  onAnnounced: () => void = () => undefined;
  onDown: () => void = () => undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** Pods are being ended, or were a moment ago. */
  get isEnding(): boolean {
    return this.#isPreparing || this.#world.scheduler.monotonic() - this.#lastMs < AFTERMATH_MS;
  }

  get isPreparing(): boolean {
    return this.#isPreparing;
  }

  get isHeldUp(): boolean {
    return this.#inhibitors.size > 0;
  }

  property(name: string): bigint | boolean {
    return name === 'InhibitDelayMaxUSec' ? BigInt(MAX_DELAY_MS) * 1000n : this.#isPreparing;
  }

  inhibit(): () => void {
    const held = {};
    this.#inhibitors.add(held);
    return () => {
      if (this.#inhibitors.delete(held)) this.#released();
    };
  }

  listen(on: (down: boolean) => void, lost: () => void): () => void {
    const listener = { owner: this.#world.scheduler.owner, on, lost };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The agent's process ended: its files are closed. */
  agentEnded(): void {
    this.#listeners.clear();
    if (this.#inhibitors.size === 0) return;
    this.#inhibitors.clear();
    this.#released();
  }

  /** The bus is restarted: connections break, inhibitors stay. */
  restart(): void {
    const { scheduler } = this.#world;
    for (const { lost, owner } of this.#listeners) scheduler.after(SIGNAL_MS, lost, owner);
    this.#listeners.clear();
  }

  /** Shuts the machine down and starts it again some time later, unless that is called off before. */
  shutDown(offMs: number, calledOffAfterMs?: number): void {
    const { scheduler, faults, isUp } = this.#world;
    if (!isUp || this.#isPreparing) return;
    const number = ++this.#number;
    const later = (ms: number, fn: () => void): void =>
      void scheduler.after(ms, () => number === this.#number && this.#isPreparing && fn(), scheduler.world);
    this.onAnnounced();
    faults.disturb();
    this.#tell(true);
    this.#goDown = () => {
      this.#goDown = () => undefined;
      this.onDown();
      this.#end();
      this.#world.goDown(offMs);
    };
    later(MAX_DELAY_MS, () => this.#goDown());
    if (!this.isHeldUp) this.#released();
    if (calledOffAfterMs !== undefined)
      later(calledOffAfterMs, () => {
        this.#end();
        faults.disturb();
        this.#tell(false);
      });
  }

  #goDown: () => void = () => undefined;

  /** The machine has no power any more. */
  forget(): void {
    this.#end();
    this.agentEnded();
  }

  #end(): void {
    this.#isPreparing = false;
    this.#goDown = () => undefined;
    this.#lastMs = this.#world.scheduler.monotonic();
  }

  #released(): void {
    const { scheduler } = this.#world;
    const number = this.#number;
    const look = (): void => {
      if (number === this.#number && this.#isPreparing && !this.isHeldUp) this.#goDown();
    };
    if (this.#isPreparing) scheduler.after(SIGNAL_MS, look, scheduler.world);
  }

  #tell(down: boolean): void {
    const { scheduler } = this.#world;
    this.#isPreparing = down;
    this.#world.trace(`logind: shutdown ${down ? 'announced' : 'called off'}`);
    for (const listener of this.#listeners)
      scheduler.after(SIGNAL_MS, () => this.#listeners.has(listener) && listener.on(down), listener.owner);
  }
}
