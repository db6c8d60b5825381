// Calls to the runtime and the API server: those not answered yet, and how long the last ones took. Told by the clients.
import type { Clock } from '../lib/clock.ts';
import type { CallView, LatencyView } from './model.ts';

type Peer = CallView['to'];
type Open = { readonly to: Peer; readonly call: string; readonly sinceMs: number };
type Intercept = <T>(verb: string, call: () => Promise<T>) => Promise<T>;

/** Of each peer. */
const KEEP = 256;
/** Calls that are long by nature say nothing about how fast the runtime is. */
const LONG = new Set(['pullImage', 'stopContainer', 'stopPodSandbox', 'execSync', 'runPodSandbox']);
/** Never answered while all is well. */
const STREAMS = new Set(['getContainerEvents', 'containerEvents']);

class LastCalls {
  readonly #ms = new Float64Array(KEEP);
  readonly #failed = new Uint8Array(KEEP);
  #at = 0;

  add(ms: number, failed: boolean): void {
    this.#ms[this.#at % KEEP] = ms;
    this.#failed[this.#at % KEEP] = failed ? 1 : 0;
    this.#at++;
  }

  view(inFlight: number): LatencyView {
    const sorted = this.#ms.slice(0, Math.min(this.#at, KEEP)).sort();
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return {
      calls: sorted.length,
      failed: this.#failed.reduce((sum, one) => sum + one, 0),
      inFlight,
      ...(sorted.length === 0 ? {} : { p50Ms: at(0.5), p99Ms: at(0.99) }),
    };
  }
}

export class CallLog {
  readonly #clock: Clock;
  readonly #open = new Set<Open>();
  readonly #last: Readonly<Record<Peer, LastCalls>> = { runtime: new LastCalls(), api: new LastCalls() };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call begins; what is returned is to be called when it ends. */
  begin(to: Peer, call: string): (ok: boolean) => void {
    const open: Open = { to, call, sinceMs: this.#clock.now() };
    const from = this.#clock.monotonic();
    if (!STREAMS.has(call)) this.#open.add(open);
    return (ok) => {
      if (this.#open.delete(open) && !LONG.has(call)) this.#last[to].add(this.#clock.monotonic() - from, !ok);
    };
  }

  /** For the runtime's connection. */
  readonly intercept: Intercept = async (verb, call) => {
    const end = this.begin('runtime', verb);
    try {
      const answer = await call();
      end(true);
      return answer;
    } catch (err) {
      end(false);
      throw err;
    }
  };

  /** Longest first. */
  inFlight(): readonly CallView[] {
    return [...this.#open].sort((a, b) => a.sinceMs - b.sinceMs);
  }

  latency(to: Peer): LatencyView {
    let count = 0;
    for (const open of this.#open) if (open.to === to) count++;
    return this.#last[to].view(count);
  }
}
