// The process of a private container runtime, its socket and its folder: what containerd and CRI-O have in common.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { criImages, criRuntime, type CriImages, type CriRuntime } from '../../src/cri/services.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { Semaphore } from '../../src/lib/semaphore.ts';
import type { Layout } from '../../src/devcluster/containerd/config.ts';
import { leftovers, removeLeftovers } from '../../src/devcluster/containerd/cleanup.ts';
import { until } from './until.ts';

const REMOVED_AT_ONCE = 5;

export type DaemonCommand = {
  readonly program: string;
  readonly args: readonly string[];
  /** Searched before the system's own. */
  readonly path: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

export abstract class RuntimeDaemon {
  readonly socketPath: string;
  readonly endpoint: string;
  readonly root: string;
  readonly bridge: string;
  readonly subnet: string;
  readonly logFile: string;
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  readonly #name: string;
  readonly #command: DaemonCommand;
  readonly #layout: Layout;
  readonly #channel: GrpcChannel;
  #child: ChildProcess | undefined;

  constructor(name: string, command: DaemonCommand, layout: Layout) {
    this.#name = name;
    this.#command = command;
    this.#layout = layout;
    this.root = layout.root;
    this.socketPath = layout.socketPath;
    this.endpoint = `unix://${layout.socketPath}`;
    this.bridge = layout.network.bridge;
    this.subnet = layout.network.subnet;
    this.logFile = join(layout.root, `${name}.log`);
    this.#channel = new GrpcChannel(systemClock, { target: { socketPath: layout.socketPath } });
    this.runtime = criRuntime(this.#channel, { timeoutMs: 60_000 });
    this.images = criImages(this.#channel, { timeoutMs: 60_000 });
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const { program, args, path, env } = this.#command;
    const out = openSync(this.logFile, 'a');
    const child = spawn(program, args, {
      stdio: ['ignore', out, out],
      env: {
        ...process.env,
        ...env,
        PATH: [...path, '/usr/local/sbin:/usr/sbin:/sbin', process.env['PATH']].filter(Boolean).join(':'),
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
      throw new Error(`${this.#name} ended with ${child.exitCode}`);
  }

  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    const hard = systemClock.after(10_000, () => child.kill('SIGKILL'));
    await ended;
    hard.cancel();
  }

  async restart(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.kill(signal);
    await this.start();
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
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
    if (left.length > 0) throw new Error(`left over by the private ${this.#name}: ${left.join(', ')}`);
  }
}
