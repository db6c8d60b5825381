// Asks the runtime how it is, every few seconds and at once when something suggests that it changed. Read by node
// status and by everything that must wait for the runtime; never asks about pods.
import type { StatusResponse } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import { childScope, withDeadline, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type RuntimeHandlerInfo = {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
};

export type RuntimeHealthState = {
  /** RuntimeReady, and heard of lately. */
  readonly ready: boolean;
  readonly networkReady: boolean;
  /** Texts for the node's Ready condition; empty when all is well. */
  readonly runtimeErrors: readonly string[];
  readonly networkErrors: readonly string[];
  /** Sorted by name; the default handler's name is empty. */
  readonly handlers: readonly RuntimeHandlerInfo[];
  readonly features: { readonly supplementalGroupsPolicy: boolean; readonly userNamespacesHostNetwork: boolean };
};

export type RuntimeHealthDeps = {
  readonly runtime: Pick<CriRuntime, 'status'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** The observer's verdict on its own relists. */
  readonly relist: { unhealthy(): string | undefined };
};

export type RuntimeHealthOptions = { readonly everyMs?: number };

const EVERY_MS = 5000;
const ANSWER_WITHIN_MS = 15_000;
const DOWN_AFTER_MS = 30_000;
const NOT_ASKED = 'container runtime status check may not have completed yet';
const DOWN = 'container runtime is down';
const NETWORK_UNKNOWN = 'network state unknown';

type Answer = {
  readonly runtimeError: string | undefined;
  readonly networkError: string | undefined;
  readonly handlers: RuntimeHealthState['handlers'];
  readonly features: RuntimeHealthState['features'];
};

const NO_ANSWER: Answer = {
  runtimeError: undefined,
  networkError: NETWORK_UNKNOWN,
  handlers: [],
  features: { supplementalGroupsPolicy: false, userNamespacesHostNetwork: false },
};

export class RuntimeHealth implements Runnable {
  readonly name = 'runtime-health';
  readonly #deps: RuntimeHealthDeps;
  readonly #everyMs: number;
  readonly #listeners = new Set<(state: RuntimeHealthState) => void>();
  #answer = NO_ANSWER;
  #lastOk: number | undefined;
  #lastWell: number | undefined;
  #nap: Scope | undefined;
  #wanted = false;
  #reported = '';

  constructor(deps: RuntimeHealthDeps, options: RuntimeHealthOptions = {}) {
    this.#deps = deps;
    this.#everyMs = options.everyMs ?? EVERY_MS;
  }

  state(): RuntimeHealthState {
    const runtimeErrors = this.#runtimeErrors();
    const { networkError, handlers, features } = this.#answer;
    return {
      ready: runtimeErrors.length === 0,
      networkReady: networkError === undefined,
      runtimeErrors,
      networkErrors: networkError === undefined ? [] : [networkError],
      handlers,
      features,
    };
  }

  /** How long ago there was nothing to complain about; undefined before there ever was. */
  sinceWellMs(): number | undefined {
    return this.#lastWell === undefined ? undefined : this.#deps.clock.monotonic() - this.#lastWell;
  }

  /** Calls back when the state differs from the one told before. Returns the way to stop that. */
  onChange(listener: (state: RuntimeHealthState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls back when pods may have networks again after they could not. */
  onNetworkReady(listener: () => void): void {
    let ready = this.state().networkReady;
    this.onChange((state) => {
      if (state.networkReady && !ready) listener();
      ready = state.networkReady;
    });
  }

  /** Why pods with their own network cannot start now; undefined when they can. */
  networkProblem(): string | undefined {
    const { networkReady, networkErrors } = this.state();
    return networkReady ? undefined : networkErrors.join(', ');
  }

  /** What a handler can do; nothing, where the runtime does not say so. */
  handlerFeatures(name: string): Omit<RuntimeHandlerInfo, 'name'> {
    const known = this.#answer.handlers.find((h) => h.name === name);
    const { userNamespaces = false, recursiveReadOnlyMounts = false } = known ?? {};
    return { userNamespaces, recursiveReadOnlyMounts };
  }

  /** Asks again without waiting for the period: a stream broke or came back. */
  checkSoon(): void {
    this.#wanted = true;
    this.#nap?.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      this.#wanted = false;
      await this.check(signal);
      if (this.#wanted) continue;
      const nap = childScope(signal);
      this.#nap = nap;
      await clock.sleep(this.#everyMs, nap.signal);
      this.#nap = undefined;
      nap.release();
    }
  }

  /** One question to the runtime; never rejects. */
  async check(signal: AbortSignal): Promise<RuntimeHealthState> {
    const { clock, log, runtime } = this.#deps;
    try {
      const response = await withDeadline(clock, signal, ANSWER_WITHIN_MS, (s) => runtime.status({}, s));
      this.#answer = readStatus(response);
      if (this.#answer.runtimeError === undefined) this.#lastOk = clock.monotonic();
    } catch (err) {
      if (!signal.aborted) log.debug('the runtime did not tell its status', { err: messageOf(err) });
    }
    const state = this.state();
    if (state.ready) this.#lastWell = clock.monotonic();
    this.#tell(state);
    return state;
  }

  #runtimeErrors(): string[] {
    const errors: string[] = [];
    if (this.#lastOk === undefined) errors.push(NOT_ASKED);
    else if (this.#deps.clock.monotonic() - this.#lastOk > DOWN_AFTER_MS) errors.push(DOWN);
    const relist = this.#deps.relist.unhealthy();
    if (relist !== undefined) errors.push(relist);
    if (this.#answer.runtimeError !== undefined) errors.push(this.#answer.runtimeError);
    return errors;
  }

  #tell(state: RuntimeHealthState): void {
    const text = JSON.stringify(state);
    if (text === this.#reported) return;
    this.#reported = text;
    for (const listener of this.#listeners) {
      try {
        listener(state);
      } catch (err) {
        this.#deps.log.error('runtime health listener failed', { err });
      }
    }
  }
}

/** What the runtime's answer means. A missing condition counts as not ready. */
function readStatus(response: StatusResponse): Answer {
  const conditions = response.status?.conditions ?? [];
  const problem = (type: string, prefix: string): string | undefined => {
    const condition = conditions.find((c) => c.type === type);
    if (condition?.status === true) return undefined;
    const text =
      condition === undefined ? '<nil>' : `${type}=false reason:${condition.reason} message:${condition.message}`;
    return `${prefix}: ${text}`;
  };
  return {
    runtimeError: problem('RuntimeReady', 'container runtime not ready'),
    networkError: problem('NetworkReady', 'container runtime network not ready'),
    handlers: response.runtimeHandlers
      .map((h) => ({
        name: h.name,
        recursiveReadOnlyMounts: h.features?.recursiveReadOnlyMounts ?? false,
        userNamespaces: h.features?.userNamespaces ?? false,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)),
    features: {
      supplementalGroupsPolicy: response.features?.supplementalGroupsPolicy ?? false,
      userNamespacesHostNetwork: response.features?.userNamespacesHostNetwork ?? false,
    },
  };
}
