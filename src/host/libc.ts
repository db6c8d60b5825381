// The few libc calls that Node itself does not offer, through node:ffi, loaded on first use. Every function throws a
// KubeletError with the errno's name in `detail.errno`, and kind `unimplemented` where this Node has no FFI.
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { KubeletError, type Fault } from '../lib/errors.ts';

const SIGNATURES = {
  flock: { arguments: ['i32', 'i32'], return: 'i32' },
  socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  sendto: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'u32'], return: 'i64' },
  recv: { arguments: ['i32', 'buffer', 'u64', 'i32'], return: 'i64' },
  connect: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
  sendmsg: { arguments: ['i32', 'buffer', 'i32'], return: 'i64' },
  recvmsg: { arguments: ['i32', 'buffer', 'i32'], return: 'i64' },
  close: { arguments: ['i32'], return: 'i32' },
  inotify_init1: { arguments: ['i32'], return: 'i32' },
  inotify_add_watch: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
  mount: { arguments: ['buffer', 'buffer', 'buffer', 'u64', 'buffer'], return: 'i32' },
  umount2: { arguments: ['buffer', 'i32'], return: 'i32' },
  prlimit: { arguments: ['i32', 'i32', 'buffer', 'buffer'], return: 'i32' },
  eventfd: { arguments: ['u32', 'i32'], return: 'i32' },
  ioctl: { arguments: ['i32', 'u64', 'buffer'], return: 'i32' },
  syscall: { arguments: ['i64', 'i64', 'i64', 'i64', 'buffer'], return: 'i64' },
  getxattr: { arguments: ['buffer', 'buffer', 'buffer', 'u64'], return: 'i64' },
  setxattr: { arguments: ['buffer', 'buffer', 'buffer', 'u64', 'i32'], return: 'i32' },
  madvise: { arguments: ['u64', 'u64', 'i32'], return: 'i32' },
  __errno_location: { arguments: [], return: 'pointer' },
} as const;

type Call = (...args: unknown[]) => number | bigint;
type Libc = { readonly [K in keyof typeof SIGNATURES]: Call };
type Ffi = typeof import('node:ffi');
type Loaded = { readonly libc: Libc; readonly ffi: Ffi };

let loaded: Loaded | undefined;

function load(): Loaded {
  if (loaded !== undefined) return loaded;
  try {
    const ffi = createRequire(import.meta.url)('node:ffi') as Ffi;
    const { functions } = ffi.dlopen(null, SIGNATURES);
    loaded = { libc: functions as Libc, ffi };
    return loaded;
  } catch (err) {
    throw new KubeletError('unimplemented', 'this Node offers no foreign function calls', { cause: err });
  }
}

const ERRNO_NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));

const KINDS: Readonly<Record<string, Fault>> = {
  EACCES: 'denied',
  EPERM: 'denied',
  ENOENT: 'notFound',
  EEXIST: 'exists',
  EAGAIN: 'conflict',
  EWOULDBLOCK: 'conflict',
  EBUSY: 'conflict',
  EINVAL: 'invalid',
  ENOSYS: 'unimplemented',
};

/** Calls libc and turns -1 into an error. The errno is read before anything else can change it. */
function call(name: Exclude<keyof Libc, '__errno_location'>, ...args: unknown[]): number {
  const { libc, ffi } = load();
  const result = Number(libc[name](...args));
  if (result >= 0) return result;
  const number = ffi.getInt32(libc.__errno_location() as bigint);
  const errno = ERRNO_NAMES.get(number) ?? `errno ${number}`;
  throw new KubeletError(KINDS[errno] ?? 'internal', `${name}: ${errno}`, { detail: { errno } });
}

const LOCK_EX = 2;
const LOCK_NB = 4;

/** Takes the exclusive lock of an open file, or throws `conflict` at once when another process holds it. */
export const flockExclusive = (fd: number): void => void call('flock', fd, LOCK_EX | LOCK_NB);

/** Waits for the lock. Blocks the thread: only in a process that does nothing else. */
export const flockExclusiveSync = (fd: number): void => void call('flock', fd, LOCK_EX);

const FS_IOC_FSGETXATTR = 0x80_1c_58_1f;
const FS_IOC_FSSETXATTR = 0x40_1c_58_20;
/** `struct fsxattr` */
const FILE_ATTRIBUTE_BYTES = 28;
const PROJECT_AT = 12;
/** What is made in the directory belongs to its project. */
const FS_XFLAG_PROJINHERIT = 0x200;

