// Reports the node's status: quickly until it is Ready for the first time, then when something changed, and at the latest
// after the report period. Woken by its period and by `wake()`.
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import { abortable } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isUnreachable } from '../kube/api-error.ts';
import { NODES } from '../kube/resources.ts';
import type { KnownNode } from './known-node.ts';
import {
  nodeStatus,
  nodeStatusPatch,
  reportedAnnotations,
  statusChanged,
  wrongMachineLabels,
  type NodeFacts,
  type NodeOptions,
} from './node-object.ts';
import type { FactsReader, NodeClient, NodeRegistration } from './registration.ts';

export type NodeStatusDeps = {
  /** The heartbeat client: its own budget, short deadline. */
  client: NodeClient;
  known: KnownNode;
  /** Absent with `registerNode: false`. */
  registration?: NodeRegistration;
  facts: FactsReader;
  events: EventRecorder;
  clock: Clock;
  log: Logger;
  listeners?: NodeStatusListeners;
};

export type NodeStatusListeners = {
  /** From the second request without an answer on: connections may be dead without having said so. */
  onRepeatedFailure?: () => void;
  /** `10.0.0.0/24,fd00::/64` whenever it changed. */
  onPodCidr?: (cidr: string) => void;
  /** The server's answer to a report: attachable volumes that it lists may be mounted. */
  onAnswer?: (node: Node) => void;
};

export type NodeStatusOptions = NodeOptions & { readonly updateMs: number; readonly reportMs: number };

const FAST_MS = 100;
const FAST_FOR_MS = 120_000;
/** A restarted kubelet gets to know its runtime first: a node that is Ready must not be seen as not ready meanwhile. */
const FIRST_CHECKS_MS = 2000;
const JITTER = 0.04;
const ATTEMPTS = 5;

export class NodeStatusReporter implements Runnable {
  readonly name = 'node-status';
  readonly #deps: NodeStatusDeps;
  readonly #o: NodeStatusOptions;
  #registered = false;
  #wasReady = false;
  #reportedAt = -Infinity;
  #reportDelayMs = 0;
  #unschedulable = false;
  /** By an attempt that failed: the next one has the same to tell, and would use up what may be told of one object. */
  #toldInVain: readonly string[] = [];
  #rebootTold = false;
  #podCidr = '';
  #decided = '';
  #woken = false;
  #wakeLoop: () => void = () => undefined;

