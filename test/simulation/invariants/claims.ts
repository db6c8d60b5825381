// Claimed devices: prepared before any container of their pod starts and for as long as one runs, unprepared when the last
// pod that uses them is over, and before its status tells so. That no two calls for a claim are under way is checked by the
// drivers themselves (`world/dra-driver.ts`).
import { ContainerState } from '../../../src/cri/gen/cri.ts';
import type { Pod } from '../../../src/core/pod.ts';
import type { FakeContainer } from '../../fakes/fake-state.ts';
import { STEADY_CLAIM_KINDS } from '../workload/claim-pods.ts';
import type { Claims, Holder } from '../world/claims.ts';
import type { World } from '../world/world.ts';
import { containerNameOf, MINUTE, podNameOf, uidOf, type Invariant, type SeenPod } from './violation.ts';

type Report = (invariant: string, text: string) => void;

const ORDER = 'claims in order';
const BOUND_MS = 3 * MINUTE;
const HEALTH_MS = 2 * MINUTE;

export function watchClaims(world: World, pods: () => ReadonlyMap<string, SeenPod>, report: Report): void {
  const { claims } = world;
  if (claims === undefined) return;
  const { state } = world.runtime;
  const start = state.startContainer.bind(state);
  state.startContainer = (id) => {
    start(id);
    const started = state.containers.get(id);
    if (started?.state === ContainerState.CONTAINER_RUNNING) checkStart(claims, started, report);
  };
  for (const driver of claims.drivers) {
    driver.report = report;
    driver.onCall = (verb, { uid, name }) => {
      const user = verb === 'prepare' || claims.forgotten.has(uid) ? undefined : userOf(world, claims, uid, pods());
      if (user !== undefined) report(ORDER, `${name} is unprepared by ${driver.name} while ${user} uses it`);
    };
  }
  watchEnds(world, claims, report);
}

function checkStart(claims: Claims, container: FakeContainer, report: Report): void {
  const holder = claims.holders.get(uidOf(container));
  if (holder === undefined) return;
  const name = `${podNameOf(container)}/${containerNameOf(container)}`;
  for (const { name: entry } of holder.pod.spec.resourceClaims ?? []) {
    const claim = holder.claims.get(entry) ?? '';
    if (claims.forgotten.has(claim)) continue;
    if (!claims.isPrepared(claim)) report(ORDER, `${name} starts and its claim ${entry} (${claim}) is not prepared`);
    const given = new Set(container.config.CDIDevices.map((device) => device.name));
    for (const { prepared } of usedBy(holder, container).has(entry) ? claims.drivers : []) {
      const wanted = prepared.get(claim);
      if (wanted !== undefined && !given.has(wanted)) report(ORDER, `${name} starts without ${wanted} of ${entry}`);
    }
  }
}

const usedBy = ({ pod }: Holder, container: FakeContainer): ReadonlySet<string> => {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const mine = all.find(({ name }) => name === containerNameOf(container));
  return new Set(mine?.resources?.claims?.map(({ name }) => name));
};

const holds = (claims: Claims, uid: string, claim: string): boolean =>
  [...(claims.holders.get(uid)?.claims.values() ?? [])].includes(claim);

/** A pod that has the claim: one of its containers runs, or it has a sandbox and nobody wants it to end. */
function userOf(world: World, claims: Claims, claim: string, pods: ReadonlyMap<string, SeenPod>): string | undefined {
  const running = world.running().find((container) => holds(claims, uidOf(container), claim));
  if (running !== undefined) return `${podNameOf(running)}, which runs,`;
  if (world.faults.isEvicting || world.logind?.isEnding === true) return undefined;
  const wanted = [...world.runtime.state.sandboxes.values()].find((sandbox) => {
    const seen = pods.get(uidOf(sandbox));
    if (!sandbox.ready || seen === undefined || !holds(claims, seen.uid, claim)) return false;
    return !seen.isDeleting && !seen.hasEnded && STEADY_CLAIM_KINDS.includes(seen.kind);
  });
  return wanted === undefined ? undefined : `${podNameOf(wanted)}, which is wanted,`;
}

