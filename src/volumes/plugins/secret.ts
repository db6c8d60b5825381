// secret: the keys of a secret as files, in memory only.
import { namespaceOf, type Volume } from '../../core/pod.ts';
import { DEFAULT_MODE, secretFiles } from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import { getUnlessOptional, type ObjectSource } from './sources.ts';
import type { Content, ContentRequest, ContentSource } from './written-volume.ts';

export class SecretContent implements ContentSource {
  readonly name = 'kubernetes.io/secret';
  readonly medium = 'memory';
  readonly #objects: ObjectSource;

  constructor(objects: ObjectSource) {
    this.#objects = objects;
  }

  async collect({ pod, volume, progress, budget }: ContentRequest, signal: AbortSignal): Promise<Content> {
    const { secretName = '', items, defaultMode = DEFAULT_MODE, optional = false } = volume.secret ?? {};
    progress(`waiting for secret "${secretName}"`);
    const object = await getUnlessOptional(this.#objects.secret(namespaceOf(pod), secretName, signal), optional);
    return { files: secretFiles(object, { items, defaultMode, optional }, budget) };
  }

  references(volume: Volume): readonly ObjectReference[] {
    return [{ kind: 'secret', name: volume.secret?.secretName ?? '' }];
  }
}
