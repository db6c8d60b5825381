// A private containerd for tests: its own root, state, socket, CNI network and images, all below one fresh folder in
// /tmp. `stop()` takes away everything it made; what a killed test run left behind is taken away by the next start.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { criImages, criRuntime, type CriImages, type CriRuntime } from '../../src/cri/services.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { Semaphore } from '../../src/lib/semaphore.ts';
import { findContainerd, findIdmapRunc, type Binaries, type ContainerdVersion } from './containerd-binaries.ts';
import {
  choosePodNetwork,
  cniConfig,
  containerdConfig,
  SANDBOX_IMAGE,
  type Layout,
} from '../../src/devcluster/containerd/config.ts';
import { leftovers, removeLeftovers, sweepDeadRuns } from '../../src/devcluster/containerd/cleanup.ts';
import { busyboxArchive, pauseArchive, type ImageVariant } from '../../src/devcluster/containerd/image.ts';
import { until } from './until.ts';

const run = promisify(execFile);

export const BUSYBOX_IMAGE = 'localhost/busybox:latest';
export const ROOT_PREFIX = '/tmp/kts-ctd-';
const REMOVED_AT_ONCE = 5;

export type ContainerdOptions = {
  readonly version?: ContainerdVersion;
  readonly snapshotter?: 'overlayfs' | 'native';
  /** Keeps images and containers on a filesystem of their own, this large. */
  readonly diskMiB?: number;
  /** A runc that can map the owners of mounts. */
  readonly idmapRunc?: boolean;
};

export interface PrivateContainerd {
  readonly version: ContainerdVersion;
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
  /** `ctr -n k8s.io …`; resolves to its output. */
  ctr(args: readonly string[]): Promise<string>;
  log(): Promise<string>;
  /** Stops (SIGTERM, or `signal`) and starts the daemon; containers stay. */
  restart(signal?: NodeJS.Signals): Promise<void>;
  /** Only stops or only starts the daemon, for outage tests. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  /** Removes all it made; rejects when something is left over. */
  stop(): Promise<void>;
}

export async function startContainerd(options: ContainerdOptions = {}): Promise<PrivateContainerd> {
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

class Daemon implements PrivateContainerd {
  readonly version: ContainerdVersion;
  readonly socketPath: string;
  readonly endpoint: string;
  readonly root: string;
  readonly bridge: string;
  readonly subnet: string;
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  readonly #binaries: Binaries;
  readonly #layout: Layout;
  readonly #channel: GrpcChannel;
  /** Searched for runc before all others. */
  readonly #runcDir: string;
  #child: ChildProcess | undefined;

  constructor(binaries: Binaries, version: ContainerdVersion, layout: Layout, runcDir: string) {
    this.#binaries = binaries;
    this.#runcDir = runcDir;
    this.#layout = layout;
    this.version = version;
    this.root = layout.root;
    this.socketPath = layout.socketPath;
    this.endpoint = `unix://${layout.socketPath}`;
    this.bridge = layout.network.bridge;
    this.subnet = layout.network.subnet;
    this.#channel = new GrpcChannel(systemClock, { target: { socketPath: layout.socketPath } });
    this.runtime = criRuntime(this.#channel, { timeoutMs: 60_000 });
    this.images = criImages(this.#channel, { timeoutMs: 60_000 });
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const out = openSync(join(this.root, 'containerd.log'), 'a');
    const child = spawn(this.#binaries.containerd, ['--config', join(this.root, 'config.toml')], {
      stdio: ['ignore', out, out],
      env: {
        ...process.env,
        PATH: [this.#runcDir, this.#binaries.binDir, '/usr/local/sbin:/usr/sbin:/sbin', process.env['PATH']]
          .filter(Boolean)
          .join(':'),
        TMPDIR: join(this.root, 'tmp'),
      },
    });
    closeSync(out);
    this.#child = child;
    const isReady = async (): Promise<'ready' | 'ended' | false> => {
      if (child.exitCode !== null) return 'ended';
      const { status } = await this.runtime.status({}, new AbortController().signal);
      const isTrue = (type: string): boolean => status?.conditions.some((c) => c.type === type && c.status) === true;
      return isTrue('RuntimeReady') && isTrue('NetworkReady') && 'ready';
    };
    if ((await until('the CRI answers', isReady)) === 'ended')
      throw new Error(`containerd ended with ${child.exitCode}`);
  }

  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      const hard = systemClock.after(10_000, () => child.kill('SIGKILL'));
      await ended;
      hard.cancel();
    }
  }

  async restart(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.kill(signal);
    await this.start();
  }

  async ctr(args: readonly string[]): Promise<string> {
    const { stdout } = await run(this.#binaries.ctr, ['-a', this.socketPath, '-n', 'k8s.io', ...args], {
      maxBuffer: 64 << 20,
    });
    return stdout;
  }

  log(): Promise<string> {
    return readFile(join(this.root, 'containerd.log'), 'utf8').catch(() => '');
  }

  async importImage(image: string | ImageVariant): Promise<void> {
    const variant = typeof image === 'string' ? { ref: image } : image;
    await this.importArchive(variant.ref, busyboxArchive(variant));
  }

  async importArchive(ref: string, archive: Buffer): Promise<void> {
    const file = join(this.root, 'tmp', `import-${process.hrtime.bigint()}.tar`);
    await writeFile(file, archive);
    try {
      await this.ctr(['images', 'import', '--snapshotter', this.#layout.snapshotter, file]);
    } finally {
      await rm(file, { force: true });
    }
    const isShown = async (): Promise<boolean> => {
      const { image } = await this.images.imageStatus({ image: { image: ref } }, new AbortController().signal);
      return image !== undefined;
    };
    await until(`the CRI shows ${ref}`, isShown);
  }

  async stop(): Promise<void> {
    const { signal } = new AbortController();
    if (this.#child !== undefined && this.#child.exitCode === null) {
      // Best effort: what the runtime does not remove itself is removed below, by hand.
      const { items } = await this.runtime.listPodSandbox({}, signal).catch(() => ({ items: [] }));
      const few = new Semaphore(REMOVED_AT_ONCE);
      const remove = async ({ id }: { readonly id: string }): Promise<void> => {
        await this.runtime.stopPodSandbox({ podSandboxId: id }, signal).catch(() => undefined);
        await this.runtime.removePodSandbox({ podSandboxId: id }, signal).catch(() => undefined);
      };
      await Promise.all(items.map((sandbox) => few.run(signal, () => remove(sandbox))));
    }
    this.#channel.close();
    await this.kill();
    await removeLeftovers(this.root, this.#layout.network);
    const left = await leftovers(this.root, this.#layout.network);
    if (left.length > 0) throw new Error(`left over by the private containerd: ${left.join(', ')}`);
  }
}