  constructor(deps: NodeStatusDeps, options: NodeStatusOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Registered in this process, so that the API server knows our node. */
  get registered(): boolean {
    return this.#registered;
  }

  /** Reports now if something changed: readiness, shutdown, pressure. */
  wake(): void {
    this.#woken = true;
    this.#wakeLoop();
  }

  /**
   * Our own Node object came by. What others decide about it is followed at once. A new status is our own word, mostly, and
   * some of it tells how long something has been so: following that would never end.
   */
  nodeSeen(node: Node | undefined): void {
    const { uid, labels, annotations } = node?.metadata ?? {};
    const decided = JSON.stringify([uid, labels, annotations, node?.spec]);
    if (decided === this.#decided) return;
    this.#decided = decided;
    this.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    const checkedAt = startedAt + FIRST_CHECKS_MS;
    let nextFullAt = startedAt;
    while (!signal.aborted) {
      this.#woken = false;
      const fast = !this.#wasReady && clock.monotonic() - startedAt < FAST_FOR_MS;
      const due = clock.monotonic() >= nextFullAt;
      if (due) nextFullAt = clock.monotonic() + this.#o.updateMs * (1 + JITTER * clock.random());
      try {
        const settlingIn = !this.#wasReady && clock.monotonic() < checkedAt;
        if (!(await this.#round(due || !fast, settlingIn, signal)) && due) nextFullAt = checkedAt;
      } catch (err) {
        if (!signal.aborted) this.#deps.log.error('unable to update node status', { err });
      }
      const untilFull = Math.max(0, nextFullAt - clock.monotonic());
      await this.#pause(this.#wasReady || !fast ? untilFull : Math.min(FAST_MS, untilFull), signal);
    }
  }

  /** While waiting for the first Ready only a round that can say Ready is worth a request. False when nothing was said. */
  async #round(always: boolean, settlingIn: boolean, signal: AbortSignal): Promise<boolean> {
    if (!this.#registered && this.#deps.registration !== undefined) await this.#deps.registration.register(signal);
    this.#registered = true;
    const facts = await this.#deps.facts(signal);
    const worthIt = always && !(settlingIn && isShownReady(this.#deps.known.get()));
    if (!worthIt && facts.notReady.length > 0) return false;
    await this.#update(facts, signal);
    return true;
  }

  async #update(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    const { log, listeners } = this.#deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        await this.#tryUpdate(facts, attempt > 0, signal);
        return;
      } catch (err) {
        signal.throwIfAborted();
        log.warn('error updating node status, will retry', { attempt, err });
        if (attempt > 0 && isUnreachable(err)) listeners?.onRepeatedFailure?.();
        if (isFault(err, 'notFound')) this.#nodeIsGone();
      }
    }
    throw new KubeletError('unavailable', 'update node status exceeds retry count');
  }

  /** Somebody deleted our Node. It stays deleted until we are restarted; one created for us is reported to in full. */
  #nodeIsGone(): void {
    this.#deps.known.forget();
    this.#reportedAt = -Infinity;
  }

  async #tryUpdate(facts: NodeFacts, live: boolean, signal: AbortSignal): Promise<void> {
    const { client, clock, known } = this.#deps;
    const { nodeName: name } = this.#o;
    const before = (live ? undefined : known.get()) ?? (await client.get(NODES, { name }, signal));
    this.#tellBoot(before, facts);
    const cidrChanged = this.#takePodCidr(before);
    const { status, events } = nodeStatus(before.status ?? {}, this.#o, facts, clock.now());
    const wrong = wrongMachineLabels(before, facts.host.architecture);
    const after: Node = {
      ...before,
      metadata: {
        ...before.metadata,
        labels: { ...before.metadata.labels, ...wrong },
        annotations: reportedAnnotations(this.#o, before.metadata.annotations ?? {}),
      },
      status,
    };
    this.#tellConditions(before, events);
    const relabelled = Object.keys(wrong).length > 0;
    const isAwaited = facts.isAnswerAwaited === true;
    const changed = cidrChanged || relabelled || isAwaited || statusChanged(before.status ?? {}, status);
    const now = clock.monotonic();
    if (!changed && now - this.#reportedAt < this.#o.reportMs + this.#reportDelayMs) {
      this.#reported(facts);
      return;
    }
    const patch = nodeStatusPatch(before, after);
    const answer = await client.patch(NODES, { name, subresource: 'status' }, patch, signal);
    known.answered(answer);
    this.#toldInVain = [];
    // Nodes that changed together must not report together for ever after.
    const spread = changed || this.#reportedAt === -Infinity;
    this.#reportDelayMs = spread ? this.#o.reportMs * (clock.random() - 0.5) : 0;
    this.#reportedAt = now;
    this.#reported(facts);
    this.#deps.listeners?.onAnswer?.(answer);
  }

  #reported(facts: NodeFacts): void {
    if (facts.notReady.length === 0) this.#wasReady = true;
  }

  #takePodCidr(node: Node): boolean {
    const cidrs = node.spec?.podCIDRs ?? (node.spec?.podCIDR === undefined ? [] : [node.spec.podCIDR]);
    const cidr = cidrs.join(',');
    if (cidr === '' || cidr === this.#podCidr) return false;
    this.#podCidr = cidr;
    this.#deps.listeners?.onPodCidr?.(cidr);
    return true;
  }

  #tellConditions(before: Node, moved: readonly string[]): void {
    const { events } = this.#deps;
    const tell = (reason: string): void =>
      events.node('Normal', reason, `Node ${this.#o.nodeName} status is now: ${reason}`);
    for (const reason of moved) if (!this.#toldInVain.includes(reason)) tell(reason);
    this.#toldInVain = moved;
    const unschedulable = before.spec?.unschedulable === true;
    if (unschedulable !== this.#unschedulable) tell(unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable');
    this.#unschedulable = unschedulable;
  }

  #tellBoot(before: Node, facts: NodeFacts): void {
    const known = before.status?.nodeInfo?.bootID ?? '';
    const { bootId } = facts.host;
    if (this.#rebootTold || known === '' || known === bootId) return;
    this.#rebootTold = true;
    const message = `Node ${this.#o.nodeName} has been rebooted, boot id: ${bootId}`;
    this.#deps.events.node('Warning', 'Rebooted', message);
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#woken) return; // while the last round was under way
    const woken = new Promise<void>((resolve) => (this.#wakeLoop = resolve));
    const timer = this.#deps.clock.after(ms, () => this.#wakeLoop());
    await abortable(signal, woken).catch(() => undefined); // an abort ends the loop, which looks at the signal itself
    timer.cancel();
  }
}

const isShownReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
