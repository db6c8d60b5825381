// The end of a file that a pod may have put on a filesystem of its own choice: an NFS server that is gone would hold the
// reading thread for ever. Files in the kubelet's own directories are read in process, others by a child with a deadline
// where any mounted filesystem may be waiting for somebody.
import { abortable, withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, isFault, KubeletError } from '../../lib/errors.ts';
import { openIfAny } from '../files/open-regular.ts';
import { runChild } from './child.ts';
import type { Mounter } from './mounter.ts';

export type FileTailDeps = {
  readonly clock: Clock;
  readonly mounter: Pick<Mounter, 'table'>;
  /** In this process; as it is but for tests. */
  readonly tail?: typeof tailInProcess;
};
export type FileTailOptions = { readonly rootDir: string; readonly timeoutMs?: number };

/** At most the last `maxBytes`; undefined when there is no regular file of that name. Links are not followed. */
export type FileTail = (path: string, maxBytes: number, signal: AbortSignal) => Promise<Buffer | undefined>;

const TIMEOUT_MS = 10_000;
/** In the kubelet's own directories: a disk that hangs must not keep the pod's status from being told. */
const OWN_TIMEOUT_MS = 5000;
const S_IFMT = 0o170000;
const S_IFREG = 0o100000;

export const fileTail =
  (
    { clock, mounter, tail = tailInProcess }: FileTailDeps,
    { rootDir, timeoutMs = TIMEOUT_MS }: FileTailOptions,
  ): FileTail =>
  async (path, maxBytes, signal) => {
    if (isOwn(rootDir, path) || !(await mounter.table(signal)).hasForeign)
      return withDeadline(clock, signal, OWN_TIMEOUT_MS, (own) => abortable(own, tail(path, maxBytes)));
    return withDeadline(clock, signal, timeoutMs, (own) => tailByChild(path, maxBytes, own));
  };

/** `<root>/pods/<uid>/containers/<name>/<file>`, which is no volume. */
const isOwn = (rootDir: string, path: string): boolean =>
  path.startsWith(`${rootDir}/pods/`) && /^[^/]+\/containers\/[^/]+\/[^/]+$/.test(path.slice(rootDir.length + 6));

export async function tailInProcess(path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    const file = await openIfAny(path);
    if (file === undefined) return Buffer.alloc(0);
    try {
      const { size } = await file.stat();
      const length = Math.min(size, maxBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (err) {
    if (isFault(err, 'invalid') || errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

export async function tailByChild(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | undefined> {
  const { code, output } = await runChild('stat', ['-c', '%f %s', '--', path], signal);
  if (code !== 0) {
    // The tool has one exit code for all failures; its locale is fixed to C.
    if (/No such file or directory|Not a directory/.test(output)) return undefined;
    throw new KubeletError('unavailable', output);
  }
  const [mode = '', size = ''] = output.split(' ');
  if ((parseInt(mode, 16) & S_IFMT) !== S_IFREG) return undefined;
  const skip = Math.max(0, Number(size) - maxBytes);
  const flags = 'iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes';
  const args = [`if=${path}`, flags, `skip=${skip}`, `count=${maxBytes}`, `bs=${maxBytes}`, 'status=none'];
  const read = await runChild('dd', args, signal);
  if (read.code !== 0) throw new KubeletError('unavailable', read.output);
  return read.stdout;
}
