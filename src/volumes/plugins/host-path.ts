// hostPath: a file or directory of the node, in a pod or as a persistent volume. Nothing is mounted and nothing is removed;
// only the type is checked.
import { KubeletError } from '../../lib/errors.ts';
import type { FileKind, HostFiles } from '../../host/mounts/host-files.ts';
import type { MountedVolume, VolumePlugin, VolumeRequest } from '../plugin.ts';

/** How a type's failure is worded, by the kind the path must be. */
const WORDS: Readonly<Record<string, string>> = {
  directory: 'a directory',
  file: 'a file',
  socket: 'a socket file',
  charDevice: 'a character device',
  blockDevice: 'a block device',
};

const WANTED: Readonly<Record<string, { readonly kind: FileKind; readonly create: boolean }>> = {
  DirectoryOrCreate: { kind: 'directory', create: true },
  Directory: { kind: 'directory', create: false },
  FileOrCreate: { kind: 'file', create: true },
  File: { kind: 'file', create: false },
  Socket: { kind: 'socket', create: false },
  CharDevice: { kind: 'charDevice', create: false },
  BlockDevice: { kind: 'blockDevice', create: false },
};

export class HostPathPlugin implements VolumePlugin {
  readonly name = 'kubernetes.io/host-path';
  readonly refreshes = false;
  readonly leavesNoDirectory = true;
  readonly #files: HostFiles;

  constructor(files: HostFiles) {
    this.#files = files;
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const { path, type } = sourceOf(request);
    if (path.split('/').includes('..')) {
      throw new KubeletError('invalid', `invalid HostPath \`${path}\`: must not contain '..'`);
    }
    if (!path.startsWith('/')) throw new KubeletError('invalid', `invalid HostPath \`${path}\`: must be absolute`);
    if (type !== '') await this.#check(path, type, request.progress, signal);
    return { hostPath: path, readOnly: request.readOnly, selinuxRelabel: false };
  }

  tearDown(): Promise<void> {
    return Promise.resolve();
  }

  async #check(path: string, type: string, progress: (doing: string) => void, signal: AbortSignal): Promise<void> {
    const wanted = WANTED[type];
    if (wanted === undefined) throw new KubeletError('invalid', `${type} is an invalid volume type`);
    progress(`checking that ${path} is ${WORDS[wanted.kind] ?? wanted.kind}`);
    const kind = await this.#files.kindOf(path, signal);
    if (kind === wanted.kind) return;
    if (kind === 'missing' && wanted.create) {
      if (wanted.kind === 'directory') return this.#files.makeDirectory(path, signal);
      await this.#files.makeFile(path, signal);
      // Something else may have taken the name meanwhile.
      if ((await this.#files.kindOf(path, signal)) === wanted.kind) return;
    }
    throw new KubeletError('invalid', `hostPath type check failed: ${path} is not ${WORDS[wanted.kind] ?? ''}`);
  }
}

function sourceOf({ volume, persistent }: VolumeRequest): { path: string; type: string } {
  const source = (persistent === undefined ? volume.hostPath : persistent.volume.spec['hostPath']) as
    | { path?: unknown; type?: unknown }
    | null
    | undefined;
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { path: text(source?.path), type: text(source?.type) };
}
