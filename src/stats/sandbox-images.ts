// What sandboxes are made from. The runtime tells it only in its detailed answer, so it is asked once per sandbox.
import type { CriRuntime } from '../cri/services.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import { Lru } from '../lib/lru.ts';

const KEPT = 2000;
/** A label is not worth waiting longer for. */
const PATIENCE_MS = 1000;

export class SandboxImages {
  readonly #clock: Clock;
  readonly #runtime: Pick<CriRuntime, 'podSandboxStatus'>;
  readonly #known = new Lru<string, string>(KEPT);

  constructor(clock: Clock, runtime: Pick<CriRuntime, 'podSandboxStatus'>) {
    this.#clock = clock;
    this.#runtime = runtime;
  }

  /** Empty when the runtime does not say. */
  async of(podSandboxId: string, signal: AbortSignal): Promise<string> {
    const known = this.#known.get(podSandboxId);
    if (known !== undefined) return known;
    try {
      const { info } = await withDeadline(this.#clock, signal, PATIENCE_MS, (own) =>
        this.#runtime.podSandboxStatus({ podSandboxId, verbose: true }, own),
      );
      const image = imageIn(info['info'] ?? '');
      this.#known.set(podSandboxId, image);
      return image;
    } catch (err) {
      signal.throwIfAborted();
      if (!isFault(err)) throw err;
      return '';
    }
  }
}

/** A document of the runtime's own making; whatever it is, it must not break a page. */
export function imageIn(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'image' in parsed && typeof parsed.image === 'string')
      return parsed.image;
  } catch {
    // Not JSON: the runtime says nothing we understand.
  }
  return '';
}
