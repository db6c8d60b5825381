// What to do next for a pod, from its spec and what the runtime shows. Pure: no clock, no I/O. Steps are in the order in
// which they are to be done; kills that stand together may run side by side.
import { containersOf, isSidecar, type Container, type ContainerKind, type Pod, type Probe } from '../core/pod.ts';
import type { SandboxId } from '../core/ids.ts';
import { effectivePolicy, matchingRule } from '../core/restart-policy.ts';
import { newestOf, type ObservedContainer, type PodSnapshot } from '../core/snapshot.ts';
import { planInit } from './plan-init.ts';
import {
  definitionChanged,
  killStep,
  needsResizeRestart,
  type KillReason,
  type KillStep,
  type PlanInput,
  type PodPlan,
  type PodStep,
  type ProbeResult,
} from './plan-steps.ts';
import { isResized, resizableContainers } from './resize-plan.ts';
import { shouldRestart } from './restart.ts';

export type SandboxNeed =
  | { readonly need: 'keep'; readonly id: SandboxId }
  | { readonly need: 'create'; readonly attempt: number; readonly replaces: SandboxId | undefined };

/** Whether the newest sandbox can be used. */
function sandboxNeed(pod: Pod, snapshot: PodSnapshot): SandboxNeed {
  const newest = snapshot.sandboxes[0];
  if (newest === undefined) return { need: 'create', attempt: 0, replaces: undefined };
  const attempt = newest.attempt + 1;
  const ready = snapshot.sandboxes.filter((s) => s.ready).length;
  if (ready > 1 || !newest.ready) return { need: 'create', attempt, replaces: newest.id };
  const hostNetwork = pod.spec.hostNetwork === true;
  if (newest.hostNetwork !== hostNetwork) return { need: 'create', attempt, replaces: undefined };
  if (!hostNetwork && newest.ips.length === 0) return { need: 'create', attempt, replaces: newest.id };
  return { need: 'keep', id: newest.id };
}

export function planPod(input: PlanInput): PodPlan {
  const removals = planRestartAll(input);
  const need = sandboxNeed(input.pod, input.snapshot);
  if (removals.length > 0) return { steps: removals, sandboxId: undefined };
  return need.need === 'create' ? planNewSandbox(input, need) : planKeptSandbox(input, need.id);
}

// ---- a rule asks for everything to start over ----

function planRestartAll({ pod, snapshot, restartingAll }: PlanInput): PodStep[] {
  if (pod.metadata.deletionTimestamp !== undefined) return [];
  const init = pod.spec.initContainers ?? [];
  const isSource = (container: Container): boolean => {
    const seen = newestOf(snapshot, container.name);
    return seen?.state === 'exited' && matchingRule(container, seen.exitCode) === 'RestartAllContainers';
  };
  const mainSources = pod.spec.containers.filter(isSource);
  const initSources = init.filter(isSource);
  if (mainSources.length + initSources.length === 0 && restartingAll !== true) return [];
  const others = (all: readonly Container[], sources: readonly Container[]): Container[] =>
    all.filter((c) => !sources.includes(c));
  const order = [
    ...others(pod.spec.containers, mainSources),
    ...others(init, initSources),
    ...mainSources,
    ...initSources,
  ];
  return order.flatMap(({ name }) =>
    snapshot.containers
      .filter((c) => c.name === name)
      .map((c): PodStep => ({ do: 'removeContainer', id: c.id, name, keepLogs: true })),
  );
}

// ---- the sandbox must be made (again) ----

function planNewSandbox(input: PlanInput, need: Extract<SandboxNeed, { need: 'create' }>): PodPlan {
  const { pod, snapshot } = input;
  const kill: PodStep[] = snapshot.sandboxes.length + snapshot.containers.length > 0 ? [{ do: 'killPod' }] : [];
  const onlyKill: PodPlan = { steps: kill, sandboxId: undefined };
  if (pod.spec.restartPolicy === 'Never' && need.attempt !== 0 && snapshot.containers.length > 0) return onlyKill;
  const wanted = pod.spec.containers.filter((c) => {
    const seen = newestOf(snapshot, c.name);
    return !(seen?.state === 'exited' && seen.exitCode === 0 && effectivePolicy(c, pod) === 'OnFailure');
  });
  const everCreated = pod.spec.containers.some((c) => newestOf(snapshot, c.name) !== undefined);
  if (wanted.length === 0 && everCreated) return onlyKill;
  const init = pod.spec.initContainers ?? [];
  const first = init[0];
  const purged = init.flatMap(({ name }) => snapshot.containers.filter((c) => c.name === name));
  const resize = resizeStep(input, resizableContainers(pod));
  return {
    sandboxId: undefined,
    steps: [
      ...kill,
      ...purged.map((c): PodStep => ({ do: 'removeContainer', id: c.id, name: c.name, keepLogs: false })),
      { do: 'createSandbox', attempt: need.attempt, replaces: need.replaces },
      ...(resize === undefined ? [] : [resize]),
      ...(first === undefined ? wanted.map((c) => start('main', c)) : [start('init', first)]),
    ],
  };
}

