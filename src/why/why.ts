// Why is this pod not running? From all that is known about a pod to one sentence with evidence and what to do. Pure: the
// rules are asked in order of how much they explain, and the first that applies answers.
import { isSidecar, type ContainerStatus } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import { crashLoop, hasEndedBadly, startFailed } from './containers.ts';
import { cutFacts } from './cut-facts.ts';
import { ended } from './ended.ts';
import type { ContainerRule, PodFacts, Rule, Why } from './facts.ts';
import { imageFailed, imageUnderWay } from './images.ts';
import { livenessFailing, notReady, notStarted } from './probes.ts';
import {
  networkDown,
  notAdmitted,
  runtimeDown,
  sandboxFailed,
  underWay,
  volumesMissing,
  waitsForTurn,
} from './starting.ts';
import { stopping } from './stopping.ts';
import { forSpan, quote, shortly } from './words.ts';

export function why(known: PodFacts): Why {
  const facts = cutFacts(known);
  for (const rule of RULES) {
    const found = rule(facts);
    if (found !== undefined) return found;
  }
  return unexplained(facts);
}

/** The words for `kubectl`, a log or a table: the sentence, and what to do where there is something. */
export const inOneLine = ({ sentence, todo }: Why): string => (todo === '' ? sentence : `${sentence} ${todo}`);

const isReady = ({ status }: PodFacts): boolean =>
  status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

const INIT_RULES: readonly ContainerRule[] = [
  imageFailed,
  startFailed,
  crashLoop,
  imageUnderWay,
  hasEndedBadly,
  notStarted,
];
const MAIN_RULES: readonly ContainerRule[] = [
  imageFailed,
  startFailed,
  crashLoop,
  imageUnderWay,
  hasEndedBadly,
  notStarted,
  notReady,
];

/** Init containers run one after the other, so the first with something to say is the one. */
const initContainers: Rule = (facts) => {
  const statuses = facts.status.initContainerStatuses ?? [];
  if (initialized(facts)) return undefined;
  for (const [at, status] of statuses.entries()) {
    for (const rule of INIT_RULES) {
      const found = rule(facts, status, 'init');
      if (found !== undefined) return found;
    }
    if (status.state.running !== undefined && !sidecarUp(facts, status))
      return initRunning(facts, status, at, statuses.length);
  }
  return undefined;
};

const initialized = ({ status }: PodFacts): boolean =>
  status.conditions?.some((c) => c.type === 'Initialized' && c.status === 'True') === true;

function sidecarUp({ pod }: PodFacts, status: ContainerStatus): boolean {
  const container = pod.spec.initContainers?.find((c) => c.name === status.name);
  return container !== undefined && isSidecar(container) && status.started === true;
}

function initRunning(facts: PodFacts, status: ContainerStatus, at: number, count: number): Why {
  const began = parseTimeMs(status.state.running?.startedAt);
  return {
    state: 'progressing',
    cause: 'InitContainerRunning',
    sentence: `Init container ${quote(status.name)} (${at + 1} of ${count}) runs${began === 0 || facts.steady === true ? '' : `${forSpan(facts, began)} now`}; the others wait for it.`,
    evidence: status.restartCount > 0 ? [`${status.restartCount} restarts so far`] : [],
    todo: '',
    container: status.name,
  };
}

const SEVERITY: readonly Why['state'][] = ['failed', 'failing', 'waiting', 'progressing', 'stopping', 'ready', 'ended'];

/** All main containers have their say; the worst counts, and the others are named beside it. */
const mainContainers: Rule = (facts) => {
  const { containerStatuses = [], initContainerStatuses = [] } = facts.status;
  const sidecars = initContainerStatuses.filter((s) => initialized(facts) && isSidecarStatus(facts, s) && !s.ready);
  const found = [...containerStatuses, ...sidecars].flatMap((status) => firstOf(facts, status) ?? []);
  const [worst, ...rest] = found.sort((a, b) => SEVERITY.indexOf(a.state) - SEVERITY.indexOf(b.state));
  if (worst === undefined) return undefined;
  const others = rest.filter((w) => w.state === 'failing' || w.state === 'waiting').map((w) => `also: ${w.sentence}`);
  return { ...worst, evidence: [...worst.evidence, ...others] };
};

