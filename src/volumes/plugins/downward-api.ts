// downwardAPI: facts about the pod and its resources as files.
import { DEFAULT_MODE, downwardFiles, DownwardValues } from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import type { PodFactSource } from './sources.ts';
import type { Content, ContentRequest, ContentSource } from './written-volume.ts';

export class DownwardApiContent implements ContentSource {
  readonly name = 'kubernetes.io/downward-api';
  readonly medium = 'memory';
  readonly #facts: PodFactSource;

  constructor(facts: PodFactSource) {
    this.#facts = facts;
  }

  async collect({ pod, volume, budget }: ContentRequest): Promise<Content> {
    await Promise.resolve();
    const { items = [], defaultMode = DEFAULT_MODE } = volume.downwardAPI ?? {};
    const values = new DownwardValues(pod, this.#facts.factsOf(pod), this.#facts.allocatable());
    return { files: downwardFiles(values, items, defaultMode, budget) };
  }

  references(): readonly ObjectReference[] {
    return [];
  }
}
