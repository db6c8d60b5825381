// image: the runtime mounts the image itself when it creates the container; there is nothing to do on the host.
import type { MountedVolume, VolumePlugin } from '../plugin.ts';

export class ImagePlugin implements VolumePlugin {
  readonly name = 'kubernetes.io/image';
  readonly refreshes = false;
  readonly leavesNoDirectory = true;

  setUp(): Promise<MountedVolume> {
    return Promise.resolve({ hostPath: '', readOnly: true, selinuxRelabel: true });
  }

  tearDown(): Promise<void> {
    return Promise.resolve();
  }
}
