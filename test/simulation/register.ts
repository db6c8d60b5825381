// Loaded before everything else (`node --import`): from here on the process lives on a simulated machine. What Node offers of
// the operating system is replaced by `platform/`, time and chance come from the machine's scheduler, and a call that
// nobody simulates fails loudly instead of reaching the real world.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { machine } from './engine/machine.ts';
import { PLANTED } from './planted.ts';
import './engine/scheduler.ts'; // keeps the real turn of the event loop before it is replaced

const here = new URL('.', import.meta.url).href;
const source = new URL('../../src/', import.meta.url).href;
const at = (name: string): string => new URL(`platform/${name}`, here).href;

/** Modules of Node. */
const PLATFORM: Readonly<Record<string, string>> = {
  'node:fs': at('fs.ts'),
  'node:fs/promises': at('fs-promises.ts'),
  'node:crypto': at('crypto.ts'),
  'node:child_process': at('child-process.ts'),
  'node:net': at('net.ts'),
  'node:http': at('http.ts'),
  'node:https': at('http.ts'),
  'node:http2': at('http2.ts'),
  'node:tls': at('tls.ts'),
  'node:os': at('os.ts'),
  'node:dns/promises': at('dns-promises.ts'),
  'node:sqlite': at('sqlite.ts'),
  'node:timers/promises': at('timers-promises.ts'),
  'node:v8': at('v8.ts'),
  'node:vm': at('v8.ts'),
  'node:worker_threads': at('worker-threads.ts'),
};

/** Modules that touch nothing outside the process. */
const PURE =
  /^node:(path|url|util|events|stream|stream\/promises|zlib|assert|assert\/strict|async_hooks|buffer|module|perf_hooks|readline)$/;

/** The program's own edges to the operating system: below them nothing is left to simulate. */
const EDGES: Readonly<Record<string, string>> = {
  [`${source}host/libc.ts`]: at('libc.ts'),
  [`${source}host/systemd/system-bus.ts`]: at('system-bus.ts'),
  [`${source}lib/grpc/channel.ts`]: at('grpc-channel.ts'),
  [`${source}lib/grpc/server.ts`]: at('grpc-server.ts'),
  [`${source}kube/dial.ts`]: at('dial.ts'),
  [`${source}kube/http2-connection.ts`]: at('http2-connection.ts'),
};

const plantName = /^--plant=(.+)$/.exec(process.argv.find((arg) => arg.startsWith('--plant=')) ?? '')?.[1];
const plant = plantName === undefined ? undefined : PLANTED[plantName];
if (plantName !== undefined && plant === undefined) throw new Error(`no bug is called ${plantName}`);

/** The agent's source with a bug in it. */
function planted(url: string): string | undefined {
  if (plant === undefined || url !== `${source}${plant.file}`) return undefined;
  const text = readFileSync(fileURLToPath(url), 'utf8');
  if (!text.includes(plant.find)) throw new Error(`${plant.file} has no such text any more: ${plant.find}`);
  return text.replace(plant.find, plant.replace);
}

registerHooks({
  load(url, context, next) {
    const text = planted(url);
    if (text === undefined) return next(url, context);
    return { format: 'module-typescript', source: text, shortCircuit: true };
  },
  resolve(specifier, context, next) {
    const parent = context.parentURL ?? '';
    const isOurs = parent.startsWith(source) || parent.startsWith(new URL('../fakes/', here).href);
    const platform = isOurs ? PLATFORM[specifier] : undefined;
    if (platform !== undefined) return { url: platform, shortCircuit: true };
    if (isOurs && specifier.startsWith('node:') && !PURE.test(specifier))
      throw new Error(`${specifier} is not simulated`);
    const resolved = next(specifier, context);
    const edge = EDGES[resolved.url];
    return edge === undefined ? resolved : { ...resolved, url: edge };
  },
});

// Thousands of errors are made and handled in an hour; their stacks are of use to whoever looks for a bug.
Error.stackTraceLimit = process.env['SIMULATION_STACKS'] === undefined ? 0 : 20;

const RealDate = Date;
/** Makes real dates: a class derived from theirs is many times slower. */
function SimDate(at?: number | string | Date): Date {
  return at === undefined ? new RealDate(machine().scheduler.wall()) : new RealDate(at);
}
SimDate.prototype = RealDate.prototype;
SimDate.now = () => Math.floor(machine().scheduler.wall());
SimDate.UTC = RealDate.UTC.bind(RealDate);
SimDate.parse = RealDate.parse.bind(RealDate);

const clear = (handle: { cancel?: () => void } | undefined): void => handle?.cancel?.();

Object.assign(globalThis, {
  Date: SimDate,
  setTimeout: (fn: (...a: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    machine().scheduler.after(Math.max(ms, 1), args.length === 0 ? fn : () => fn(...args)),
  setImmediate: (fn: (...a: unknown[]) => void, ...args: unknown[]) =>
    machine().scheduler.after(0, args.length === 0 ? fn : () => fn(...args)),
  setInterval: () => {
    throw new Error('setInterval is not simulated');
  },
  fetch: () => {
    throw new Error('fetch is not simulated');
  },
  clearTimeout: clear,
  clearImmediate: clear,
  clearInterval: clear,
});
Math.random = () => machine().scheduler.agentRandom.next();
performance.now = () => machine().scheduler.monotonic();
Object.defineProperty(process, 'pid', { value: 4242 });
Object.assign(process, {
  kill: () => true,
  realCpuUsage: process.cpuUsage.bind(process),
  cpuUsage: () => ({ user: 1_000_000, system: 500_000 }),
  memoryUsage: Object.assign(() => ({ rss: 1e8, heapUsed: 5e7, heapTotal: 6e7, external: 1e6, arrayBuffers: 1e5 }), {
    rss: () => 1e8,
  }),
});
