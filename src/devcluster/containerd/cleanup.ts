// Takes away what a private containerd leaves on the machine: shims and their containers, mounts, network namespaces,
// the bridge, port mapping rules, CNI results, empty cgroups, files. Only ever things that carry its folder or network name.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { chainOf } from '../services/rules.ts';
import type { PodNetwork } from './config.ts';

const run = promisify(execFile);
const quiet = (file: string, args: readonly string[]): Promise<string> =>
  run(file, [...args]).then(
    (r) => r.stdout,
    () => '',
  );

/** Removes the folders (and all that belongs to them) of test runs whose process is gone. */
export async function sweepDeadRuns(rootPrefix: string): Promise<void> {
  for (const name of await readdir(dirname(rootPrefix))) {
    if (!name.startsWith(basename(rootPrefix))) continue;
    const root = join(dirname(rootPrefix), name);
    try {
      const owner = JSON.parse(await readFile(join(root, 'owner.json'), 'utf8')) as {
        pid: number;
        network: PodNetwork;
      };
      if (existsSync(`/proc/${owner.pid}`)) continue;
      await removeLeftovers(root, owner.network);
    } catch {
      // Just being made by a neighbour (no owner file yet), or already gone.
      continue;
    }
  }
}

/** Everything of a private containerd but its files; without a network, processes and mounts. */
export async function removeTraces(root: string, network: PodNetwork | undefined): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const pids = await ownProcesses(root);
    if (pids.length === 0) break;
    for (const pid of pids) kill(pid);
    await systemClock.sleep(50, new AbortController().signal);
  }
  for (const point of (await mountsBelow(root)).reverse()) await quiet('umount', ['-l', point]);
  if (network !== undefined) await removeNetwork(network);
  await removeEmptyCgroups();
}

async function removeNetwork(network: PodNetwork): Promise<void> {
  await quiet('ip', ['link', 'del', network.bridge]);
  await removeAddressRules(network.name);
  // Its own rules have no comment, and the way into it may be gone: others flush chains, too.
  await removeChain('nat', chainOf(network));
  for (const file of await cniResults(network.name)) await rm(file, { force: true });
}

export async function removeLeftovers(root: string, network: PodNetwork): Promise<void> {
  await removeTraces(root, network);
  await rm(root, { recursive: true, force: true });
}

/** What is still there, in words; empty when the machine is as before. */
export async function leftovers(root: string, network: PodNetwork | undefined): Promise<string[]> {
  const left: string[] = [];
  for (const pid of await ownProcesses(root)) left.push(`process ${pid}`);
  for (const point of await mountsBelow(root)) left.push(`mount ${point}`);
  if (existsSync(root)) left.push(`folder ${root}`);
  if (network === undefined) return left;
  if (existsSync(`/sys/class/net/${network.bridge}`)) left.push(`bridge ${network.bridge}`);
  for (const file of await cniResults(network.name)) left.push(`file ${file}`);
  for (const table of ['nat', 'filter']) {
    const saved = await quiet('iptables-save', ['-t', table]);
    if (saved.includes(`name: \\"${network.name}\\"`) || saved.includes(`:${chainOf(network)} `))
      left.push(`iptables rules (${table})`);
  }
  return left;
}

/** Daemon, shims and container processes that live in this root. */
async function ownProcesses(root: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const [cmdline, mounts] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
      readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => ''),
    ]);
    const isDaemon = cmdline.includes(`\0${root}/`) && /^[^\0]*(containerd|crio|conmon)/.test(cmdline);
    const isContainer = rootMount(mounts).includes(`${root}/`);
    if (isDaemon || isContainer) found.push(pid);
  }
  return found;
}

/** The mountinfo line of `/`: a container's names its overlay folders. */
const rootMount = (mountinfo: string): string => mountinfo.split('\n').find((l) => l.split(' ')[4] === '/') ?? '';

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

async function mountsBelow(root: string): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  return table
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${root}/`));
}

async function cniResults(networkName: string): Promise<string[]> {
  const dir = '/var/lib/cni/results';
  const names = await readdir(dir).catch(() => []);
  return names.filter((n) => n.startsWith(`${networkName}-`)).map((n) => join(dir, n));
}

/**
 * The port mapping and masquerading plugins comment their rules with the network's name, and so do services; the chain of
 * a sandbox that is gone is found that way.
 */
async function removeAddressRules(networkName: string): Promise<void> {
  for (const table of ['nat', 'filter']) {
    const saved = await quiet('iptables-save', ['-t', table]);
    const mine = saved.split('\n').filter((l) => l.startsWith('-A ') && l.includes(`name: \\"${networkName}\\"`));
    for (const rule of mine) {
      const chain = /-j ((?:CNI|KTS)-[0-9a-zA-Z-]+)/.exec(rule)?.[1];
      await quiet('sh', ['-c', `iptables --wait -t ${table} ${rule.replace(/^-A/, '-D')}`]);
      if (chain !== undefined) await removeChain(table, chain);
    }
  }
}

async function removeChain(table: string, chain: string): Promise<void> {
  await quiet('iptables', ['--wait', '-t', table, '-F', chain]);
  await quiet('iptables', ['--wait', '-t', table, '-X', chain]);
}

/** containerd's default cgroup parent, made when a sandbox names none; only removed when nobody uses it. */
async function removeEmptyCgroups(): Promise<void> {
  for (const controller of await readdir('/sys/fs/cgroup').catch(() => []))
    await rmdir(join('/sys/fs/cgroup', controller, 'k8s.io')).catch(() => undefined);
}
