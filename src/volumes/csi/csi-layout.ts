// Where CSI volumes live under the root directory, and the names that follow from a volume. Same as upstream's.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { element, type VolumeLayout } from '../layout.ts';

export const CSI_PLUGIN = 'kubernetes.io/csi';

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

export const attachmentName = (handle: string, driver: string, nodeName: string): string =>
  `csi-${hash(handle + driver + nodeName)}`;

/** The id of a volume that a pod brings along. */
export const inlineHandle = (podUid: string, volumeName: string): string => `csi-${hash(podUid + volumeName)}`;

export const uniqueNameOf = (driver: string, handle: string): string => `${CSI_PLUGIN}/${driver}^${handle}`;

/** What metrics call volumes of a driver. */
export const metricNameOf = (driver: string): string => `${CSI_PLUGIN}:${driver}`;

export class CsiLayout {
  readonly #layout: VolumeLayout;

  constructor(layout: VolumeLayout) {
    this.#layout = layout;
  }

  get root(): string {
    return this.#layout.sharedPluginDir(CSI_PLUGIN);
  }

  get podsDir(): string {
    return this.#layout.podsDir;
  }

  volumeDir(uid: string, specName: string): string {
    return this.#layout.volumeDir(uid, CSI_PLUGIN, specName);
  }

  publishPath(uid: string, specName: string): string {
    return join(this.volumeDir(uid, specName), 'mount');
  }

  stageDir(driver: string, handle: string): string {
    return join(this.root, element(driver), hash(handle));
  }

  globalMount(driver: string, handle: string): string {
    return join(this.stageDir(driver, handle), 'globalmount');
  }

  get devicesRoot(): string {
    return join(this.root, 'volumeDevices');
  }

  /** What is kept of one block volume. */
  blockDir(specName: string): string {
    return join(this.devicesRoot, element(specName));
  }

  blockDataDir(specName: string): string {
    return join(this.blockDir(specName), 'data');
  }

  globalMapDir(specName: string): string {
    return join(this.blockDir(specName), 'dev');
  }

  blockStaging(specName: string): string {
    return join(this.devicesRoot, 'staging', element(specName));
  }

  blockPublishDir(specName: string): string {
    return join(this.devicesRoot, 'publish', element(specName));
  }

  blockPublishPath(specName: string, uid: string): string {
    return join(this.blockPublishDir(specName), element(uid));
  }
}