function fileAttributesSync(fd: number): Buffer {
  const attributes = Buffer.alloc(FILE_ATTRIBUTE_BYTES);
  call('ioctl', fd, BigInt(FS_IOC_FSGETXATTR), attributes);
  return attributes;
}

/** The project a file belongs to, for quotas; 0 is none. Blocks the thread while the disk is read. */
export const projectOfSync = (fd: number): number => fileAttributesSync(fd).readUInt32LE(PROJECT_AT);

/** Makes a file belong to a project; in a directory, whatever is made in it too. Blocks the thread while the disk is written. */
export function setProjectSync(fd: number, project: number, isDirectory: boolean): void {
  const attributes = fileAttributesSync(fd);
  if (isDirectory) attributes.writeUInt32LE(attributes.readUInt32LE(0) | FS_XFLAG_PROJINHERIT, 0);
  attributes.writeUInt32LE(project, PROJECT_AT);
  call('ioctl', fd, BigInt(FS_IOC_FSSETXATTR), attributes);
}

const FS_IOC_GETFLAGS = 0x80_08_66_01;
const FS_IOC_SETFLAGS = 0x40_08_66_02;
const FS_TOPDIR_FL = 0x2_00_00;

/** As `chattr +T`: what is in the directory need not be close together. Blocks the thread while the disk is written. */
export function markTopDirectorySync(fd: number): void {
  const flags = Buffer.alloc(8);
  call('ioctl', fd, BigInt(FS_IOC_GETFLAGS), flags);
  const before = flags.readUInt32LE(0);
  flags.writeUInt32LE((before | FS_TOPDIR_FL) >>> 0, 0);
  if (flags.readUInt32LE(0) !== before) call('ioctl', fd, BigInt(FS_IOC_SETFLAGS), flags);
}

/** The same number on x86-64 and arm64. */
const SYS_QUOTACTL_FD = 443;
const PROJECT_QUOTA = 2;
const Q_GETINFO = 0x80_00_05;
const Q_GETQUOTA = 0x80_00_07;
/** `struct if_dqblk`, the larger of the two answers. */
const QUOTA_BYTES = 72;
const SPACE_AT = 16;
const INODES_AT = 40;

function quotaSync(command: number, fd: number, id: number): Buffer {
  const answer = Buffer.alloc(QUOTA_BYTES);
  const number = (command << 8) | PROJECT_QUOTA;
  call('syscall', BigInt(SYS_QUOTACTL_FD), BigInt(fd), BigInt(number >>> 0), BigInt(id), answer);
  return answer;
}

/** Throws where the filesystem of an open file does not account for projects, or the kernel is older than 5.14. */
export const projectQuotaStateSync = (fd: number): void => void quotaSync(Q_GETINFO, fd, 0);

/** What a project uses on the filesystem of an open file. Blocks the thread while the disk is read. */
export function projectUsageSync(fd: number, project: number): { readonly bytes: number; readonly inodes: number } {
  const answer = quotaSync(Q_GETQUOTA, fd, project);
  return {
    bytes: Number(answer.readBigUInt64LE(SPACE_AT)),
    inodes: Number(answer.readBigUInt64LE(INODES_AT)),
  };
}

const IN_NONBLOCK = 0x800;
const IN_CLOEXEC = 0x80000;
const IN_OPEN = 0x20;
const IN_DELETE_SELF = 0x400;

/** A descriptor that becomes readable, without blocking, once somebody opens or deletes the file. */
export function watchOpens(path: string): number {
  const fd = call('inotify_init1', IN_NONBLOCK | IN_CLOEXEC);
  try {
    call('inotify_add_watch', fd, Buffer.from(`${path}\0`), IN_OPEN | IN_DELETE_SELF);
  } catch (err) {
    call('close', fd);
    throw err;
  }
  return fd;
}

const EFD_NONBLOCK = 0x800;
const EFD_CLOEXEC = 0x80000;

/** A descriptor that the kernel can be told to report events on; reading it never blocks. */
export const eventDescriptor = (): number => call('eventfd', 0, EFD_NONBLOCK | EFD_CLOEXEC);

const RLIMIT_NOFILE = 7;

/** Sets the limit of open files of this process; raising the hard one needs CAP_SYS_RESOURCE. */
export function setOpenFileLimit(soft: bigint, hard: bigint): void {
  const value = Buffer.alloc(16);
  value.writeBigUInt64LE(soft, 0);
  value.writeBigUInt64LE(hard, 8);
  call('prlimit', 0, RLIMIT_NOFILE, value, Buffer.alloc(16));
}

