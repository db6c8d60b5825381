// A private containerd for tests: its own root, state, socket, CNI network and images, all below one fresh folder in
// /tmp. `stop()` takes away everything it made; what a killed test run left behind is taken away by the next start.
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CriImages, CriRuntime } from '../../src/cri/services.ts';
import { findContainerd, findIdmapRunc, type Binaries, type ContainerdVersion } from './containerd-binaries.ts';
import {
  choosePodNetwork,
  cniConfig,
  containerdConfig,
  SANDBOX_IMAGE,
  type Layout,
} from '../../src/devcluster/containerd/config.ts';
import { sweepDeadRuns } from '../../src/devcluster/containerd/cleanup.ts';
import { busyboxArchive, pauseArchive, type ImageVariant } from '../../src/devcluster/containerd/image.ts';
import { RuntimeDaemon } from './runtime-daemon.ts';
import { until } from './until.ts';

const run = promisify(execFile);

export const BUSYBOX_IMAGE = 'localhost/busybox:latest';
export const ROOT_PREFIX = '/tmp/kts-ctd-';

export type ContainerdOptions = {
  readonly version?: ContainerdVersion;
  readonly snapshotter?: 'overlayfs' | 'native';
  /** Keeps images and containers on a filesystem of their own, this large. */
  readonly diskMiB?: number;
  /** A runc that can map the owners of mounts. */
  readonly idmapRunc?: boolean;
};

/** A container runtime that belongs to one test: containerd, or CRI-O (`crio.ts`). */
export interface PrivateRuntime {
  readonly version: ContainerdVersion | 'cri-o';
  readonly socketPath: string;
  /** `unix://…`, as kubelet's `containerRuntimeEndpoint` wants it. */
  readonly endpoint: string;
  readonly root: string;
  readonly bridge: string;
  readonly subnet: string;
  /** CRI clients on a connection of their own. */
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  /** Makes a busybox image with this name (and differences) and waits until the CRI shows it. */
  importImage(image: string | ImageVariant): Promise<void>;
  /** What it calls the cgroup of a container. */
  cgroupOf(containerId: string): string;
  /** Marks an image as one that is never collected. */
  pinImage(ref: string): Promise<void>;
  readonly logFile: string;
  log(): Promise<string>;
  /** Stops (SIGTERM, or `signal`) and starts the daemon; containers stay. */
  restart(signal?: NodeJS.Signals): Promise<void>;
  /** Only stops or only starts the daemon, for outage tests. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  /** Removes all it made; rejects when something is left over. */
  stop(): Promise<void>;
}

export async function startContainerd(options: ContainerdOptions = {}): Promise<PrivateRuntime> {
  const version = options.version ?? '1.6';
  await sweepDeadRuns(ROOT_PREFIX);
  const root = await mkdtemp(ROOT_PREFIX);
  await chmod(root, 0o711); // pods with users of their own pass through
  const layout: Layout = {
    root,
    socketPath: join(root, 'c.sock'),
    network: choosePodNetwork(Math.random),
    snapshotter: options.snapshotter ?? 'overlayfs',
  };
  for (const dir of ['lib', 'run', 'cni', 'opt', 'registry', 'tmp']) await mkdir(join(root, dir), { recursive: true });
  if (options.diskMiB !== undefined) await mountDisk(root, options.diskMiB);
  await writeFile(join(root, 'owner.json'), JSON.stringify({ pid: process.pid, network: layout.network }));
  await writeFile(join(root, 'cni', '10-test.conflist'), cniConfig(layout));
  await writeFile(join(root, 'config.toml'), containerdConfig(version, layout));
  const runc = options.idmapRunc === true ? await findIdmapRunc() : '';
  const daemon = new Daemon(await findContainerd(version), version, layout, runc);
  try {
    await daemon.start();
    await Promise.all([
      daemon.importArchive(SANDBOX_IMAGE, pauseArchive(SANDBOX_IMAGE)),
      daemon.importImage(BUSYBOX_IMAGE),
    ]);
    return daemon;
  } catch (err) {
    const log = await daemon.log();
    await daemon.stop().catch(() => undefined);
    throw new Error(`containerd ${version} did not start: ${log.slice(-3000)}`, { cause: err });
  }
}

/** Without a journal and reserved blocks, so that what is stored is what is used. */
async function mountDisk(root: string, mib: number): Promise<void> {
  const file = join(root, 'disk.img');
  await run('truncate', ['-s', `${mib}M`, file]);
  await run('mkfs.ext4', ['-q', '-m', '0', '-O', '^has_journal', file]);
  await run('mount', ['-o', 'loop', file, join(root, 'lib')]);
}

class Daemon extends RuntimeDaemon implements PrivateRuntime {
  readonly version: ContainerdVersion;
  readonly #ctrProgram: string;
  readonly #snapshotter: string;

  /** `runcDir` is searched for runc before all others. */
  constructor({ containerd, ctr, binDir }: Binaries, version: ContainerdVersion, layout: Layout, runcDir: string) {
    const args = ['--config', join(layout.root, 'config.toml')];
    super('containerd', { program: containerd, args, path: [runcDir, binDir] }, layout);
    this.version = version;
    this.#ctrProgram = ctr;
    this.#snapshotter = layout.snapshotter;
  }

  cgroupOf(containerId: string): string {
    return containerId;
  }

  async pinImage(ref: string): Promise<void> {
    await this.#ctr(['images', 'label', ref, 'io.cri-containerd.pinned=pinned']);
  }

  async importImage(image: string | ImageVariant): Promise<void> {
    const variant = typeof image === 'string' ? { ref: image } : image;
    await this.importArchive(variant.ref, busyboxArchive(variant));
  }

  async importArchive(ref: string, archive: Buffer): Promise<void> {
    const file = join(this.root, 'tmp', `import-${process.hrtime.bigint()}.tar`);
    await writeFile(file, archive);
    try {
      await this.#ctr(['images', 'import', '--snapshotter', this.#snapshotter, file]);
    } finally {
      await rm(file, { force: true });
    }
    const isShown = async (): Promise<boolean> => {
      const { image } = await this.images.imageStatus({ image: { image: ref } }, new AbortController().signal);
      return image !== undefined;
    };
    await until(`the CRI shows ${ref}`, isShown);
  }

  async #ctr(args: readonly string[]): Promise<void> {
    await run(this.#ctrProgram, ['-a', this.socketPath, '-n', 'k8s.io', ...args]);
  }
}