/** A failing regular init container ends the sync; a sidecar or main container does not hold up the others. */
function start(kind: ContainerKind, container: Container, leftover?: ObservedContainer): PodStep {
  const blocks = kind === 'init' && !isSidecar(container);
  const base = { do: 'startContainer', kind, name: container.name, blocks } as const;
  return leftover?.state === 'created' ? { ...base, leftover: leftover.id } : base;
}

// ---- the sandbox is kept ----

function planKeptSandbox(input: PlanInput, sandboxId: SandboxId): PodPlan {
  const { pod, snapshot } = input;
  const init = planInit(input);
  if (init.outcome === 'killPod') return { sandboxId, steps: [{ do: 'killPod' }] };
  const main = init.outcome === 'initialised' ? planMain(input) : { kills: [], starts: [], keeps: 0 };
  if (init.outcome === 'initialised' && main.keeps === 0 && main.starts.length === 0)
    return { sandboxId, steps: [{ do: 'killPod' }] };
  const kills = [...init.kills, ...main.kills];
  const ephemeral = (pod.spec.ephemeralContainers ?? []).filter((c) => newestOf(snapshot, c.name) === undefined);
  const resize = resizeStep(input, kills);
  return {
    sandboxId,
    steps: [
      ...superseded(pod, snapshot),
      ...kills,
      ...(init.starts.length > 0 ? prunedInit(pod, snapshot) : []),
      ...(resize === undefined ? [] : [resize]),
      ...ephemeral.map((c) => start('ephemeral', c)),
      ...init.starts.map((c) => start('init', c, newestOf(snapshot, c.name))),
      ...main.starts.map((c) => start('main', c, newestOf(snapshot, c.name))),
    ],
  };
}

/** A start whose answer was lost may come to life late, beside the instance that took its place. One may run. */
function superseded(pod: Pod, snapshot: PodSnapshot): KillStep[] {
  return [...containersOf(pod)].flatMap(({ kind, container: { name } }) =>
    snapshot.containers
      .filter((c) => c.name === name && c.state === 'running')
      .filter((c) => c !== newestOf(snapshot, name))
      .map((c) => killStep(kind, c, `Container ${name} runs beside a newer instance of itself`, 'superseded')),
  );
}

/** Of each init container only the newest ended instance is kept. */
function prunedInit(pod: Pod, snapshot: PodSnapshot): PodStep[] {
  return (pod.spec.initContainers ?? []).flatMap(({ name }) =>
    snapshot.containers
      .filter((c) => c.name === name && (c.state === 'exited' || c.state === 'unknown'))
      .slice(1)
      .map((c): PodStep => ({ do: 'removeContainer', id: c.id, name, keepLogs: false })),
  );
}

/** `restarting` get their values when they start; the pod's own cgroup gets its new ones in any case. */
function resizeStep({ pod, actuated }: PlanInput, restarting: readonly { name: string }[]): PodStep | undefined {
  if (actuated === undefined || !isResized(pod, actuated, () => true)) return undefined;
  return { do: 'resize', restarting: new Set(restarting.map((c) => c.name)) };
}

type MainPlan = { kills: KillStep[]; starts: Container[]; keeps: number };

function planMain(input: PlanInput): MainPlan {
  const { pod, snapshot } = input;
  const plan: MainPlan = { kills: [], starts: [], keeps: 0 };
  for (const container of pod.spec.containers) {
    const seen = newestOf(snapshot, container.name);
    if (seen?.state !== 'running') {
      if (!shouldRestart(container, pod, seen)) continue;
      if (seen?.state === 'unknown')
        plan.kills.push(
          killStep('main', seen, 'Container is in "unknown" state, try killing it before restart', 'unknown'),
        );
      plan.starts.push(container);
      continue;
    }
    const fault = faultOf(container, seen, input);
    if (fault === undefined) {
      plan.keeps++;
      continue;
    }
    const restarts = fault.always || effectivePolicy(container, pod) !== 'Never';
    const suffix = restarts && fault.reason !== 'resize' ? ', will be restarted' : '';
    plan.kills.push(killStep('main', seen, `Container ${container.name} ${fault.text}${suffix}`, fault.reason));
    if (restarts) plan.starts.push(container);
  }
  return plan;
}

type Faulty = { readonly text: string; readonly reason: KillReason; readonly always: boolean };

/** Why a running main container must go; undefined when it may stay. */
function faultOf(container: Container, seen: ObservedContainer, input: PlanInput): Faulty | undefined {
  if (definitionChanged(container, seen)) return { text: 'definition changed', reason: 'changed', always: true };
  if (failed(container.livenessProbe, input.probes.liveness(seen.id)))
    return { text: 'failed liveness probe', reason: 'livenessProbe', always: false };
  if (failed(container.startupProbe, input.probes.startup(seen.id)))
    return { text: 'failed startup probe', reason: 'startupProbe', always: false };
  if (needsResizeRestart(container, input)) return { text: 'resize requires restart', reason: 'resize', always: true };
  return undefined;
}

const failed = (probe: Probe | undefined, result: ProbeResult | undefined): boolean =>
  probe !== undefined && result === 'failure';
