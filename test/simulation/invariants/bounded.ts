// Queues, open files and requests stay within bounds.
import { MINUTE, type Invariant } from './violation.ts';

const MAX_EVENTS = 50_000;
const MAX_FILES = 200;
/** Fifty a second and a burst of a hundred, and as many again for events and reviews. */
const MAX_REQUESTS = 2 * (50 * 60 + 100);
/** Some twenty collections, each read again after a break, and less and less often where that does not help. */
const MAX_LISTS = 600;

export const bounded: Invariant = ({ pendingEvents, openFiles, requestsLastMinute, listsLastMinute, overdue }) => {
  const texts: string[] = [];
  if (pendingEvents > MAX_EVENTS) texts.push(`${pendingEvents} timers and calls are waiting`);
  if (openFiles > MAX_FILES && overdue('files', MINUTE)) texts.push(`${openFiles} files are open`);
  if (requestsLastMinute > MAX_REQUESTS) texts.push(`${requestsLastMinute} requests in a minute`);
  if (listsLastMinute > MAX_LISTS) texts.push(`${listsLastMinute} lists and watches in a minute`);
  return texts;
};
