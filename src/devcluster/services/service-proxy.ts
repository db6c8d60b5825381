// Keeps the rules of iptables as the services want them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { toolEnvironment } from '../../lib/child-environment.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { ObjectStore } from '../api/store.ts';
import { SERVICE_ADDRESSES } from '../api/strategies/service-checks.ts';
import { fixedRules, serviceRules, type FixedRule, type ProxiedNetwork } from './rules.ts';

const run = promisify(execFile);
/** Changes come in bursts. */
const GATHER_MS = 50;
/** Others flush rules as well: they are set again this often, whatever has changed. */
const AGAIN_MS = 30_000;

/** Another holder of the lock of iptables, or a machine that is stuck, must not hold up the end. */
const options = { env: toolEnvironment(), timeout: 20_000, killSignal: 'SIGKILL' } as const;

export type ServiceProxyDeps = {
  readonly store: Pick<ObjectStore, 'list' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Puts rules in place: the chain of the services, and those that are always there. */
  readonly set?: (services: string, fixed: readonly FixedRule[]) => Promise<void>;
};

export class ServiceProxy {
  readonly #deps: ServiceProxyDeps;
  readonly #network: ProxiedNetwork;
  #timer: Timer | undefined;
  #dueAt = Infinity;
  #working: Promise<void> = Promise.resolve();

  constructor(deps: ServiceProxyDeps, network: ProxiedNetwork) {
    this.#deps = deps;
    this.#network = network;
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = this.#deps.store.onChange(({ resource }) => {
      if (resource === 'services' || resource === 'discovery.k8s.io/endpointslices') this.#soon(GATHER_MS, signal);
    });
    this.#soon(0, signal);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    stop();
    this.#timer?.cancel();
    await this.#working;
  }

  /** Changes that go on and on put nothing off: what is due earlier stays. */
  #soon(ms: number, signal: AbortSignal): void {
    const { clock } = this.#deps;
    const dueAt = clock.monotonic() + ms;
    if (signal.aborted || dueAt >= this.#dueAt) return;
    this.#timer?.cancel();
    this.#dueAt = dueAt;
    this.#timer = clock.after(ms, () => {
      this.#timer = undefined;
      this.#dueAt = Infinity;
      this.#working = this.#working.then(() => this.#apply(signal));
    });
  }

  async #apply(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { store, log } = this.#deps;
    const objects = (resource: string): readonly Record<string, unknown>[] =>
      store.list(resource).map((stored) => stored.object);
    const wanted = serviceRules(this.#network, objects('services'), objects('discovery.k8s.io/endpointslices'));
    try {
      await (this.#deps.set ?? setRules)(wanted, fixedRules(this.#network, SERVICE_ADDRESSES.range));
    } catch (err) {
      log.warn('rules of services could not be set: their addresses may lead nowhere', { err });
    }
    // A change that came meanwhile has set a timer of its own.
    if (this.#timer === undefined) this.#soon(AGAIN_MS, signal);
  }
}

async function setRules(services: string, fixed: readonly FixedRule[]): Promise<void> {
  const restoring = run('iptables-restore', ['--wait', '--noflush'], options);
  const { stdin } = restoring.child;
  // One that ends before it has read all says why by its exit.
  stdin?.on('error', () => undefined);
  stdin?.end(services);
  await restoring;
  for (const rule of fixed) await ensure(rule);
}

async function ensure({ table, chain, rule }: FixedRule): Promise<void> {
  const isThere = await run('iptables', ['--wait', '-t', table, '-C', chain, ...rule], options).then(
    () => true,
    (err: { readonly code?: unknown }) => {
      // One that was cut off has not said that the rule is missing.
      if (err.code !== 1) throw err;
      return false;
    },
  );
  if (!isThere) await run('iptables', ['--wait', '-t', table, '-A', chain, ...rule], options);
}
