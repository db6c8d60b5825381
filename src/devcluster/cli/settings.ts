// What is chosen once and kept: ports, the node's name, the pod network, what the machine was like before.
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { CONTAINER_LOGS } from '../../core/log-links.ts';
import { writeFileAtomic } from '../../lib/atomic-file.ts';
import { systemClock } from '../../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../../lib/errors.ts';
import { choosePodNetwork, networkOf, type PodNetwork } from '../containerd/config.ts';
import type { Paths } from './paths.ts';
import { tryPort, type NamedPort } from './ports.ts';

export type Settings = {
  readonly nodeName: string;
  readonly apiPort: number;
  readonly kubeletPort: number;
  readonly healthzPort: number;
  /** Absent in settings of before there was a node page. */
  readonly nodePagePort?: number;
  readonly network: PodNetwork;
  readonly cgroupRoot: string;
  /** Packages this command installed. */
  readonly installed: readonly string[];
  readonly before: {
    /** Of what the kubelet and the network change in /proc/sys. */
    readonly kernel: Readonly<Record<string, string>>;
    readonly hostPortChains: boolean;
    /** Which of SHARED_DIRECTORIES there were. */
    readonly directories: readonly string[];
  };
};

/** Made by CNI plugins and by the kubelet outside their own directory, inner ones first. */
export const SHARED_DIRECTORIES = ['/var/lib/cni/results', '/var/lib/cni', CONTAINER_LOGS];

/** Only a text that is not ours is damaged: `reset` is no advice for a file that could not be read. */
export function settingsProblem(paths: Paths, cause: unknown): KubeletError {
  const errno = errnoOf(cause);
  if (errno === 'EACCES' || errno === 'EPERM')
    return new KubeletError('denied', `${paths.directory} is for root alone: use sudo`, { cause });
  if (errno === 'ENOTDIR') return new KubeletError('conflict', `${paths.directory} is not a directory`, { cause });
  if (errno !== undefined)
    return new KubeletError('unavailable', `${paths.directory} cannot be read: ${messageOf(cause)}`, { cause });
  return new KubeletError('invalid', `${paths.settings} is damaged; 'kubelet-dev reset' starts over`, { cause });
}

export async function readSettings(paths: Paths): Promise<Settings | undefined> {
  try {
    const settings: unknown = JSON.parse(await readFile(paths.settings, 'utf8'));
    if (!isSettings(settings)) throw new KubeletError('invalid', 'fields are missing');
    return settings;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw settingsProblem(paths, err);
  }
}

/** Other programs have a settings.json, too. */
function isSettings(value: unknown): value is Settings {
  const { nodeName, network, cgroupRoot, before, installed } = (value ?? {}) as Partial<Settings>;
  return (
    typeof nodeName === 'string' &&
    typeof network?.name === 'string' &&
    typeof network.bridge === 'string' &&
    cgroupRoot === `/${network.name}` &&
    typeof before?.kernel === 'object' &&
    Array.isArray(before.directories) &&
    Array.isArray(installed)
  );
}

/** Settings of a cluster whose own are damaged or lost, from the configuration of its network. */
export async function salvagedSettings(paths: Paths): Promise<Settings | undefined> {
  const text = await readFile(paths.cniConfig, 'utf8').catch(() => '');
  const network = networkOf(text);
  if (network === undefined) return undefined;
  return {
    nodeName: hostname(),
    apiPort: 0,
    kubeletPort: 0,
    healthzPort: 0,
    network,
    cgroupRoot: `/${network.name}`,
    installed: [],
    // What the machine was like before is not known: what others may need stays.
    before: { kernel: {}, hostPortChains: true, directories: SHARED_DIRECTORIES },
  };
}

export const writeSettings = (paths: Paths, settings: Settings): Promise<void> =>
  writeFileAtomic(paths.settings, `${JSON.stringify(settings, null, 2)}\n`, 0o600);

export async function newSettings(before: Settings['before'], installed: readonly string[]): Promise<Settings> {
  const taken: number[] = [];
  const choose = async (wanted: number): Promise<number> => {
    const port = await freePort(wanted, taken);
    taken.push(port);
    return port;
  };
  const name = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/^[.-]+|[.-]+$/g, '');
  const network = choosePodNetwork(systemClock.random, 'kd');
  return {
    nodeName: name === '' ? 'node' : name,
    apiPort: await choose(6443),
    kubeletPort: await choose(10250),
    healthzPort: await choose(10248),
    nodePagePort: await choose(4194),
    network: { ...network, masquerade: true },
    cgroupRoot: `/${network.name}`,
    installed,
    before,
  };
}

/** The usual port, or any other when somebody else has it. */
async function freePort(wanted: number, taken: readonly number[]): Promise<number> {
  for (const candidate of [wanted, 0, 0, 0]) {
    const port = await tryPort(candidate);
    if (port !== undefined && !taken.includes(port)) return port;
  }
  throw new KubeletError('exhausted', 'no free port found');
}

/** What its parts listen on. */
export const portsOf = (settings: Settings): readonly NamedPort[] => [
  { port: settings.apiPort, what: 'the API server' },
  { port: settings.kubeletPort, what: 'the kubelet' },
  { port: settings.healthzPort, what: "the kubelet's health" },
  ...(settings.nodePagePort === undefined ? [] : [{ port: settings.nodePagePort, what: 'the node page' }]),
];
