// What is wrong with a machine that is to be a node, and how to repair it. Pure: one function per subject, each gives its
// findings, good ones included.
import { humanBytes, humanSpan } from '../../core/human.ts';
import type { CertificateFacts, FilesystemFacts, MachineFacts } from './facts.ts';

export type Level = 'ok' | 'warning' | 'failure';

export type Finding = {
  readonly subject: string;
  readonly level: Level;
  readonly text: string;
  /** How to repair it; empty where nothing has to be. */
  readonly fix: string;
};

type Check = (facts: MachineFacts) => readonly Finding[];

const ok = (subject: string, text: string): Finding => ({ subject, level: 'ok', text, fix: '' });
const warning = (subject: string, text: string, fix: string): Finding => ({ subject, level: 'warning', text, fix });
const failure = (subject: string, text: string, fix: string): Finding => ({ subject, level: 'failure', text, fix });

const user: Check = ({ isRoot }) =>
  isRoot ? [] : [warning('user', 'not root: some of what follows could not be read', 'Run it with sudo.')];

const NEEDED_CONTROLLERS = ['cpu', 'memory', 'pids'];
const USEFUL_CONTROLLERS = ['cpuset', 'io', 'hugetlb'];

const cgroups: Check = ({ cgroup, systemd, runtime, kubelet }) => {
  const found: Finding[] = [];
  if (cgroup.version === undefined)
    return [failure('cgroups', 'no control groups are mounted', 'Mount them: mount -t cgroup2 none /sys/fs/cgroup')];
  if (cgroup.version === 1)
    found.push(
      warning(
        'cgroups',
        'version 1, which Kubernetes is about to drop',
        'Boot with systemd.unified_cgroup_hierarchy=1.',
      ),
    );
  else {
    const missing = NEEDED_CONTROLLERS.filter((c) => !cgroup.controllers.includes(c));
    const less = USEFUL_CONTROLLERS.filter((c) => !cgroup.controllers.includes(c));
    if (missing.length > 0)
      found.push(
        failure(
          'cgroups',
          `version 2 without the controllers ${missing.join(', ')}`,
          missing.includes('memory')
            ? 'Boot with cgroup_enable=memory (as on a Raspberry Pi), and enable them in /sys/fs/cgroup/cgroup.subtree_control.'
            : 'Enable them in /sys/fs/cgroup/cgroup.subtree_control, or in the kernel.',
        ),
      );
    else found.push(ok('cgroups', `version 2 with ${cgroup.controllers.join(', ')}`));
    if (missing.length === 0 && less.includes('cpuset'))
      found.push(warning('cgroups', 'no cpuset controller: CPUs cannot be pinned', 'Enable it in the kernel.'));
  }
  if (!cgroup.writable)
    found.push(
      failure('cgroups', '/sys/fs/cgroup cannot be written', 'Run the kubelet as root, with cgroups mounted rw.'),
    );
  const driver = runtime.cgroupDriver ?? kubelet.cgroupDriver;
  if (systemd && driver === 'cgroupfs')
    found.push(
      warning(
        'cgroups',
        'systemd and the runtime both manage cgroups (driver cgroupfs)',
        'Set SystemdCgroup = true in the configuration of the runtime.',
      ),
    );
  return found;
};

const kernel: Check = ({ filesystems, sysctls }) => {
  const overlay = filesystems.includes('overlay')
    ? ok('kernel modules', 'overlay is there')
    : failure(
        'kernel modules',
        'no overlay filesystem',
        'modprobe overlay; echo overlay >> /etc/modules-load.d/kubelet.conf',
      );
  const bridge = sysctls['net.bridge.bridge-nf-call-iptables'];
  const netfilter =
    bridge === undefined
      ? warning(
          'kernel modules',
          'br_netfilter is not loaded: rules for services do not see traffic of a bridge',
          'modprobe br_netfilter; echo br_netfilter >> /etc/modules-load.d/kubelet.conf',
        )
      : ok('kernel modules', 'br_netfilter is there');
  return [overlay, netfilter];
};

type SysctlRule = {
  readonly name: string;
  readonly good: (value: number) => boolean;
  readonly level: Exclude<Level, 'ok'>;
  readonly set: string;
  readonly why: string;
};

const SYSCTLS: readonly SysctlRule[] = [
  {
    name: 'net.ipv4.ip_forward',
    good: (v) => v === 1,
    level: 'failure',
    set: '1',
    why: 'pods reach nothing beyond the node',
  },
  {
    name: 'net.bridge.bridge-nf-call-iptables',
    good: (v) => v === 1,
    level: 'warning',
    set: '1',
    why: 'rules for services do not see traffic of a bridge',
  },
  {
    name: 'fs.inotify.max_user_instances',
    good: (v) => v >= 512,
    level: 'warning',
    set: '8192',
    why: '"too many open files" in pods that watch files',
  },
  {
    name: 'fs.inotify.max_user_watches',
    good: (v) => v >= 65_536,
    level: 'warning',
    set: '524288',
    why: '"no space left on device" in pods that watch files',
  },
  {
    name: 'user.max_user_namespaces',
    good: (v) => v > 0,
    level: 'warning',
    set: '65536',
    why: 'pods with hostUsers: false cannot start',
  },
  {
    name: 'kernel.pid_max',
    good: (v) => v >= 32_768,
    level: 'warning',
    set: '4194304',
    why: 'processes run out early',
  },
  {
    name: 'vm.overcommit_memory',
    good: (v) => v !== 2,
    level: 'warning',
    set: '1',
    why: 'programs fail to reserve memory',
  },
  {
    name: 'vm.panic_on_oom',
    good: (v) => v === 0,
    level: 'warning',
    set: '0',
    why: 'one pod out of memory stops the node',
  },
];

