// Replaces a file that an administrator shares: with its owner, mode and SELinux label, and as a whole also after the power
// went. Every call blocks, as those of project-quota.ts, whose process it runs in.
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { fileLabel, setFileLabel } from '../libc.ts';

const PERMISSIONS = 0o7777;

/** `sync`: of a descriptor. */
export function replaceFile(path: string, text: string, sync: (fd: number) => void = fsyncSync): void {
  const { mode, uid, gid } = statSync(path);
  const temporary = `${path}.kubelet`;
  rmSync(temporary, { force: true });
  try {
    withOpen(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, (fd) => {
      writeFileSync(fd, text);
      fchownSync(fd, uid, gid);
      fchmodSync(fd, mode & PERMISSIONS);
      const label = labelOf(path);
      if (label !== undefined && label !== labelOf(temporary)) setFileLabel(temporary, label);
      sync(fd);
    });
    renameSync(temporary, path);
  } catch (err) {
    rmSync(temporary, { force: true });
    throw err;
  }
  withOpen(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY, sync);
}

function labelOf(path: string): string | undefined {
  try {
    return fileLabel(path);
  } catch {
    return undefined; // the file system has no labels
  }
}

function withOpen(path: string, flags: number, run: (fd: number) => void): void {
  const fd = openSync(path, flags, 0o600);
  try {
    run(fd);
  } finally {
    closeSync(fd);
  }
}
