// The newest copy of our own Node object, from the watch or from the server's last answer, whichever is later.
import type { Node } from '../core/node.ts';

/** The node watch's store. */
export interface NodeWatch {
  byName(namespace: string | undefined, name: string): Node | undefined;
}

export class KnownNode {
  readonly #watch: NodeWatch;
  readonly #nodeName: string;
  #answered: Node | undefined;
  #watchedUid: string | undefined;

  constructor(watch: NodeWatch, nodeName: string) {
    this.#watch = watch;
    this.#nodeName = nodeName;
  }

  /** Remembers what the server returned. */
  answered(node: Node): void {
    this.#answered = node;
  }

  /** The node is gone, whatever was known before. */
  forget(): void {
    this.#answered = undefined;
  }

  get(): Node | undefined {
    const watched = this.#watch.byName(undefined, this.#nodeName);
    const answered = this.#answered;
    if (watched === undefined) {
      // What the watch has shown and shows no longer is deleted; what it has not shown yet is new.
      return answered?.metadata.uid === this.#watchedUid ? undefined : answered;
    }
    this.#watchedUid = watched.metadata.uid;
    if (answered === undefined) return watched;
    if (watched.metadata.uid !== answered.metadata.uid) return watched;
    return versionOf(watched) >= versionOf(answered) ? watched : answered;
  }
}

const versionOf = (node: Node): number => Number(node.metadata.resourceVersion ?? 0);
