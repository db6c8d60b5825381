// downwardAPI: facts about the pod and its resources as files.
import type { Pod, Volume } from '../../core/pod.ts';
import { DEFAULT_MODE, downwardFiles } from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import type { PodFactSource } from './sources.ts';
import type { Content, ContentSource } from './written-volume.ts';

export class DownwardApiContent implements ContentSource {
  readonly name = 'kubernetes.io/downward-api';
  readonly medium = 'memory';
  readonly #facts: PodFactSource;

  constructor(facts: PodFactSource) {
    this.#facts = facts;
  }

  async collect(pod: Pod, volume: Volume): Promise<Content> {
    await Promise.resolve();
    const { items = [], defaultMode = DEFAULT_MODE } = volume.downwardAPI ?? {};
    return { files: downwardFiles(pod, items, defaultMode, this.#facts.factsOf(pod), this.#facts.allocatable()) };
  }

  references(): readonly ObjectReference[] {
    return [];
  }
}
