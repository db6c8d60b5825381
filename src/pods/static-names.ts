// Static pods of the same name must not overlap: the first UID to claim a name holds it until it is finished, the others
// wait in order of arrival.
import type { PodUid } from '../core/ids.ts';

export class StaticNames {
  readonly #queues = new Map<string, PodUid[]>();
  readonly #onTurn: (uid: PodUid) => void;

  constructor(onTurn: (uid: PodUid) => void) {
    this.#onTurn = onTurn;
  }

  /** Whether `uid` holds the name now. */
  claim(name: string, uid: PodUid): boolean {
    const queue = this.#queues.get(name) ?? [];
    if (!queue.includes(uid)) queue.push(uid);
    this.#queues.set(name, queue);
    return queue[0] === uid;
  }

  release(uid: PodUid): void {
    for (const [name, queue] of this.#queues) {
      const at = queue.indexOf(uid);
      if (at < 0) continue;
      queue.splice(at, 1);
      const [head] = queue;
      if (head === undefined) this.#queues.delete(name);
      else if (at === 0) this.#onTurn(head);
    }
  }
}
