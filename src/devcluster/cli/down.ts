// `kubelet-dev down`: ends every process and takes every mount, link, cgroup and rule away; files stay for the next `up`.
// Works just as well when the supervisor or anything else is already dead.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, readlink, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openCgroups } from '../../host/cgroups/open.ts';
import { CONTAINER_LOGS } from '../../core/log-links.ts';
import { systemClock } from '../../lib/clock.ts';
import { isFault } from '../../lib/errors.ts';
import { leftovers, removeTraces } from '../containerd/cleanup.ts';
import { childProcesses } from './own-processes.ts';
import { notOurs, ownerOf, removeFiles } from './ownership.ts';
import type { Paths } from './paths.ts';
import { readSettings, salvagedSettings, SHARED_DIRECTORIES, type Settings } from './settings.ts';
import { endLeftChildren, stopSupervisor } from './state.ts';

const run = promisify(execFile);
const quiet = (file: string, args: readonly string[]): Promise<string> =>
  run(file, [...args]).then(
    (r) => r.stdout,
    () => '',
  );

/** What could not be removed, in words. */
export async function down(
  paths: Paths,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const settings = (await readSettings(paths)) ?? (await salvagedSettings(paths));
  return settings === undefined ? [] : stopAll(paths, settings, tell, signal);
}

/** Without settings, what is found by the paths of the directory. */
async function stopAll(
  paths: Paths,
  settings: Settings | undefined,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly string[]> {
  tell('stopping pods and processes');
  await stopSupervisor(paths);
  await endLeftChildren(paths, 10_000);
  tell('removing mounts, network and cgroups');
  await removeTraces(paths.containerd, settings?.network);
  await unmountBelow(paths.directory);
  await detachLoops(paths.directory);
  if (settings !== undefined) await removeCgroup(settings.cgroupRoot, signal);
  await rm(join(paths.containerd, 'cni-ipam'), { recursive: true, force: true });
  await rm(paths.podLogs, { recursive: true, force: true });
  await removeLogLinks(paths.podLogs);
  if (settings !== undefined) await restoreMachine(settings);
  return remaining(paths, settings);
}

async function mountsBelow(directory: string): Promise<readonly string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  return table
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
    .filter((point) => point.startsWith(`${directory}/`));
}

async function unmountBelow(directory: string): Promise<void> {
  // A volume that nobody holds is unmounted at once and completely; only what is held is merely detached.
  for (const point of (await mountsBelow(directory)).toReversed())
    await run('umount', [point]).catch(() => quiet('umount', ['-l', point]));
}

/** Loop devices over files of this directory; those over other loop devices come first. */
async function loopsBelow(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir('/sys/block').catch(() => [])) {
    const file = await readFile(join('/sys/block', name, 'loop', 'backing_file'), 'utf8').catch(() => '');
    if (file.startsWith(`${directory}/`)) found.push(`/dev/${name}`);
  }
  return found.toReversed();
}

async function detachLoops(directory: string): Promise<void> {
  for (const device of await loopsBelow(directory)) await quiet('losetup', ['--detach', device]);
}

/** In every hierarchy: on machines with both versions the runtime makes cgroups in the second one too. */
async function removeCgroup(path: string, signal: AbortSignal): Promise<void> {
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  await cgroups.destroy(path, signal);
  for (const hierarchy of await readdir('/sys/fs/cgroup')) await removeTree(join('/sys/fs/cgroup', hierarchy, path));
}

async function removeTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(directory, entry.name));
  await rmdir(directory).catch(() => undefined);
}

/** The kubelet links every container log into one directory for log collectors. */
async function removeLogLinks(podLogs: string): Promise<void> {
  const directory = CONTAINER_LOGS;
  for (const name of await readdir(directory).catch(() => [])) {
    const target = await readlink(join(directory, name)).catch(() => '');
    if (target.startsWith(`${podLogs}/`)) await rm(join(directory, name), { force: true });
  }
}

async function restoreMachine({ before }: Settings): Promise<void> {
  if (!before.hostPortChains) await removeHostPortChains();
  for (const directory of SHARED_DIRECTORIES)
    // Only when nobody else has put something there since.
    if (!before.directories.includes(directory)) await rmdir(directory).catch(() => undefined);
  for (const [name, value] of Object.entries(before.kernel))
    await writeFile(join('/proc/sys', name), value).catch(() => undefined);
}

const HOST_PORT_CHAINS = ['CNI-HOSTPORT-DNAT', 'CNI-HOSTPORT-MASQ', 'CNI-HOSTPORT-SETMARK'];

/** The port mapping plugin's own chains, unless another network uses them. */
async function removeHostPortChains(): Promise<void> {
  const lines = (await quiet('iptables-save', ['-t', 'nat'])).split('\n');
  if (lines.some((l) => l.startsWith('-A CNI-HOSTPORT-DNAT '))) return;
  for (const line of lines)
    if (line.startsWith('-A ') && HOST_PORT_CHAINS.some((c) => line.includes(`-j ${c}`)))
      await quiet('sh', ['-c', `iptables -t nat ${line.replace(/^-A/, '-D')}`]);
  for (const chain of HOST_PORT_CHAINS) {
    await quiet('iptables', ['-t', 'nat', '-F', chain]);
    await quiet('iptables', ['-t', 'nat', '-X', chain]);
  }
}

async function remaining(paths: Paths, settings: Settings | undefined): Promise<string[]> {
  const found = (await leftovers(paths.containerd, settings?.network)).filter((l) => !l.startsWith('folder '));
  for (const pid of await childProcesses(paths)) found.push(`process ${pid}`);
  for (const point of await mountsBelow(paths.directory)) found.push(`mount ${point}`);
  for (const device of await loopsBelow(paths.directory)) found.push(`loop device ${device}`);
  if (settings === undefined) return [...new Set(found)];
  for (const hierarchy of await readdir('/sys/fs/cgroup'))
    if (existsSync(join('/sys/fs/cgroup', hierarchy, settings.cgroupRoot)))
      found.push(`cgroup ${hierarchy}${settings.cgroupRoot}`);
  return [...new Set(found)];
}

/** `kubelet-dev reset`: everything that `up` made, files too; works from any state of a cluster, and on nothing else. */
export async function reset(
  paths: Paths,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const owner = await ownerOf(paths);
  if (owner === 'others') throw notOurs(paths, 'nothing was removed');
  if (owner === 'nobody') {
    tell(`nothing here (${paths.directory})`);
    return [];
  }
  const read = await readSettings(paths).catch((err: unknown) => {
    if (!isFault(err, 'invalid')) throw err;
    return undefined;
  });
  const settings = read ?? (await salvagedSettings(paths));
  const installed = settings?.installed ?? [];
  const left = await stopAll(paths, settings, tell, signal);
  if (left.length > 0) return left;
  tell(`removing ${paths.directory}`);
  const others = await removeFiles(paths);
  if (others.length > 0) tell(`${paths.directory} stays with files that are not the cluster's: ${others.join(', ')}`);
  // Others may have come to need them since: whether they go is the owner's decision.
  if (installed.length > 0)
    tell(`packages it had installed stay; remove them with: apt-get purge --autoremove ${installed.join(' ')}`);
  return [];
}