export function openFileLimit(): { soft: bigint; hard: bigint } {
  const value = Buffer.alloc(16);
  call('prlimit', 0, RLIMIT_NOFILE, null, value);
  return { soft: value.readBigUInt64LE(0), hard: value.readBigUInt64LE(8) };
}

const MAX_LABEL_BYTES = 4096;

/** The SELinux label of a file; undefined where it has none. Throws where the filesystem has no labels. */
export function fileLabel(path: string): string | undefined {
  const value = Buffer.alloc(MAX_LABEL_BYTES);
  try {
    const length = call('getxattr', cString(path), cString(SELINUX), value, BigInt(value.length));
    return value.toString('utf8', 0, length).replace(/\0$/, '');
  } catch (err) {
    if (err instanceof KubeletError && err.detail['errno'] === 'ENODATA') return undefined;
    throw err;
  }
}

/** Labels a file for SELinux, which needs its permission, or CAP_SYS_ADMIN. */
export function setFileLabel(path: string, label: string): void {
  const value = Buffer.from(label);
  call('setxattr', cString(path), cString(SELINUX), value, BigInt(value.length), 0);
}

const SELINUX = 'security.selinux';

const MADV_DONTNEED = 4;

/** Lets go of the pages of a mapping. What was written to it is lost: only for mappings of files, and clean ones. */
export const dropPages = (start: bigint, length: bigint): void => void call('madvise', start, length, MADV_DONTNEED);

let trim: ((keep: bigint) => number) | undefined;

/**
 * Gives the system back what the C library holds free: V8's zones, OpenSSL and HTTP/2 leave some megabytes of it after a
 * start. Only glibc has the call, so it is loaded by itself.
 */
export function trimHeapSync(): void {
  if (trim === undefined) {
    const { functions } = load().ffi.dlopen(null, { malloc_trim: { arguments: ['u64'], return: 'i32' } });
    trim = functions.malloc_trim as (keep: bigint) => number;
  }
  trim(0n);
}

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0x80000;
const MSG_NOSIGNAL = 0x4000;
const MSG_DONTWAIT = 0x40;
const SUN_PATH_MAX = 107;

