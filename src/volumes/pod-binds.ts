// Binds of a directory or a mounted disk at a pod's volume directory, and who else has the same one: several pods may
// share a volume. All of it is read from the mount table, which knows more than a process that was restarted.
import { lstat } from 'node:fs/promises';
import type { EventRecorder } from '../core/events.ts';
import type { ChildMounts } from '../host/mounts/child-mounts.ts';
import type { MountEntry, MountTable } from '../host/mounts/mount-table.ts';
import type { Mounter, UnmountOptions } from '../host/mounts/mounter.ts';
import type { GroupOwner } from './group-owner.ts';
import type { VolumeLayout } from './layout.ts';
import type { VolumeRequest } from './plugin.ts';
import { ensureDir, removeEmptyDir } from './pod-dirs.ts';

export type PodBindsDeps = {
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly mounts: Pick<ChildMounts, 'bind'>;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly events: EventRecorder;
};

export type PodPlace = { readonly uid: string; readonly plugin: string; readonly specName: string };

export class PodBinds {
  readonly #deps: PodBindsDeps;

  constructor(deps: PodBindsDeps) {
    this.#deps = deps;
  }

  pathOf({ uid, plugin, specName }: PodPlace): string {
    return this.#deps.layout.volumeDir(uid, plugin, specName);
  }

  /** `adopted`: the bind was there before. */
  async bind(
    place: PodPlace,
    source: string,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<{ path: string; adopted: boolean }> {
    const path = this.pathOf(place);
    const there = (await this.#deps.mounter.table(signal)).at(path);
    if (there === undefined) {
      await ensureDir(this.#deps.layout.pluginVolumesDir(place.uid, place.plugin), 0o750);
      await ensureDir(path, 0o750);
    } else if (!options.includes('ro') || isReadOnly(there)) return { path, adopted: true };
    await this.#deps.mounts.bind(source, path, options, signal);
    return { path, adopted: there !== undefined };
  }

  /** Removes a pod's bind and its directory. Nothing there is success. */
  async release(place: PodPlace, options: UnmountOptions, signal: AbortSignal): Promise<void> {
    await this.unbind(place, options, signal);
    await this.removeDir(place);
  }

  /** Removes a pod's bind. Its directory stays: by it a later run finds the volume. */
  async unbind(place: PodPlace, options: UnmountOptions, signal: AbortSignal): Promise<void> {
    const path = this.pathOf(place);
    // A container may have left mounts of its own in the volume.
    for (const mount of (await this.#deps.mounter.table(signal)).beneath(path))
      await this.#deps.mounter.unmount(mount.target, { detachIfDead: true, ...options }, signal);
  }

  async removeDir(place: PodPlace): Promise<void> {
    await removeEmptyDir(this.pathOf(place));
  }

  /** Whether any pod has a part of what is mounted at `source`. */
  async isUsed(source: string, signal: AbortSignal): Promise<boolean> {
    const table = await this.#deps.mounter.table(signal);
    const mount = table.at(source);
    return mount !== undefined && this.#ofPods(table).some(({ device }) => device === mount.device);
  }

  /**
   * Gives the volume to the pod's group, if no other pod uses it. Of one that was bound before only its root is looked
   * at: it is changed last, so a change that was cut off is done again and one that was finished is not.
   */
  async giveToGroup(
    request: VolumeRequest,
    place: PodPlace,
    { adopted }: { readonly adopted: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { pod, specName } = request;
    const gid = pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    const path = this.pathOf(place);
    const table = await this.#deps.mounter.table(signal);
    if (this.#hasOthers(table, path)) {
      const is = table.isLocal(path) ? (await lstat(path)).gid : gid;
      if (is === gid || adopted) return;
      const message = `The requested fsGroup is ${gid}, but the volume ${specName} has GID ${is}. The volume may not be shareable.`;
      this.#deps.events.pod(pod, 'Warning', 'AlreadyMountedVolume', message);
      return;
    }
    const asked = pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
    const changePolicy = asked || adopted ? 'OnRootMismatch' : 'Always';
    await this.#deps.owner.give(request, path, { readOnly: false, changePolicy }, signal);
  }

  #hasOthers(table: MountTable, path: string): boolean {
    const own = table.at(path);
    if (own === undefined) return false;
    return this.#ofPods(table).some(
      ({ device, root, target }) => device === own.device && root === own.root && target !== path,
    );
  }

  #ofPods(table: MountTable): readonly MountEntry[] {
    return table.beneath(this.#deps.layout.podsDir);
  }
}

const isReadOnly = ({ options }: MountEntry): boolean => options.split(',').includes('ro');
