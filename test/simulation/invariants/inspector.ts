// Looks at the world every few seconds and asks every invariant. The first violation ends a run.
import type { Pod } from '../../../src/core/pod.ts';
import { kindOf } from '../workload/pods.ts';
import { CGROUP_ROOT } from '../world/host.ts';
import { loopsOf } from '../world/loop-devices.ts';
import { MANIFESTS } from '../world/perform.ts';
import type { World } from '../world/world.ts';
import { claimsIn, devicesGivenBack, devicesMapped, growthArrives, type BlockView } from './block-volumes.ts';
import { bounded } from './bounded.ts';
import { claimHealthIsTold, claimsGivenBack, claimsStillThere, watchClaims } from './claims.ts';
import { volumesGivenBack, volumesStillThere } from './csi-volumes.ts';
import { noCpuTwice, watchDevices } from './devices.ts';
import { cordonIsKept, watchLeftAlone } from './drain.ts';
import { givenBack } from './given-back.ts';
import { watchGone } from './gone-stays-gone.ts';
import { watchMemory } from './memory.ts';
import { Refusals, RestartCounts, watchCalls } from './moments.ts';
import { newsArrives } from './news-arrives.ts';
import { nodeIsAlive } from './node-is-alive.ts';
import { nothingElseRuns } from './nothing-else-runs.ts';
import { resizeArrives } from './resize-arrives.ts';
import { watchShutdowns } from './shutdown.ts';
import { statusIsTrue } from './status-is-true.ts';
import { stillThere } from './still-there.ts';
import { stopsInTime } from './stops-in-time.ts';
import { unmountedAtTheEnd } from './unmounted-at-the-end.ts';
import type { Invariant, SeenPod, View, Violation } from './violation.ts';
import { wantedRuns } from './wanted-runs.ts';

export const INVARIANTS: Readonly<Record<string, Invariant>> = {
  'nothing else runs': nothingElseRuns,
  'stops in time': stopsInTime,
  'wanted runs': wantedRuns,
  'status is true': statusIsTrue,
  'given back': givenBack,
  'unmounted at the end': unmountedAtTheEnd,
  'still there': stillThere,
  'news arrives': newsArrives,
  'resize arrives': resizeArrives,
  'node is alive': nodeIsAlive,
  'cordon is kept': cordonIsKept,
  bounded,
  'no CPU twice': noCpuTwice,
  'volumes given back': volumesGivenBack,
  'volumes still there': volumesStillThere,
  'claims given back': claimsGivenBack,
  'claims still there': claimsStillThere,
  'health of devices is told': claimHealthIsTold,
  'devices are mapped': devicesMapped,
  'block volumes given back': devicesGivenBack,
  'growth arrives': growthArrives,
};

/** A collection is read, or watched. */
const LIST = /[?&](limit|resourceVersionMatch|watch)=/;
const PODS_DIR = '/var/lib/kubelet/pods';
const MIRROR = 'kubernetes.io/config.mirror';
/** An agent that ends within this time of a fault may have ended because of it: no call waits longer. */
const EXCUSED_MS = 180_000;
/** Looks that may be left out one after the other: there is one a minute at least. */
const MOST_SKIPPED = 5;

export class Inspector {
  readonly violations: Violation[] = [];
  mostPods = 0;
  readonly #world: World;
  readonly #since = new Map<string, number>();
  readonly #counts = new RestartCounts();
  readonly #refusals = new Refusals();
  #asked = new Set<string>();
  /** When, in calm time, the first of what is waited for is overdue. */
  #nextDueMs = Infinity;
  #seenPods: { readonly changes: number; readonly pods: ReadonlyMap<string, SeenPod> } | undefined;
  #requests: { readonly atMs: number; readonly isList: boolean }[] = [];
  #crashesSeen = 0;
  #runtimeChanges = 0;
  #seenAt = '';
  #skipped = 0;

