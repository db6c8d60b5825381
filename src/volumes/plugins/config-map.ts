// configMap: the keys of a config map as files.
import { namespaceOf, type Volume } from '../../core/pod.ts';
import { configMapFiles, DEFAULT_MODE } from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import { getUnlessOptional, type ObjectSource } from './sources.ts';
import type { Content, ContentRequest, ContentSource } from './written-volume.ts';

export class ConfigMapContent implements ContentSource {
  readonly name = 'kubernetes.io/configmap';
  readonly medium = 'disk';
  readonly #objects: ObjectSource;

  constructor(objects: ObjectSource) {
    this.#objects = objects;
  }

  async collect({ pod, volume, progress, budget }: ContentRequest, signal: AbortSignal): Promise<Content> {
    const { name = '', items, defaultMode = DEFAULT_MODE, optional = false } = volume.configMap ?? {};
    progress(`waiting for configmap "${name}"`);
    const object = await getUnlessOptional(this.#objects.configMap(namespaceOf(pod), name, signal), optional);
    return { files: configMapFiles(object, { items, defaultMode, optional }, budget) };
  }

  references(volume: Volume): readonly ObjectReference[] {
    return [{ kind: 'configMap', name: volume.configMap?.name ?? '' }];
  }
}
