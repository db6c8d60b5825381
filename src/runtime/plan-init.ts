// The init part of the plan. Init containers are looked at from the last to the first: the newest one the runtime still
// knows tells how far initialisation got, and everything before it counts as done.
import { isSidecar, type Container } from '../core/pod.ts';
import { newestOf, type ObservedContainer } from '../core/snapshot.ts';
import { effectivePolicy, restartsAfterExit } from '../core/restart-policy.ts';
import { definitionChanged, killStep, needsResizeRestart, type KillStep, type PlanInput } from './plan-steps.ts';
import { initFailed } from './restart.ts';

export type InitPlan = {
  readonly outcome: 'waiting' | 'initialised' | 'killPod';
  readonly kills: readonly KillStep[];
  /** In spec order. */
  readonly starts: readonly Container[];
};

/** What one init container in sight means. */
type Finding = {
  readonly done?: boolean;
  readonly kill?: KillStep;
  readonly start?: boolean;
  readonly fatal?: boolean;
};

export function planInit(input: PlanInput): InitPlan {
  const { pod, snapshot } = input;
  const init = pod.spec.initContainers ?? [];
  let initialised = init.length === 0;
  // Exited ones do not count: they may belong to an earlier sandbox.
  const started = pod.spec.containers.some((c) => {
    const state = newestOf(snapshot, c.name)?.state;
    return state === 'created' || state === 'running';
  });
  let passed = started;
  if (started) initialised = true;
  const kills: KillStep[] = [];
  const starts = new Set<number>();
  for (let i = init.length - 1; i >= 0; i--) {
    const container = init[i];
    if (container === undefined) continue;
    const seen = newestOf(snapshot, container.name);
    if (seen === undefined) {
      if (passed && isSidecar(container)) starts.add(i);
      continue;
    }
    if (passed && !isSidecar(container)) continue;
    const finding = isSidecar(container) ? sidecarFinding(container, seen, input) : initFinding(container, seen, input);
    if (finding.fatal === true) return { outcome: 'killPod', kills: [], starts: [] };
    if (finding.kill !== undefined) kills.push(finding.kill);
    if (finding.start === true) starts.add(i);
    if (finding.done === true && !passed) {
      if (i === init.length - 1) initialised = true;
      else starts.add(i + 1);
    }
    passed = true;
  }
  if (!passed && init.length > 0) starts.add(0);
  return {
    outcome: initialised ? 'initialised' : 'waiting',
    kills,
    starts: init.filter((_, i) => starts.has(i)),
  };
}

const UNKNOWN = 'Init container is in "unknown" state, try killing it before restart';

function initFinding(container: Container, seen: ObservedContainer, { pod }: PlanInput): Finding {
  switch (seen.state) {
    case 'running':
      return {};
    case 'created':
      return { start: true };
    case 'exited':
      if (!initFailed(seen)) return { done: true };
      return mayRetry(container, seen, pod) ? { start: true } : { fatal: true };
    case 'unknown':
      // It may not have ended: there is no code for its rules.
      if (effectivePolicy(container, pod) === 'Never') return { fatal: true };
      return { kill: killStep('init', seen, UNKNOWN, 'unknown'), start: true };
    default:
      return seen.state satisfies never;
  }
}

/** A failed init container is retried unless its rules and policies say never; `OnFailure` covers an OOM with code 0. */
function mayRetry(container: Container, seen: ObservedContainer, pod: PlanInput['pod']): boolean {
  return restartsAfterExit(container, pod, seen.exitCode === 0 ? 137 : seen.exitCode);
}

function sidecarFinding(container: Container, seen: ObservedContainer, input: PlanInput): Finding {
  switch (seen.state) {
    case 'created':
    case 'exited':
      return { start: true };
    case 'unknown':
      return { kill: killStep('init', seen, UNKNOWN, 'unknown'), start: true };
    case 'running':
      return runningSidecar(container, seen, input);
    default:
      return seen.state satisfies never;
  }
}

function runningSidecar(container: Container, seen: ObservedContainer, input: PlanInput): Finding {
  const about = (text: string): string => `Init container ${container.name} ${text}`;
  if (container.startupProbe !== undefined) {
    const startup = input.probes.startup(seen.id);
    if (startup === 'failure')
      return { kill: killStep('init', seen, about('failed startup probe'), 'startupProbe'), start: true };
    if (startup !== 'success') return {};
  }
  if (definitionChanged(container, seen))
    return { done: true, kill: killStep('init', seen, about('definition changed'), 'changed'), start: true };
  if (container.livenessProbe !== undefined && input.probes.liveness(seen.id) === 'failure')
    return { done: true, kill: killStep('init', seen, about('failed liveness probe'), 'livenessProbe'), start: true };
  if (needsResizeRestart(container, input))
    return {
      done: true,
      kill: killStep('init', seen, `Container ${container.name} resize requires restart`, 'resize'),
      start: true,
    };
  return { done: true };
}
