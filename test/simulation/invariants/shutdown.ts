// A machine that is shut down in order: its pods end first, those that others need last, all within the configured time.
import type { World } from '../world/world.ts';
import { podNameOf, uidOf, type SeenPod } from './violation.ts';

type Report = (invariant: string, text: string) => void;

/** A fault in this time before a shutdown may still be felt in it. */
const QUIET_MS = 120_000;
/** As configured, and a moment. */
const TOTAL_MS = 65_000;
const REGULAR_MS = 40_000;

const isCritical = (seen: SeenPod | undefined): boolean => seen?.kind === 'critical';

export function watchShutdowns(world: World, pods: () => ReadonlyMap<string, SeenPod>, report: Report): void {
  const { logind, scheduler, faults, agent } = world;
  if (logind === undefined) return;
  let begun: { readonly atMs: number; readonly disturbances: number; readonly isQuiet: boolean } | undefined;
  logind.onAnnounced = () => {
    const atMs = scheduler.monotonic();
    const { readyAtMs = Infinity } = agent;
    const isQuiet = atMs - faults.lastMs > QUIET_MS && atMs - readyAtMs > QUIET_MS && logind.isHeldUp;
    // It is a disturbance itself.
    begun = { atMs, disturbances: faults.disturbances + 1, isQuiet };
  };
  const isUndisturbed = (): boolean => begun?.isQuiet === true && begun.disturbances === faults.disturbances;
  logind.onDown = () => {
    if (!isUndisturbed() || begun === undefined) return;
    const tookMs = scheduler.monotonic() - begun.atMs;
    if (tookMs > TOTAL_MS) report('ends before the machine does', `the machine was held up for ${tookMs} ms`);
    for (const container of world.running())
      report('ends before the machine does', `${podNameOf(container)} runs when the machine goes down`);
  };
  const called = world.onCall;
  world.onCall = (verb, request) => {
    called(verb, request);
    if (verb !== 'StopContainer' || !logind.isPreparing || !isUndisturbed() || begun === undefined) return;
    const { containerId = '' } = request as { containerId?: string };
    const stopped = world.runtime.state.containers.get(containerId);
    const seen = pods().get(stopped === undefined ? '' : uidOf(stopped));
    if (!isCritical(seen) || seen?.isDeleting === true || scheduler.monotonic() - begun.atMs > REGULAR_MS) return;
    const left = world.running().find((c) => pods().has(uidOf(c)) && !isCritical(pods().get(uidOf(c))));
    if (left !== undefined)
      report('ends before the machine does', `${seen?.pod.metadata.name} ends, and ${podNameOf(left)} still runs`);
  };
}
