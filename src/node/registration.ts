// Makes sure that the API server has a Node object for us: creates it, or sets the few things right that are ours on one
// that exists. Tries for ever.
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { NODES, type Resource, type Where } from '../kube/resources.ts';
import type { KnownNode } from './known-node.ts';
import { initialNode, nodeStatusPatch, reconciledNode, type NodeFacts, type NodeOptions } from './node-object.ts';

type Named = Where & { readonly name: string };

/** The calls on Node objects; KubeClient fits. */
export interface NodeClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  patch<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
}

export type FactsReader = (signal: AbortSignal) => Promise<NodeFacts>;

export type RegistrationDeps = {
  client: NodeClient;
  known: KnownNode;
  facts: FactsReader;
  events: EventRecorder;
  clock: Clock;
  log: Logger;
  /** The device plugins' checkpoint is missing: extended resources of an existing node are reported as none. */
  devicesForgotten?: () => boolean;
  /** Gate `KubeletRegistrationGetOnExistsOnly`: who may not create a node does not ask whether there is one. */
  getOnExistsOnly?: boolean;
};

export class NodeRegistration {
  readonly #deps: RegistrationDeps;
  readonly #o: NodeOptions;
  /** By the attempt before: during an outage, repeats would use up what may be told of one object (the spam filter). */
  #told: readonly string[] = [];

  constructor(deps: RegistrationDeps, options: NodeOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Resolves when the node is registered; rejects only when `signal` aborts. */
  async register(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const backoff = new Backoff({ baseMs: 100, maxMs: 7000 });
    for (;;) {
      await clock.sleep(backoff.failed(clock.monotonic()), signal);
      signal.throwIfAborted();
      try {
        await this.#tryOnce(signal);
        log.info('node registered', { node: this.#o.nodeName });
        return;
      } catch (err) {
        signal.throwIfAborted();
        log.warn('node registration failed, trying again', { node: this.#o.nodeName, err });
      }
    }
  }

  async #tryOnce(signal: AbortSignal): Promise<void> {
    const { client, known, clock, events } = this.#deps;
    const { node, events: moved } = initialNode(this.#o, await this.#deps.facts(signal), clock.now());
    for (const reason of moved)
      if (!this.#told.includes(reason))
        events.node('Normal', reason, `Node ${this.#o.nodeName} status is now: ${reason}`);
    this.#told = moved;
    try {
      known.answered(await client.create(NODES, {}, node, signal));
    } catch (err) {
      const isForbidden = isFault(err, 'denied') && err.detail['status'] === 403;
      if (!isFault(err, 'exists') && !(isForbidden && this.#deps.getOnExistsOnly !== true)) throw err;
      await this.#reconcile(node, signal);
    }
  }

  async #reconcile(initial: Node, signal: AbortSignal): Promise<void> {
    const { client, known, devicesForgotten } = this.#deps;
    const name = this.#o.nodeName;
    const existing = await client.get(NODES, { name }, signal);
    const wanted = reconciledNode(existing, initial, this.#o, devicesForgotten?.() ?? false);
    const patch = nodeStatusPatch(existing, wanted);
    const changed = Object.keys(patch).length > 0;
    known.answered(changed ? await client.patch(NODES, { name, subresource: 'status' }, patch, signal) : existing);
  }
}
