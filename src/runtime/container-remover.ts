// Removing a container that ended: from the runtime, its logs, and the link to them.
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { CriRuntime } from '../cri/services.ts';
import { logLinkName } from '../core/log-links.ts';
import { podUid } from '../core/ids.ts';
import type { ObservedContainer } from '../core/snapshot.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import { errnoOf, isFault } from '../lib/errors.ts';
import { POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import type { ResourceManager } from './needs.ts';

export type RemoverDeps = { readonly cri: CriRuntime; readonly resources: ResourceManager };

export class ContainerRemover {
  readonly #deps: RemoverDeps;
  readonly #containerLogsDir: string;

  constructor(deps: RemoverDeps, opts: { readonly containerLogsDir: string }) {
    this.#deps = deps;
    this.#containerLogsDir = opts.containerLogsDir;
  }

  async remove(container: ObservedContainer, keepLogs: boolean, signal: AbortSignal): Promise<void> {
    this.#deps.resources.hooks?.postStop(podUid(container.labels[POD_UID] ?? ''), container.name, container.id);
    if (!keepLogs) await this.#removeLogs(container);
    try {
      await this.#deps.cri.removeContainer({ containerId: container.id }, signal);
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
    }
  }

  /** The log, what was rotated away from it, and the link. */
  async #removeLogs({ id, name, labels, logPath }: ObservedContainer): Promise<void> {
    const link = logLinkName(labels[POD_NAME] ?? '', labels[POD_NAMESPACE] ?? '', name, id);
    if (logPath !== '') await removeLogFiles(logPath);
    await rm(join(this.#containerLogsDir, link), { force: true });
  }
}

const AT_ONCE = 1000;

/** Through the directory's descriptor: a pod may have put a link in its place. */
async function removeLogFiles(logPath: string): Promise<void> {
  const wanted = (name: string): boolean => name.startsWith(basename(logPath));
  try {
    await OpenDir.using(dirname(logPath), async (dir) => {
      for (let names = await dir.names(wanted, AT_ONCE); names.length > 0; names = await dir.names(wanted, AT_ONCE))
        for (const name of names) await dir.removeTree(name);
    });
  } catch (err) {
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(err) ?? '')) throw err;
  }
}
