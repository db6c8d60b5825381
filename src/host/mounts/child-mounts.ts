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

export class ChildMounts {
  readonly #deps: ChildMountsDeps;

  constructor(deps: ChildMountsDeps) {
    this.#deps = deps;
  }

  async mount(
    fsType: string,
    source: string,
    target: string,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#run(['-t', fsType, ...(options.length === 0 ? [] : ['-o', options.join(',')]), source, target], signal);
  }

  /** Binds a directory and gives the bind its own options. May be repeated after it was cut off between the two. */
  async bind(source: string, target: string, options: readonly string[], signal: AbortSignal): Promise<void> {
    const bound = (await this.#deps.mounter.table(signal)).at(target) !== undefined;
    if (!bound) await this.#run(['-o', options.includes('_netdev') ? 'bind,_netdev' : 'bind', source, target], signal);
    const own = options.filter((option) => option !== '_netdev');
    if (own.length === 0) return;
    const inherited = (await this.#deps.mounter.table(signal)).at(target)?.options.split(',') ?? [];
    const all = new Set(['bind', 'remount', ...own, ...KEPT.filter((option) => inherited.includes(option))]);
    await this.#run(['-o', [...all].join(','), source, target], signal);
  }

  async #run(args: readonly string[], signal: AbortSignal): Promise<void> {
    const result = await this.#deps.commands.run('mount', args, signal);
    if (result.code !== 0) throw mountFailure(args, result);
  }
}

/** Upstream's words: people search for them. */
export const mountFailure = (
  args: readonly string[],
  { code, output }: ChildResult,
  detail: Readonly<Record<string, unknown>> = {},
): KubeletError =>
  new KubeletError(
    'unavailable',
    `mount failed: exit status ${code}\nMounting command: mount\nMounting arguments: ${args.join(' ')}\nOutput: ${output}\n`,
    { detail },
  );
