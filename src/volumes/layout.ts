// Where everything of a pod lives under the root directory. Same names as upstream's, so that a node can change hands
// between the two while pods run. Names come from users: one that is not a plain path element never becomes a path.
import { join } from 'node:path';
import { KubeletError } from '../lib/errors.ts';

export const EMPTY_DIR = 'kubernetes.io/empty-dir';

export class VolumeLayout {
  readonly #root: string;
  readonly podsDir: string;

  constructor(rootDir: string) {
    this.#root = rootDir;
    this.podsDir = join(rootDir, 'pods');
  }

  get rootDir(): string {
    return this.#root;
  }

  podDir(uid: string): string {
    return `${this.podsDir}/${element(uid)}`;
  }

  volumesDir(uid: string): string {
    return `${this.podDir(uid)}/volumes`;
  }

  /** `volumes/kubernetes.io~empty-dir` */
  pluginVolumesDir(uid: string, plugin: string): string {
    return join(this.volumesDir(uid), escapePlugin(plugin));
  }

  volumeDir(uid: string, plugin: string, name: string): string {
    return join(this.pluginVolumesDir(uid, plugin), element(name));
  }

  /** Links to the block devices of a pod. */
  volumeDevicesDir(uid: string): string {
    return join(this.podDir(uid), 'volumeDevices');
  }

  pluginVolumeDevicesDir(uid: string, plugin: string): string {
    return join(this.volumeDevicesDir(uid), escapePlugin(plugin));
  }

  deviceLink(uid: string, plugin: string, name: string): string {
    return join(this.pluginVolumeDevicesDir(uid, plugin), element(name));
  }

  /** What a plugin keeps of volumes that pods share: `plugins/kubernetes.io/csi`. */
  sharedPluginDir(plugin: string): string {
    return join(this.#root, 'plugins', ...plugin.split('/').map(element));
  }

  pluginsDir(uid: string): string {
    return `${this.podDir(uid)}/plugins`;
  }

  emptyDirMetaDir(uid: string): string {
    return join(this.pluginsDir(uid), escapePlugin(EMPTY_DIR));
  }

  /** Holds the file that says a volume was set up completely. */
  readyDir(uid: string, markerName: string): string {
    return join(this.emptyDirMetaDir(uid), element(markerName));
  }

  subPathsDir(uid: string): string {
    return join(this.podDir(uid), 'volume-subpaths');
  }

  volumeSubPathsDir(uid: string, volume: string): string {
    return join(this.subPathsDir(uid), element(volume));
  }
}

export const escapePlugin = (plugin: string): string => plugin.replaceAll('/', '~');
export const unescapePlugin = (directory: string): string => directory.replaceAll('~', '/');

/** The argument, if it is one plain path element; a fault otherwise. */
export function element(name: string): string {
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0') || name.length > 253) {
    throw new KubeletError('invalid', `${JSON.stringify(name)} cannot be the name of a directory`);
  }
  return name;
}
