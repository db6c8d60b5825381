// A node with disks on a network, for random histories: a kernel whose commands take long or never seem to end, an agent
// that is killed at any time, an API server whose answers are lost, and a controller that detaches what is not in use.
// The agent's parts are the real ones, over a folder of the test.
import { createHook } from 'node:async_hooks';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Node } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import { Disks } from '../../host/block/disk.ts';
import type { ChildRun } from '../../host/mounts/child.ts';
import { ChildMounts } from '../../host/mounts/child-mounts.ts';
import type { HostCommands } from '../../host/mounts/commands.ts';
import { MountTable, type MountEntry } from '../../host/mounts/mount-table.ts';
import { HostMounter } from '../../host/mounts/mounter.ts';
import { abortable, withDeadline } from '../../lib/abort.ts';
import { KubeletError } from '../../lib/errors.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { Attachments } from '../attachments.ts';
import { VolumeLayout } from '../layout.ts';
import { VolumeManager } from '../manager.ts';
import { PodBinds } from '../pod-binds.ts';
import { PodDirs } from '../pod-dirs.ts';
import { SubPaths } from '../subpath.ts';
import { AttachedDiskPlugin, type DiskAttacher } from './attached-disk.ts';

export type Mood = 'fine' | 'slow' | 'stuck' | 'fails';
type Config = { readonly disk: string };
type Child = { readonly command: string; readonly disk: string; readonly run: number; readonly pid: number };

const PLUGIN = 'kubernetes.io/iscsi';
/** Pods and the disks they want. The first disk is for one pod at a time. */
export const PODS = { a: 'rwop', b: 'rwop', c: 'shared', d: 'shared' } as const;
export type PodName = keyof typeof PODS;
const DURATION: Readonly<Record<Mood, number>> = { fine: 0, slow: 4_000, stuck: 150_000, fails: 0 };
const nameOf = (disk: string): string => `${PLUGIN}/${disk}`;
const uidOf = (pod: string): string => `uid-${pod}`;

const podOf = (name: PodName): Pod => ({
  metadata: { name, namespace: 'd', uid: uidOf(name) },
  spec: {
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: PODS[name] } }],
    containers: [{ name: 'c', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
  },
});

export class DiskWorld {
  readonly root = mkdtempSync(join(tmpdir(), 'disks-'));
  readonly clock = new ManualClock();
  moods: Mood[] = [];
  reports: Mood[] = [];
  readonly wanted = new Set<PodName>();
  readonly deleted = new Set<PodName>();
  readonly attached = new Set<string>();
  entries: MountEntry[] = [];
  readonly children = new Set<Child>();
  readonly server = { version: 1, inUse: [] as readonly string[], attached: new Set<string>() };
  /** What must never happen, and did. */
  readonly violations: string[] = [];
  #formatted = new Set<string>();
  #ids = 0;
  #runs = 0;
  agent!: Agent;

