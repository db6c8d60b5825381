// What the agent finds of its own state when it starts: as the Go kubelet would have left it, as an older version left it, or
// damaged. The facts stay the same unless a file is damaged; then whoever ran is known by the runtime alone.
import {
  claimState,
  cpuManagerState,
  deviceState,
  goReads,
  resourceState,
  type DeviceEntry,
} from '../../golden/go-state.ts';
import { fnv1a32 } from '../../../src/core/go-json.ts';
import type { Random } from '../engine/random.ts';
import type { Inode } from '../engine/inode.ts';
import { putFile } from './host.ts';
import type { World } from './world.ts';

type Report = (invariant: string, text: string) => void;

const ROOT = '/var/lib/kubelet';
const CPUS = `${ROOT}/cpu_manager_state`;
const MEMORY = `${ROOT}/memory_manager_state`;
const DEVICES = `${ROOT}/device-plugins/kubelet_internal_checkpoint`;
const CLAIMS = `${ROOT}/dra_manager_state`;
const RESOURCES = [`${ROOT}/allocated_pods_state`, `${ROOT}/actuated_pods_state`] as const;
const SHUTDOWN = `${ROOT}/graceful_node_shutdown_state`;
const IMAGES = `${ROOT}/image_manager`;
/** What only this agent has. */
const PRIVATE = [`${ROOT}/node-page`] as const;
/** With one of these damaged a kubelet does not start, and somebody has to remove it. */
const STOPPING = new Set([CPUS, MEMORY, CLAIMS]);
const REPAIR_AGAIN_MS = 10_000;

/** The same facts, read and written by Go's own rules. */
const AS_GO: Readonly<Record<string, (text: string, random: Random) => string>> = {
  [CPUS]: (text) => {
    const { policyName, defaultCpuSet, entries = {} } = goReads.cpus(text);
    return policyName === 'static' ? cpuManagerState(defaultCpuSet, entries) : text;
  },
  [DEVICES]: (text, random) => {
    const entries = goReads.devices(text);
    const { Data } = JSON.parse(text) as { Data: { RegisteredDevices: Record<string, string[]> } };
    return entries.length === 0 ? text : deviceState(inAnyOrder(entries, random), Data.RegisteredDevices);
  },
  [CLAIMS]: (text) => {
    const claims = goReads.claims(text) as object[];
    return claims.length === 0 ? text : claimState(claims);
  },
  [RESOURCES[0]]: (text) => resourceState(goReads.resources(text)),
  [RESOURCES[1]]: (text) => resourceState(goReads.resources(text)),
};

/** Go walks its maps in another order each time. */
function inAnyOrder(entries: readonly DeviceEntry[], random: Random): readonly DeviceEntry[] {
  return entries
    .map((entry) => ({ entry, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ entry }) => entry);
}