/** A `sockaddr_un`. A path that begins with `@` or NUL names an abstract socket. */
function unixAddress(path: string): Buffer {
  const abstract = path.startsWith('@') || path.startsWith('\0');
  const name = Buffer.from(abstract ? `\0${path.slice(1)}` : path);
  if (name.length > SUN_PATH_MAX) throw new KubeletError('invalid', 'socket path is too long');
  const address = Buffer.alloc(2 + name.length + (abstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  name.copy(address, 2);
  return address;
}

/** Sends one datagram to a unix socket. */
export function sendUnixDatagram(path: string, payload: string): void {
  const address = unixAddress(path);
  const data = Buffer.from(payload);
  const fd = call('socket', AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  try {
    call('sendto', fd, data, BigInt(data.length), MSG_NOSIGNAL | MSG_DONTWAIT, address, address.length);
  } finally {
    call('close', fd);
  }
}

const SOCK_STREAM = 1;
const SOCK_NONBLOCK = 0x800;

/** A connected unix stream socket that never blocks. Throws `conflict` while too many wait to be accepted. */
export function connectUnixStream(path: string): number {
  const address = unixAddress(path);
  const fd = call('socket', AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  try {
    call('connect', fd, address, address.length);
    return fd;
  } catch (err) {
    call('close', fd);
    throw err;
  }
}

const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_CTRUNC = 8;
const MSG_CMSG_CLOEXEC = 0x40000000;
const MESSAGE_HEADER_BYTES = 56;
const CONTROL_HEADER_BYTES = 16;
const CONTROL_BYTES = 256;
const CONTROL_LENGTH_AT = 40;
const FLAGS_AT = 48;

/** A `struct msghdr` of a 64-bit machine; it points into the other two, which have to outlive the call. */
function messageHeader(data: Buffer, vector: Buffer, control: Buffer | undefined): Buffer {
  const { ffi } = load();
  vector.writeBigUInt64LE(ffi.getRawPointer(data), 0);
  vector.writeBigUInt64LE(BigInt(data.length), 8);
  const header = Buffer.alloc(MESSAGE_HEADER_BYTES);
  header.writeBigUInt64LE(ffi.getRawPointer(vector), 16);
  header.writeBigUInt64LE(1n, 24);
  if (control === undefined) return header;
  header.writeBigUInt64LE(ffi.getRawPointer(control), 32);
  header.writeBigUInt64LE(BigInt(control.length), CONTROL_LENGTH_AT);
  return header;
}

/** Sends what fits now, with open files, and says how many bytes that was. Throws `conflict` when nothing fits. */
export function sendWithDescriptors(fd: number, data: Buffer, descriptors: readonly number[]): number {
  const vector = Buffer.alloc(16);
  let control: Buffer | undefined;
  if (descriptors.length > 0) {
    const length = CONTROL_HEADER_BYTES + 4 * descriptors.length;
    control = Buffer.alloc((length + 7) & ~7);
    control.writeBigUInt64LE(BigInt(length), 0);
    control.writeInt32LE(SOL_SOCKET, 8);
    control.writeInt32LE(SCM_RIGHTS, 12);
    for (const [i, one] of descriptors.entries()) control.writeInt32LE(one, CONTROL_HEADER_BYTES + 4 * i);
  }
  return call('sendmsg', fd, messageHeader(data, vector, control), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/** Receives what is there, with the open files that came along: 0 bytes at the end. Throws `conflict` when nothing is there. */
export function receiveWithDescriptors(fd: number, into: Buffer): { length: number; descriptors: number[] } {
  const [vector, control] = [Buffer.alloc(16), Buffer.alloc(CONTROL_BYTES)];
  const header = messageHeader(into, vector, control);
  const length = call('recvmsg', fd, header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const descriptors = descriptorsIn(control.subarray(0, Number(header.readBigUInt64LE(CONTROL_LENGTH_AT))));
  if ((header.readInt32LE(FLAGS_AT) & MSG_CTRUNC) === 0) return { length, descriptors };
  for (const one of descriptors) call('close', one);
  throw new KubeletError('exhausted', 'recvmsg: more descriptors than expected');
}

function descriptorsIn(control: Buffer): number[] {
  const descriptors: number[] = [];
  for (let at = 0; at + CONTROL_HEADER_BYTES <= control.length;) {
    const length = Number(control.readBigUInt64LE(at));
    if (length < CONTROL_HEADER_BYTES || at + length > control.length) break;
    if (control.readInt32LE(at + 8) === SOL_SOCKET && control.readInt32LE(at + 12) === SCM_RIGHTS)
      for (let i = CONTROL_HEADER_BYTES; i + 4 <= length; i += 4) descriptors.push(control.readInt32LE(at + i));
    at += (length + 7) & ~7;
  }
  return descriptors;
}

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const NETLINK_ROUTE = 0;
const NETLINK_BUFFER_BYTES = 64 * 1024;
const NLMSG_DONE = 3;

/**
 * Asks the kernel over a route netlink socket and returns its answers until `NLMSG_DONE`. A dump is answered from memory, so
 * the calls do not wait.
 */
export function netlinkDump(request: Uint8Array): Buffer[] {
  const fd = call('socket', AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  try {
    const kernel = Buffer.alloc(12);
    kernel.writeUInt16LE(AF_NETLINK, 0);
    call('sendto', fd, request, BigInt(request.length), 0, kernel, kernel.length);
    const answers: Buffer[] = [];
    for (;;) {
      const buffer = Buffer.alloc(NETLINK_BUFFER_BYTES);
      const length = call('recv', fd, buffer, BigInt(buffer.length), MSG_DONTWAIT);
      const answer = buffer.subarray(0, length);
      answers.push(answer);
      if (endsDump(answer)) return answers;
    }
  } finally {
    call('close', fd);
  }
}

/** Whether the last message in it says that the dump is over, well or with an error. */
function endsDump(answer: Buffer): boolean {
  for (let at = 0; at + 16 <= answer.length;) {
    const length = answer.readUInt32LE(at);
    const type = answer.readUInt16LE(at + 4);
    if (type === NLMSG_DONE || type === 2) return true;
    if (length < 16) return true;
    at += (length + 3) & ~3;
  }
  return answer.length === 0;
}

const cString = (text: string): Buffer => {
  if (text.includes('\0')) throw new KubeletError('invalid', 'a path or mount option contains a NUL byte');
  return Buffer.from(`${text}\0`);
};

/** mount(2). Blocks the thread: only for what the kernel answers by itself. */
export function mountSync(source: string, target: string, fsType: string, flags: number, options: string): void {
  call('mount', cString(source), cString(target), cString(fsType), BigInt(flags), cString(options));
}

/** umount2(2). Blocks the thread: only for what the kernel answers by itself. */
export function unmountSync(target: string, flags: number): void {
  call('umount2', cString(target), flags);
}
