// The node's machine: kernel files, cgroups, programs. What the agent reads of /proc and /sys is enough for it to run.
import type { FileTree } from '../engine/file-tree.ts';
import { fail, type Inode } from '../engine/inode.ts';
import type { Command } from '../engine/machine.ts';
import type { Scheduler } from '../engine/scheduler.ts';

import { losetup } from './loop-devices.ts';

export const CGROUP_ROOT = '/sys/fs/cgroup';
const CONTROLLERS = 'cpuset cpu io memory hugetlb pids\n';
const CPUS = 16;
const MEMORY_KB = 64 * 1024 * 1024;

export function makeDirs(files: FileTree, path: string): void {
  const parts = path.split('/').filter(Boolean);
  for (let i = 1; i <= parts.length; i++) {
    const each = `/${parts.slice(0, i).join('/')}`;
    if (files.find(each, 'mkdir').inode === undefined) files.mkdir(each, 0o755);
  }
}

export function putFile(files: FileTree, path: string, content: string | (() => string)): Inode {
  makeDirs(files, path.slice(0, path.lastIndexOf('/')));
  const { inode, parent, name } = files.find(path, 'open');
  const file = inode ?? files.create(parent, name, 'file', 0o644, 'open');
  if (typeof content === 'function') file.generate = content;
  else files.write(file, Buffer.from(content), 'write');
  return file;
}

/** Whatever a machine has again after each boot. */
export function bootHost(files: FileTree, scheduler: Scheduler, bootId: string): void {
  for (const path of ['/proc', '/sys', '/run', '/dev', '/tmp']) {
    makeDirs(files, path);
    files.mountFs(files.makeFs(path === '/proc' ? 'proc' : path === '/sys' ? 'sysfs' : 'tmpfs', 'none'), path);
  }
  procFiles(files, scheduler, bootId);
  makeDirs(files, CGROUP_ROOT);
  const cgroup = files.makeFs('cgroup2', 'cgroup2');
  cgroup.onMkdir = (dir) => controlFiles(files, dir);
  cgroup.onWrite = (file, data) => wroteControl(file, data);
  files.mountFs(cgroup, CGROUP_ROOT);
  controlFiles(files, cgroup.root);
}

function procFiles(files: FileTree, scheduler: Scheduler, bootId: string): void {
  const bootSeconds = Math.floor(scheduler.wall() / 1000);
  const contents: Readonly<Record<string, string | (() => string)>> = {
    '/proc/self/mountinfo': () => files.mountInfo(),
    '/proc/self/mounts': '',
    '/proc/self/status': 'Name:\tkubelet\nRssAnon:\t   80000 kB\n',
    '/proc/self/limits': 'Max open files            1000000              1000000              files\n',
    '/proc/self/smaps': '',
    '/proc/self/oom_score_adj': '0\n',
    '/proc/self/cgroup': '0::/system.slice/kubelet.service\n',
    '/proc/self/net/dev': 'Inter-|\n face |\n  eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n',
    '/proc/net/dev': 'Inter-|\n face |\n  eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n',
    '/proc/meminfo': `MemTotal:       ${MEMORY_KB} kB\nMemFree:        ${MEMORY_KB / 2} kB\nMemAvailable:   ${MEMORY_KB / 2} kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\n`,
    '/proc/swaps': 'Filename\tType\tSize\tUsed\tPriority\n',
    '/proc/stat': `cpu  1 0 1 100 0 0 0 0 0 0\nbtime ${bootSeconds}\n`,
    '/proc/loadavg': '0.10 0.10 0.10 1/300 4242\n',
    '/proc/uptime': '1000.00 2000.00\n',
    '/proc/diskstats': '',
    '/proc/filesystems': 'nodev\ttmpfs\n\text4\n',
    '/proc/cmdline': '',
    '/proc/cpuinfo': Array.from({ length: CPUS }, (_, i) => `processor\t: ${i}\ncore id\t: ${i}\n\n`).join(''),
    '/proc/net/route': 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n',
    '/proc/sys/kernel/pid_max': '4194304\n',
    '/proc/sys/kernel/threads-max': '500000\n',
    '/proc/sys/kernel/osrelease': '6.12.0\n',
    '/proc/sys/kernel/random/boot_id': `${bootId}\n`,
    '/proc/sys/kernel/panic': '10\n',
    '/proc/sys/kernel/panic_on_oops': '1\n',
    '/proc/sys/kernel/keys/root_maxkeys': '1000000\n',
    '/proc/sys/kernel/keys/root_maxbytes': '25000000\n',
    '/proc/sys/vm/overcommit_memory': '1\n',
    '/proc/sys/vm/panic_on_oom': '0\n',
    '/sys/devices/system/cpu/online': '0-15\n',
    '/sys/class/dmi/id/product_uuid': '1d0b5e6c-0000-4000-8000-000000000001\n',
    '/run/systemd/resolve/resolv.conf': 'nameserver 10.0.0.53\n',
  };
  for (const [path, content] of Object.entries(contents)) putFile(files, path, content);
  for (let cpu = 0; cpu < CPUS; cpu++) {
    const dir = `/sys/devices/system/cpu/cpu${cpu}/topology`;
    putFile(files, `${dir}/core_id`, `${cpu}\n`);
    putFile(files, `${dir}/physical_package_id`, '0\n');
    makeDirs(files, `/sys/devices/system/node/node0/cpu${cpu}`);
  }
  putFile(files, '/sys/devices/system/node/node0/meminfo', `Node 0 MemTotal: ${MEMORY_KB} kB\n`);
  putFile(files, '/sys/devices/system/node/node0/distance', '10\n');
  const { parent, name } = files.find('/dev/kmsg', 'open');
  files.create(parent, name, 'device', 0o600, 'open');
}