  async start(order: readonly PodName[] = []): Promise<void> {
    watch.enable();
    this.agent = new Agent(this, ++this.#runs);
    await this.agent.begin(order);
  }

  /** The process is gone from one moment to the next; what it started goes on. */
  async kill(order: readonly PodName[]): Promise<void> {
    this.agent.isDead = true;
    await settle();
    await this.start(order);
  }

  want(pod: PodName): void {
    if (this.deleted.has(pod)) return;
    this.wanted.add(pod);
    this.control();
    this.agent.manager.setDesired(podOf(pod));
  }

  remove(pod: PodName): void {
    if (!this.wanted.delete(pod)) return;
    this.deleted.add(pod);
    this.agent.manager.podRemoved(uidOf(pod));
    this.control();
  }

  async advance(ms: number): Promise<void> {
    let left = ms;
    do {
      const slice = Math.min(left, ms > 10_000 ? 5_000 : 500);
      await settle();
      await this.clock.advance(slice);
      await this.agent.clock.advance(slice);
      await settle();
      this.#look();
      await this.#removeEnded();
      left -= slice;
    } while (left > 0);
  }

  async end(): Promise<void> {
    this.agent.isDead = true;
    await settle();
    watch.disable();
    rmSync(this.root, { recursive: true });
  }

  isHeld(disk: string): boolean {
    return this.entries.some((entry) => entry.source === disk) || [...this.children].some((one) => one.disk === disk);
  }

  table(): MountTable {
    return new MountTable(this.entries);
  }

  violated(what: string): void {
    this.violations.push(what);
  }

  /** The attach/detach controller. */
  control(): void {
    const wants = new Set([...this.wanted].map((pod) => PODS[pod] as string));
    for (const disk of wants) this.server.attached.add(disk);
    for (const disk of this.server.attached) {
      if (wants.has(disk) || this.server.inUse.includes(nameOf(disk))) continue;
      if (this.isHeld(disk)) this.violated(`the controller may detach ${disk} while it is held`);
      this.server.attached.delete(disk);
    }
    // The watch lags behind.
    const node = this.node();
    this.clock.after(3_000, () => this.agent.nodeSeen(node));
  }

  node(): Node {
    const volumesAttached = [...this.server.attached].map((disk) => ({ name: nameOf(disk), devicePath: '' }));
    return {
      metadata: { name: 'n', uid: 'n', resourceVersion: String(++this.server.version) },
      status: { volumesInUse: this.server.inUse, volumesAttached },
    };
  }

  /** A command begins; it ends by itself, whether or not its caller waits. */
  async command(command: string, args: readonly string[], run: number): Promise<ChildRun> {
    const device = args.at(command === 'mount' || command === 'stat' ? -2 : -1) ?? '';
    const target = args.at(-1) ?? '';
    if (command === 'blkid') return answer(this.#formatted.has(device) ? 0 : 2, 'TYPE=ext4');
    if (command === 'stat') return answer(0);
    if (command === 'umount') return this.#unmount(target, args.includes('--lazy'), run);
    if (args.includes('bind')) return this.#bind(device, target);
    const disk = command === 'mount' ? device : target;
    if (this.isHeld(disk)) return answer(32, 'busy');
    const mood = await this.#works(command, disk, run);
    if (mood === 'fails') return answer(32, 'it did not work');
    if (command === 'mount') this.#mounted(disk, target);
    else if (command.startsWith('mkfs')) this.#formatted.add(disk);
    return answer(0);
  }

  async #works(command: string, disk: string, run: number): Promise<Mood> {
    const mood = this.moods.shift() ?? 'fine';
    const child = { command, disk, run, pid: ++this.#ids };
    this.children.add(child);
    await this.#passes(DURATION[mood]);
    this.children.delete(child);
    return mood;
  }

  #passes(ms: number): Promise<void> {
    return ms === 0 ? Promise.resolve() : new Promise((resolve) => this.clock.after(ms, resolve));
  }

  #mounted(disk: string, target: string): void {
    const entry = { id: ++this.#ids, parentId: 1, device: `8:${disk.length}`, root: '/', target, options: 'rw' };
    this.entries.push({ ...entry, fsType: 'ext4', source: disk, shared: false });
  }

  #bind(source: string, target: string): ChildRun {
    const disk = this.table().at(source)?.source;
    if (disk === undefined) return answer(32, 'nothing is mounted there');
    const others = this.entries.filter((entry) => entry.source === disk && entry.target.includes('/pods/'));
    if (disk === 'rwop' && others.length > 0) this.violated('two pods have a volume that is for one');
    this.#mounted(disk, target);
    return answer(0);
  }