/** Others may have a claim's devices as soon as the pod is said to be over; of a shared claim, one of several may be late. */
function watchEnds({ api }: World, claims: Claims, report: Report): void {
  const isOver = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  api.store.onChange(({ resource, type, now, before }) => {
    if (resource !== 'pods' || type === 'DELETED' || before === undefined) return;
    const pod = now.object as unknown as Pod;
    const { uid = '', name } = pod.metadata;
    if (!isOver(pod) || isOver(before.object as unknown as Pod)) return;
    // One that an agent refuses at its start has no worker: what it had before is given back within a minute, as upstream does.
    if (pod.status?.message?.startsWith('Pod was rejected') === true) return;
    for (const claim of claims.holders.get(uid)?.claims.values() ?? []) {
      const isShared = [...claims.holders.keys()].some((other) => other !== uid && holds(claims, other, claim));
      const left = claims.drivers.find(({ prepared }) => prepared.has(claim));
      if (left !== undefined && !isShared && !claims.forgotten.has(claim))
        report(ORDER, `${name} is said to be over while ${claims.known.get(claim)?.name} is prepared by ${left.name}`);
    }
  });
}

export const claimsGivenBack: Invariant = ({ claims, pods, running, overdue }) => {
  if (claims === undefined) return [];
  const alive = [
    ...[...pods.values()].filter(({ hasEnded }) => !hasEnded).map(({ uid }) => uid),
    ...running.map((c) => uidOf(c)),
  ];
  const used = new Set(alive.flatMap((uid) => [...(claims.holders.get(uid)?.claims.values() ?? [])]));
  return claims.drivers.flatMap(({ name: driver, prepared }) =>
    [...prepared.keys()]
      .filter((claim) => !used.has(claim) && !claims.forgotten.has(claim))
      .filter((claim) => overdue(`prepared ${driver} ${claim}`, BOUND_MS))
      .map((claim) => `${claims.known.get(claim)?.name} is still prepared by ${driver}, and no pod uses it`),
  );
};

export const claimsStillThere: Invariant = ({ claims, running }) =>
  claims === undefined
    ? []
    : running.flatMap((container) =>
        [...(claims.holders.get(uidOf(container))?.claims ?? [])]
          .filter(([, claim]) => !claims.isPrepared(claim) && !claims.forgotten.has(claim))
          .map(([entry]) => `${podNameOf(container)} runs and its claim ${entry} is not prepared`),
      );

/** The status of a container tells how its devices are. */
export const claimHealthIsTold: Invariant = ({ claims, pods, running, overdue }) => {
  if (claims === undefined) return [];
  return running.flatMap((container) => {
    const seen = pods.get(uidOf(container));
    const holder = claims.holders.get(uidOf(container));
    if (seen === undefined || holder === undefined || seen.isDeleting || seen.hasEnded) return [];
    const status = seen.pod.status?.containerStatuses?.find(({ name }) => name === containerNameOf(container));
    const told = new Map(status?.allocatedResourcesStatus?.map(({ name, resources }) => [name, resources]));
    return [...usedBy(holder, container)].flatMap((entry) => {
      const claim = holder.claims.get(entry) ?? '';
      const real = claims.drivers.filter(({ prepared }) => prepared.has(claim)).map((d) => d.healthOf(claim));
      const shown = told.get(`claim:${entry}`)?.map(({ health }) => health) ?? [];
      if (status === undefined || claims.forgotten.has(claim) || real.join() === shown.join()) return [];
      if (!overdue(`health ${container.id} ${entry} ${real.join()}`, HEALTH_MS)) return [];
      return [`${podNameOf(container)}: devices of ${entry} are ${real.join()}, told is ${shown.join() || 'nothing'}`];
    });
  });
};
