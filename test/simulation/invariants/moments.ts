// Invariants of single calls to the runtime, checked when they are made: no container and no sandbox twice, nothing stopped
// or removed that somebody still needs, restart counts that only grow.
import { STEADY_CLAIM_KINDS } from '../workload/claim-pods.ts';
import { STEADY_MEMORY_KINDS } from '../workload/memory-pods.ts';
import type { World } from '../world/world.ts';
import { containerNameOf, podNameOf, uidOf, type SeenPod, type View } from './violation.ts';

type Report = (invariant: string, text: string) => void;

/** Kinds whose containers the agent itself may have a reason to stop: probes, hooks, deadlines, ends of a job. */
const STEADY = new Set([
  'long',
  'stubborn',
  'pair',
  'crashing',
  'prepared',
  'sidecar',
  'volumes',
  'web',
  'web-at-times',
  'claim',
  'claims',
  'inline',
  'block',
  'block-and-data',
  'growing',
  'device',
  'devices',
  'pinned',
  'daemon',
  ...STEADY_CLAIM_KINDS,
  ...STEADY_MEMORY_KINDS,
]);

/** Steady ones that ask for CPU: a critical pod for which there is not enough may take their place. */
const PREEMPTIBLE = new Set(['devices', 'pinned', ...STEADY_MEMORY_KINDS]);

/** `manifests`: names of static pods, also where the file is broken. */
export function watchCalls(
  world: World,
  pods: () => ReadonlyMap<string, SeenPod>,
  manifests: () => ReadonlyMap<string, unknown>,
  report: Report,
): void {
  const { state } = world.runtime;
  const start = state.startContainer.bind(state);
  state.startContainer = (id) => {
    start(id);
    const started = state.containers.get(id);
    if (started === undefined) return;
    const twins = world
      .running()
      .filter((c) => c.id !== id && uidOf(c) === uidOf(started) && containerNameOf(c) === containerNameOf(started));
    if (twins.length > 0) report('no container twice', `${podNameOf(started)}/${containerNameOf(started)} runs twice`);
  };
  const runSandbox = state.runSandbox.bind(state);
  state.runSandbox = (config, handler) => {
    const uid = config.metadata?.uid;
    const ready = [...state.sandboxes.values()].filter((s) => s.ready && s.config.metadata?.uid === uid);
    const made = runSandbox(config, handler);
    if (ready.length > 0) report('no sandbox twice', `${config.metadata?.name} gets a second sandbox`);
    return made;
  };
  world.onCall = (verb, request) => {
    const { containerId = '' } = request as { containerId?: string };
    if (verb !== 'StopContainer' && verb !== 'RemoveContainer') return;
    const container = state.containers.get(containerId);
    if (container === undefined || !world.running().includes(container) || !container.sandbox.ready) return;
    const seen = pods().get(uidOf(container));
    if (world.faults.isEvicting || world.logind?.isEnding === true) return;
    if (seen === undefined && manifests().has(podNameOf(container).replace(/-n1$/, '')))
      report('nothing needed is stopped', `${verb} of the static ${podNameOf(container)}, whose manifest is there`);
    if (seen === undefined || seen.isDeleting || seen.hasEnded || !STEADY.has(seen.kind)) return;
    const isCriticalHere = [...pods().values()].some(({ kind, hasEnded }) => kind === 'critical' && !hasEnded);
    if (PREEMPTIBLE.has(seen.kind) && isCriticalHere) return;
    report(
      'nothing needed is stopped',
      `${verb} of ${podNameOf(container)}/${containerNameOf(container)} (${seen.kind})`,
    );
  };
}

/** Restart counts by container; they only grow. */
export class RestartCounts {
  readonly #most = new Map<string, number>();

  look(pods: Iterable<SeenPod>, report: Report): void {
    for (const { uid, pod } of pods) {
      // A pod that was refused tells nothing of its containers any more.
      if (pod.status?.containerStatuses === undefined)
        for (const c of pod.spec.containers) this.#most.delete(`${uid}/${c.name}`);
      for (const { name, restartCount } of pod.status?.containerStatuses ?? []) {
        const key = `${uid}/${name}`;
        const most = this.#most.get(key) ?? 0;
        if (restartCount < most)
          report('restarts only grow', `${pod.metadata.name}/${name}: ${restartCount} restarts after ${most}`);
        this.#most.set(key, Math.max(most, restartCount));
      }
    }
  }
}

/** A pod whose containers run is not refused: the agent before this one took it in. */
export class Refusals {
  #alive = new Set<string>();
  #boots = 0;

  look({ pods, running }: View, boots: number, report: Report): void {
    for (const { uid, pod, kind, hasEnded } of pods.values())
      if (
        hasEnded &&
        boots === this.#boots &&
        this.#alive.has(uid) &&
        pod.status?.message?.startsWith(HOLDERS.has(kind) ? 'Pod was rejected' : REFUSED) === true
      )
        report('nothing that runs is refused', `${pod.metadata.name}: ${pod.status.message}`);
    this.#boots = boots;
    this.#alive = new Set(running.map((c) => uidOf(c)).filter((uid) => pods.get(uid)?.hasEnded === false));
  }
}

/** Pods with devices, CPUs or memory of their own, which they have already. */
const HOLDERS = new Set(['device', 'devices', 'pinned', ...STEADY_MEMORY_KINDS]);

/** For a pressure. Nobody schedules here: what pods ask for may be more than the node has, and then some are refused. */
const REFUSED = 'Pod was rejected: The node had condition';
