// Why a container that runs is not started, not ready, or about to be restarted. Pure.
import { humanSpan } from '../core/human.ts';
import type { ContainerStatus, Probe } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { ContainerRule, PodFacts, ProbeFacts, Why } from './facts.ts';
import { eventMs, eventText, forSpan, quote, shortly } from './words.ts';

type Type = ProbeFacts['type'];

/** Failures in a row, up to now. */
function failing({ runs }: ProbeFacts): { readonly count: number; readonly sinceMs: number; readonly output: string } {
  const lastGood = runs.findLastIndex((r) => r.result === 'success' || r.result === 'warning');
  const bad = runs.slice(lastGood + 1);
  return { count: bad.length, sinceMs: bad[0]?.atMs ?? 0, output: bad.at(-1)?.output ?? '' };
}

function definition({ pod }: PodFacts, container: string, type: Type): Probe | undefined {
  const found = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((c) => c.name === container);
  return found?.[`${type}Probe`];
}

function probeText(probe: Probe | undefined): string {
  const { httpGet, tcpSocket, grpc, exec } = probe ?? {};
  if (httpGet !== undefined) return `HTTP GET ${httpGet.path ?? '/'} on port ${httpGet.port}`;
  if (tcpSocket !== undefined) return `TCP connection to port ${tcpSocket.port}`;
  if (grpc !== undefined) return `gRPC health check on port ${grpc.port}`;
  return exec === undefined ? 'probe' : `command ${(exec.command ?? []).join(' ')}`;
}

const CHECK = 'Check what the probe asks for, and whether the program listens there.';

function failed(facts: PodFacts, container: string, probe: ProbeFacts, consequence: string, state: Why['state']): Why {
  const { count, sinceMs, output } = failing(probe);
  const asked = definition(facts, container, probe.type);
  const title = {
    startup: 'StartupProbeFailing',
    readiness: 'ReadinessProbeFailing',
    liveness: 'LivenessProbeFailing',
  };
  return {
    state,
    cause: title[probe.type],
    sentence: `Container ${quote(container)} ${consequence}: its ${probe.type} probe (${probeText(asked)}) ${facts.steady === true ? 'keeps failing' : `has been failing${forSpan(facts, sinceMs)}`}.`,
    evidence: [
      `the last ${count} runs failed`,
      ...(output === '' ? [] : [`last answer: ${shortly(output.trim())}`]),
      `allowed: ${asked?.failureThreshold ?? 3} failures, one run every ${asked?.periodSeconds ?? 10} s, ${asked?.timeoutSeconds ?? 1} s each`,
    ],
    todo: CHECK,
    container,
  };
}

const probeOf = ({ probes }: PodFacts, container: string, type: Type): ProbeFacts | undefined =>
  probes.find((p) => p.container === container && p.type === type);

/** A probe has failed often enough: it is asked to end, and started again when it has. */
function beingStopped(facts: PodFacts, status: ContainerStatus, kind: 'liveness' | 'startup'): Why | undefined {
  const startedMs = parseTimeMs(status.state.running?.startedAt);
  const killing = facts.events.findLast(
    (e) =>
      e.reason === 'Killing' &&
      e.message?.includes(`${kind} probe`) === true &&
      e.involvedObject.fieldPath?.includes(`{${status.name}}`) === true,
  );
  if (killing === undefined || startedMs === 0 || eventMs(killing) < startedMs) return undefined;
  const asked = definition(facts, status.name, kind);
  const grace = asked?.terminationGracePeriodSeconds ?? facts.pod.spec.terminationGracePeriodSeconds ?? 30;
  const probe = probeOf(facts, status.name, kind);
  const output = probe === undefined ? '' : failing(probe).output;
  return {
    state: 'failing',
    cause: 'ProbeStops',
    sentence: `Container ${quote(status.name)} is being stopped because its ${kind} probe (${probeText(asked)}) failed; it is killed if it does not end within ${grace} s, and then started again.`,
    evidence: [eventText(killing), ...(output === '' ? [] : [`last answer: ${shortly(output.trim())}`])],
    todo: CHECK,
    container: status.name,
  };
}

/** It runs, but its startup probe did not succeed yet. */
export const notStarted: ContainerRule = (facts, status) => {
  if (status.state.running === undefined || status.started !== false) return undefined;
  const stopping = beingStopped(facts, status, 'startup');
  if (stopping !== undefined) return stopping;
  const probe = probeOf(facts, status.name, 'startup');
  if (probe !== undefined && failing(probe).count > 0)
    return failed(facts, status.name, probe, 'has not finished starting', 'waiting');
  if (definition(facts, status.name, 'startup') === undefined) return undefined;
  return notAskedYet(facts, status.name, 'startup');
};

export const notReady: ContainerRule = (facts, status, kind) => {
  if (status.state.running === undefined || status.ready || kind === 'init') return undefined;
  const stopping = beingStopped(facts, status, 'liveness');
  if (stopping !== undefined) return stopping;
  const liveness = probeOf(facts, status.name, 'liveness');
  if (liveness !== undefined && failing(liveness).count > 0)
    return failed(facts, status.name, liveness, 'will be restarted', 'failing');
  const probe = probeOf(facts, status.name, 'readiness');
  if (probe !== undefined && failing(probe).count > 0)
    return failed(facts, status.name, probe, 'runs but is not ready', 'waiting');
  if (definition(facts, status.name, 'readiness') !== undefined) return notAskedYet(facts, status.name, 'readiness');
  return {
    state: 'progressing',
    cause: 'ContainerStarted',
    sentence: `Container ${quote(status.name)} has just started.`,
    evidence: [],
    todo: '',
    container: status.name,
  };
};

/** Ready, but not for long if it goes on like this. */
export const livenessFailing: ContainerRule = (facts, status) => {
  const probe = status.state.running === undefined ? undefined : probeOf(facts, status.name, 'liveness');
  if (probe === undefined || failing(probe).count === 0) return undefined;
  const stopping = beingStopped(facts, status, 'liveness');
  if (stopping !== undefined) return stopping;
  return failed(facts, status.name, probe, 'will be restarted if this goes on', 'failing');
};

function notAskedYet(facts: PodFacts, container: string, type: Type): Why {
  const asked = definition(facts, container, type);
  const { containerStatuses = [], initContainerStatuses = [] } = facts.status;
  const status = [...containerStatuses, ...initContainerStatuses].find((s) => s.name === container);
  const firstMs = parseTimeMs(status?.state.running?.startedAt) + (asked?.initialDelaySeconds ?? 0) * 1000;
  const inMs = firstMs - facts.nowMs;
  const when = (): string => {
    if (inMs <= 1000) return 'has not answered yet';
    return facts.steady === true
      ? `is asked for the first time ${asked?.initialDelaySeconds ?? 0} s after its start`
      : `is asked for the first time in ${humanSpan(inMs)}`;
  };
  return {
    state: 'progressing',
    cause: type === 'startup' ? 'StartupProbePending' : 'ReadinessProbePending',
    sentence: `Container ${quote(container)} runs; its ${type} probe (${probeText(asked)}) ${when()}.`,
    evidence: [],
    todo: '',
    container,
  };
}