  constructor(world: World) {
    this.#world = world;
    const report = (invariant: string, text: string): void => this.report(invariant, text);
    watchCalls(
      world,
      () => this.#pods(),
      () => this.#manifests(),
      report,
    );
    watchGone(world, report);
    watchLeftAlone(world, report);
    watchClaims(world, () => this.#pods(), report);
    watchShutdowns(world, () => this.#pods(), report);
    if (world.hasNuma) watchMemory(world, report);
    if (world.devices !== undefined) watchDevices(world, report);
    const send = world.runtime.state.onEvent;
    world.runtime.state.onEvent = (event) => {
      this.#runtimeChanges++;
      send(event);
    };
    const served = world.api.onServed;
    world.api.onServed = (request, status) => {
      served(request, status);
      const isList = request.method === 'GET' && LIST.test(request.path);
      this.#requests.push({ atMs: world.scheduler.monotonic(), isList });
    };
  }

  /** Where nothing changed and nothing that is waited for is overdue there is nothing new to see. */
  #isQuiet(): boolean {
    const { api, files, faults, crashes } = this.#world;
    const at = `${api.changes} ${files.changes} ${this.#runtimeChanges} ${faults.active.length} ${crashes.length}`;
    const isDue = faults.calmMs > this.#nextDueMs;
    const isQuiet = at === this.#seenAt && !isDue && this.#skipped < MOST_SKIPPED;
    this.#seenAt = at;
    this.#skipped = isQuiet ? this.#skipped + 1 : 0;
    return isQuiet;
  }

  look(): void {
    const { faults, scheduler, crashes } = this.#world;
    if (this.#isQuiet()) return;
    const view = this.#view();
    this.mostPods = Math.max(this.mostPods, view.pods.size);
    this.#asked = new Set();
    this.#nextDueMs = Infinity;
    for (const [name, check] of Object.entries(INVARIANTS)) for (const text of check(view)) this.report(name, text);
    for (const key of this.#since.keys()) if (!this.#asked.has(key)) this.#since.delete(key);
    const report = (invariant: string, text: string): void => this.report(invariant, text);
    this.#counts.look(view.pods.values(), report);
    this.#refusals.look(view, this.#world.boots, report);
    for (const reason of crashes.slice(this.#crashesSeen))
      if (reason.startsWith('unhandled') || scheduler.monotonic() - faults.lastMs > EXCUSED_MS)
        this.report('the agent does not end by itself', reason);
    this.#crashesSeen = crashes.length;
  }

  report(invariant: string, text: string): void {
    this.violations.push({ invariant, atMs: this.#world.scheduler.monotonic(), text });
    this.#world.trace(`VIOLATION ${invariant}: ${text}`);
  }

  #overdue(key: string, boundMs: number): boolean {
    const now = this.#world.faults.calmMs;
    this.#asked.add(key);
    const since = this.#since.get(key) ?? now;
    this.#since.set(key, since);
    this.#nextDueMs = Math.min(this.#nextDueMs, since + boundMs);
    return now - since > boundMs;
  }

  #pods(): ReadonlyMap<string, SeenPod> {
    const { store, changes } = this.#world.api;
    if (this.#seenPods?.changes === changes) return this.#seenPods.pods;
    const pods = new Map<string, SeenPod>();
    for (const { object } of store.list('pods')) {
      const pod = object as unknown as Pod;
      if (pod.metadata.annotations?.[MIRROR] !== undefined) continue;
      const kind = pod.metadata.labels?.['kind'] ?? '';
      const { phase } = pod.status ?? {};
      pods.set(pod.metadata.uid ?? '', {
        uid: pod.metadata.uid ?? '',
        pod,
        kind,
        fate: kindOf(kind).fate,
        isDeleting: pod.metadata.deletionTimestamp !== undefined,
        hasEnded: phase === 'Failed' || phase === 'Succeeded',
      });
    }
    this.#seenPods = { changes, pods };
    return pods;
  }

  #view(): View {
    const { api, runtime, files, scheduler } = this.#world;
    const now = scheduler.monotonic();
    this.#requests = this.#requests.filter(({ atMs }) => now - atMs < 60_000);
    const node = api.store.get('nodes', 'n1')?.object as {
      spec?: { unschedulable?: boolean };
      status?: { conditions?: { type: string; status: string }[] };
    };
    const lease = api.store.get('coordination.k8s.io/leases', 'kube-node-lease/n1');
    const settings = api.store.get('configmaps', 'default/settings')?.object as { data?: Record<string, string> };
    return {
      pods: this.#pods(),
      manifests: this.#manifests(),
      running: this.#world.running(),
      containers: [...runtime.state.containers.values()],
      sandboxes: [...runtime.state.sandboxes.values()],
      mounts: files.mounts.map((m) => m.target),
      directories: new Set(this.#names(PODS_DIR)),
      cgroups: this.#cgroups(),
      logs: new Set(this.#names('/var/log/pods').map((name) => name.split('_')[2] ?? '')),
      fileOf: (uid, path) => this.#text(`${PODS_DIR}/${uid}/volumes/${path}`),
      configValue: settings.data?.['value'] ?? '',
      leaseVersion: lease === undefined ? '' : String(lease.revision),
      isNodeReady: node?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false,
      cordon: { isSet: node?.spec?.unschedulable === true, isWanted: this.#world.isCordoned },
      pendingEvents: scheduler.pending,
      openFiles: files.openDescriptors.length,
      requestsLastMinute: this.#requests.length,
      listsLastMinute: this.#requests.filter(({ isList }) => isList).length,
      csi: this.#world.csi,
      claims: this.#world.claims,
      block: this.#block(),
      overdue: (key, boundMs) => this.#overdue(key, boundMs),
    };
  }

  #block(): BlockView | undefined {
    const { block: driver, files, api } = this.#world;
    if (driver === undefined) return undefined;
    return {
      driver,
      loops: [...loopsOf(files).values()],
      linkOf: (uid, path) => {
        try {
          return files.get(`${PODS_DIR}/${uid}/${path}`, 'readlink', false).target;
        } catch {
          return undefined; // not there
        }
      },
      claims: claimsIn(api.store, driver.name),
    };
  }

  #names(path: string): readonly string[] {
    try {
      return [...this.#world.files.get(path, 'scandir').entries.keys()];
    } catch {
      return []; // not made yet
    }
  }

  #text(path: string): string | undefined {
    try {
      return this.#world.files.get(path, 'open').content.toString();
    } catch {
      return undefined; // not there
    }
  }

  #manifests(): Map<string, 'good' | 'broken'> {
    return new Map(
      this.#names(MANIFESTS)
        .filter((name) => name.endsWith('.json'))
        .map((name) => [
          name.replace(/\.json$/, ''),
          this.#text(`${MANIFESTS}/${name}`)?.endsWith('}') === true ? 'good' : 'broken',
        ]),
    );
  }

  #cgroups(): Set<string> {
    const tiers = ['', '/besteffort', '/burstable'];
    return new Set(
      tiers
        .flatMap((tier) => this.#names(`${CGROUP_ROOT}/kubepods${tier}`))
        .filter((name) => name.startsWith('pod'))
        .map((name) => name.slice(3)),
    );
  }
}
