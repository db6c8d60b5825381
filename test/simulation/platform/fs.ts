// node:fs of the simulated machine: synchronous calls act at once, those with a callback take their time.
import { EventEmitter } from 'node:events';
import { constants as real } from 'node:fs';
import { answerLater, later, machine } from '../engine/machine.ts';
import { calls } from './file-calls.ts';
import { fileLatency } from './file-latency.ts';
import * as promisesModule from './fs-promises.ts';

export const constants = real;
export const promises = promisesModule;

type Callback = (err: Error | null, ...values: unknown[]) => void;
type AnyCall = (...args: never[]) => unknown;

/** The way with a callback at the end. */
const withCallback =
  (name: string, call: AnyCall) =>
  (...args: unknown[]): void => {
    const callback = args.pop() as Callback;
    answerLater(fileLatency(name, args[0]), () => (call as (...a: unknown[]) => unknown)(...args), callback);
  };

export const open = withCallback('open', calls.open);
export const close = withCallback('close', calls.close);
export const fstat = withCallback('fstat', calls.fstat);
export const fchmod = withCallback('fchmod', calls.fchmod);
export const fchown = withCallback('fchown', calls.fchown);
export const ftruncate = withCallback('ftruncate', calls.ftruncate);
export const chmod = withCallback('chmod', calls.chmod);
export const chown = withCallback('chown', calls.chown);
export const lchown = withCallback('lchown', calls.lchown);
export const lstat = withCallback('lstat', calls.lstat);
export const stat = withCallback('stat', calls.stat);
export const mkdir = withCallback('mkdir', calls.mkdir);
export const readdir = withCallback('readdir', calls.readdir);
export const readFile = withCallback('readFile', calls.readFile);
export const readlink = withCallback('readlink', calls.readlink);
export const rename = withCallback('rename', calls.rename);
export const rmdir = withCallback('rmdir', calls.rmdir);
export const symlink = withCallback('symlink', calls.symlink);
export const unlink = withCallback('unlink', calls.unlink);
export const writeFile = withCallback('writeFile', calls.writeFile);

/** Node's own promisify answers with both values. */
export function read(
  fd: number,
  into: Buffer,
  offset: number,
  length: number,
  position: number,
  callback: Callback,
): void {
  answerLater(fileLatency('read', fd), () => calls.read(fd, into, offset, length, position), callback);
}
Object.defineProperty(read, Symbol.for('nodejs.util.promisify.custom'), {
  value: (fd: number, buffer: Buffer, offset: number, length: number, position: number) =>
    later(fileLatency('read', fd), () => ({ bytesRead: calls.read(fd, buffer, offset, length, position), buffer })),
});

export const openSync = calls.open;
export const closeSync = calls.close;
export const readSync = calls.read;
export const writeSync = calls.write;
export const readFileSync = calls.readFile;
export const writeFileSync = calls.writeFile;
export const appendFileSync = calls.appendFile;
export const existsSync = calls.exists;
export const mkdirSync = calls.mkdir;
export const mkdtempSync = calls.mkdtemp;
export const readdirSync = calls.readdir;
export const readlinkSync = calls.readlink;
export const realpathSync = calls.realpath;
export const renameSync = calls.rename;
export const rmdirSync = calls.rmdir;
export const rmSync = calls.rm;
export const statSync = calls.stat;
export const lstatSync = calls.lstat;
export const fstatSync = calls.fstat;
export const statfsSync = calls.statfs;
export const symlinkSync = calls.symlink;
export const unlinkSync = calls.unlink;
export const chmodSync = calls.chmod;
export const chownSync = calls.chown;
export const lchownSync = calls.lchown;
export const fchmodSync = calls.fchmod;
export const fchownSync = calls.fchown;
export const ftruncateSync = calls.ftruncate;
export const fsyncSync = calls.fsync;
export const accessSync = calls.access;
export const linkSync = calls.link;

export class Stats {}
export class Dirent {}

/** News of changes come a moment later, several of them as one. */
export function watch(path: string, ...more: unknown[]): EventEmitter {
  const listener = more.find((m) => typeof m === 'function') as ((type: string, name: string) => void) | undefined;
  const { files, scheduler } = machine();
  const watcher = new EventEmitter() as EventEmitter & { close(): void; unref(): unknown; ref(): unknown };
  if (listener !== undefined) watcher.on('change', listener);
  const raw = new EventEmitter();
  const { owner } = scheduler;
  raw.on('raw', (type: string, name: string) => scheduler.after(0.2, () => watcher.emit('change', type, name), owner));
  const stop = files.watch(files.get(path, 'watch'), raw);
  watcher.close = () => {
    stop();
    raw.removeAllListeners();
    watcher.removeAllListeners('change');
  };
  watcher.unref = () => watcher;
  watcher.ref = () => watcher;
  return watcher;
}

export function createReadStream(): never {
  throw new Error('createReadStream is not simulated');
}
export function createWriteStream(): never {
  throw new Error('createWriteStream is not simulated');
}
