// All that is known about a pod, as plain data, and what is made of it. Times are wall time in milliseconds.
import type { KubeEvent } from '../core/node.ts';
import type { ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import type { PullView } from '../images/pull-progress.ts';

export type WorkerFacts = {
  readonly phase: 'syncing' | 'terminating' | 'terminated' | 'finished';
  /** Since when it has been in this phase, but for `syncing` and `finished`. */
  readonly sinceMs?: number;
  /** While terminating. */
  readonly graceSeconds?: number;
  /** A step is under way since then. */
  readonly busySinceMs?: number;
  /** When the worker looks at the pod again: the end of a back-off, or the next resync. */
  readonly nextRunMs?: number;
  /** The step that failed last, until one succeeds. */
  readonly lastError?: { readonly message: string; readonly atMs: number; readonly attempts: number };
};

export type ProbeFacts = {
  readonly container: string;
  readonly type: 'startup' | 'readiness' | 'liveness';
  /** Oldest first. */
  readonly runs: readonly { readonly atMs: number; readonly result: string; readonly output: string }[];
};

/** A piece of the pod's start or stop that is not over: what it waits for at this moment. */
export type OpenStep = { readonly name: string; readonly of?: string; readonly sinceMs: number };

export type PodFacts = {
  readonly pod: Pod;
  /** As last derived here; empty before that. */
  readonly status: PodStatus;
  readonly nowMs: number;
  /** The sentence is to stay: what grows or shrinks by itself is left out, and so is what only a log may repeat. */
  readonly steady?: boolean;
  /** Of this pod, oldest first. */
  readonly events: readonly KubeEvent[];
  readonly worker?: WorkerFacts;
  /** What its volumes wait for, one clause each. */
  readonly volumes: readonly string[];
  readonly pulls: readonly PullView[];
  readonly probes: readonly ProbeFacts[];
  readonly underWay: readonly OpenStep[];
  /** Why pods with their own network cannot start. */
  readonly networkProblem?: string;
  readonly runtimeProblem?: string;
  /** Pods on this node, to name who has what this pod cannot get. */
  readonly others: readonly Pod[];
};

/** In the order of how much somebody should care. */
export type WhyState = 'failed' | 'failing' | 'waiting' | 'progressing' | 'stopping' | 'ready' | 'ended';

export type Why = {
  readonly state: WhyState;
  /** A word for programs; one per cause, never renamed. */
  readonly cause: string;
  /** For people: what is the matter, in one sentence. */
  readonly sentence: string;
  /** What this was concluded from, as it was said. */
  readonly evidence: readonly string[];
  /** What a person can do; empty where nothing needs to be done. */
  readonly todo: string;
  readonly container?: string;
  readonly nextRetryMs?: number;
};

export type Rule = (facts: PodFacts) => Why | undefined;
export type ContainerRule = (facts: PodFacts, status: ContainerStatus, kind: 'init' | 'main') => Why | undefined;
