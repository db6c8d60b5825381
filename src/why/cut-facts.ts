// The texts that rules look at: runtimes, plugins and pods write messages of any length, and a rule searches each in many
// ways. Pure.
import { EXPLAINED_CHARACTERS } from '../core/bounds.ts';
import type { ContainerState, ContainerStatus } from '../core/pod.ts';
import type { PodFacts } from './facts.ts';

const cut = (text: string): string => text.slice(0, EXPLAINED_CHARACTERS);

/** With no text longer than a rule may see. */
export const cutFacts = (facts: PodFacts): PodFacts => ({
  ...facts,
  status: cutStatus(facts.status),
  events: facts.events.map(cutMessage),
  volumes: facts.volumes.map(cut),
  probes: facts.probes.map((probe) => ({
    ...probe,
    runs: probe.runs.map((run) => (isShort(run.output) ? run : { ...run, output: cut(run.output) })),
  })),
  ...(facts.worker?.lastError === undefined
    ? {}
    : { worker: { ...facts.worker, lastError: cutMessage(facts.worker.lastError) } }),
  ...(facts.networkProblem === undefined ? {} : { networkProblem: cut(facts.networkProblem) }),
  ...(facts.runtimeProblem === undefined ? {} : { runtimeProblem: cut(facts.runtimeProblem) }),
});

const isShort = (text: string | undefined): boolean => (text?.length ?? 0) <= EXPLAINED_CHARACTERS;

function cutMessage<T extends { readonly message?: string }>(some: T): T {
  return some.message === undefined || isShort(some.message) ? some : { ...some, message: cut(some.message) };
}

const cutStatus = (status: PodFacts['status']): PodFacts['status'] => ({
  ...cutMessage(status),
  ...(status.conditions === undefined ? {} : { conditions: status.conditions.map(cutMessage) }),
  ...(status.initContainerStatuses === undefined
    ? {}
    : { initContainerStatuses: status.initContainerStatuses.map(cutContainer) }),
  ...(status.containerStatuses === undefined ? {} : { containerStatuses: status.containerStatuses.map(cutContainer) }),
});

const cutContainer = (status: ContainerStatus): ContainerStatus => ({
  ...status,
  state: cutState(status.state),
  lastState: cutState(status.lastState),
});

const cutState = ({ waiting, running, terminated }: ContainerState): ContainerState => ({
  ...(waiting === undefined ? {} : { waiting: cutMessage(waiting) }),
  ...(running === undefined ? {} : { running }),
  ...(terminated === undefined ? {} : { terminated: cutMessage(terminated) }),
});
