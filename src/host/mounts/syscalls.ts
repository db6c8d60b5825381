// mount(2) and umount2(2) in this process. They block the thread they run on, so callers use them only where the
// kernel answers by itself: in-memory filesystems, and bind mounts of descriptors that are already open.
import { getSystemErrorMap } from 'node:util';
import { dlopen, getInt32 } from 'node:ffi';
import { KubeletError, type Fault } from '../../lib/errors.ts';

export const MS_RDONLY = 1;
export const MS_REMOUNT = 32;
export const MS_BIND = 4096;
export const MS_REC = 16384;
export const MS_PRIVATE = 1 << 18;
export const MS_SHARED = 1 << 20;
export const MNT_DETACH = 2;
export const UMOUNT_NOFOLLOW = 8;

const open = () =>
  dlopen(null, {
    mount: { arguments: ['string', 'string', 'string', 'u64', 'string'], return: 'i32' },
    umount2: { arguments: ['string', 'i32'], return: 'i32' },
    __errno_location: { arguments: [], return: 'pointer' },
  }).functions;

let loaded: ReturnType<typeof open> | undefined;
const libc = (): ReturnType<typeof open> => (loaded ??= open());

const KINDS: Readonly<Record<string, Fault>> = {
  ENOENT: 'notFound',
  EBUSY: 'conflict',
  EPERM: 'denied',
  EACCES: 'denied',
  EINVAL: 'invalid',
  ENODEV: 'unimplemented',
};

function failure(call: string, path: string): KubeletError {
  const errno = getInt32(libc().__errno_location());
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, `errno ${errno}`];
  return new KubeletError(KINDS[code] ?? 'internal', `${call} ${path}: ${text}`, { detail: { code } });
}

const noNul = (text: string): string => {
  if (text.includes('\0')) throw new KubeletError('invalid', 'a path or mount option contains a NUL byte');
  return text;
};

export function mountSync(source: string, target: string, fsType: string, flags: number, options: string): void {
  const done = libc().mount(noNul(source), noNul(target), noNul(fsType), BigInt(flags), noNul(options));
  if (done !== 0) throw failure('mount', target);
}

export function unmountSync(target: string, flags: number): void {
  if (libc().umount2(noNul(target), flags) !== 0) throw failure('umount', target);
}
