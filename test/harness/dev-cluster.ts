// A development cluster for tests, made by the real command in a directory of its own, and kubectl on it.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { HANG_MS, timePasses } from './until.ts';

const run = promisify(execFile);
const COMMAND = join(import.meta.dirname, '..', '..', 'bin', 'kubelet-dev');

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

export class DevCluster {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  static async make(): Promise<DevCluster> {
    return new DevCluster(await mkdtemp('/tmp/kts-dev-'));
  }

  get kubeconfig(): string {
    return join(this.dir, 'api', 'admin.kubeconfig');
  }

  command(...args: string[]): Promise<Ran> {
    return collect(execFile(COMMAND, [...args, `--dir=${this.dir}`]));
  }

  /** Starts it, or fails with what it said. */
  async up(...args: string[]): Promise<Ran> {
    const ran = await this.command('up', '--no-install', '--timeout=240', ...args);
    if (ran.code !== 0) throw new Error(`kubelet-dev up: ${ran.stdout}${ran.stderr}${await this.#lastOutput()}`);
    return ran;
  }

  async supervisor(): Promise<{ pid: number; children: Record<string, { pid?: number; restarts: number }> }> {
    return JSON.parse(await readFile(join(this.dir, 'supervisor.json'), 'utf8')) as never;
  }

  async settings(): Promise<{
    nodeName: string;
    healthzPort: number;
    apiPort: number;
    network: { name: string; bridge: string };
    cgroupRoot: string;
  }> {
    return JSON.parse(await readFile(join(this.dir, 'settings.json'), 'utf8')) as never;
  }

  kubectl(binary: string, args: readonly string[], input?: string): Promise<Ran> {
    const child = execFile(binary, ['--kubeconfig', this.kubeconfig, ...args], {
      maxBuffer: 16 << 20,
      timeout: HANG_MS,
    });
    if (input !== undefined) child.stdin?.end(input);
    return collect(child);
  }

  spawnKubectl(binary: string, args: readonly string[]): ChildProcess {
    return spawn(binary, ['--kubeconfig', this.kubeconfig, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  async #lastOutput(): Promise<string> {
    const tails = ['supervisor', 'kubelet', 'containerd'].map(async (name) => {
      const text = await readFile(join(this.dir, 'logs', `${name}.log`), 'utf8').catch(() => '');
      return `--- ${name}\n${text.split('\n').slice(-15).join('\n')}`;
    });
    return (await Promise.all(tails)).join('\n');
  }

  /** Every process it has, down to the containers. */
  async processes(): Promise<number[]> {
    const found = new Set<number>();
    for (const name of await readdir('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
      if (command.includes(`${this.dir}/`) || command.includes(`${this.dir}\0`)) found.add(Number(name));
    }
    for (const cgroup of await this.#cgroups())
      for (const pid of (await readFile(join(cgroup, 'cgroup.procs'), 'utf8').catch(() => '')).split('\n'))
        if (pid !== '') found.add(Number(pid));
    found.delete(process.pid);
    return [...found];
  }

  async kill(): Promise<void> {
    for (let pids = await this.processes(); pids.length > 0; pids = await this.processes()) {
      for (const pid of pids)
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // Ended by itself.
        }
      await timePasses(20, 'another instant');
    }
  }

  /** What a power cut leaves: the disk, and nothing else. */
  async powerCut(): Promise<void> {
    await this.kill();
    const { network } = await this.settings();
    const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((l) => l.split(' ')[4] ?? '');
    for (const point of points.reverse()) if (point.startsWith(`${this.dir}/`)) await run('umount', [point]);
    await run('ip', ['link', 'del', network.bridge]);
    for (const cgroup of (await this.#cgroups()).reverse()) await rmdir(cgroup);
    for (const table of ['nat', 'filter']) {
      const lines = (await run('iptables-save', ['-t', table])).stdout
        .split('\n')
        .filter((l) => l.includes(network.name));
      const rules = lines.filter((l) => l.startsWith('-A ')).map((l) => l.replace(/^-A/, '-D'));
      const chains = lines.filter((l) => l.startsWith(':')).map((l) => `-X ${l.slice(1).split(' ')[0] ?? ''}`);
      for (const change of [...rules, ...chains]) await run('sh', ['-c', `iptables --wait -t ${table} ${change}`]);
    }
  }

  /** Its cgroups in all hierarchies, outer ones first. */
  async #cgroups(): Promise<string[]> {
    const found: string[] = [];
    const visit = async (directory: string): Promise<void> => {
      const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined);
      if (entries === undefined) return;
      found.push(directory);
      for (const entry of entries) if (entry.isDirectory()) await visit(join(directory, entry.name));
    };
    if (!existsSync(join(this.dir, 'settings.json'))) return [];
    const { cgroupRoot } = await this.settings();
    for (const hierarchy of await readdir('/sys/fs/cgroup')) await visit(join('/sys/fs/cgroup', hierarchy, cgroupRoot));
    return found;
  }

  /** Everything goes, whatever state it is in. */
  async destroy(): Promise<void> {
    if (existsSync(join(this.dir, 'settings.json'))) {
      const ran = await this.command('reset');
      if (ran.code !== 0) throw new Error(`kubelet-dev reset: ${ran.stdout}${ran.stderr}`);
    }
    await rm(this.dir, { recursive: true, force: true });
  }
}

function collect(child: ChildProcess): Promise<Ran> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer | string) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer | string) => (stderr += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}

/** What of the cluster is left on the machine: processes, mounts, loop devices, links, cgroups, rules. */
export async function traces(
  dir: string,
  network: { name: string; bridge: string },
  cgroupRoot: string,
): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(`${dir}/`) || command.includes(`${dir}\0`))
      found.push(`process ${name} ${command.replaceAll('\0', ' ')}`);
  }
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((l) => l.includes(` ${dir}/`));
  found.push(...mounts.map((l) => `mount ${l}`));
  for (const name of await readdir('/sys/block')) {
    const file = await readFile(join('/sys/block', name, 'loop', 'backing_file'), 'utf8').catch(() => '');
    if (file.startsWith(`${dir}/`)) found.push(`loop device ${name} ${file.trim()}`);
  }
  if (existsSync(`/sys/class/net/${network.bridge}`)) found.push(`link ${network.bridge}`);
  for (const hierarchy of await readdir('/sys/fs/cgroup'))
    if (existsSync(join('/sys/fs/cgroup', hierarchy, cgroupRoot))) found.push(`cgroup ${hierarchy}${cgroupRoot}`);
  const rules = await run('iptables-save').then(
    (r) => r.stdout,
    () => '',
  );
  found.push(...rules.split('\n').filter((l) => l.includes(network.name)));
  const results = await readdir('/var/lib/cni/results').catch(() => []);
  found.push(...results.filter((f) => f.startsWith(`${network.name}-`)));
  return found;
}
