// Loaded into the kubelet's process ahead of its own code (`--import`); says over the IPC channel what is alive in there
// after everything else was collected. The kubelet knows nothing of it.
import { ChildProcess } from 'node:child_process';
import { EventEmitter, getEventListeners } from 'node:events';
import { Session } from 'node:inspector/promises';
import { Socket } from 'node:net';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Insides } from './vitals.ts';

const warnings: string[] = [];
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (how: object) => void;

const timer = setTimeout(() => undefined, 0);
clearTimeout(timer);
const COUNTED = {
  AbortController,
  AbortSignal,
  ChildProcess,
  EventEmitter,
  Map,
  Promise,
  Set,
  Socket,
  Timeout: timer.constructor,
} as const;

const count = (type: unknown): number => Number(queryObjects(type as Parameters<typeof queryObjects>[0]));

/** Answered from inside the inspector's evaluation, where the live objects themselves can be had. */
const HOOK = 'soakListenersOf';
Object.defineProperty(globalThis, HOOK, {
  enumerable: false,
  value: (objects: readonly object[]): number => objects.reduce((sum, object) => sum + listenersOf(object), 0),
});

function listenersOf(object: object): number {
  if (object instanceof AbortSignal) return Object.is(object, AbortSignal.prototype) ? 0 : abortListeners(object);
  const { _events: events } = object as { _events?: Record<string, unknown> };
  return Object.values(events ?? {}).reduce<number>((n, one) => n + (Array.isArray(one) ? one.length : 1), 0);
}

function abortListeners(signal: AbortSignal): number {
  try {
    return getEventListeners(signal, 'abort').length;
  } catch {
    return 0; // a prototype in between
  }
}

async function listeners(session: Session, type: string): Promise<number> {
  const { result: prototype } = await session.post('Runtime.evaluate', { expression: `${type}.prototype` });
  const { objects } = await session.post('Runtime.queryObjects', { prototypeObjectId: prototype.objectId ?? '' });
  const { result } = await session.post('Runtime.callFunctionOn', {
    objectId: objects.objectId ?? '',
    functionDeclaration: `function () { return globalThis.${HOOK}(this); }`,
    returnByValue: true,
  });
  return Number(result.value);
}

async function insides(): Promise<Insides> {
  const session = new Session();
  session.connect();
  Object.defineProperty(globalThis, 'soakEmitter', { value: EventEmitter, configurable: true });
  const listening = {
    abortListeners: await listeners(session, 'AbortSignal'),
    listeners: await listeners(session, 'soakEmitter'),
  };
  session.disconnect();
  for (let i = 0; i < 2; i++) collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const objects = Object.fromEntries(Object.entries(COUNTED).map(([name, type]) => [name, count(type)]));
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapUsed, external, rss, resources, objects: { ...objects, ...listening }, warnings };
}

process.on('message', () => {
  insides().then(
    (told) => process.send?.(told),
    (err: unknown) => process.send?.({ failed: String(err) }),
  );
});
process.channel?.unref();
