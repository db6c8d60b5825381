// Memory of particular NUMA nodes: none is promised twice, a container that has some keeps its nodes over every restart, and
// what nobody has can be given out.
import { ContainerState } from '../../../src/cri/gen/cri.ts';
import { isSidecar, type Container, type Pod } from '../../../src/core/pod.ts';
import { qosClassOf } from '../../../src/core/qos.ts';
import { bytesOf, quantity, toNumber } from '../../../src/core/quantity.ts';
import type { FakeContainer } from '../../fakes/fake-state.ts';
import { FEWEST_CPUS, NUMA_MEMORY } from '../world/numa.ts';
import type { World } from '../world/world.ts';
import { containerNameOf, MINUTE, podNameOf, uidOf } from './violation.ts';

type Report = (invariant: string, text: string) => void;

const TYPES = Object.keys(NUMA_MEMORY);
const GROUPS: readonly (readonly number[])[] = [[0], [1], [0, 1]];
/** What a pod had may be held for so long after its object is gone. */
const HELD_MS = 2 * MINUTE;

const allOf = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];
const asks = ({ resources }: Container, type: string): number => bytesOf(resources?.requests?.[type]);
const isManaged = (pod: Pod): boolean =>
  qosClassOf(pod) === 'Guaranteed' && allOf(pod).some((c) => asks(c, 'memory') > 0);
const nodesOf = ({ config }: FakeContainer): string => config.linux?.resources?.cpusetMems ?? '';

export function watchMemory(world: World, report: Report): void {
  /** Pods that have memory of their own, all there ever were. */
  const managed = new Map<string, Pod>();
  const places = new Map<string, string>();
  let losses = 0;
  world.api.store.onChange(({ resource, now }) => {
    const pod = now.object as unknown as Pod;
    const { uid = '' } = pod.metadata;
    if (resource === 'pods' && !managed.has(uid) && isManaged(pod)) managed.set(uid, pod);
  });
  const { state } = world.runtime;
  const start = state.startContainer.bind(state);
  state.startContainer = (id) => {
    start(id);
    const started = state.containers.get(id);
    const container = started === undefined ? undefined : specOf(managed, started);
    if (started?.state !== ContainerState.CONTAINER_RUNNING || container === undefined) return;
    if (losses !== world.state.memoryLosses) places.clear();
    losses = world.state.memoryLosses;
    checkPlace(places, managed, started, report);
    const others = world.running().filter((c) => !world.state.placeless.has(c.id));
    for (const text of promisedTwice(managed, others))
      report('no memory twice', `${podNameOf(started)} starts: ${text}`);
  };
  watchRefusals(world, report);
}

const specOf = (managed: ReadonlyMap<string, Pod>, container: FakeContainer): Container | undefined => {
  const pod = managed.get(uidOf(container));
  return pod === undefined ? undefined : allOf(pod).find(({ name }) => name === containerNameOf(container));
};

function checkPlace(
  places: Map<string, string>,
  managed: ReadonlyMap<string, Pod>,
  started: FakeContainer,
  report: Report,
): void {
  const name = `${podNameOf(started)}/${containerNameOf(started)}`;
  const nodes = nodesOf(started);
  const { initContainers = [] } = managed.get(uidOf(started))?.spec ?? {};
  const isInit = initContainers.some((c) => c.name === containerNameOf(started) && !isSidecar(c));
  const key = `${uidOf(started)}/${containerNameOf(started)}`;
  // What such a one had may be another pod's by the time it runs again: then it has none of its own.
  if (isInit && places.has(key)) return;
  if (nodes === '') return report('memory keeps its place', `${name} starts without nodes of its own`);
  const before = places.get(key) ?? nodes;
  places.set(key, nodes);
  if (before !== nodes) report('memory keeps its place', `${name} had memory of ${before}, starts with ${nodes}`);
}

/** Of any group of nodes, what containers have that may take memory from these alone is no more than the group has. */
function promisedTwice(managed: ReadonlyMap<string, Pod>, running: readonly FakeContainer[]): readonly string[] {
  return TYPES.flatMap((type) =>
    GROUPS.flatMap((group) => {
      const within = running.filter(
        (c) =>
          nodesOf(c) !== '' &&
          nodesOf(c)
            .split(',')
            .every((n) => group.includes(Number(n))),
      );
      const sum = within.reduce((all, c) => all + amount(specOf(managed, c), type), 0);
      const has = group.reduce((all, node) => all + (NUMA_MEMORY[type]?.[node] ?? 0), 0);
      return sum > has
        ? [`${within.map(podNameOf).join()} have ${sum} of ${has} bytes of ${type} on ${group.join()}`]
        : [];
    }),
  );
}

const amount = (container: Container | undefined, type: string): number =>
  container === undefined ? 0 : asks(container, type);

/** A pod that would fit on each node, with all others on it, is not refused for want of memory. */
function watchRefusals({ api, scheduler, faults }: World, report: Report): void {
  const here = new Map<string, Pod>();
  api.store.onChange(({ resource, type, now, before }) => {
    if (resource !== 'pods') return;
    const pod = now.object as unknown as Pod;
    const { uid = '', name } = pod.metadata;
    if (qosClassOf(pod) !== 'Guaranteed') return;
    if (type === 'DELETED') return void scheduler.after(HELD_MS, () => here.delete(uid), scheduler.world);
    here.set(uid, pod);
    const was = (before?.object as unknown as Pod | undefined)?.status?.phase;
    const { phase, message = '', reason = '' } = pod.status ?? {};
    if (phase !== 'Failed' || was === 'Failed' || scheduler.monotonic() - faults.lastMs <= 3 * MINUTE) return;
    const isAboutMemory = message.includes('memorymanager') || reason === 'TopologyAffinityError';
    if (isAboutMemory && fitsAnywhere([...here.values()]))
      report(
        'memory given back',
        `${name} was refused (${reason}: ${message}), and there is enough for it on each node`,
      );
  });
}

function fitsAnywhere(pods: readonly Pod[]): boolean {
  const sum = (of: (container: Container) => number): number =>
    pods.flatMap(allOf).reduce((all, container) => all + of(container), 0);
  const cpus = sum(({ resources }) => Math.ceil(toNumber(quantity(resources?.requests?.['cpu']))));
  return (
    cpus <= FEWEST_CPUS && TYPES.every((type) => sum((c) => asks(c, type)) <= Math.min(...(NUMA_MEMORY[type] ?? [])))
  );
}
