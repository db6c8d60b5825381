// `kubelet node support-bundle`: one archive for whoever is to help. What the kubelet cannot give is left out and named.
import { readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import type { KubeEvent } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import { tar, type TarEntry } from '../lib/tar.ts';
import type { WorkersView } from '../page/model.ts';
import { doctor } from './doctor/doctor.ts';
import { redactedEvent, redactedPod, redactedWaterfall, redactedWhy, redactedWorkers } from './redact.ts';
import type { Ask } from './socket-client.ts';
import type { NamedWhy } from './texts.ts';

export type BundleDeps = { readonly clock: Clock; readonly ask: Ask };
export type BundleOptions = {
  readonly operand: string | undefined;
  readonly rootDir: string;
  readonly runtimeEndpoint: string | undefined;
};
export type Bundle = {
  readonly file: string;
  readonly contents: readonly string[];
  readonly missing: readonly { readonly name: string; readonly why: string }[];
};

const asJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;
const parsed = <T>(text: string): T => JSON.parse(text) as T;
const whole = (text: string): string => text;

type Source = { readonly name: string; readonly path: string; readonly keep: (answer: string) => string };

/** All that is asked of the kubelet, and what of each answer is kept. */
const SOURCES: readonly Source[] = [
  {
    name: 'pods.json',
    path: '/pods',
    keep: (t) => asJson((parsed<{ items: Pod[] | null }>(t).items ?? []).map(redactedPod)),
  },
  { name: 'why.json', path: '/debug/why', keep: (t) => asJson(parsed<{ pods: NamedWhy[] }>(t).pods.map(redactedWhy)) },
  {
    name: 'events.json',
    path: '/debug/events',
    keep: (t) => asJson(parsed<{ events: KubeEvent[] }>(t).events.map(redactedEvent)),
  },
  { name: 'pulls.json', path: '/debug/pulls', keep: whole },
  {
    name: 'slowest-starts.json',
    path: '/debug/waterfalls',
    keep: (t) => asJson(parsed<{ waterfalls: object[] }>(t).waterfalls.map(redactedWaterfall)),
  },
  { name: 'configuration.json', path: '/configz', keep: whole },
  { name: 'version.txt', path: '/statusz', keep: whole },
  { name: 'metrics.txt', path: '/metrics', keep: whole },
  { name: 'summary.json', path: '/stats/summary', keep: whole },
  { name: 'node.json', path: '/page/api/now', keep: (t) => asJson(parsed(t)) },
  {
    name: 'workers.json',
    path: '/page/api/workers',
    keep: (t) => asJson(redactedWorkers(parsed<WorkersView>(t))),
  },
];

const MACHINE = [
  '/etc/os-release',
  '/proc/version',
  '/proc/meminfo',
  '/proc/loadavg',
  '/proc/pressure/cpu',
  '/proc/pressure/memory',
  '/proc/pressure/io',
  '/sys/fs/cgroup/cgroup.controllers',
];

/** Its name can be guessed, also in /tmp: a file or link that is there is another's. */
async function writeNew(file: string, data: Buffer): Promise<void> {
  try {
    await writeFile(file, data, { flag: 'wx', mode: 0o600 });
  } catch (err) {
    if (errnoOf(err) !== 'EEXIST') throw err;
    throw new KubeletError('exists', `${file} exists already: remove it, or name another file`);
  }
}

export async function writeBundle(deps: BundleDeps, options: BundleOptions, signal: AbortSignal): Promise<Bundle> {
  const files = new Map<string, string>();
  const missing: { name: string; why: string }[] = [];
  const add = async (name: string, make: () => Promise<string>): Promise<void> => {
    try {
      files.set(name, await make());
    } catch (err) {
      signal.throwIfAborted();
      missing.push({ name, why: messageOf(err) });
    }
  };
  const checked = doctor(deps, options, signal);
  await add('doctor.txt', async () => (await checked).text);
  await add('doctor.json', async () => asJson((await checked).findings));
  for (const { name, path, keep } of SOURCES) await add(name, async () => keep(await deps.ask(path, signal)));
  for (const path of MACHINE) await add(`machine${path}`, () => readFile(path, 'utf8'));
  await add('left-out.json', async () => asJson(missing));
  const stamp = new Date(deps.clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
  const folder = `kubelet-support-${stamp}`;
  const file = options.operand ?? `${folder}.tar.gz`;
  const entries = [...files].map(([name, text]): TarEntry => ({
    path: `${folder}/${name}`,
    type: 'file',
    mode: 0o600,
    data: Buffer.from(text),
  }));
  await writeNew(file, gzipSync(tar(entries)));
  return { file, contents: [...files.keys()], missing };
}
