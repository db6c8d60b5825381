// Brings together what the parts know about one pod. Reads only; nothing waits, nothing is asked of the runtime.
import { podUid, type PodUid } from '../core/ids.ts';
import type { KubeEvent } from '../core/node.ts';
import { namespaceOf, type Pod, type PodStatus } from '../core/pod.ts';
import type { PullView } from '../images/pull-progress.ts';
import type { Clock } from '../lib/clock.ts';
import type { OpenStep, PodFacts, ProbeFacts, Why, WorkerFacts } from './facts.ts';
import { why } from './why.ts';

type Trace = {
  readonly startedAtMs: number;
  readonly tookMs?: number;
  readonly spans: readonly {
    readonly name: string;
    readonly of?: string;
    readonly fromMs: number;
    readonly toMs?: number;
  }[];
};

export type PodExplainerDeps = {
  readonly clock: Clock;
  readonly pods: { all(): readonly Pod[]; byFullName(name: string): Pod | undefined };
  readonly status: { statusOf(uid: PodUid): PodStatus | undefined };
  readonly events: { ringOf(uid: string): readonly KubeEvent[] };
  readonly workers: { view(uid: PodUid): WorkerFacts | undefined };
  readonly volumes: { complaintsOf(uid: string): readonly string[] };
  readonly pulls: () => readonly PullView[];
  readonly probes: { history(uid: PodUid): readonly ProbeFacts[] };
  readonly traces: { ofPod(namespace: string, name: string): readonly Trace[] };
  readonly runtime: {
    state(): { readonly runtimeErrors: readonly string[]; readonly networkErrors: readonly string[] };
  };
};

export class PodExplainer {
  readonly #deps: PodExplainerDeps;

  constructor(deps: PodExplainerDeps) {
    this.#deps = deps;
  }

  /** Undefined: no pod of this name is on the node. */
  byName(namespace: string, name: string): Why | undefined {
    const pod = this.#deps.pods.byFullName(`${name}_${namespace}`);
    return pod === undefined ? undefined : this.of(pod);
  }

  all(): readonly { readonly namespace: string; readonly name: string; readonly why: Why }[] {
    return this.#deps.pods
      .all()
      .map((pod) => ({ namespace: namespaceOf(pod), name: pod.metadata.name, why: this.of(pod) }));
  }

  of(pod: Pod): Why {
    return why(this.factsOf(pod));
  }

  /** In words that stay the same while nothing happens. */
  steadyOf(pod: Pod): Why {
    return why({ ...this.factsOf(pod), steady: true });
  }

  factsOf(pod: Pod): PodFacts {
    const { clock, pods, status, events, workers, volumes, pulls, probes, runtime } = this.#deps;
    const uid = podUid(pod.metadata.uid ?? '');
    const worker = workers.view(uid);
    const { runtimeErrors, networkErrors } = runtime.state();
    return {
      pod,
      status: status.statusOf(uid) ?? {},
      nowMs: clock.now(),
      events: events.ringOf(uid),
      ...(worker === undefined ? {} : { worker }),
      volumes: volumes.complaintsOf(uid),
      pulls: pulls().filter((p) => p.podUid === uid),
      probes: probes.history(uid),
      underWay: this.#openSteps(pod),
      ...(runtimeErrors.length === 0 ? {} : { runtimeProblem: runtimeErrors.join(', ') }),
      ...(networkErrors.length === 0 ? {} : { networkProblem: networkErrors.join(', ') }),
      others: pods.all(),
    };
  }

  /** Of the start or stop that is under way, what has begun and not ended. */
  #openSteps(pod: Pod): readonly OpenStep[] {
    const { name, namespace = 'default' } = pod.metadata;
    const current = this.#deps.traces.ofPod(namespace, name).findLast((t) => t.tookMs === undefined);
    return (current?.spans ?? [])
      .filter((s) => s.toMs === undefined)
      .map((s) => ({
        name: s.name,
        ...(s.of === undefined ? {} : { of: s.of }),
        sinceMs: (current?.startedAtMs ?? 0) + s.fromMs,
      }));
  }
}
