// Events live in the core group; events.k8s.io/v1 is another view of the same objects.
import { isJson, recordAt, textAt, type ApiObject, type Json } from './objects.ts';

const KEPT = ['metadata', 'reason', 'type', 'action', 'related', 'eventTime', 'series'];

export function toNewEvent(event: ApiObject): Json {
  const kept = Object.fromEntries(KEPT.filter((k) => event[k] !== undefined).map((k) => [k, event[k]]));
  return {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    ...kept,
    eventTime: event['eventTime'] ?? null,
    reportingController: textAt(event, 'reportingComponent'),
    reportingInstance: textAt(event, 'reportingInstance'),
    regarding: recordAt(event, 'involvedObject'),
    note: textAt(event, 'message'),
    deprecatedSource: recordAt(event, 'source'),
    deprecatedFirstTimestamp: event['firstTimestamp'] ?? null,
    deprecatedLastTimestamp: event['lastTimestamp'] ?? null,
    ...(event['count'] === undefined ? {} : { deprecatedCount: event['count'] }),
  };
}

/** The core form of an events.k8s.io body. */
export function fromNewEvent(body: Json): Json {
  const kept = Object.fromEntries(KEPT.filter((k) => body[k] !== undefined).map((k) => [k, body[k]]));
  return {
    kind: 'Event',
    apiVersion: 'v1',
    ...kept,
    involvedObject: isJson(body['regarding']) ? body['regarding'] : {},
    message: textAt(body, 'note'),
    source: recordAt(body, 'deprecatedSource'),
    firstTimestamp: body['deprecatedFirstTimestamp'] ?? null,
    lastTimestamp: body['deprecatedLastTimestamp'] ?? null,
    ...(body['deprecatedCount'] === undefined ? {} : { count: body['deprecatedCount'] }),
    reportingComponent: textAt(body, 'reportingController'),
    reportingInstance: textAt(body, 'reportingInstance'),
  };
}
