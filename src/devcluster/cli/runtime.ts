// The private containerd seen through the CRI: whether it answers, its images, the end of all its pods.
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { criImages, criRuntime, type CriImages, type CriRuntime } from '../../cri/services.ts';
import type { Clock } from '../../lib/clock.ts';
import { GrpcChannel } from '../../lib/grpc/channel.ts';
import { cniConfig, containerdConfig, SANDBOX_IMAGE, type Layout } from '../containerd/config.ts';
import { busyboxArchive, pauseArchive } from '../containerd/image.ts';
import { cniDirectory, containerdVersion, findProgram, hasOverlay } from './machine.ts';
import type { Paths } from './paths.ts';
import type { Settings } from './settings.ts';

const run = promisify(execFile);
/** Not `latest`: what has that tag is pulled every time unless a pod says otherwise, and there is no registry. */
export const EXAMPLE_IMAGE = 'localhost/busybox:1';

const layoutOf = (paths: Paths, settings: Settings): Layout => ({
  root: paths.containerd,
  socketPath: paths.containerdSocket,
  network: settings.network,
  snapshotter: hasOverlay() ? 'overlayfs' : 'native',
  cniPlugins: cniDirectory() ?? '',
});

export async function writeRuntimeFiles(paths: Paths, settings: Settings): Promise<void> {
  const layout = layoutOf(paths, settings);
  for (const directory of ['lib', 'run', 'cni', 'opt', 'registry', 'tmp'])
    await mkdir(join(paths.containerd, directory), { recursive: true });
  await writeFile(paths.cniConfig, cniConfig(layout));
  await writeFile(paths.containerdConfig, containerdConfig(containerdVersion(), layout));
}

/** Pods reach the API on the bridge's address, so it is there before the first pod. */
export async function makeBridge({ network }: Settings): Promise<void> {
  const ip = (...args: string[]): Promise<unknown> => run('ip', args).catch(() => undefined);
  await ip('link', 'add', network.bridge, 'type', 'bridge');
  await ip('addr', 'add', `${network.gateway}/24`, 'dev', network.bridge);
  await ip('link', 'set', network.bridge, 'up');
}

export class RuntimeClient {
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  readonly #channel: GrpcChannel;
  readonly #paths: Paths;

  constructor(clock: Clock, paths: Paths) {
    this.#paths = paths;
    this.#channel = new GrpcChannel(clock, { target: { socketPath: paths.containerdSocket } });
    this.runtime = criRuntime(this.#channel, { timeoutMs: 30_000 });
    this.images = criImages(this.#channel, { timeoutMs: 30_000 });
  }

  close(): void {
    this.#channel.close();
  }

  async isReady(signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.runtime.status({}, signal);
      return ['RuntimeReady', 'NetworkReady'].every((t) => status?.conditions.some((c) => c.type === t && c.status));
    } catch {
      // Not up yet, which is all that is asked.
      return false;
    }
  }

  /** Makes and imports the sandbox image and the example's, unless they are there. */
  async ensureImages(signal: AbortSignal): Promise<void> {
    for (const [ref, build] of [
      [SANDBOX_IMAGE, () => pauseArchive(SANDBOX_IMAGE)],
      [EXAMPLE_IMAGE, () => busyboxArchive({ ref: EXAMPLE_IMAGE })],
    ] as const) {
      const { image } = await this.images.imageStatus({ image: { image: ref } }, signal);
      if (image === undefined) await this.#import(build());
    }
  }

  async #import(archive: Buffer): Promise<void> {
    const file = join(this.#paths.containerd, 'tmp', 'import.tar');
    await writeFile(file, archive);
    try {
      const ctr = findProgram('ctr') ?? 'ctr';
      const snapshotter = hasOverlay() ? 'overlayfs' : 'native';
      await run(ctr, [
        '-a',
        this.#paths.containerdSocket,
        '-n',
        'k8s.io',
        'images',
        'import',
        '--snapshotter',
        snapshotter,
        file,
      ]);
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Stops and removes every pod; what resists is left to the cleanup. */
  async removePods(signal: AbortSignal): Promise<void> {
    const { items } = await this.runtime.listPodSandbox({}, signal);
    await Promise.all(
      items.map(async ({ id }) => {
        await this.runtime.stopPodSandbox({ podSandboxId: id }, signal).catch(() => undefined);
        await this.runtime.removePodSandbox({ podSandboxId: id }, signal).catch(() => undefined);
      }),
    );
  }
}