const sysctls: Check = ({ sysctls: values }) => {
  const wrong = SYSCTLS.flatMap(({ name, good, level, set, why }): Finding[] => {
    const value = values[name];
    if (value === undefined || good(Number(value))) return [];
    const fix = `sysctl -w ${name}=${set}; echo '${name} = ${set}' >> /etc/sysctl.d/90-kubelet.conf`;
    return [{ subject: 'sysctls', level, text: `${name} is ${value}: ${why}`, fix }];
  });
  return wrong.length > 0 ? wrong : [ok('sysctls', 'as they should be')];
};

const swap: Check = ({ swap: { devices, failSwapOn }, cgroup }) => {
  if (devices.length === 0) return [ok('swap', 'off')];
  const on = `on (${devices.join(', ')})`;
  if (failSwapOn)
    return [
      failure(
        'swap',
        `${on}, and the kubelet is told not to start then`,
        'swapoff -a and remove it from /etc/fstab, or set failSwapOn: false in the configuration.',
      ),
    ];
  return [
    cgroup.version === 2
      ? ok('swap', `${on}, as allowed by failSwapOn: false`)
      : warning(
          'swap',
          `${on} on cgroup version 1, where it cannot be limited`,
          'swapoff -a, or use cgroup version 2.',
        ),
  ];
};

const runtime: Check = ({ runtime: { endpoint, version, problem, ready } }) => {
  if (problem !== undefined)
    return [
      failure(
        'runtime',
        `${endpoint} does not answer: ${problem}`,
        'Start it (systemctl start containerd), check that its CRI plugin is not disabled, or name it by --runtime-endpoint.',
      ),
    ];
  if (ready === false)
    return [
      failure('runtime', `${version ?? ''} says that it is not ready`, 'Look at its log: journalctl -u containerd'),
    ];
  return [ok('runtime', `${version ?? ''} at ${endpoint}`)];
};

const cni: Check = ({ runtime: { problem, networkReady, networkMessage }, cni: { configurations, plugins } }) => {
  const found: Finding[] = [];
  if (problem === undefined && networkReady === false)
    found.push(
      failure(
        'network',
        `the runtime has no network for pods: ${networkMessage ?? 'no reason given'}`,
        configurations.length === 0
          ? 'Install a CNI plugin: its DaemonSet puts a configuration into /etc/cni/net.d.'
          : `Look at the CNI plugin of ${configurations[0]}; its programs belong into /opt/cni/bin.`,
      ),
    );
  else if (problem === undefined && networkReady === true)
    found.push(ok('network', `ready${configurations.length === 0 ? '' : ` (${configurations.join(', ')})`}`));
  if (configurations.length > 1)
    found.push(
      warning(
        'network',
        `several CNI configurations: only ${configurations[0]} counts`,
        'Remove those in /etc/cni/net.d that are left from other plugins.',
      ),
    );
  if (configurations.length > 0 && plugins === 0)
    found.push(failure('network', 'no CNI programs in /opt/cni/bin', 'Install the containernetworking plugins.'));
  return found;
};

const clock: Check = ({ nowMs, clock: { synchronized, notBeforeMs } }) => {
  if (nowMs < notBeforeMs)
    return [
      failure(
        'clock',
        `it is ${new Date(nowMs).toISOString()} here, which cannot be: certificates will not be accepted`,
        'Set it (timedatectl set-ntp true), and check the battery of the clock.',
      ),
    ];
  if (synchronized === false)
    return [warning('clock', 'nothing keeps the clock right', 'Install chrony, or: timedatectl set-ntp true')];
  return [ok('clock', synchronized === true ? 'synchronized' : 'plausible')];
};

const mounts: Check = ({ sharesMounts }) =>
  sharesMounts === false
    ? [
        warning(
          'mounts',
          "the kubelet's directory is on a private mount: volume drivers in pods cannot show their mounts to others",
          'drain the node and restart the kubelet, which shares the mount while no volumes are there.',
        ),
      ]
    : [];

const LOW_PERCENT = 15;
const FULL_PERCENT = 5;

const disks: Check = ({ disks: all }) => all.flatMap(diskFindings);

