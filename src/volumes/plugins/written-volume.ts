// What configMap, secret, downwardAPI and projected have in common: files the kubelet writes into an emptyDir of its own
// and keeps up to date. The plugins differ in where the files come from.
import { uidOf, type Pod, type Volume } from '../../core/pod.ts';
import type { AtomicWriter, Payload } from '../atomic-writer.ts';
import type { FileBudget, FileBudgets } from '../file-budget.ts';
import type { GroupOwner } from '../group-owner.ts';
import type { MountedVolume, ObjectReference, VolumeOnDisk, VolumePlugin, VolumeRequest } from '../plugin.ts';
import { makeNestedMountPoints } from '../nested-mounts.ts';
import { memorySize, type EmptyDirBacking, type Medium } from './empty-dir-backing.ts';

export type Content = { readonly files: Payload; readonly refreshAtMs?: number };

export type ContentRequest = {
  readonly pod: Pod;
  readonly volume: Volume;
  readonly progress: (doing: string) => void;
  /** Pays for each file before it is made. */
  readonly budget: FileBudget;
};

export interface ContentSource {
  readonly name: string;
  /** Secrets and what may hold them never touch a disk. */
  readonly medium: 'disk' | 'memory';
  collect(request: ContentRequest, signal: AbortSignal): Promise<Content>;
  references(volume: Volume): readonly ObjectReference[];
}

export type WrittenVolumeDeps = {
  readonly backing: EmptyDirBacking;
  readonly writer: AtomicWriter;
  /** Shared by all kinds of such volumes. */
  readonly budgets: FileBudgets;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly allocatableMemory: () => number;
};

export class WrittenVolumePlugin implements VolumePlugin {
  readonly refreshes = true;
  readonly #source: ContentSource;
  readonly #deps: WrittenVolumeDeps;

  constructor(source: ContentSource, deps: WrittenVolumeDeps) {
    this.#source = source;
    this.#deps = deps;
  }

  get name(): string {
    return this.#source.name;
  }

  references(volume: Volume): readonly ObjectReference[] {
    return this.#source.references(volume);
  }

  async setUp(volumeRequest: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const { pod, volume, specName, progress } = volumeRequest;
    // First the content, then the disk: a volume whose object is missing leaves nothing behind.
    const content = await this.#collect(volumeRequest, signal);
    signal.throwIfAborted();
    const { backing, writer, owner } = this.#deps;
    const request = {
      uid: uidOf(pod),
      plugin: this.name,
      specName,
      markerName: markerOf(specName),
      medium: this.#medium(pod),
    };
    const hostPath = backing.pathOf(request);
    progress('writing its files');
    const found = await backing.setUp(request, signal);
    const mountPoints = await makeNestedMountPoints(hostPath, pod, volume.name, content.files);
    const setPermissions = (): Promise<void> =>
      owner.give(volumeRequest, hostPath, { readOnly: true, changePolicy: 'Always' }, signal);
    const unseen = found === 'mounted';
    const wrote = await writer.write(hostPath, content.files, setPermissions, { unseen, mountPoints }, signal);
    // An earlier run may have stopped between writing and giving the volume to the group.
    if (found !== 'ready' && !wrote) await setPermissions();
    if (found !== 'ready') await backing.markReady(request);
    return {
      hostPath,
      readOnly: true,
      selinuxRelabel: true,
      ...(this.#source.medium === 'memory' ? { hasOwnFilesystem: true } : {}),
      ...(content.refreshAtMs === undefined ? {} : { refreshAtMs: content.refreshAtMs }),
    };
  }

  async #collect({ pod, volume, specName, progress }: VolumeRequest, signal: AbortSignal): Promise<Content> {
    const budget = this.#deps.budgets.begin(uidOf(pod), specName);
    budget.take(0, 'the directory');
    return this.#source.collect({ pod, volume, progress, budget }, signal);
  }

  tearDown({ uid, specName }: VolumeOnDisk, signal: AbortSignal): Promise<void> {
    this.#deps.budgets.release(uid, specName);
    const request = { uid, plugin: this.name, specName, markerName: markerOf(specName), small: true };
    return this.#deps.backing.tearDown(request, signal);
  }

  #medium(pod: Pod): Medium {
    if (this.#source.medium === 'disk') return { on: 'disk' };
    return { on: 'memory', sizeBytes: memorySize(pod, this.#deps.allocatableMemory(), undefined) };
  }
}

const markerOf = (specName: string): string => `wrapped_${specName}`;
