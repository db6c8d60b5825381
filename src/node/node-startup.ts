// How long a new node took from power on to Ready. Learned from the calls that register it and report its status; a node
// that was there before has no such story.
import type { Node } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import type { Gauge, Registry } from '../lib/metrics.ts';
import type { NodeClient } from './registration.ts';

export type StartupMoments = { readonly bootMs: number; readonly startedMs: number };

export class NodeStartup {
  readonly #clock: Clock;
  readonly #moments: StartupMoments;
  readonly #gauges: Record<'preKubelet' | 'preRegistration' | 'registration' | 'postRegistration' | 'total', Gauge>;
  #attemptMs: number | undefined;
  #createdMs: number | undefined;
  #done = false;

  constructor(clock: Clock, registry: Registry, moments: StartupMoments) {
    this.#clock = clock;
    this.#moments = moments;
    const gauge = (name: string, when: string): Gauge =>
      registry.gauge(
        `kubelet_node_startup_${name}duration_seconds`,
        `[ALPHA] Duration in seconds of node startup ${when}.`,
      );
    this.#gauges = {
      preKubelet: gauge('pre_kubelet_', 'before kubelet starts'),
      preRegistration: gauge('pre_registration_', 'before registration'),
      registration: gauge('registration_', 'during registration'),
      postRegistration: gauge('post_registration_', 'after registration'),
      total: gauge('', 'in total'),
    };
  }

  /** The client that registers the node and reports its status, with its calls watched. */
  timed(client: NodeClient): NodeClient {
    return {
      get: (resource, where, signal) => client.get(resource, where, signal),
      create: (resource, where, body, signal) => this.creating(() => client.create(resource, where, body, signal)),
      patch: async (resource, where, body, signal) => {
        const answer = await client.patch(resource, where, body, signal);
        this.answered(answer as Node);
        return answer;
      },
    };
  }

  /** Watches the creation of the Node object. */
  async creating<T>(create: () => Promise<T>): Promise<T> {
    this.#attemptMs ??= this.#clock.now();
    const answer = await create();
    this.#createdMs ??= this.#clock.now();
    return answer;
  }

  /** The API server's answer to a report of our status. */
  answered(node: Node): void {
    if (this.#done || this.#attemptMs === undefined || this.#createdMs === undefined || !isNodeReady(node)) return;
    this.#done = true;
    const readyMs = this.#clock.now();
    const { bootMs, startedMs } = this.#moments;
    const show = (gauge: Gauge, fromMs: number, toMs: number): void => gauge.set(Math.max(0, toMs - fromMs) / 1000);
    show(this.#gauges.preKubelet, bootMs, startedMs);
    show(this.#gauges.preRegistration, startedMs, this.#attemptMs);
    show(this.#gauges.registration, this.#attemptMs, this.#createdMs);
    show(this.#gauges.postRegistration, this.#createdMs, readyMs);
    show(this.#gauges.total, bootMs, readyMs);
  }
}

const isNodeReady = (node: Node): boolean =>
  node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
