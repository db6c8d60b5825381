// An ext4 without a journal gives no inode out again that was freed in the last minutes. The kernel walks past those of the
// block group one by one, and all pods share a group: where pods come and go, that is more work than everything else the
// file threads do. With this mark of the parent each pod's directory gets a group of its own choice. Other file systems
// have no such walk and are left alone.
import { closeSync, openSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { majorMinor } from '../block/device-facts.ts';
import { markTopDirectorySync } from '../libc.ts';

/** Never fails: without it starts only cost more. */
export function spreadPods(parents: readonly string[], log: Logger, sys = '/sys'): void {
  for (const path of parents) {
    try {
      if (isWithoutJournal(path, sys)) mark(path);
    } catch (err) {
      log.debug('pods share a block group', { path, err: messageOf(err) });
    }
  }
}

function mark(path: string): void {
  const fd = openSync(path, 'r');
  try {
    markTopDirectorySync(fd);
  } finally {
    closeSync(fd);
  }
}

/** False for what is no ext4 at all. */
function isWithoutJournal(path: string, sys: string): boolean {
  const device = majorMinor(statSync(path).dev);
  try {
    const name = basename(readlinkSync(join(sys, 'dev/block', device)));
    return readFileSync(join(sys, 'fs/ext4', name, 'journal_task'), 'utf8').trim() === '<none>';
  } catch {
    return false;
  }
}
