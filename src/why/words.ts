// Numbers and names in a sentence for people. Pure.
import { EXPLAINED_CHARACTERS } from '../core/bounds.ts';
import { humanSpan } from '../core/human.ts';
import type { KubeEvent } from '../core/node.ts';
import { parseTimeMs } from '../core/time.ts';
import type { PodFacts } from './facts.ts';

export const quote = (text: string): string => JSON.stringify(text);

/** `, next try in 17 s`; nothing where no time is set. */
export function nextTry({ worker, nowMs, steady }: PodFacts): string {
  if (steady === true) return '';
  if (worker?.nextRunMs === undefined || worker.busySinceMs !== undefined) return '';
  return worker.nextRunMs - nowMs < 1000 ? ', next try now' : `, next try in ${humanSpan(worker.nextRunMs - nowMs)}`;
}

/** ` for 35 s`; nothing in a sentence that is to stay. */
export const forSpan = ({ nowMs, steady }: PodFacts, sinceMs: number): string =>
  steady === true ? '' : ` for ${humanSpan(nowMs - sinceMs)}`;

/** To spread into a `Why`. */
export const retryOf = ({ worker }: PodFacts): { readonly nextRetryMs?: number } =>
  worker?.nextRunMs === undefined || worker.busySinceMs !== undefined ? {} : { nextRetryMs: worker.nextRunMs };

/** `event Failed (12 times): …` */
export const eventText = ({ reason = '', count = 1, message = '' }: KubeEvent): string =>
  `event ${reason}${count > 1 ? ` (${count} times)` : ''}: ${message}`;

/** The newest event with one of these reasons. */
export const lastEvent = ({ events }: PodFacts, ...reasons: readonly string[]): KubeEvent | undefined =>
  events.findLast((e) => reasons.includes(e.reason ?? ''));

export const eventMs = (event: KubeEvent | undefined): number =>
  event?.lastTimestamp ? parseTimeMs(event.lastTimestamp) : 0;

/** Whether a message has these words, near its beginning: patterns are searched in short texts only. */
export const says = (message: string, words: RegExp): boolean => words.test(message.slice(0, EXPLAINED_CHARACTERS));

/** Cut where it stops being one sentence's worth. */
export const shortly = (text: string, max = 240): string => (text.length <= max ? text : `${text.slice(0, max - 1)}…`);
