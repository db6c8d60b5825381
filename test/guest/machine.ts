// The guest as a machine: booted once until it waits for a suite, kept as it is then, and continued for every suite.
import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { bootGuest } from '../harness/guest.ts';
import type { Guest } from './guest-disk.ts';

/** A machine that waits: its disk, and everything else of it. */
export type Kept = { readonly guest: Guest; readonly suites: string; readonly state: string };
export type Run = {
  readonly suite: string;
  /** The pods are files of a node that is alone. */
  readonly isAlone: boolean;
  readonly giveUpMs: number;
  readonly told: (line: string) => void;
};

const WAITS = 'guest: waits';
/** Without mitigations: under emulation, each call of the kernel would begin with an empty table of pages. */
const KERNEL = [
  'console=ttyS0 panic=-1 loglevel=3 psi=1 no_timer_check mitigations=off',
  'systemd.show_status=no systemd.unified_cgroup_hierarchy=1',
].join(' ');

function machine({ kernel, initramfs }: Guest, disk: string, suites: string, append: string): readonly string[] {
  // One processor: with several, emulation crashes compiled JavaScript now and then. A plain one, since newer kernels crash on
  // all that emulation can do; and without cmpxchg16b, after which QEMU 7.2 leaves other flags than the processor would: the
  // allocator of Linux 6.12 dies of it within minutes.
  const plain = ['-accel', 'tcg', '-cpu', 'Nehalem,cx16=off', '-smp', '1', '-m', '2048'];
  const drives = [
    '-drive',
    // What it writes need not outlive this machine: no waiting for its disk.
    `file=${disk},format=raw,if=virtio,cache=unsafe`,
    '-drive',
    `file=${suites},format=raw,if=virtio,readonly=on`,
  ];
  return [...plain, '-kernel', kernel, '-initrd', initramfs, '-append', `${KERNEL} ${append}`.trim(), ...drives];
}

/** Boots `guest` and keeps it, below `work`, as it is when it waits; `suites` is the drive with them. */
export async function keep(guest: Guest, suites: string, work: string, giveUpMs: number): Promise<Kept> {
  const [monitor, state] = [join(work, 'monitor'), join(work, 'state')];
  let isKept = false;
  const save = (): void => {
    isKept = true;
    connect(monitor)
      .on('error', () => undefined)
      .write(`migrate "exec:cat > ${state}"\nquit\n`);
  };
  const args = [...machine(guest, guest.disk, suites, ''), '-monitor', `unix:${monitor},server=on,wait=off`];
  const output = await bootGuest(args, giveUpMs, (line) => {
    if (line.startsWith(WAITS) && !isKept) save();
  });
  if (!isKept) throw new Error(`the guest never waited for a suite:\n${output.slice(-3000)}`);
  return { guest, suites, state };
}

/** Goes on with a copy of what was kept; resolves to all it printed, over all boots, until it switched itself off. */
export async function runSuite(kept: Kept, disk: string, { suite, isAlone, giveUpMs, told }: Run): Promise<string> {
  execFileSync('cp', ['--sparse=always', kept.guest.disk, disk]);
  // For the boots after this one.
  const append = `guest.suite=${suite}${isAlone ? ' systemd.wants=kubelet.service' : ''}`;
  let isTyped = false;
  const answer = (line: string): string | undefined => {
    if (!line.startsWith(WAITS) || isTyped) return undefined;
    isTyped = true;
    return `${suite}${isAlone ? ' alone' : ''}\n`;
  };
  const args = [...machine(kept.guest, disk, kept.suites, append), '-incoming', `exec:cat ${kept.state}`];
  return bootGuest(args, giveUpMs, told, answer);
}
