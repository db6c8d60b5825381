// The lines of /etc/projects (id:directory) and /etc/projid (name:id), as xfs_quota reads them and upstream writes them. What
// belongs to others, comments and lines of no known form are kept as they are. Pure.

export type ProjectFiles = { readonly projects: string; readonly projid: string };

/** The first id that is given out: those below are left to the administrator. */
export const FIRST_PROJECT = 1_048_577;
/** How many ids that the files do not name but the filesystem uses are passed over before giving up. */
export const MAX_PASSED_OVER = 128;

/** The directories in the text of `/etc/projects`, with their ids. */
export function projectsIn(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split('\n')) {
    const { id, path } = projectOf(line);
    if (id !== undefined && path !== undefined && !found.has(path)) found.set(path, id);
  }
  return found;
}

/** The ids that may be given to a new directory, in the order in which to try them. */
export function* freeProjects({ projects, projid }: ProjectFiles): Generator<number> {
  const taken = new Set<number | undefined>(projects.split('\n').map((line) => projectOf(line).id));
  for (const line of projid.split('\n')) taken.add(nameOf(line));
  let given = 0;
  for (let id = FIRST_PROJECT; given < MAX_PASSED_OVER; id++) {
    if (taken.has(id)) continue;
    given++;
    yield id;
  }
}

export const withProject = ({ projects, projid }: ProjectFiles, path: string, id: number): ProjectFiles => ({
  projects: `${ended(projects)}${id}:${path}\n`,
  projid: `${ended(projid)}volume${id}:${id}\n`,
});

/** The name goes with the last directory that has the id. */
export function withoutProject({ projects, projid }: ProjectFiles, path: string): ProjectFiles {
  const id = projectsIn(projects).get(path);
  if (id === undefined) return { projects, projid };
  const left = without(projects, (line) => projectOf(line).path === path);
  const isUsed = left.split('\n').some((line) => projectOf(line).id === id);
  return { projects: left, projid: isUsed ? projid : without(projid, (line) => nameOf(line) === id) };
}

function projectOf(line: string): { readonly id?: number; readonly path?: string } {
  const [, id, path] = /^(\d+):(.*)$/.exec(line) ?? [];
  return id === undefined || path === undefined ? {} : { id: Number(id), path };
}

function nameOf(line: string): number | undefined {
  const id = /^[^#:][^:]*:(\d+)$/.exec(line)?.[1];
  return id === undefined ? undefined : Number(id);
}

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

const without = (text: string, goes: (line: string) => boolean): string =>
  text
    .split('\n')
    .filter((line) => !goes(line))
    .join('\n');
