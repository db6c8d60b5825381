// `/var/log/containers/<pod>_<namespace>_<container>-<id>.log`: links to logs, for collectors that look there. Pure names.

export const CONTAINER_LOGS = '/var/log/containers';
const SUFFIX = '.log';
const MAX_FILE_NAME = 255;

/** A name too long for a file loses the end of its id. */
export function logLinkName(podName: string, namespace: string, container: string, containerId: string): string {
  return `${podName}_${namespace}_${container}-${containerId}`.slice(0, MAX_FILE_NAME - SUFFIX.length) + SUFFIX;
}

/** The id in a link's name; a cut name has only a part of it. */
export function containerIdOf(link: string): string | undefined {
  const name = link.slice(link.lastIndexOf('/') + 1);
  const dash = name.lastIndexOf('-');
  return name.endsWith(SUFFIX) && dash >= 0 ? name.slice(dash + 1, -SUFFIX.length) : undefined;
}
