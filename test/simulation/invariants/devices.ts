// Devices and CPUs of their own: none is with two containers that run, a pod that runs keeps what it has when the agent starts
// anew, and what nobody has can be given out.
import { ContainerState } from '../../../src/cri/gen/cri.ts';
import { tryParseCpuSet } from '../../../src/core/cpuset.ts';
import type { Pod } from '../../../src/core/pod.ts';
import type { FakeContainer } from '../../fakes/fake-state.ts';
import { DEVICES_ENV, RESOURCE } from '../world/device-plugin.ts';
import type { World } from '../world/world.ts';
import { MINUTE, podNameOf, uidOf, type Invariant, type SeenPod } from './violation.ts';

type Report = (invariant: string, text: string) => void;

const LAG_MS = 2 * MINUTE;
const CARDS = 10;
/** What a pod had may be held for so long after its object is gone. */
const HELD_MS = 2 * MINUTE;

const devicesOf = (container: FakeContainer): readonly string[] => {
  const text = container.config.envs.find(({ key }) => key === DEVICES_ENV)?.value.toString() ?? '';
  return text.split(',').filter(Boolean);
};

/** Told when a container starts: a device cannot be taken back from one that runs. */
export function watchDevices(world: World, report: Report): void {
  const { state } = world.runtime;
  const start = state.startContainer.bind(state);
  state.startContainer = (id) => {
    start(id);
    const started = state.containers.get(id);
    if (started?.state !== ContainerState.CONTAINER_RUNNING) return;
    const own = new Set(devicesOf(started));
    for (const other of own.size === 0 ? [] : world.running())
      if (other !== started && devicesOf(other).some((device) => own.has(device)))
        report('no device twice', `${podNameOf(started)} and ${podNameOf(other)} both have ${[...own].join()}`);
  };
  watchRefusals(world, report);
}

const wantedBy = (pod: Pod): number =>
  pod.spec.containers.reduce((sum, c) => sum + Number(c.resources?.limits?.[RESOURCE] ?? 0), 0);

/** A pod is refused for want of devices only where there may be too few. */
function watchRefusals(world: World, report: Report): void {
  const { api, scheduler, faults } = world;
  /** Nobody gets devices while one runs of which no record says which devices it has. */
  const isUnknown = (): boolean => world.running().some(({ id }) => world.state.forgotten.has(id));
  const wanted = new Map<string, number>();
  api.store.onChange(({ resource, type, now, before }) => {
    if (resource !== 'pods') return;
    const pod = now.object as unknown as Pod;
    const { uid = '', name } = pod.metadata;
    if (wantedBy(pod) === 0) return;
    if (type === 'DELETED') return void scheduler.after(HELD_MS, () => wanted.delete(uid), scheduler.world);
    wanted.set(uid, wantedBy(pod));
    const was = (before?.object as unknown as Pod | undefined)?.status?.phase;
    const { phase, message = '', reason } = pod.status ?? {};
    if (phase !== 'Failed' || was === 'Failed' || !message.includes(RESOURCE)) return;
    const all = [...wanted.values()].reduce((sum, count) => sum + count, 0);
    if (isUnknown() && message.includes('does not name')) return;
    if (all <= CARDS && scheduler.monotonic() - faults.lastMs > 3 * MINUTE)
      report('devices given back', `${name} was refused (${reason}: ${message}) with ${all} of ${CARDS} in use`);
  });
}

/** CPUs may change hands while containers run: they are told so a moment later. */
export const noCpuTwice: Invariant = ({ pods, running, overdue }) => {
  const pinned = running.filter((c) => isPinned(pods.get(uidOf(c))));
  return pinned.flatMap((container) => {
    const own = cpusOf(container);
    return running
      .filter((other) => other !== container && [...cpusOf(other)].some((cpu) => own.has(cpu)))
      .filter((other) => overdue(`cpus ${container.id} ${other.id}`, LAG_MS))
      .map((other) => `${podNameOf(container)} and ${podNameOf(other)} share CPUs of ${[...own].join()}`);
  });
};

/** Guaranteed, with whole CPUs, or the crashing kind with one. */
const isPinned = (seen: SeenPod | undefined): boolean => seen?.kind === 'pinned';

const cpusOf = ({ resources }: FakeContainer): ReadonlySet<number> =>
  tryParseCpuSet(resources?.cpusetCpus ?? '') ?? new Set();
