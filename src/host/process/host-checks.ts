// What the kubelet looks at, and sets, on the machine before it starts: control groups, swap, kernel settings, its own
// limits.
import { readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { tryParseCpuSet, type CpuSet } from '../../core/cpuset.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { openFileLimit, setOpenFileLimit } from '../libc.ts';

const CGROUP2_MAGIC = 0x63677270;

function cgroupVersion(mountPoint = '/sys/fs/cgroup'): 1 | 2 {
  try {
    return statfsSync(mountPoint).type === CGROUP2_MAGIC ? 2 : 1;
  } catch {
    // No control groups at all: whoever needs them will say so in clearer words than this check could.
    return 2;
  }
}

/** The CPUs the kernel runs on, or none where it does not say. */
function onlineCpus(path = '/sys/devices/system/cpu/online'): CpuSet {
  try {
    return tryParseCpuSet(readFileSync(path, 'utf8').trim()) ?? new Set();
  } catch {
    // Without sysfs nothing can be said about CPUs; a reservation then names CPUs that are not known to exist.
    return new Set();
  }
}

/** What the checks of the configuration ask about this machine. */
export const machineFacts = {
  get cgroupVersion(): 1 | 2 {
    return cgroupVersion();
  },
  onlineCpus: () => onlineCpus(),
};

/** The devices and files that swap is on, from the text of /proc/swaps. */
export const swapDevices = (procSwaps: string): string[] =>
  procSwaps
    .split('\n')
    .slice(1)
    .map((line) => line.split(/\s+/, 1)[0] ?? '')
    .filter((name) => name !== '');

export function checkSwap(failSwapOn: boolean, log: Logger, path = '/proc/swaps'): void {
  let devices: string[];
  try {
    devices = swapDevices(readFileSync(path, 'utf8'));
  } catch {
    // A kernel without swap has no such file.
    return;
  }
  if (devices.length === 0) return;
  if (failSwapOn)
    throw new KubeletError(
      'invalid',
      `running with swap on is not supported, please disable swap or set --fail-swap-on flag to false (swap is on: ${devices.join(', ')})`,
    );
  log.info('swap is on', { devices: devices.join(',') });
}

/** Kernel settings the kubelet relies on: memory is overcommitted, an oops or an OOM never leaves a zombie node. */
export const KERNEL_SETTINGS: Readonly<Record<string, number>> = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
};

export type KernelOptions = {
  /** Refuse instead of changing anything. */
  readonly protect: boolean;
  /** Only say what differs: inside a user namespace nothing could be written anyway. */
  readonly onlyReport: boolean;
};

export function applyKernelSettings(options: KernelOptions, log: Logger, root = '/proc/sys'): void {
  const problems: string[] = [];
  for (const [name, wanted] of Object.entries(KERNEL_SETTINGS)) {
    const path = `${root}/${name}`;
    try {
      const actual = Number(readFileSync(path, 'utf8').trim());
      if (actual === wanted) continue;
      if (options.protect) {
        problems.push(`invalid kernel flag: ${name}, expected value: ${wanted}, actual value: ${actual}`);
        continue;
      }
      if (options.onlyReport) {
        log.warn('kernel setting differs and is left alone', { name, wanted, actual });
        continue;
      }
      log.info('updating kernel setting', { name, wanted, actual });
      writeFileSync(path, String(wanted));
    } catch (err) {
      if (options.onlyReport) log.warn('kernel setting could not be read', { name, wanted, err });
      else problems.push(`kernel flag ${name}: ${messageOf(err)}`);
    }
  }
  if (problems.length > 0)
    throw new KubeletError('invalid', problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`);
}

/** Failure is logged only: lowering the score needs a capability that some containers lack. */
export function applyOomScoreAdj(value: number, log: Logger, path = '/proc/self/oom_score_adj'): void {
  try {
    writeFileSync(path, String(value));
  } catch (err) {
    log.warn('could not set oom_score_adj', { value, err });
  }
}

/** Raises the limit of open files to `wanted`, or as far as the hard limit allows. */
export function applyOpenFileLimit(wanted: number, log: Logger): void {
  try {
    setOpenFileLimit(BigInt(wanted), BigInt(wanted));
  } catch (err) {
    if (!isFault(err, 'denied')) return log.warn('could not set the limit of open files', { wanted, err });
    const { hard } = openFileLimit();
    log.warn('the limit of open files stays below what is asked for', { wanted, hard: hard.toString() });
    setOpenFileLimit(hard, hard);
  }
}
