// Errors of file calls, for people: which path, and where the disk is the reason, which one and what it is short of.
import { errnoOf } from './errors.ts';

const DISKS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space, or no inodes, are left on',
  EDQUOT: 'the quota is used up on',
  EROFS: 'nothing can be written to',
};

/** The same error with this path in its message, in place of a descriptor's or a temporary one. */
export function atPath<T>(err: T, path: string): T {
  const errno = errnoOf(err);
  const [, what] = (err instanceof Error && /^(E[A-Z0-9]+: [^']*[^' ])(?: '.*)?$/s.exec(err.message)) || [];
  if (errno === undefined || what === undefined) return err;
  const disk = DISKS[errno];
  const message = `${what} '${path}'${disk === undefined ? '' : `: ${disk} the file system of ${path}`}`;
  return Object.assign(err as Error, { message, path }) as T;
}

/** Runs a call whose error is to name this path. */
export async function namingPath<T>(path: () => string, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (err) {
    throw atPath(err, path());
  }
}