  /** The mount leaves the table at once. The last one of a disk is written out then. */
  async #unmount(target: string, isLazy: boolean, run: number): Promise<ChildRun> {
    const entry = this.unmount(target);
    if (entry === undefined) return answer(32, 'not mounted');
    if (this.entries.some((other) => other.source === entry.source)) return answer(0);
    const dir = join(this.root, 'proc', String(this.#ids + 1));
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'comm'), 'umount\n');
    writeFileSync(join(dir, 'cmdline'), `umount\0${target}\0`);
    writeFileSync(join(dir, 'stat'), `1 (umount) D ${'0 '.repeat(18)}7 0`);
    const works = this.#works('umount', entry.source, run).then(() => rmSync(dir, { recursive: true }));
    if (!isLazy) await works;
    return answer(0);
  }

  unmount(target: string): MountEntry | undefined {
    const entry = this.table().at(target);
    this.entries = this.entries.filter((other) => other !== entry);
    return entry;
  }

  /** What holds at every moment in which an agent runs. */
  #look(): void {
    const inUse = this.agent.manager.volumesInUse();
    for (const disk of ['rwop', 'shared'])
      if (this.isHeld(disk) && !inUse.includes(nameOf(disk)))
        this.violated(`${disk} is held and not said to be in use`);
  }

  /** The directories of pods that are over go. */
  async #removeEnded(): Promise<void> {
    const { manager, dirs } = this.agent;
    for (const pod of this.deleted) {
      if (manager.hasMounts(uidOf(pod))) continue;
      await dirs.removeOrphan(uidOf(pod), new AbortController().signal).then(
        () => this.deleted.delete(pod),
        () => undefined,
      );
    }
  }
}

class Agent {
  isDead = false;
  readonly clock = new ManualClock();
  readonly attachments = new Attachments();
  readonly dirs: PodDirs;
  readonly manager: VolumeManager;
  readonly #world: DiskWorld;
  readonly #run: number;
  #reporting = false;
  #again = false;

