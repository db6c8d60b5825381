// Pods from a URL, polled. A failed poll changes nothing; an empty answer means no pods.
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Pod } from '../core/pod.ts';
import type { Decoder } from './decoder.ts';
import { MAX_MANIFEST_BYTES } from './file-entries.ts';
import type { FoundProblem } from './problem.ts';
import { readManifest } from './read-manifest.ts';

export type HttpSourceDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly decoder: Decoder;
  readonly emit: (pods: readonly Pod[]) => void;
  readonly report: (problems: readonly FoundProblem[]) => void;
  readonly fetch?: typeof globalThis.fetch;
};
export type HttpSourceOptions = {
  readonly url: string;
  /** `staticPodURLHeader`. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly nodeName: string;
  readonly pollMs: number;
};

const TIMEOUT_MS = 10_000;

export class HttpSource implements Runnable {
  readonly name = 'http-source';
  readonly #deps: HttpSourceDeps;
  readonly #opts: HttpSourceOptions;
  /** The answer in effect, and what was questionable about it. */
  #last: { readonly text: string; readonly problems: readonly FoundProblem[] } | undefined;

  constructor(deps: HttpSourceDeps, opts: HttpSourceOptions) {
    this.#deps = deps;
    this.#opts = opts;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(clock, log, { name: this.name, everyMs: this.#opts.pollMs }, (s) => this.#poll(s), signal);
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const where = this.#opts.url;
    let text: string;
    try {
      text = await withDeadline(this.#deps.clock, signal, TIMEOUT_MS, (s) => this.#get(s));
    } catch (err) {
      if (signal.aborted) return;
      return this.#deps.report([{ where, severity: 'error', message: messageOf(err) }]);
    }
    // What went wrong in between is over.
    if (text === this.#last?.text) return this.#deps.report(this.#last.problems);
    if (text.trim() === '') {
      return this.#accept(text, [], [{ where, severity: 'error', message: 'zero-length data received' }]);
    }
    const options = { nodeName: this.#opts.nodeName, localObjects: false, lists: true };
    const contents = await readManifest(text, { where, local: false }, options, this.#deps.decoder, signal);
    // One bad pod spoils the whole answer, as the rest could be half of something; the last good set stays.
    if (contents.problems.some((p) => p.severity === 'error')) return this.#deps.report(contents.problems);
    this.#accept(text, contents.pods, contents.problems);
  }

  #accept(text: string, pods: readonly Pod[], problems: readonly FoundProblem[]): void {
    this.#last = { text, problems };
    this.#deps.report(problems);
    this.#deps.emit(pods);
  }

  async #get(signal: AbortSignal): Promise<string> {
    const headers = new Headers();
    for (const [name, values] of Object.entries(this.#opts.headers))
      for (const value of values) headers.append(name, value);
    const response = await (this.#deps.fetch ?? fetch)(this.#opts.url, { headers, signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new KubeletError('unavailable', `answered ${response.status} ${response.statusText}`.trim());
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.byteLength;
      if (length > MAX_MANIFEST_BYTES)
        throw new KubeletError('invalid', `answer is larger than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }
}
