// Decides what becomes of an event before it is sent: dropped as spam, combined with similar ones, counted onto an
// earlier one, or new. Time comes in as an argument, nothing is read from outside.
import { hash } from 'node:crypto';
import type { KubeEvent } from '../core/node.ts';
import { Lru } from '../lib/lru.ts';

/** How much is remembered: some times what the pods of a full node have to tell (upstream remembers 4096 of each). */
const OBJECTS = 1024;
const EVENTS = 2048;
const MAX_SIMILAR = 10;
const SIMILAR_WINDOW_MS = 600_000;
const SPAM_BURST = 25;
const SPAM_REFILL_MS = 300_000;
const COMBINED = '(combined from similar events): ';

/** Hashes of at most nine texts. A list of numbers is smaller than a set, and there are thousands of these. */
type Similar = { messages: number[]; lastMs: number };
type Bucket = { tokens: number; atMs: number };

/** What was last sent (or queued) under a key. */
export type Sent = { readonly name: string; readonly count: number; readonly firstTimestamp: string };

export type CorrelationResult = {
  /** Too much was told of its object: it is counted, and not sent. */
  readonly isSpam: boolean;
  readonly key: string;
  readonly message: string;
  /** Set when the event only raises the count of an earlier one. */
  readonly previous?: Sent;
};

export class EventCorrelator {
  readonly #similar = new Lru<string, Similar>(EVENTS);
  readonly #buckets = new Lru<string, Bucket>(OBJECTS);
  readonly #sent = new Lru<string, Sent>(EVENTS);

  judge(event: KubeEvent, nowMs: number): CorrelationResult {
    const { key, message } = this.#aggregate(event, nowMs);
    const previous = this.#sent.get(key);
    return { isSpam: this.#isSpam(event, nowMs), key, message, ...(previous === undefined ? {} : { previous }) };
  }

  /** Remembers what goes by `key` from now on. */
  remember(key: string, sent: Sent): void {
    this.#sent.set(key, sent);
  }

  /** What goes by `key` has another name now; what happened since is not forgotten. */
  rename(key: string, { name, count, firstTimestamp }: Sent): void {
    this.#sent.set(key, { name, count: Math.max(count, this.#sent.get(key)?.count ?? 0), firstTimestamp });
  }

  forget(key: string): void {
    this.#sent.delete(key);
  }

  /** Many different messages of one object and reason become one event whose text changes. */
  #aggregate(event: KubeEvent, nowMs: number): { key: string; message: string } {
    const group = groupKey(event);
    const message = event.message ?? '';
    const known = shortHash(message);
    let similar = this.#similar.get(group);
    if (similar === undefined || nowMs - similar.lastMs > SIMILAR_WINDOW_MS) {
      similar = { messages: [], lastMs: nowMs };
      this.#similar.set(group, similar);
    }
    if (!similar.messages.includes(known)) similar.messages.push(known);
    similar.lastMs = nowMs;
    if (similar.messages.length < MAX_SIMILAR) return { key: eventKey(event), message };
    similar.messages.shift();
    return { key: group, message: COMBINED + message };
  }

  #isSpam(event: KubeEvent, nowMs: number): boolean {
    const key = spamKey(event);
    const bucket = this.#buckets.get(key) ?? { tokens: SPAM_BURST, atMs: nowMs };
    const tokens = Math.min(SPAM_BURST, bucket.tokens + Math.max(0, nowMs - bucket.atMs) / SPAM_REFILL_MS);
    const spam = tokens < 1;
    this.#buckets.set(key, { tokens: spam ? tokens : tokens - 1, atMs: nowMs });
    return spam;
  }
}

/** 48 bits: as many as a number holds in whole bytes. */
const shortHash = (text: string): number => hash('sha1', text, 'buffer').readUIntBE(0, 6);

/** Thousands of keys are kept, so each is as short as it can be. */
const joined = (...parts: readonly (string | undefined)[]): string => hash('sha1', parts.join('\u0000'), 'base64');

const objectKey = ({ involvedObject: o }: KubeEvent): string =>
  joined(o.kind, o.namespace, o.name, o.uid, o.apiVersion);
const spamKey = (event: KubeEvent): string => joined(objectKey(event), event.type);
const groupKey = (event: KubeEvent): string => joined('group', objectKey(event), event.type, event.reason);
const eventKey = (event: KubeEvent): string =>
  joined('event', objectKey(event), event.involvedObject.fieldPath, event.type, event.reason, event.message);