/** What stays on disk. */
export function installHost(files: FileTree): void {
  putFile(files, '/etc/machine-id', '0123456789abcdef0123456789abcdef\n');
  putFile(files, '/etc/os-release', 'PRETTY_NAME="Simulated Linux"\n');
  putFile(files, '/etc/resolv.conf', 'nameserver 10.0.0.53\n');
  putFile(files, '/etc/hosts', '127.0.0.1 localhost\n');
  for (const path of ['/var/lib/kubelet', '/var/log/pods', '/var/log/containers', '/etc/kubernetes/manifests'])
    makeDirs(files, path);
}

const CONTROL: Readonly<Record<string, string>> = {
  'cgroup.controllers': CONTROLLERS,
  'cgroup.subtree_control': '',
  'cgroup.procs': '',
  'cgroup.kill': '',
  'cgroup.events': 'populated 0\nfrozen 0\n',
  'cpu.weight': '100\n',
  'cpu.max': 'max 100000\n',
  'cpu.stat': 'usage_usec 1000\nuser_usec 500\nsystem_usec 500\n',
  'memory.max': 'max\n',
  'memory.min': '0\n',
  'memory.high': 'max\n',
  'memory.low': '0\n',
  'memory.current': '1048576\n',
  'memory.stat': 'anon 524288\nfile 0\ninactive_file 0\nworkingset_refault_file 0\npgfault 1\npgmajfault 0\n',
  'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n',
  'memory.swap.max': 'max\n',
  'memory.swap.current': '0\n',
  'pids.max': 'max\n',
  'pids.current': '1\n',
  'io.stat': '',
  'cpuset.cpus': '',
  'cpuset.mems': '',
  'cpuset.cpus.effective': '0-15\n',
  'cpuset.mems.effective': '0\n',
};

function controlFiles(files: FileTree, dir: Inode): void {
  for (const [name, content] of Object.entries(CONTROL))
    files.create(dir, name, 'file', 0o644, 'create').data = Buffer.from(content);
}

function wroteControl(file: Inode, data: Buffer): void {
  if (file.name === 'cgroup.subtree_control') {
    const words = data.toString().trim().split(/\s+/);
    file.data = Buffer.from(`${words.map((word) => word.replace('+', '')).join(' ')}\n`);
  }
  if (file.name === 'cgroup.kill') {
    file.data = Buffer.alloc(0);
    const procs = file.parent?.entries.get('cgroup.procs');
    if (procs !== undefined) procs.data = Buffer.alloc(0);
  }
}

/** mount(8), umount(8) and a few others; what is not known fails as a missing program does. */
export const commandsOn =
  (files: FileTree): Command =>
  (command, args) => {
    try {
      return { code: 0, output: runCommand(files, command, args), tookMs: 1 };
    } catch (err) {
      const { code } = err as { code?: string };
      if (code === 'unknown') return { code: -1, output: '', tookMs: 1 };
      return { code: 32, output: `${command}: ${(err as Error).message}`, tookMs: 1 };
    }
  };

function runCommand(files: FileTree, command: string, args: readonly string[]): string {
  const last = args.at(-1) ?? '';
  if (command === 'umount') {
    files.unmount(last);
    return '';
  }
  if (command === 'losetup') return losetup(files, args);
  if (command === 'mount') {
    const options = args[args.indexOf('-o') + 1] ?? '';
    const [source = '', target = ''] = args.slice(args.indexOf('--') + 1);
    if (options.includes('remount')) return '';
    if (options.includes('bind')) files.bind(source, target);
    else files.mountFs(files.makeFs(args[args.indexOf('-t') + 1] ?? 'tmpfs', source), target);
    return '';
  }
  if (command === 'tail' || command === 'head') return files.get(last, 'open').content.toString();
  if (command === 'sh' || command === 'true') return '';
  throw Object.assign(new Error('no such program'), { code: 'unknown' });
}

export { fail };
