// Every cgroup that the container metrics show: the machine, its services, the classes of pods, pods, sandboxes and
// containers, each with the labels dashboards join on.
import type { PodUid } from '../core/ids.ts';
import type { ObservedContainer, ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import type { Detail } from '../host/cgroups/statistics.ts';
import { descriptorsOf, openFilesLimitOf, type InterfaceCounters } from '../host/proc.ts';
import type { ContainerLabels, ContainerReading, MachineFilesystem } from './cadvisor-families.ts';
import type { Census, CgroupPlaces } from './census.ts';
import { ROOT } from './cgroup-readings.ts';
import type { Disks, Layers } from './filesystems.ts';
import type { Reading } from './summary.ts';

export type ContainerReadingsDeps = {
  readonly cgroups: { read(path: string, detail: Detail, signal: AbortSignal): Promise<Reading | undefined> };
  readonly source: {
    createdMs(path: string): Promise<number>;
    procs(path: string, signal: AbortSignal): Promise<readonly number[]>;
    procsOfContainer(path: string, signal: AbortSignal): Promise<readonly number[]>;
  };
  readonly root: (signal: AbortSignal) => Promise<Reading>;
  readonly bootMs: () => Promise<number>;
  readonly interfaces: (pid: number) => Promise<readonly InterfaceCounters[] | undefined>;
  /** What a sandbox is made from, empty when the runtime does not say. */
  readonly sandboxImage: (sandboxId: string, signal: AbortSignal) => Promise<string>;
};

type Cgroup = {
  readonly path: string;
  readonly labels: Omit<ContainerLabels, 'id'>;
  readonly kind: 'plain' | 'container' | 'sandbox';
  /** Cgroups whose processes are in the same network as the sandbox, which may have none itself. */
  readonly alsoIn?: readonly string[];
  readonly sandboxId?: string;
  /** When the runtime made it, if it says. */
  readonly startMs?: number;
  readonly filesystems?: readonly MachineFilesystem[];
};

const INIT = 1;
const NO_LABELS = { name: '', image: '', pod: '', namespace: '', container: '' };

export class ContainerReadings {
  readonly #deps: ContainerReadingsDeps;
  readonly #places: CgroupPlaces;
  readonly #runtimeName: string;

  constructor(deps: ContainerReadingsDeps, opts: { readonly places: CgroupPlaces; readonly runtimeName: string }) {
    this.#deps = deps;
    this.#places = opts.places;
    this.#runtimeName = opts.runtimeName;
  }

  async all(
    census: Census,
    snapshots: readonly PodSnapshot[],
    disks: Disks,
    signal: AbortSignal,
  ): Promise<readonly ContainerReading[]> {
    const byUid = new Map(snapshots.map((snapshot) => [snapshot.uid, snapshot]));
    const [machine, ...rest] = await Promise.all([
      this.#machine(disks, signal),
      ...this.#plain().map((cgroup) => this.#read(cgroup, signal)),
      ...[...census].flatMap(([uid]) =>
        this.#ofPod(uid, census, byUid.get(uid), disks.layers).map((c) => this.#read(c, signal)),
      ),
    ]);
    return [machine, ...rest].filter((reading) => reading !== undefined);
  }

  #plain(): readonly Cgroup[] {
    const { tiers, system } = this.#places;
    const paths = new Set([...system.map(({ path }) => path), ...tiers]);
    paths.delete(ROOT);
    return [...paths].map((path) => ({ path, labels: NO_LABELS, kind: 'plain' }));
  }

  #ofPod(
    uid: PodUid,
    census: Census,
    snapshot: PodSnapshot | undefined,
    layers: Layers | undefined,
  ): readonly Cgroup[] {
    const cgroup = census.get(uid);
    if (cgroup === undefined) return [];
    const pod = { pod: snapshot?.name ?? '', namespace: snapshot?.namespace ?? '' };
    const names = namesIn(this.#runtimeName, snapshot);
    const members = [...cgroup.members].map(([id, path]): Cgroup => {
      const container = snapshot?.containers.find((c) => c.id === id);
      if (container !== undefined) {
        const labels = { ...names.container(container), image: container.image, ...pod };
        const layer = layers?.get(id);
        const filesystems = layer === undefined ? {} : { filesystems: [layer] };
        return { path, labels, kind: 'container', startMs: Number(container.createdAt) / 1e6, ...filesystems };
      }
      const sandbox = snapshot?.sandboxes.find((s) => s.id === id);
      if (sandbox === undefined) return { path, labels: NO_LABELS, kind: 'plain' };
      const labels = { ...names.sandbox(sandbox), image: '', ...pod };
      const alsoIn = snapshot?.containers.flatMap((c) => cgroup.members.get(c.id) ?? []) ?? [];
      return { path, labels, kind: 'sandbox', startMs: Number(sandbox.createdAt) / 1e6, alsoIn, sandboxId: id };
    });
    return [{ path: cgroup.path, labels: { ...NO_LABELS, ...pod }, kind: 'plain' }, ...members];
  }

  async #machine({ filesystems }: Disks, signal: AbortSignal): Promise<ContainerReading> {
    const [{ atMs, stats }, startMs, interfaces, processes] = await Promise.all([
      this.#deps.root(signal),
      this.#deps.bootMs(),
      this.#deps.interfaces(INIT),
      this.#processes(ROOT, INIT, signal),
    ]);
    return {
      labels: { id: ROOT, ...NO_LABELS },
      atMs,
      startMs,
      stats,
      processes,
      ...(interfaces === undefined ? {} : { interfaces }),
      filesystems,
    };
  }

  async #read(
    { path, labels, kind, startMs, alsoIn, sandboxId, filesystems }: Cgroup,
    signal: AbortSignal,
  ): Promise<ContainerReading | undefined> {
    const { cgroups, source, sandboxImage } = this.#deps;
    const [reading, bornMs, pids] = await Promise.all([
      cgroups.read(path, 'full', signal),
      startMs ?? source.createdMs(path),
      kind === 'plain' ? source.procs(path, signal) : source.procsOfContainer(path, signal),
    ]);
    if (reading === undefined) return undefined;
    const first = kind === 'plain' ? undefined : pids[0];
    const [processes, interfaces, image] = await Promise.all([
      this.#processesOf(pids, first, signal),
      kind === 'sandbox' ? this.#interfaces(first, alsoIn ?? [], signal) : undefined,
      kind === 'sandbox' && sandboxId !== undefined ? sandboxImage(sandboxId, signal) : labels.image,
    ]);
    return {
      labels: { id: path, ...labels, image },
      atMs: reading.atMs,
      startMs: bornMs,
      stats: reading.stats,
      processes,
      ...(interfaces === undefined ? {} : { interfaces }),
      ...(filesystems === undefined ? {} : { filesystems }),
    };
  }

  async #interfaces(
    first: number | undefined,
    alsoIn: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly InterfaceCounters[] | undefined> {
    if (first !== undefined) return this.#deps.interfaces(first);
    for (const path of alsoIn) {
      const [pid] = await this.#deps.source.procsOfContainer(path, signal);
      if (pid !== undefined) return this.#deps.interfaces(pid);
    }
    return undefined;
  }

  async #processes(
    path: string,
    first: number,
    signal: AbortSignal,
  ): Promise<NonNullable<ContainerReading['processes']>> {
    return this.#processesOf(await this.#deps.source.procs(path, signal), first, signal);
  }

  async #processesOf(
    pids: readonly number[],
    first: number | undefined,
    signal: AbortSignal,
  ): Promise<NonNullable<ContainerReading['processes']>> {
    const [{ files, sockets }, maxOpenFiles] = await Promise.all([
      descriptorsOf(pids, signal),
      first === undefined ? undefined : openFilesLimitOf(first),
    ]);
    return { count: pids.length, files, sockets, ...(maxOpenFiles === undefined ? {} : { maxOpenFiles }) };
  }
}

type Named = Pick<ContainerLabels, 'name' | 'container'>;

/** cAdvisor calls what CRI-O runs by Docker's old names and its sandboxes POD; with containerd a name is the id. */
function namesIn(
  runtimeName: string,
  pod: PodSnapshot | undefined,
): { container(c: ObservedContainer): Named; sandbox(s: ObservedSandbox): Named } {
  const crio = (container: string, attempt: number): string =>
    ['k8s', container, pod?.name, pod?.namespace, pod?.uid, attempt].join('_');
  return runtimeName === 'cri-o'
    ? {
        container: ({ name, attempt }) => ({ name: crio(name, attempt), container: name }),
        sandbox: ({ attempt }) => ({ name: crio('POD', attempt), container: 'POD' }),
      }
    : {
        container: ({ id, name }) => ({ name: id, container: name }),
        sandbox: ({ id }) => ({ name: id, container: '' }),
      };
}
