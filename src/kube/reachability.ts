// When to try the API server, and who is told that it is back: the rules of all connections of one node, without any I/O.
import type { Clock } from '../lib/clock.ts';
import { isUnreachable } from './api-error.ts';
import { DialGate } from './dial-gate.ts';
import { Recovery } from './recovery.ts';

/** `heartbeat` requests share no connection with others. */
export type Lane = 'main' | 'heartbeat';

/** A node whose heartbeats stop for 40 s loses its pods. */
const MAX_SILENT_MS: Readonly<Record<Lane, number>> = { main: 30_000, heartbeat: 5000 };

export class Reachability {
  readonly recovery: Recovery;
  readonly #gates: Readonly<Record<Lane, DialGate>>;

  constructor(clock: Clock) {
    this.recovery = new Recovery(clock);
    const gate = (lane: Lane): DialGate => new DialGate(clock, { maxSilentMs: MAX_SILENT_MS[lane] });
    this.#gates = { main: gate('main'), heartbeat: gate('heartbeat') };
  }

  /** Opens a connection unless it is too early for that; then fails as the last attempt did. */
  async connect<T>(lane: Lane, open: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const gate = this.#gates[lane];
    gate.check();
    try {
      const opened = await open();
      gate.open();
      return opened;
    } catch (err) {
      throw signal.aborted ? err : gate.failed(err);
    }
  }

  /** A request was answered on some lane, so all may connect. A server that pleads for less is not back. */
  answered(status: number, what: 'request' | 'watch'): void {
    if (status >= 500 || status === 429) return;
    for (const gate of Object.values(this.#gates)) gate.open();
    this.recovery.answered(what);
  }

  failed(failure: unknown): void {
    if (isUnreachable(failure)) this.recovery.failed();
  }
}