export class StateFiles {
  readonly #world: World;
  /** What was written into a file on purpose and makes no sense. */
  readonly #damaged = new Map<string, string>();
  /** Containers that ran when the record of who has which devices was damaged: nobody knows any more what they have. */
  readonly forgotten = new Set<string>();
  /** Those that ran when the record of who has which memory was damaged, and how often it was. */
  readonly placeless = new Set<string>();
  memoryLosses = 0;
  report: Report = () => undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** A Go kubelet had the node meanwhile: it read all there was, and left it in its own format. */
  leaveAsGo(random: Random): void {
    for (const [path, rewrite] of Object.entries(AS_GO)) {
      const text = this.#read(path);
      if (text === undefined || this.#damaged.get(path) === text) continue;
      let left = text;
      try {
        left = rewrite(text, random);
      } catch (err) {
        this.report('the Go kubelet can read it', `${path}: ${(err as Error).message}`);
      }
      this.#write(path, left);
    }
    for (const path of PRIVATE) this.#remove(path);
    // A write of its own that was cut off.
    this.#write(`${ROOT}/.cpu_manager_state${random.int(1, 2 ** 31)}`, '{"policyName":"sta');
  }

  /** A version before this one, which had fewer files, and fewer fields in them. */
  leaveAsOlder(random: Random): void {
    for (const path of RESOURCES)
      if (random.chance(0.3)) this.#remove(path);
      else if (random.chance(0.5)) this.#change(path, withoutPodLevel);
    if (random.chance(0.5)) this.#remove(IMAGES);
    if (this.#read(MEMORY)?.includes('"None"') === true && random.chance(0.5)) this.#remove(MEMORY);
    if (this.#read(CLAIMS)?.includes('List\\":null') === true && random.chance(0.5)) this.#remove(CLAIMS);
    if (random.chance(0.5)) this.#remove(SHUTDOWN);
    if (random.chance(0.5)) for (const path of this.#volumeRecords()) this.#change(path, withoutLaterFields);
  }

  /** Some files are cut off, empty, or full of what nobody wrote. */
  damage(random: Random): void {
    const found = [CPUS, MEMORY, DEVICES, CLAIMS, ...RESOURCES, SHUTDOWN, ...this.#filesBelow(IMAGES)];
    const certain = random.pick(found);
    for (const path of found) {
      const text = this.#read(path);
      if (text === undefined || (path !== certain && !random.chance(0.2))) continue;
      const bad = random.pick([
        '',
        text.slice(0, random.int(1, text.length)),
        random.bytes(64).toString('latin1'),
        text.replace(/\d/, (digit) => String((Number(digit) + 1) % 10)),
        '{}',
        'null',
      ]);
      if (!this.#write(path, bad)) continue;
      this.#damaged.set(path, bad);
      this.#world.trace(`damaged ${path}`);
      if (path === MEMORY && ++this.memoryLosses > 0)
        for (const { id } of this.#world.running()) this.placeless.add(id);
      if (path === CLAIMS) this.#world.claims?.loseRecords();
      if (path === DEVICES) for (const { id } of this.#world.running()) this.forgotten.add(id);
    }
  }

  /** Somebody read why the agent does not start. */
  repair(): void {
    const { scheduler } = this.#world;
    const left = [...STOPPING].filter(
      (path) => this.#damaged.get(path) === this.#read(path) && this.#damaged.has(path),
    );
    const isDone = left.map((path) => this.#remove(path)).every(Boolean);
    if (!isDone) scheduler.after(REPAIR_AGAIN_MS, () => this.repair(), scheduler.world);
  }

  #volumeRecords(): readonly string[] {
    return this.#filesBelow(`${ROOT}/pods`).filter((path) => path.endsWith('/vol_data.json'));
  }

  #filesBelow(path: string): readonly string[] {
    const { inode } = this.#find(path);
    if (inode === undefined) return [];
    if (inode.kind !== 'dir') return inode.kind === 'file' ? [path] : [];
    return [...inode.entries.keys()].flatMap((name) => this.#filesBelow(`${path}/${name}`));
  }

  #find(path: string): { readonly inode: Inode | undefined } {
    try {
      return this.#world.files.find(path, 'open', false);
    } catch {
      return { inode: undefined };
    }
  }

  #read(path: string): string | undefined {
    return this.#find(path).inode?.content.toString();
  }

  #change(path: string, change: (text: string) => string): void {
    const text = this.#read(path);
    if (text === undefined || this.#damaged.get(path) === text) return;
    this.#write(path, change(text));
  }

  /** On disk, not only in memory. False where the disk cannot be written. */
  #write(path: string, text: string): boolean {
    const { files } = this.#world;
    return this.#try(() => files.sync(putFile(files, path, text)));
  }

  #remove(path: string): boolean {
    const { files } = this.#world;
    const { inode } = this.#find(path);
    if (inode === undefined) return true;
    return this.#try(() => {
      if (inode.kind !== 'dir') return files.unlink(path);
      for (const name of inode.entries.keys()) this.#remove(`${path}/${name}`);
      files.rmdir(path);
    });
  }

  #try(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (err) {
      this.#world.trace(`failed: ${(err as Error).message}`);
      return false;
    }
  }
}

/** There were no resources of whole pods yet. */
function withoutPodLevel(text: string): string {
  const { data } = JSON.parse(text) as { data: string };
  const without = data.replaceAll(',"PodLevelResources":null', '');
  return JSON.stringify({ data: without, checksum: fnv1a32(`(string)${without}`) });
}

function withoutLaterFields(text: string): string {
  const { seLinuxMountContext: _, volumeLifecycleMode, ...rest } = JSON.parse(text) as Record<string, string>;
  return `${JSON.stringify(volumeLifecycleMode === 'Ephemeral' ? { ...rest, volumeLifecycleMode } : rest)}\n`;
}
