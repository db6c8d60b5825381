// A row for every finding: what is wrong with the machine, and what is said of it. Every one that is not good has a fix.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findings, findingsText, type Level } from './checks.ts';
import type { MachineFacts } from './facts.ts';

const NOW = Date.parse('2026-05-04T10:00:00Z');
const DAY = 86_400_000;

const SOUND: MachineFacts = {
  nowMs: NOW,
  isRoot: true,
  cgroup: { version: 2, controllers: ['cpuset', 'cpu', 'io', 'memory', 'pids'], writable: true },
  filesystems: ['ext4', 'overlay'],
  sysctls: {
    'net.ipv4.ip_forward': '1',
    'net.bridge.bridge-nf-call-iptables': '1',
    'fs.inotify.max_user_instances': '8192',
    'fs.inotify.max_user_watches': '524288',
    'user.max_user_namespaces': '65536',
    'kernel.pid_max': '4194304',
    'vm.overcommit_memory': '1',
    'vm.panic_on_oom': '0',
  },
  swap: { devices: [], failSwapOn: true },
  runtime: {
    endpoint: 'unix:///c.sock',
    version: 'containerd 2.1',
    ready: true,
    networkReady: true,
    cgroupDriver: 'systemd',
  },
  cni: { configurations: ['10-x.conflist'], plugins: 12 },
  clock: { synchronized: true, notBeforeMs: NOW - DAY },
  sharesMounts: true,
  disks: [{ what: 'kubelet', path: '/var/lib/kubelet', freePercent: 40, freeBytes: 40e9, freeInodesPercent: 90 }],
  certificates: [
    { what: 'the client certificate', path: '/pki/c.pem', notBeforeMs: NOW - DAY, notAfterMs: NOW + 300 * DAY },
  ],
  embedded: undefined,
  systemd: true,
  kubelet: { answers: true },
  memory: { totalBytes: 8e9, availableBytes: 4e9 },
  openFiles: { used: 1000, max: 100_000 },
  processes: { used: 300, max: 4_194_304 },
  hostnameResolves: true,
};

const cgroup = (more: Partial<MachineFacts['cgroup']>): Partial<MachineFacts> => ({
  cgroup: { ...SOUND.cgroup, ...more },
});
const sysctl = (name: string, value: string): Partial<MachineFacts> => ({
  sysctls: { ...SOUND.sysctls, [name]: value },
});
const runtime = (more: Partial<MachineFacts['runtime']>): Partial<MachineFacts> => ({
  runtime: { ...SOUND.runtime, ...more },
});
const disk = (freePercent: number, freeInodesPercent = 90): Partial<MachineFacts> => ({
  disks: [{ what: 'images', path: '/var/lib/containerd', freePercent, freeBytes: 2e9, freeInodesPercent }],
});
const embedded = (notAfterMs: number | undefined): Partial<MachineFacts> => ({
  embedded: { kubeconfig: '/k', notAfterMs, storedPath: '/pki/c.pem' },
});
const certificate = (fromMs: number, toMs: number, what = 'the client certificate'): Partial<MachineFacts> => ({
  certificates: [{ what, path: '/p', notBeforeMs: NOW + fromMs, notAfterMs: NOW + toMs }],
});
const { 'net.bridge.bridge-nf-call-iptables': _, ...withoutBridge } = SOUND.sysctls;

