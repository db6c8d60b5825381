// Loaded into the kubelet's process ahead of its own code (`--import`); says over the IPC channel what is alive in there
// after everything else was collected. The kubelet knows nothing of it.
import { ChildProcess } from 'node:child_process';
import { EventEmitter, getEventListeners } from 'node:events';
import { Session } from 'node:inspector/promises';
import { Socket } from 'node:net';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Insides } from './vitals.ts';
import { dropCodePages } from '../../src/host/process/code-pages.ts';

const warnings: string[] = [];
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (how: object) => void;

const timer = setTimeout(() => undefined, 0);
clearTimeout(timer);
const COUNTED = Object.entries({
  AbortController,
  AbortSignal,
  ChildProcess,
  EventEmitter,
  Map,
  Promise,
  Set,
  Socket,
  Timeout: timer.constructor as new () => object,
});

/** Called from inside the inspector's evaluation, where the live objects themselves can be had, all in one go. */
const HOOK = 'soakCountOf';
Object.defineProperty(globalThis, HOOK, {
  value: (objects: readonly object[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const [name] of COUNTED) counts[name] = 0;
    let [onSignals, onEmitters, entries] = [0, 0, 0];
    for (const object of objects) {
      for (const [name, type] of COUNTED) if (object instanceof type) counts[name] = (counts[name] ?? 0) + 1;
      if (object instanceof AbortSignal) onSignals += abortListeners(object);
      else if (object instanceof EventEmitter) onEmitters += emitterListeners(object);
      else if (object instanceof Map || object instanceof Set) entries += sizeOf(object);
    }
    return { ...counts, abortListeners: onSignals, listeners: onEmitters, entries };
  },
});

function sizeOf(collection: { readonly size: number }): number {
  try {
    return collection.size;
  } catch {
    return 0; // a prototype in between
  }
}

function emitterListeners(object: object): number {
  const { _events: events } = object as { _events?: Record<string, unknown> };
  return Object.values(events ?? {}).reduce<number>((n, one) => n + (Array.isArray(one) ? one.length : 1), 0);
}

function abortListeners(signal: object): number {
  try {
    return getEventListeners(signal as AbortSignal, 'abort').length;
  } catch {
    return 0; // a prototype in between
  }
}

async function liveObjects(): Promise<Record<string, number>> {
  const session = new Session();
  session.connect();
  try {
    const { result: prototype } = await session.post('Runtime.evaluate', { expression: 'Object.prototype' });
    const { objects } = await session.post('Runtime.queryObjects', { prototypeObjectId: prototype.objectId ?? '' });
    const { result } = await session.post('Runtime.callFunctionOn', {
      objectId: objects.objectId ?? '',
      functionDeclaration: `function () { return globalThis.${HOOK}(this); }`,
      returnByValue: true,
    });
    return result.value as Record<string, number>;
  } finally {
    session.disconnect();
  }
}

async function insides(): Promise<Insides> {
  const objects = await liveObjects();
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  // As the kubelet itself does with a collection in quiet times: how much of the program is mapped says nothing about growth.
  await dropCodePages();
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapUsed, code: codeBytes(), external, rss, resources, objects, warnings };
}

/** Of the heap: machine code, bytecode and what belongs to them. V8 compiles for hours what runs once a minute. */
const codeBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => /^(code|trusted)_/.test(name))
    .reduce((sum, { space_used_size: size }) => sum + size, 0);

/** What is held, without counting it: everything stops for a far shorter time. */
function memory(): Pick<Insides, 'heapUsed' | 'external'> {
  collect({ type: 'major', execution: 'sync' });
  const { heapUsed, external } = process.memoryUsage();
  return { heapUsed, external };
}

process.on('message', (question) => {
  if (question === 'memory') return void process.send?.(memory());
  insides().then(
    (reported) => process.send?.(reported),
    (err: unknown) => process.send?.({ failed: String(err) }),
  );
});
process.channel?.unref();
