// What sandboxes are made from. The runtime tells it only in its detailed answer, so it is asked once per sandbox.
import type { CriRuntime } from '../cri/services.ts';
import { isFault } from '../lib/errors.ts';
import { Lru } from '../lib/lru.ts';

const KEPT = 2000;

export class SandboxImages {
  readonly #runtime: Pick<CriRuntime, 'podSandboxStatus'>;
  readonly #known = new Lru<string, string>(KEPT);

  constructor(runtime: Pick<CriRuntime, 'podSandboxStatus'>) {
    this.#runtime = runtime;
  }

  /** Empty when the runtime does not say. */
  async of(podSandboxId: string, signal: AbortSignal): Promise<string> {
    const known = this.#known.get(podSandboxId);
    if (known !== undefined) return known;
    try {
      const { info } = await this.#runtime.podSandboxStatus({ podSandboxId, verbose: true }, signal);
      const image = imageIn(info['info'] ?? '');
      this.#known.set(podSandboxId, image);
      return image;
    } catch (err) {
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
