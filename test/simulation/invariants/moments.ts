// Invariants of single calls to the runtime, checked when they are made: no container and no sandbox twice, nothing stopped
// or removed that somebody still needs, restart counts that only grow.
import type { World } from '../world/world.ts';
import { containerNameOf, podNameOf, uidOf, type SeenPod } from './violation.ts';

type Report = (invariant: string, text: string) => void;

/** Kinds whose containers the agent itself may have a reason to stop: probes, hooks, deadlines, ends of a job. */
const STEADY = new Set(['long', 'stubborn', 'pair', 'crashing', 'prepared', 'sidecar', 'volumes']);

export function watchCalls(world: World, podOf: (uid: string) => SeenPod | undefined, report: Report): void {
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
    if (ready.length > 0) report('no sandbox twice', `${config.metadata?.name} gets a second sandbox`);
    return runSandbox(config, handler);
  };
  world.onCall = (verb, request) => {
    const { containerId = '' } = request as { containerId?: string };
    if (verb !== 'StopContainer' && verb !== 'RemoveContainer') return;
    const container = state.containers.get(containerId);
    if (container === undefined || !world.running().includes(container) || !container.sandbox.ready) return;
    const seen = podOf(uidOf(container));
    if (world.faults.isEvicting) return;
    if (seen === undefined || seen.isDeleting || seen.hasEnded || !STEADY.has(seen.kind)) return;
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
    for (const { uid, pod } of pods)
      for (const { name, restartCount } of pod.status?.containerStatuses ?? []) {
        const key = `${uid}/${name}`;
        const most = this.#most.get(key) ?? 0;
        if (restartCount < most)
          report('restarts only grow', `${pod.metadata.name}/${name}: ${restartCount} restarts after ${most}`);
        this.#most.set(key, Math.max(most, restartCount));
      }
  }
}
