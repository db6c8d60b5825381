// The last events of every object, kept here whatever the API server does with them: shown on the node page and over
// HTTP. Repeats are counted, and memory is bounded per object, in objects and in bytes.
import type { KubeEvent } from '../core/node.ts';
import { Lru } from '../lib/lru.ts';

const PER_OBJECT = 100;
/** As many as a node has pods. */
const OBJECTS = 250;
/** Five thousand short events, or fourteen hundred whose texts have the length at which they are cut. */
const MAX_BYTES = 4 * 1024 * 1024;
/** An event without its text. */
const EVENT_BYTES = 700;
const BYTES_PER_CHARACTER = 2;

type Ring = { readonly events: KubeEvent[]; bytes: number };

/**
 * INVARIANTS:
 * - An object has at most 100 events, and at most 250 objects have any.
 * - All events together have at most `maxBytes`. Beyond it the object with the most bytes loses its oldest event.
 */
export class EventRing {
  readonly #byObject = new Lru<string, Ring>(OBJECTS);
  readonly #ofNode: Ring = { events: [], bytes: 0 };
  readonly #maxBytes: number;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  add(event: KubeEvent): void {
    const ring = this.#ringFor(event.involvedObject.uid ?? '');
    const known = take(
      ring,
      ring.events.findIndex((e) => isRepeat(e, event)),
    );
    const count = (known?.count ?? 0) + 1;
    const firstTimestamp = known?.firstTimestamp ?? event.firstTimestamp ?? null;
    put(ring, known === undefined ? event : { ...event, count, firstTimestamp });
    if (ring.events.length > PER_OBJECT) take(ring, 0);
    this.#shrink();
  }

  /** Oldest first. The node's own events are under the empty uid. */
  ringOf(uid: string): readonly KubeEvent[] {
    return this.#ringOf(uid)?.events ?? [];
  }

  /** Everything, by last occurrence, oldest first. */
  all(): readonly KubeEvent[] {
    const stamp = (e: KubeEvent): string => e.lastTimestamp ?? '';
    return this.#rings()
      .flatMap(({ events }) => events)
      .sort((a, b) => (stamp(a) < stamp(b) ? -1 : stamp(a) > stamp(b) ? 1 : 0));
  }

  #rings(): readonly Ring[] {
    return [this.#ofNode, ...this.#byObject.values()];
  }

  #ringOf(uid: string): Ring | undefined {
    return uid === '' ? this.#ofNode : this.#byObject.get(uid);
  }

  #ringFor(uid: string): Ring {
    const known = this.#ringOf(uid);
    if (known !== undefined) return known;
    const ring = { events: [], bytes: 0 };
    this.#byObject.set(uid, ring);
    return ring;
  }

  #shrink(): void {
    const rings = this.#rings();
    let bytes = rings.reduce((sum, ring) => sum + ring.bytes, 0);
    while (bytes > this.#maxBytes) {
      const largest = rings.reduce((a, b) => (b.bytes > a.bytes ? b : a));
      bytes -= largest.bytes;
      take(largest, 0);
      bytes += largest.bytes;
    }
  }
}

const bytesOf = ({ message = '' }: KubeEvent): number => EVENT_BYTES + message.length * BYTES_PER_CHARACTER;

function put(ring: Ring, event: KubeEvent): void {
  ring.events.push(event);
  ring.bytes += bytesOf(event);
}

/** Removes the event at `index`; there is none at -1. */
function take(ring: Ring, index: number): KubeEvent | undefined {
  if (index < 0) return undefined;
  const [event] = ring.events.splice(index, 1);
  if (event !== undefined) ring.bytes -= bytesOf(event);
  return event;
}

const isRepeat = (a: KubeEvent, b: KubeEvent): boolean =>
  a.reason === b.reason &&
  a.type === b.type &&
  a.message === b.message &&
  a.involvedObject.fieldPath === b.involvedObject.fieldPath;
