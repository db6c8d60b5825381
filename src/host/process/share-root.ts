// Volume drivers that run in pods mount what they serve below the kubelet's directory, in a namespace of their own
// (`Bidirectional`). Others see that only where the directory lies on a shared mount: systemd makes all mounts so, other
// hosts do not. There it becomes a shared mount of its own.
import { readFileSync, realpathSync } from 'node:fs';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { mountSync, unmountSync } from '../libc.ts';
import { MountTable, parseMountInfo } from '../mounts/mount-table.ts';

const MS_BIND = 4096;
const MS_REC = 16_384;
const MS_SHARED = 1 << 20;

/** Never fails: only such drivers need it. */
export function shareRootDir(path: string, log: Logger, mountinfo = '/proc/self/mountinfo'): void {
  try {
    const real = realpathSync(path);
    const table = new MountTable(parseMountInfo(readFileSync(mountinfo, 'latin1')));
    if (table.holding(real)?.shared !== false) return;
    const inUse = table.beneath(real).filter(({ target }) => target !== real).length;
    // They would be hidden below the new mount, or be there twice and never be unmounted.
    if (inUse > 0)
      return log.warn(
        'volumes are mounted below the root directory: it stays a private mount until a start without any',
        {
          path,
          mounts: inUse,
        },
      );
    share(real, table.at(real) === undefined);
    log.info('made the root directory a shared mount', { path });
  } catch (err) {
    log.warn('the root directory stays a private mount, so that volume drivers in pods cannot show their mounts', {
      path,
      err: messageOf(err),
    });
  }
}

function share(path: string, isNoMount: boolean): void {
  if (isNoMount) mountSync(path, path, '', MS_BIND, '');
  try {
    mountSync('', path, '', MS_SHARED | MS_REC, '');
  } catch (err) {
    if (isNoMount) unmountSync(path, 0);
    throw err;
  }
}
