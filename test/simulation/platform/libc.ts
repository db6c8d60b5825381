// `host/libc.ts` of the simulated machine: mounts act on its tree of files, netlink knows one interface.
import { KubeletError, type Fault } from '../../../src/lib/errors.ts';
import { machine } from '../engine/machine.ts';

const KINDS: Readonly<Record<string, Fault>> = {
  ENOENT: 'notFound',
  EBUSY: 'conflict',
  EINVAL: 'invalid',
  EACCES: 'denied',
};

/** As the real ones fail: with the errno's name in the detail. */
function call(name: string, work: () => void): void {
  try {
    work();
  } catch (err) {
    const errno = (err as { code?: string }).code ?? 'EIO';
    throw new KubeletError(KINDS[errno] ?? 'internal', `${name}: ${errno}`, { detail: { errno } });
  }
}

const MS_BIND = 4096;
const MS_REMOUNT = 32;
const MS_SHARED = 1 << 20;

export const mountSync = (source: string, target: string, fsType: string, flags: number, options: string): void =>
  call('mount', () => {
    const { files } = machine();
    if ((flags & (MS_SHARED | MS_REMOUNT)) !== 0) return;
    if ((flags & MS_BIND) !== 0) return files.bind(source, target);
    files.mountFs(files.makeFs(fsType, source), target, options === '' ? 'rw' : `rw,${options}`);
  });

export const unmountSync = (target: string): void => call('umount2', () => machine().files.unmount(target));

export const flockExclusive = (): void => undefined;
export const watchOpens = (): number => 0;
export const eventDescriptor = (): number => 0;
export const setOpenFileLimit = (): void => undefined;
export const openFileLimit = (): { soft: bigint; hard: bigint } => ({ soft: 1_000_000n, hard: 1_000_000n });
/** This machine has no SELinux. */
export const fileLabel = (): undefined => undefined;
export const setFileLabel = (): void => undefined;
export const dropPages = (): void => undefined;
export const trimHeapSync = (): void => undefined;
/** This disk has no block groups. */
export const markTopDirectorySync = (): void => undefined;
export const sendUnixDatagram = (): void => undefined;
export function connectUnixStream(): never {
  throw new KubeletError('notFound', 'connect: ENOENT', { detail: { errno: 'ENOENT' } });
}
export const sendWithDescriptors = connectUnixStream;
export const receiveWithDescriptors = connectUnixStream;

const RTM_NEWLINK = 16;
const RTM_NEWADDR = 20;
const RTM_GETLINK = 18;

const message = (type: number, head: readonly number[], attribute: number, value: Buffer): Buffer => {
  const padded = Buffer.alloc((4 + value.length + 3) & ~3);
  padded.writeUInt16LE(4 + value.length, 0);
  padded.writeUInt16LE(attribute, 2);
  value.copy(padded, 4);
  const body = Buffer.concat([Buffer.from(head), padded]);
  const out = Buffer.alloc(16 + body.length);
  out.writeUInt32LE(out.length, 0);
  out.writeUInt16LE(type, 4);
  body.copy(out, 16);
  return out;
};

export function netlinkDump(request: Uint8Array): Buffer[] {
  const asked = Buffer.from(request).readUInt16LE(4);
  if (asked === RTM_GETLINK)
    return [message(RTM_NEWLINK, [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3, Buffer.from('eth0\0'))];
  return [message(RTM_NEWADDR, [2, 24, 0, 0, 2, 0, 0, 0], 2, Buffer.from([10, 0, 0, 1]))];
}

type Real = typeof import('../../../src/host/libc.ts');
/** Calls that nothing makes here. */
type Absent = 'flockExclusiveSync' | 'projectOfSync' | 'setProjectSync' | 'projectQuotaStateSync' | 'projectUsageSync';
/** Whatever else the real one offers must be here, or the agent does not even load: that is seen by the compiler. */
type Missing = Exclude<keyof Real, keyof typeof import('./libc.ts') | Absent>;
export const nothingIsMissing: [Missing] extends [never] ? true : Missing = true;
