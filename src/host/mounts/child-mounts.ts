// Mounts whose source may not answer (a server, a disk, a path that users name), by mount(8) as a child with a deadline.
import { KubeletError } from '../../lib/errors.ts';
import type { ChildResult } from './child.ts';
import type { HostCommands } from './commands.ts';
import type { MountTable } from './mount-table.ts';

/** Options of the source's own mount that a remount of the bind must repeat, or the kernel would drop or refuse them. */
const KEPT = ['ro', 'nodev', 'noexec', 'nosuid', 'noatime', 'relatime', 'nodiratime'];

export type ChildMountsDeps = {
  readonly commands: HostCommands;
  readonly mounter: { table(signal: AbortSignal): Promise<MountTable> };
};

/** File systems that a node may mount by a program of its own (`--experimental-mounter-path`). */
const FOREIGN = ['nfs', 'glusterfs', 'ceph', 'cifs'];

export class ChildMounts {
  readonly #deps: ChildMountsDeps;
  readonly #mounterPath: string;

  constructor(deps: ChildMountsDeps, opts: { readonly mounterPath?: string } = {}) {
    this.#deps = deps;
    this.#mounterPath = opts.mounterPath ?? '';
  }

  async mount(
    fsType: string,
    source: string,
    target: string,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const flags = ['-t', fsType, ...(options.length === 0 ? [] : ['-o', options.join(',')])];
    const isForeign = this.#mounterPath !== '' && FOREIGN.includes(fsType);
    await this.#run(flags, source, target, signal, isForeign ? [this.#mounterPath, 'mount'] : ['mount']);
  }

  /** Binds a directory and gives the bind its own options. May be repeated after it was cut off between the two. */
  async bind(source: string, target: string, options: readonly string[], signal: AbortSignal): Promise<void> {
    const bound = (await this.#deps.mounter.table(signal)).at(target) !== undefined;
    const how = options.includes('_netdev') ? 'bind,_netdev' : 'bind';
    if (!bound) await this.#run(['-o', how], source, target, signal);
    const own = options.filter((option) => option !== '_netdev');
    if (own.length === 0) return;
    const inherited = (await this.#deps.mounter.table(signal)).at(target)?.options.split(',') ?? [];
    const all = new Set(['bind', 'remount', ...own, ...KEPT.filter((option) => inherited.includes(option))]);
    await this.#run(['-o', [...all].join(',')], source, target, signal);
  }

  /** A source is what users write: it must never be taken for an option. */
  async #run(
    flags: readonly string[],
    source: string,
    target: string,
    signal: AbortSignal,
    [command = 'mount', ...first]: readonly string[] = ['mount'],
  ): Promise<void> {
    const result = await this.#deps.commands.run(command, [...first, ...flags, '--', source, target], signal);
    if (result.code !== 0) throw mountFailure([...first, ...flags, source, target], result, {}, command);
  }
}

/** Upstream's words: people search for them. */
export const mountFailure = (
  args: readonly string[],
  { code, output }: ChildResult,
  detail: Readonly<Record<string, unknown>> = {},
  command = 'mount',
): KubeletError =>
  new KubeletError(
    'unavailable',
    `mount failed: exit status ${code}\nMounting command: ${command}\nMounting arguments: ${args.join(' ')}\nOutput: ${output}\n`,
    { detail },
  );