const ROWS: readonly (readonly [Level, string, Partial<MachineFacts>, RegExp])[] = [
  ['warning', 'user', { isRoot: false }, /^not root/],
  ['failure', 'cgroups', cgroup({ version: undefined }), /^no control groups/],
  ['warning', 'cgroups', cgroup({ version: 1 }), /^version 1/],
  ['failure', 'cgroups', cgroup({ controllers: ['cpuset', 'cpu', 'pids'] }), /without the controllers memory$/],
  ['failure', 'cgroups', cgroup({ controllers: ['memory', 'cpuset'] }), /without the controllers cpu, pids$/],
  ['warning', 'cgroups', cgroup({ controllers: ['cpu', 'memory', 'pids'] }), /CPUs cannot be pinned/],
  ['failure', 'cgroups', cgroup({ writable: false }), /cannot be written/],
  ['warning', 'cgroups', runtime({ cgroupDriver: 'cgroupfs' }), /both manage cgroups/],
  ['failure', 'kernel modules', { filesystems: ['ext4'] }, /no overlay/],
  ['warning', 'kernel modules', { sysctls: withoutBridge }, /br_netfilter is not loaded/],
  ['warning', 'mounts', { sharesMounts: false }, /private mount/],
  ['failure', 'sysctls', sysctl('net.ipv4.ip_forward', '0'), /pods reach nothing/],
  ['warning', 'sysctls', sysctl('net.bridge.bridge-nf-call-iptables', '0'), /is 0/],
  ['warning', 'sysctls', sysctl('fs.inotify.max_user_instances', '128'), /is 128/],
  ['warning', 'sysctls', sysctl('fs.inotify.max_user_watches', '8192'), /is 8192/],
  ['warning', 'sysctls', sysctl('user.max_user_namespaces', '0'), /hostUsers/],
  ['warning', 'sysctls', sysctl('kernel.pid_max', '4096'), /run out early/],
  ['warning', 'sysctls', sysctl('vm.overcommit_memory', '2'), /reserve memory/],
  ['warning', 'sysctls', sysctl('vm.panic_on_oom', '1'), /stops the node/],
  ['failure', 'swap', { swap: { devices: ['/dev/sda2'], failSwapOn: true } }, /told not to start/],
  ['ok', 'swap', { swap: { devices: ['/dev/sda2'], failSwapOn: false } }, /as allowed/],
  [
    'warning',
    'swap',
    { swap: { devices: ['/dev/sda2'], failSwapOn: false }, ...cgroup({ version: 1 }) },
    /cannot be limited/,
  ],
  ['failure', 'runtime', runtime({ problem: 'ENOENT' }), /does not answer: ENOENT/],
  ['failure', 'runtime', runtime({ ready: false }), /not ready/],
  [
    'failure',
    'network',
    runtime({ networkReady: false, networkMessage: 'cni plugin not initialized' }),
    /not initialized/,
  ],
  ['warning', 'network', { cni: { configurations: ['10-a.conf', '20-b.conf'], plugins: 3 } }, /only 10-a.conf counts/],
  ['failure', 'network', { cni: { configurations: ['10-a.conf'], plugins: 0 } }, /no CNI programs/],
  ['failure', 'clock', { clock: { synchronized: true, notBeforeMs: NOW + DAY } }, /which cannot be/],
  ['warning', 'clock', { clock: { synchronized: false, notBeforeMs: 0 } }, /nothing keeps/],
  ['ok', 'clock', { clock: { synchronized: undefined, notBeforeMs: 0 } }, /plausible/],
  ['failure', 'disk', disk(4), /2.0 GB free, 4 %: pods are evicted/],
  ['warning', 'disk', disk(12), /images are collected/],
  ['failure', 'disk', disk(50, 3), /3 % of the inodes/],
  ['failure', 'certificates', certificate(-9 * DAY, -3 * DAY), /expired 3 d ago/],
  ['failure', 'certificates', certificate(DAY, 3 * DAY), /valid only in 1 d/],
  ['warning', 'certificates', certificate(-DAY, 3 * DAY, 'the serving certificate'), /valid for 3 d/],
  ['warning', 'certificates', embedded(NOW + 300 * DAY), /^\/k embeds .* not rotated and expires on 2027-02-28$/],
  ['warning', 'certificates', embedded(NOW - DAY), /not rotated and expired on 2026-05-03$/],
  ['warning', 'certificates', embedded(undefined), /not rotated$/],
  ['warning', 'memory', { memory: { totalBytes: 8e9, availableBytes: 1e8 } }, /100 MB of 8.0 GB/],
  ['warning', 'files', { openFiles: { used: 90, max: 100 } }, /90 of 100 files/],
  ['warning', 'processes', { processes: { used: 90, max: 100 } }, /90 of 100 processes/],
  ['warning', 'hostname', { hostnameResolves: false }, /does not resolve/],
  ['warning', 'kubelet', { kubelet: { answers: false, problem: 'no kubelet answers' } }, /no kubelet answers/],
];

describe('what is wrong with a machine', () => {
  it('nothing with a sound one', () => {
    const found = findings(SOUND);
    assert.deepEqual(
      found.filter((f) => f.level !== 'ok'),
      [],
    );
    assert.match(findingsText(found), /\n\nNothing is wrong\.\n$/);
  });

  for (const [level, subject, facts, text] of ROWS)
    it(`${level}: ${subject}: ${text.source}`, () => {
      const found = findings({ ...SOUND, ...facts });
      const finding = found.find((f) => f.subject === subject && f.level === level && text.test(f.text));
      assert.ok(finding !== undefined, JSON.stringify(found.filter((f) => f.subject === subject)));
      assert.equal(finding.fix === '', level === 'ok');
    });

  it('as text, with each fix below', () => {
    const text = findingsText(findings({ ...SOUND, swap: { devices: ['/swap'], failSwapOn: true }, isRoot: false }));
    assert.match(text, /^WARN {2}user +not root.*\n {6} +→ Run it with sudo\.\n/);
    assert.match(text, /\nFAIL {2}swap +on \(\/swap\).*\n +→ swapoff -a/);
    assert.match(text, /\n1 to repair, 1 to look at\.\n$/);
  });
});
