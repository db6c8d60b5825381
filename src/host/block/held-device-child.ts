// Asks the kernel whether a device is held, in a process of its own: an open may wait for the disk. argv: the device.
// Exit code 0: nothing holds it. `HELD`: a file system, a device mapper or a program that makes or checks a file system does.
import { closeSync, constants, openSync } from 'node:fs';
import { errnoOf, messageOf } from '../../lib/errors.ts';
import { HELD, UNKNOWN } from './held-device.ts';

/** Each comes after the kernel has looked for a holder: the device is gone, or its disk does not answer. */
const NOT_HELD: readonly (string | undefined)[] = ['ENOENT', 'ENXIO', 'ENODEV', 'ENOMEDIUM', 'EIO'];

try {
  closeSync(openSync(process.argv.at(-1) ?? '', constants.O_RDONLY | constants.O_EXCL | constants.O_NONBLOCK));
} catch (err) {
  const errno = errnoOf(err);
  if (!NOT_HELD.includes(errno)) {
    process.stderr.write(messageOf(err));
    process.exitCode = errno === 'EBUSY' ? HELD : UNKNOWN;
  }
}
