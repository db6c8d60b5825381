// Pods from a URL, polled. A failed poll changes nothing; an empty answer means no pods. The URL is shown without what may
// be a credential in it.
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { WholeRequest } from '../lib/http/exchange.ts';
import { maskUrl } from '../lib/http/mask-url.ts';
import type { HttpTarget } from '../lib/http/open.ts';
import { httpFollow, targetOf } from '../lib/http/redirects.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { AdoptedPods } from './adopt-static.ts';
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
  /** What runs: tells which pods to adopt. */
  readonly observed?: { all(): Iterable<PodSnapshot> };
};
export type HttpSourceOptions = {
  readonly url: string;
  /** `staticPodURLHeader`. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly nodeName: string;
  readonly pollMs: number;
  /** Pods may name API objects. */
  readonly apiObjects?: boolean;
  /** For one poll, redirects included; 10 s unless said otherwise. */
  readonly timeoutMs?: number;
};

const TIMEOUT_MS = 10_000;

export class HttpSource implements Runnable {
  readonly name = 'http-source';
  readonly #deps: HttpSourceDeps;
  readonly #opts: HttpSourceOptions;
  readonly #adopted: AdoptedPods;
  /** The answer in effect, and what was questionable about it. */
  #last: { readonly text: string; readonly problems: readonly FoundProblem[] } | undefined;

  constructor(deps: HttpSourceDeps, opts: HttpSourceOptions) {
    this.#deps = deps;
    this.#opts = opts;
    this.#adopted = new AdoptedPods({ log: deps.log, observed: () => deps.observed?.all() ?? [] }, 'http');
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(clock, log, { name: this.name, everyMs: this.#opts.pollMs }, (s) => this.#poll(s), signal);
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const where = maskUrl(this.#opts.url);
    let answer: Answer;
    try {
      answer = await this.#get(signal);
    } catch (err) {
      if (signal.aborted) return;
      return this.#deps.report([{ where, severity: 'error', message: messageOf(err) }]);
    }
    const { text, changedMs } = answer;
    // What went wrong in between is over.
    if (text === this.#last?.text) return this.#deps.report(this.#last.problems);
    if (text.trim() === '') {
      return this.#accept(text, [], [{ where, severity: 'error', message: 'zero-length data received' }]);
    }
    const { nodeName, apiObjects = false } = this.#opts;
    const options = { nodeName, localObjects: false, lists: true, apiObjects };
    const contents = await readManifest(text, { where, local: false }, options, this.#deps.decoder, signal);
    // One bad pod spoils the whole answer, as the rest could be half of something; the last good set stays.
    if (contents.problems.some((p) => p.severity === 'error')) return this.#deps.report(contents.problems);
    this.#accept(
      text,
      contents.pods.map((pod) => this.#adopted.adopt(pod, changedMs)),
      contents.problems,
    );
  }

  #accept(text: string, pods: readonly Pod[], problems: readonly FoundProblem[]): void {
    this.#last = { text, problems };
    this.#deps.report(problems);
    this.#deps.emit(pods);
  }

  async #get(signal: AbortSignal): Promise<Answer> {
    const asked = requestOf(this.#opts);
    const reply = await httpFollow(this.#deps.clock, asked, redirected, signal);
    if (reply.status !== 200)
      throw new KubeletError('unavailable', `answered ${reply.status} ${reply.statusText}`.trim());
    if (reply.cut) throw new KubeletError('invalid', `answer is larger than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`);
    return { text: reply.body.toString('utf8'), changedMs: lastChange(reply.headers, this.#deps.clock.now()) };
  }
}

type Answer = { readonly text: string; readonly changedMs: number };

/** By our clock: the server's may be wrong, and it counts in whole seconds. Without a word of it, just now. */
function lastChange(headers: IncomingHttpHeaders, nowMs: number): number {
  const ageMs = Date.parse(headers.date ?? '') - Date.parse(headers['last-modified'] ?? '');
  return ageMs >= 0 ? nowMs - ageMs + 1000 : Infinity;
}

function requestOf({ url, headers, timeoutMs }: HttpSourceOptions): WholeRequest {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const target = parsed === undefined ? undefined : targetOf(parsed);
  if (parsed === undefined || target === undefined) throw new KubeletError('invalid', 'not a URL of http or https');
  const user = [parsed.username, parsed.password].map(decodeURIComponent).join(':');
  const basic = user === ':' ? {} : { Authorization: `Basic ${Buffer.from(user).toString('base64')}` };
  return {
    target,
    headers: { ...basic, ...headers },
    verifyCertificate: true,
    lenient: true,
    deadlineMs: timeoutMs ?? TIMEOUT_MS,
    maxBodyBytes: MAX_MANIFEST_BYTES,
  };
}

/** The configured headers are for the configured server, and for nobody else. */
function redirected(asked: WholeRequest, to: HttpTarget): WholeRequest {
  const { scheme, host, port } = asked.target;
  const same = to.scheme === scheme && to.host === host && to.port === port;
  return { ...asked, target: to, headers: same ? asked.headers : {} };
}