const isSidecarStatus = ({ pod }: PodFacts, status: ContainerStatus): boolean =>
  pod.spec.initContainers?.some((c) => c.name === status.name && isSidecar(c)) === true;

function firstOf(facts: PodFacts, status: ContainerStatus): Why | undefined {
  for (const rule of MAIN_RULES) {
    const found = rule(facts, status, 'main');
    if (found !== undefined) return found;
  }
  return undefined;
}

/** All containers are ready, but not the pod: others have to agree. */
const readinessGates: Rule = ({ pod, status }) => {
  const missing = (pod.spec.readinessGates ?? [])
    .map((gate) => gate.conditionType)
    .filter((type) => status.conditions?.some((c) => c.type === type && c.status === 'True') !== true);
  if (missing.length === 0) return undefined;
  return {
    state: 'waiting',
    cause: 'ReadinessGates',
    sentence: `All containers are ready; the pod waits for the readiness gate ${missing.map(quote).join(', ')}.`,
    evidence: missing.map((type) => {
      const condition = status.conditions?.find((c) => c.type === type);
      return condition === undefined
        ? `${type} was never set`
        : `${type} is ${condition.status}: ${shortly(condition.message ?? condition.reason ?? '')}`;
    }),
    todo: 'Look at the controller that sets this condition.',
  };
};

const resizing: Rule = (facts) => {
  const condition = facts.status.conditions?.find(
    (c) =>
      c.status === 'True' &&
      (c.type === 'PodResizePending' || (c.type === 'PodResizeInProgress' && c.reason === 'Error')),
  );
  if (!isReady(facts) || condition === undefined) return undefined;
  const never = condition.reason === 'Infeasible';
  const how = never
    ? 'cannot be done on this node'
    : condition.reason === 'Error'
      ? 'failed and is tried again'
      : 'waits for room on the node';
  return {
    state: never || condition.reason === 'Error' ? 'failing' : 'waiting',
    cause: `Resize${condition.reason ?? 'Pending'}`,
    sentence: `The pod is ready, but its resize ${how}.`,
    evidence: [`${condition.type}: ${shortly(condition.message ?? '')}`],
    todo: never ? 'Ask for less, or delete the pod so that it is placed elsewhere.' : '',
  };
};

const ready: Rule = (facts) => {
  if (!isReady(facts)) return undefined;
  const { containerStatuses = [] } = facts.status;
  for (const status of containerStatuses) {
    const found = livenessFailing(facts, status, 'main');
    if (found !== undefined) return found;
  }
  const restarts = containerStatuses.filter((s) => s.restartCount > 0);
  return {
    state: 'ready',
    cause: 'Ready',
    sentence: 'The pod is ready.',
    evidence: restarts.map((s) => `container ${quote(s.name)} was restarted ${s.restartCount} times${lastEnd(s)}`),
    todo: '',
  };
};

const lastEnd = ({ lastState: { terminated } }: ContainerStatus): string =>
  terminated === undefined
    ? ''
    : `, last after exit code ${terminated.exitCode}${terminated.reason === undefined ? '' : ` (${terminated.reason})`}`;

const RULES: readonly Rule[] = [
  stopping,
  ended,
  resizing,
  ready,
  runtimeDown,
  notAdmitted,
  networkDown,
  waitsForTurn,
  volumesMissing,
  sandboxFailed,
  initContainers,
  mainContainers,
  readinessGates,
  underWay,
];

const unexplained = ({ status }: PodFacts): Why => ({
  state: 'progressing',
  cause: 'Unknown',
  sentence: `The pod is ${status.phase ?? 'new'}, and nothing is known that it waits for.`,
  evidence: [],
  todo: '',
});