  constructor(world: DiskWorld, run: number) {
    this.#world = world;
    this.#run = run;
    const { clock } = this;
    const layout = new VolumeLayout(world.root);
    const patient: HostCommands = {
      run: (command, args, signal) => this.#alive(() => abortable(signal, world.command(command, args, run))),
    };
    const commands: HostCommands = {
      run: (command, args, signal) => withDeadline(clock, signal, 60_000, (own) => patient.run(command, args, own)),
    };
    const mounter = new HostMounter({
      clock,
      kernel: {
        table: () => this.#alive(() => Promise.resolve(world.table())),
        run: (command, args, signal) => patient.run(command, args, signal) as Promise<ChildRun>,
        unmount: (target) => void world.unmount(target),
        procDir: join(world.root, 'proc'),
      },
    });
    for (const dir of ['proc', 'pods']) mkdirSync(join(world.root, dir), { recursive: true });
    const events = { pod: () => undefined, node: () => undefined };
    const owner = { give: () => Promise.resolve() };
    const binds = new PodBinds({ layout, mounter, mounts: new ChildMounts({ commands, mounter }), owner, events });
    const deviceMap = { users: () => Promise.resolve([]) } as never;
    const disks = new Disks({ commands, patient });
    const parts = { layout, mounter, disks, deviceMap, binds, stats: {} as never, owner, events, log: silentLogger };
    const plugin = new AttachedDiskPlugin(this.#attacher(), parts);
    this.dirs = new PodDirs(layout, mounter);
    this.manager = new VolumeManager({
      resolver: {
        resolve: (pod) => {
          const specName = pod.spec.volumes?.[0]?.persistentVolumeClaim?.claimName ?? '';
          const accessModes = specName === 'rwop' ? ['ReadWriteOncePod'] : ['ReadWriteOnce'];
          const volume = { metadata: { name: specName }, spec: { accessModes } };
          const persistent = { volume, claim: { metadata: { name: specName } }, mountOptions: [], migrated: false };
          return Promise.resolve({ plugin, specName, volumeMode: 'Filesystem', readOnly: false, persistent });
        },
        byName: (name) => Promise.resolve(name === PLUGIN ? plugin : undefined),
        all: () => [plugin],
      },
      layout,
      podDirs: this.dirs,
      subPaths: new SubPaths({ layout, mounter, clock }),
      mounter,
      events,
      clock,
      log: silentLogger,
      attachments: this.attachments,
      onVolumesInUse: () => void this.#report(),
    });
  }

  async begin(order: readonly PodName[]): Promise<void> {
    const { wanted } = this.#world;
    await this.manager.reconstruct(new AbortController().signal);
    this.nodeSeen(this.#world.node());
    const first = order.filter((pod) => wanted.has(pod));
    for (const pod of first) this.manager.setDesired(podOf(pod));
    // Other pods have their turn later.
    this.clock.after(20_000, () => {
      for (const pod of wanted) this.manager.setDesired(podOf(pod));
    });
    this.manager.removeUnknown((uid) => [...wanted].some((pod) => uidOf(pod) === uid));
    void this.#report();
  }

  nodeSeen(node: Node): void {
    if (!this.isDead) this.attachments.nodeSeen(node);
  }

  /** A call of a process that is dead is never made and never answered. */
  #alive<T>(call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.isDead) return;
      call().then(
        (value) => this.isDead || resolve(value),
        (err: unknown) => this.isDead || reject(err as Error),
      );
    });
  }

  #attacher(): DiskAttacher<Config> {
    const world = this.#world;
    const known = (disk: string) => ({ turn: 'iqn', directory: `lun/${disk}`, volumeName: disk, config: { disk } });
    return {
      plugin: PLUGIN,
      describe: ({ specName }) => ({ ...known(specName), fsType: 'ext4', readOnly: false }),
      identify: (config) => {
        const { disk } = (config ?? {}) as Partial<Config>;
        return disk === undefined ? undefined : known(disk);
      },
      attach: ({ config: { disk } }) =>
        this.#alive(async () => {
          if (!world.server.inUse.includes(nameOf(disk)))
            world.violated(`${disk} is attached while the server does not know that it is in use`);
          if (world.moods.shift() === 'fails') throw new KubeletError('unavailable', 'login failed');
          world.attached.add(disk);
          return disk;
        }),
      detach: ({ disk }) => this.#alive(() => this.#detach(disk)),
    };
  }

  /** What holds a disk is refused; nothing that this run knows of may still hold it. */
  async #detach(disk: string): Promise<void> {
    const world = this.#world;
    const busy = [...world.children].find(
      (one) => one.disk === disk && (one.command === 'umount' || one.run === this.#run),
    );
    if (busy !== undefined) world.violated(`${disk} is to be detached while ${busy.command} is at work`);
    if (world.entries.some((entry) => entry.source === disk)) world.violated(`${disk} is to be detached while mounted`);
    if (world.isHeld(disk)) throw new KubeletError('conflict', 'held');
    if (world.moods.shift() === 'fails') throw new KubeletError('unavailable', 'logout failed');
    world.attached.delete(disk);
    await Promise.resolve();
  }

  /** One at a time; requests and answers may be late or lost. */
  async #report(): Promise<void> {
    this.#again = true;
    if (this.#reporting) return;
    this.#reporting = true;
    const world = this.#world;
    while (this.#again && !this.isDead) {
      this.#again = false;
      const mood = world.reports.shift() ?? 'fine';
      const { names } = this.manager.reportVolumesInUse();
      const passes = (ms: number): Promise<void> => new Promise((resolve) => world.clock.after(ms, resolve));
      await passes(100 + DURATION[mood] / 10);
      if (this.isDead) return;
      world.server.inUse = names;
      const node = world.node();
      world.control();
      await passes(100 + DURATION[mood] / 10);
      if (this.isDead) return;
      if (mood === 'fails') this.#again = true;
      else {
        this.attachments.reportAnswered(node);
        this.nodeSeen(world.node());
      }
    }
    this.#reporting = false;
  }
}

const answer = (code: number, output = ''): ChildRun => ({ code, output, stdout: Buffer.alloc(0) });

/** Calls of the file system under way: they take real time. */
const fileCalls = new Set<number>();
const ended = (id: number): void => void fileCalls.delete(id);
const watch = createHook({
  init: (id, type) => void (/^FSREQ|CLOSEREQ$/.test(type) && fileCalls.add(id)),
  after: ended,
  destroy: ended,
});

/** Ends when nothing happens any more without the clocks. */
async function settle(): Promise<void> {
  for (let quiet = 0; quiet < 3; quiet = fileCalls.size === 0 ? quiet + 1 : 0)
    await new Promise((resolve) => setImmediate(resolve));
}
