// The last events of every object, kept here whatever the API server does with them: shown on the node page and over
// HTTP. Repeats are counted, and memory is bounded per object and in objects.
import type { KubeEvent } from '../core/node.ts';
import { Lru } from '../lib/lru.ts';

const PER_OBJECT = 100;
/** As many as a node has pods. */
const OBJECTS = 250;

export class EventRing {
  readonly #byObject = new Lru<string, KubeEvent[]>(OBJECTS);
  readonly #ofNode: KubeEvent[] = [];

  add(event: KubeEvent): void {
    const key = event.involvedObject.uid ?? '';
    const events = this.#eventsOf(key) ?? [];
    if (key !== '' && events.length === 0) this.#byObject.set(key, events);
    const at = events.findIndex((e) => isRepeat(e, event));
    if (at >= 0) {
      const [known] = events.splice(at, 1);
      const count = (known?.count ?? 0) + 1;
      events.push({ ...event, count, firstTimestamp: known?.firstTimestamp ?? event.firstTimestamp ?? null });
      return;
    }
    events.push(event);
    if (events.length > PER_OBJECT) events.shift();
  }

  /** Oldest first. The node's own events are under the empty uid. */
  ringOf(uid: string): readonly KubeEvent[] {
    return this.#eventsOf(uid) ?? [];
  }

  /** Everything, by last occurrence, oldest first. */
  all(): readonly KubeEvent[] {
    const stamp = (e: KubeEvent): string => e.lastTimestamp ?? '';
    return [this.#ofNode, ...this.#byObject.values()]
      .flat()
      .sort((a, b) => (stamp(a) < stamp(b) ? -1 : stamp(a) > stamp(b) ? 1 : 0));
  }

  #eventsOf(uid: string): KubeEvent[] | undefined {
    return uid === '' ? this.#ofNode : this.#byObject.get(uid);
  }
}

const isRepeat = (a: KubeEvent, b: KubeEvent): boolean =>
  a.reason === b.reason &&
  a.type === b.type &&
  a.message === b.message &&
  a.involvedObject.fieldPath === b.involvedObject.fieldPath;
