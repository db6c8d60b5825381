// What a process holds on to, from inside (the probe) and from outside (/proc), and what has become more of it.
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';

export type Insides = {
  readonly heapUsed: number;
  /** Part of the heap: what V8 has compiled. */
  readonly code: number;
  readonly external: number;
  readonly rss: number;
  /** What keeps the event loop alive, by kind. */
  readonly resources: Readonly<Record<string, number>>;
  /** Live objects by class, and the listeners on them. */
  readonly objects: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
};

export type Vitals = Insides & {
  readonly pods: number;
  readonly seconds: number;
  /** CPU per life since the look before. */
  readonly cpuMsPerPod: number;
  readonly files: Files;
};
type Files = Readonly<Record<string, number>>;

const ANSWER_MS = 60_000;

/** Asks the probe inside a process that was started with it. */
export const askInsides = (child: ChildProcess): Promise<Insides> => ask<Insides>(child, 'vitals');

/** Only how much it holds on to, in a moment. */
export const askMemory = (child: ChildProcess): Promise<Pick<Insides, 'heapUsed' | 'external'>> => ask(child, 'memory');

const ask = <T>(child: ChildProcess, question: 'vitals' | 'memory'): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the probe does not answer')), ANSWER_MS);
    child.once('message', (reported) => {
      clearTimeout(timer);
      const { failed } = reported as { failed?: string };
      if (failed === undefined) resolve(reported as T);
      else reject(new Error(`the probe failed: ${failed}`));
    });
    child.send(question);
  });

/** Open files by kind. */
export function openFiles(pid: number): Files {
  const kinds: Record<string, number> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    let target: string;
    try {
      target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      continue; // closed meanwhile
    }
    const kind = target.startsWith('/') ? 'file' : target.replace(/:?\[.*$/, '');
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

/** Of several looks at a quiet process, the least of everything: what came and went between two looks is not held. */
export function least(looks: readonly Vitals[]): Vitals {
  const [first, ...rest] = looks;
  if (first === undefined) throw new Error('nothing was looked at');
  return rest.reduce(
    (a, b) => ({
      ...b,
      heapUsed: Math.min(a.heapUsed, b.heapUsed),
      code: Math.min(a.code, b.code),
      external: Math.min(a.external, b.external),
      rss: Math.min(a.rss, b.rss),
      resources: lower(a.resources, b.resources),
      objects: lower(a.objects, b.objects),
      files: lower(a.files, b.files),
    }),
    first,
  );
}

const lower = (a: Files, b: Files): Files =>
  Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((k) => [k, Math.min(a[k] ?? 0, b[k] ?? 0)]),
  );

/**
 * Connections that happen to be open or not at a look, with what hangs on them. Entries of maps and sets: what is
 * remembered of past events is full after 1024 pods.
 */
const SLACK: Readonly<Record<string, number>> = {
  listeners: 100,
  entries: 3000,
  EventEmitter: 20,
  Promise: 20,
  Map: 20,
  Set: 20,
};
const USUAL_SLACK = 8;
/** Those of the probe itself and of Node's own. */
const HARMLESS = /^ExperimentalWarning/;

/** What has become more since the first look, in words; memory by more than a factor. Empty is what is wanted. */
export function leftovers(first: Vitals, later: Vitals, moreMemory: number): string[] {
  const grown = (['rss', 'heapUsed'] as const)
    .filter((what) => later[what] > first[what] * moreMemory)
    .map((what) => `${what} grew from ${first[what]} to ${later[what]} bytes`);
  const more = (['resources', 'files', 'objects'] as const).flatMap((group) =>
    Object.entries(later[group])
      .filter(([name, n]) => n > (first[group][name] ?? 0) + (SLACK[name] ?? USUAL_SLACK))
      .map(([name, n]) => `${name} (${group}) went from ${first[group][name] ?? 0} to ${n}`),
  );
  const warned = later.warnings.filter((w) => !HARMLESS.test(w));
  return [...grown, ...more, ...warned].map((what) => `after ${later.pods} pods: ${what}`);
}
