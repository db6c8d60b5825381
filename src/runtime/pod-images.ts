// The images of one sync: its containers' and its image volumes'. Lives as long as the sync.
import type { ImageSpec } from '../cri/gen/cri.ts';
import type { Secret } from '../core/node.ts';
import { containerFieldPath, type Pod, type PodContainer } from '../core/pod.ts';
import { ContainerStartError } from '../core/reasons.ts';
import { childScope, type Scope } from '../lib/abort.ts';
import { messageOf } from '../lib/errors.ts';
import type { Partially } from '../lib/proto/codec.ts';
import type { EnsuredImage, ImageEnsurer } from './needs.ts';
import type { SandboxSetting } from './sandbox.ts';

export type ImageOwner = {
  readonly pod: Pod;
  readonly pullSecrets: readonly Secret[];
  readonly onWaiting?: () => void;
};
type ImageVolume = readonly [name: string, image: Partially<ImageSpec> | ContainerStartError];
/** By volume name: its image, or why there is none. */
export type ImageVolumes = ReadonlyMap<ImageVolume[0], ImageVolume[1]>;

type Wanted = Pick<Parameters<ImageEnsurer['ensure']>[0], 'fieldPath' | 'image' | 'policy'>;

export class PodImages {
  readonly #images: ImageEnsurer;
  readonly #owner: ImageOwner;
  #early: { readonly name: string; readonly image: Promise<EnsuredImage>; readonly scope: Scope } | undefined;

  constructor(images: ImageEnsurer, owner: ImageOwner) {
    this.#images = images;
    this.#owner = owner;
  }

  /** Looks at a container's image before its turn has come. */
  prepare(entry: PodContainer, setting: SandboxSetting, signal: AbortSignal): void {
    const scope = childScope(signal);
    const image = this.of(entry, setting, scope.signal);
    image.catch(() => undefined); // Awaited, and its failure told, when the container's turn comes.
    this.#early = { name: entry.container.name, image, scope };
  }

  /** A container's image, which may have been looked at before. */
  of({ kind, container }: PodContainer, setting: SandboxSetting, signal: AbortSignal): Promise<EnsuredImage> {
    if (this.#early?.name === container.name) return this.#early.image;
    const fieldPath = containerFieldPath(kind, container.name);
    const wanted = { fieldPath, image: container.image ?? '', policy: container.imagePullPolicy };
    return this.#ensure(wanted, setting, signal);
  }

  /** All image volumes of the pod, side by side. One that cannot be had is the trouble of those who mount it. */
  async volumes(setting: SandboxSetting, signal: AbortSignal): Promise<ImageVolumes> {
    const { pod } = this.#owner;
    const { runtimeHandler } = setting;
    const found = (pod.spec.volumes ?? [])
      .filter((volume) => volume.image !== undefined)
      .map(async ({ name, image: { reference = '', pullPolicy } = {} }): Promise<ImageVolume> => {
        try {
          const wanted = { fieldPath: '', image: reference, policy: pullPolicy };
          const { imageRef } = await this.#ensure(wanted, setting, signal);
          const annotations = { ...pod.metadata.annotations };
          return [name, { image: imageRef, userSpecifiedImage: reference, runtimeHandler, annotations }];
        } catch (err) {
          signal.throwIfAborted();
          if (err instanceof ContainerStartError) return [name, err];
          return [name, new ContainerStartError('ImageInspectError', messageOf(err), err)];
        }
      });
    return new Map(await Promise.all(found));
  }

  /** A look at an image that no container came to want is called off. */
  async end(): Promise<void> {
    if (this.#early === undefined) return;
    const { image, scope } = this.#early;
    scope.abort();
    await image.catch(() => undefined);
    scope.release();
  }

  #ensure(wanted: Wanted, setting: SandboxSetting, signal: AbortSignal): Promise<EnsuredImage> {
    const { pod, pullSecrets, onWaiting } = this.#owner;
    const { config, runtimeHandler } = setting;
    const request = { ...wanted, pod, pullSecrets, sandboxConfig: config, runtimeHandler, onPull: onWaiting };
    return this.#images.ensure(request, signal);
  }
}