function diskFindings(disk: FilesystemFacts): Finding[] {
  const { what, path, freePercent, freeBytes, freeInodesPercent } = disk;
  const left = `${what} (${path}): ${humanBytes(freeBytes)} free, ${Math.floor(freePercent)} %`;
  const fix = 'Free space: crictl rmi --prune, journalctl --vacuum-size=500M, or a larger disk.';
  const inodes: Finding[] =
    freeInodesPercent !== undefined && freeInodesPercent < FULL_PERCENT
      ? [failure('disk', `${what} (${path}): ${Math.floor(freeInodesPercent)} % of the inodes free`, fix)]
      : [];
  if (freePercent < FULL_PERCENT) return [failure('disk', `${left}: pods are evicted`, fix), ...inodes];
  if (freePercent < LOW_PERCENT) return [warning('disk', `${left}: images are collected`, fix), ...inodes];
  return inodes.length > 0 ? inodes : [ok('disk', left)];
}

const SOON_MS = 7 * 86_400_000;

const certificates: Check = ({ certificates: all, nowMs }) => all.map((c) => certificateFinding(c, nowMs));

function certificateFinding({ what, path, notBeforeMs, notAfterMs }: CertificateFacts, nowMs: number): Finding {
  const renew = what.includes('client')
    ? 'It is renewed by itself while the API server is reachable; if it is too late, put a bootstrap kubeconfig back and restart the kubelet.'
    : 'It is renewed by itself; approve its CertificateSigningRequest (kubectl certificate approve).';
  if (nowMs > notAfterMs)
    return failure('certificates', `${what} (${path}) expired ${humanSpan(nowMs - notAfterMs)} ago`, renew);
  if (nowMs < notBeforeMs)
    return failure(
      'certificates',
      `${what} (${path}) is valid only in ${humanSpan(notBeforeMs - nowMs)}`,
      'Set the clock.',
    );
  const left = `${what} is valid for ${humanSpan(notAfterMs - nowMs)}`;
  return notAfterMs - nowMs < SOON_MS ? warning('certificates', left, renew) : ok('certificates', left);
}

/** Rotation does not touch the kubeconfig. */
const embedded: Check = ({ embedded: given, nowMs }) => {
  if (given === undefined) return [];
  const { kubeconfig, notAfterMs, storedPath } = given;
  const date = new Date(notAfterMs ?? 0).toISOString().slice(0, 10);
  const end = notAfterMs === undefined ? '' : ` and ${nowMs > notAfterMs ? 'expired' : 'expires'} on ${date}`;
  return [
    warning(
      'certificates',
      `${kubeconfig} embeds a client certificate, which is not rotated${end}`,
      `kubeadm init phase kubelet-finalize all, or let its client-certificate and client-key be ${storedPath}`,
    ),
  ];
};

const NEEDED_MEMORY = 256e6;

const capacity: Check = ({ memory, openFiles, processes }) => {
  const found: Finding[] = [];
  if (memory.availableBytes < NEEDED_MEMORY)
    found.push(
      warning(
        'memory',
        `${humanBytes(memory.availableBytes)} of ${humanBytes(memory.totalBytes)} available`,
        'Stop what is not needed, or set requests so that pods are placed elsewhere.',
      ),
    );
  if (openFiles !== undefined && openFiles.used > openFiles.max * 0.8)
    found.push(
      warning('files', `${openFiles.used} of ${openFiles.max} files are open`, 'sysctl -w fs.file-max=1048576'),
    );
  if (processes !== undefined && processes.used > processes.max * 0.8)
    found.push(
      warning('processes', `${processes.used} of ${processes.max} processes run`, 'sysctl -w kernel.pid_max=4194304'),
    );
  return found.length > 0 ? found : [ok('capacity', `${humanBytes(memory.availableBytes)} of memory available`)];
};

const names: Check = ({ hostnameResolves }) =>
  hostnameResolves
    ? []
    : [warning('hostname', 'it does not resolve on this machine', 'Add it to /etc/hosts, or set --node-ip.')];

const kubelet: Check = ({ kubelet: { answers, problem } }) =>
  answers
    ? [ok('kubelet', 'answers')]
    : [warning('kubelet', problem ?? 'does not answer', 'Start it (systemctl start kubelet), or look at its log.')];

const CHECKS: readonly Check[] = [
  user,
  kubelet,
  cgroups,
  kernel,
  sysctls,
  swap,
  runtime,
  cni,
  clock,
  mounts,
  disks,
  certificates,
  embedded,
  capacity,
  names,
];

export const findings = (facts: MachineFacts): readonly Finding[] => CHECKS.flatMap((check) => check(facts));

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok  ', warning: 'WARN', failure: 'FAIL' };

export function findingsText(found: readonly Finding[]): string {
  const wide = Math.max(...found.map((f) => f.subject.length));
  const lines = found.flatMap(({ subject, level, text, fix }) => [
    `${MARKS[level]}  ${subject.padEnd(wide)}  ${text}`,
    ...(fix === '' ? [] : [`      ${' '.repeat(wide)}  → ${fix}`]),
  ]);
  const failures = found.filter((f) => f.level === 'failure').length;
  const warnings = found.filter((f) => f.level === 'warning').length;
  const sum = failures + warnings === 0 ? 'Nothing is wrong.' : `${failures} to repair, ${warnings} to look at.`;
  return `${lines.join('\n')}\n\n${sum}\n`;
}
