// `/var/log/containers/<pod>_<namespace>_<container>-<id>.log`: links to the logs, for collectors that look there.
import { mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../lib/errors.ts';

export const CONTAINER_LOGS = '/var/log/containers';
const SUFFIX = '.log';
const MAX_NAME = 255;

export type LinkNames = {
  readonly podName: string;
  readonly namespace: string;
  readonly container: string;
  readonly containerId: string;
};

/** A name too long for a file loses the end of its id. */
export function logLinkPath(directory: string, names: LinkNames): string {
  const name = `${names.podName}_${names.namespace}_${names.container}-${names.containerId}`;
  return join(directory, `${name.slice(0, MAX_NAME - SUFFIX.length)}${SUFFIX}`);
}

/** The id in a link's name; a cut name has only a part of it. */
export function containerIdOf(link: string): string | undefined {
  const name = link.slice(link.lastIndexOf('/') + 1);
  const dash = name.lastIndexOf('-');
  return name.endsWith(SUFFIX) && dash >= 0 ? name.slice(dash + 1, -SUFFIX.length) : undefined;
}

/** Makes the link, or makes it right. */
export async function linkContainerLog(directory: string, names: LinkNames, logPath: string): Promise<void> {
  const link = logLinkPath(directory, names);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  try {
    await symlink(logPath, link);
  } catch (err) {
    if (errnoOf(err) !== 'EEXIST') throw err;
    if ((await targetOf(link)) === logPath) return;
    await rm(link, { force: true });
    await symlink(logPath, link);
  }
}

export const unlinkContainerLog = (directory: string, names: LinkNames): Promise<void> =>
  rm(logLinkPath(directory, names), { force: true });

async function targetOf(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (err) {
    if (errnoOf(err) === 'EINVAL' || errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}
