// node:fs/promises of the simulated machine: every call takes its time on the virtual clock.
import { EventEmitter } from 'node:events';
import { constants as real } from 'node:fs';
import { later } from '../engine/machine.ts';
import { calls } from './file-calls.ts';
import { fileLatency } from './file-latency.ts';

export const constants = real;

const soon =
  <A extends unknown[], R>(name: string, call: (...args: A) => R) =>
  (...args: A): Promise<R> =>
    later(fileLatency(name, args[0]), () => call(...args));

export const readFile = (path: unknown, options?: never): Promise<unknown> =>
  later(fileLatency('readFile', path), () =>
    calls.readFile(path instanceof FileHandle ? path.fd : (path as string), options),
  );
export const writeFile = (path: unknown, data: string, options?: never): Promise<void> =>
  later(fileLatency('writeFile', path), () => calls.writeFile(path as string, data, options));
export const appendFile = soon('appendFile', calls.appendFile);
export const mkdir = soon('mkdir', calls.mkdir);
export const readdir = soon('readdir', calls.readdir);
export const rm = soon('rm', calls.rm);
export const stat = soon('stat', calls.stat);
export const lstat = soon('lstat', calls.lstat);
export const statfs = soon('statfs', calls.statfs);
export const access = soon('access', calls.access);
export const chmod = soon('chmod', calls.chmod);
export const chown = soon('chown', calls.chown);
export const lchown = soon('lchown', calls.lchown);
export const realpath = soon('realpath', calls.realpath);
export const readlink = soon('readlink', calls.readlink);
export const rename = soon('rename', calls.rename);
export const rmdir = soon('rmdir', calls.rmdir);
export const unlink = soon('unlink', calls.unlink);
export const symlink = soon('symlink', calls.symlink);
export const link = soon('link', calls.link);
export const mkdtemp = soon('mkdtemp', calls.mkdtemp);
export const utimes = soon('utimes', calls.utimes);
export const truncate = async (): Promise<never> => Promise.reject(new Error('truncate is not simulated'));

export class FileHandle extends EventEmitter {
  readonly fd: number;
  #isOpen = true;

  constructor(fd: number) {
    super();
    this.fd = fd;
  }

  close = async (): Promise<void> => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await later(fileLatency('close', this.fd), () => calls.close(this.fd));
  };
  [Symbol.asyncDispose] = (): Promise<void> => this.close();
  stat = (o?: never): Promise<unknown> => later(fileLatency('fstat', this.fd), () => calls.fstat(this.fd, o));
  chmod = (mode: number): Promise<void> => later(fileLatency('fchmod', this.fd), () => calls.fchmod(this.fd, mode));
  chown = (uid: number, gid: number): Promise<void> =>
    later(fileLatency('fchown', this.fd), () => calls.fchown(this.fd, uid, gid));
  sync = (): Promise<void> => later(fileLatency('fsync', this.fd), () => calls.fsync(this.fd));
  datasync = (): Promise<void> => later(fileLatency('fsync', this.fd), () => calls.fdatasync(this.fd));
  truncate = (length = 0): Promise<void> =>
    later(fileLatency('ftruncate', this.fd), () => calls.ftruncate(this.fd, length));
  readFile = (o?: never): Promise<unknown> => later(fileLatency('readFile', this.fd), () => calls.readFile(this.fd, o));
  writeFile = (data: string): Promise<void> =>
    later(fileLatency('writeFile', this.fd), () => calls.writeFile(this.fd, data));
  appendFile = (data: string): Promise<number> =>
    later(fileLatency('write', this.fd), () => calls.write(this.fd, data));
  write = async (data: string): Promise<{ bytesWritten: number }> => ({
    bytesWritten: await later(fileLatency('write', this.fd), () => calls.write(this.fd, data)),
  });
  read = (
    buffer: Buffer | { buffer: Buffer; offset?: number; length?: number; position?: number | null },
    offset?: number,
    length?: number,
    position?: number | null,
  ): Promise<{ bytesRead: number; buffer: Buffer }> =>
    later(fileLatency('read', this.fd), () => {
      if (Buffer.isBuffer(buffer))
        return {
          bytesRead: calls.read(this.fd, buffer, offset ?? 0, length ?? buffer.length, position ?? null),
          buffer,
        };
      const o = buffer;
      const bytesRead = calls.read(this.fd, o.buffer, o.offset ?? 0, o.length ?? o.buffer.length, o.position ?? null);
      return { bytesRead, buffer: o.buffer };
    });
}

export const open = async (path: string, flags?: string | number, mode?: number): Promise<FileHandle> =>
  new FileHandle(await later(fileLatency('open', path), () => calls.open(path, flags, mode)));

/** A directory read entry by entry. */
export async function opendir(path: string): Promise<AsyncIterable<unknown> & { close(): Promise<void> }> {
  const entries = await later(fileLatency('readdir'), () => calls.readdir(path, { withFileTypes: true }));
  return {
    async *[Symbol.asyncIterator]() {
      yield* entries;
    },
    close: () => Promise.resolve(),
  };
}

export function watch(): never {
  throw new Error('watch of node:fs/promises is not simulated');
}
