// The node's heartbeat: renews its Lease every quarter of the lease's duration. Never deletes it.
import type { Lease, Node } from '../core/node.ts';
import type { OwnerReference } from '../core/meta.ts';
import { microTime } from '../core/time.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isUnreachable } from '../kube/api-error.ts';
import { LEASES, NODES, type Resource, type Where } from '../kube/resources.ts';

type Named = Where & { readonly name: string };
export interface LeaseClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  replace<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
}

export type LeaseDeps = { client: LeaseClient; clock: Clock; log: Logger; onRepeatedFailure?: () => void };
export type LeaseOptions = { nodeName: string; durationSeconds: number };

const NAMESPACE = 'kube-node-lease';
const JITTER = 0.04;
const UPDATE_TRIES = 5;

export class NodeLease implements Runnable {
  readonly name = 'node-lease';
  readonly #deps: LeaseDeps;
  readonly #o: LeaseOptions;
  /** The server's last answer: the next update is based on it, without reading first. */
  #last: Lease | undefined;

  constructor(deps: LeaseDeps, options: LeaseOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  run(signal: AbortSignal): Promise<void> {
    const everyMs = (this.#o.durationSeconds * 1000) / 4;
    const options = { name: this.name, everyMs, jitter: JITTER };
    return runEvery(this.#deps.clock, this.#deps.log, options, (s) => this.#renew(s), signal);
  }

  async #renew(signal: AbortSignal): Promise<void> {
    if (this.#last !== undefined && (await this.#update(this.#last, signal))) return;
    const ensured = await this.#ensure(signal);
    if (ensured === undefined) return;
    const { lease, created } = ensured;
    if (created) this.#renewed(lease);
    else await this.#update(lease, signal);
  }

  /** True when renewed. Several tries in a row: a lost heartbeat costs the node its pods. */
  async #update(base: Lease, signal: AbortSignal): Promise<boolean> {
    const { client, log, onRepeatedFailure } = this.#deps;
    const where = { namespace: NAMESPACE, name: this.#o.nodeName };
    let lease = await this.#owned(base, signal);
    for (let attempt = 0; attempt < UPDATE_TRIES; attempt++) {
      try {
        this.#renewed(await client.replace(LEASES, where, this.#stamped(lease), signal));
        return true;
      } catch (err) {
        signal.throwIfAborted();
        log.warn('failed to update lease', { attempt, err });
        if (attempt > 0 && isUnreachable(err)) onRepeatedFailure?.();
        if (isFault(err, 'notFound')) return false;
        if (isFault(err, 'conflict')) lease = await client.get(LEASES, where, signal).catch(() => lease);
      }
    }
    return false;
  }

  /** The lease as the server has it, or a new one. Undefined while our Node is unknown there: tried again next period. */
  async #ensure(signal: AbortSignal): Promise<{ lease: Lease; created: boolean } | undefined> {
    const { clock, log } = this.#deps;
    const backoff = new Backoff({ baseMs: 100, maxMs: 7000 });
    for (;;) {
      try {
        return await this.#getOrCreate(signal);
      } catch (err) {
        signal.throwIfAborted();
        const pauseMs = backoff.failed(clock.monotonic());
        log.warn('failed to ensure lease exists, will retry', { pauseMs, err });
        await clock.sleep(pauseMs, signal);
        signal.throwIfAborted();
      }
    }
  }

  async #getOrCreate(signal: AbortSignal): Promise<{ lease: Lease; created: boolean } | undefined> {
    const { client } = this.#deps;
    const { nodeName: name } = this.#o;
    try {
      return { lease: await client.get(LEASES, { namespace: NAMESPACE, name }, signal), created: false };
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
    }
    const node = await this.#node(signal);
    if (node === undefined) return undefined;
    const fresh: Lease = {
      kind: 'Lease',
      apiVersion: 'coordination.k8s.io/v1',
      metadata: { name, namespace: NAMESPACE, ownerReferences: [ownerFor(node)] },
    };
    const lease = await client.create(LEASES, { namespace: NAMESPACE }, this.#stamped(fresh), signal);
    return { lease, created: true };
  }

  /** A lease that others made goes with its node, too. Renewed also while nobody can say which node that is. */
  async #owned(lease: Lease, signal: AbortSignal): Promise<Lease> {
    if ((lease.metadata.ownerReferences ?? []).length > 0) return lease;
    const node = await this.#node(signal);
    if (node === undefined) return lease;
    return { ...lease, metadata: { ...lease.metadata, ownerReferences: [ownerFor(node)] } };
  }

  #node(signal: AbortSignal): Promise<Node | undefined> {
    const { client, log } = this.#deps;
    return client.get(NODES, { name: this.#o.nodeName }, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      log.debug('the node is not known yet, the lease cannot name it as its owner', { err });
      return undefined;
    });
  }

  #stamped(lease: Lease): Lease {
    return {
      ...lease,
      spec: {
        ...lease.spec,
        holderIdentity: this.#o.nodeName,
        leaseDurationSeconds: this.#o.durationSeconds,
        renewTime: microTime(this.#deps.clock.now()),
      },
    };
  }

  #renewed(lease: Lease): void {
    this.#last = lease;
  }
}

const ownerFor = ({ metadata: { name, uid = '' } }: Node): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'Node',
  name,
  uid,
});
