// An error of a system call as people know it from other programs: `open /etc/x: no such file or directory`. Node says it
// the other way round, and names a file that was reached through a descriptor by the descriptor's number, which is another
// one each time.
import { errnoOf, messageOf } from './errors.ts';

/** Where libuv has words of its own. */
const WORDS: Readonly<Record<string, string>> = {
  EBUSY: 'device or resource busy',
  EEXIST: 'file exists',
  EIO: 'input/output error',
  EISDIR: 'is a directory',
  ELOOP: 'too many levels of symbolic links',
  ENAMETOOLONG: 'file name too long',
};

const THROUGH_DESCRIPTOR = /^\/proc\/self\/fd\/\d+\/?/;

/** The text of an error of a system call; the message of any other. */
export function systemErrorText(err: unknown): string {
  const { syscall, path, dest } = err instanceof Error ? (err as NodeJS.ErrnoException & { dest?: unknown }) : {};
  const code = errnoOf(err);
  const said = /^[A-Z0-9]+: ([^,]+)/.exec(messageOf(err))?.[1];
  if (code === undefined || syscall === undefined || said === undefined) return messageOf(err);
  const files = [path, dest].filter((name) => typeof name === 'string').map((n) => n.replace(THROUGH_DESCRIPTOR, ''));
  return `${[syscall, ...files].filter((word) => word !== '').join(' ')}: ${WORDS[code] ?? said}`;
}
