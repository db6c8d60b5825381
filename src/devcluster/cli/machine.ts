// What the machine must have, and what to do about what it lacks. Looks only; installing is another file.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type Check = {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
  /** The package that brings it. */
  readonly package?: string;
  /** Without it nothing works and no package helps. */
  readonly fatal?: boolean;
};

const PATH = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`;

export function findProgram(name: string): string | undefined {
  for (const directory of PATH.split(':')) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

const program = (name: string, from: string, why: string): Check => {
  const path = findProgram(name);
  return { what: name, ok: path !== undefined, detail: path ?? `missing: ${why}`, package: from };
};

const MIN_FREE_BYTES = 512 * 1024 * 1024;
const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;

export function checkMachine(directory: string): readonly Check[] {
  return [
    rootCheck(),
    cgroupCheck(),
    overlayCheck(),
    diskCheck(directory),
    program('containerd', 'containerd', 'runs the containers'),
    program('runc', 'runc', 'starts the containers'),
    pluginCheck(),
    busyboxCheck(),
    program('iptables', 'iptables', 'lets pods out and host ports in'),
    program('ip', 'iproute2', 'makes the pod network'),
    program('mount', 'mount', 'mounts volumes'),
    program('mkfs.ext4', 'e2fsprogs', 'makes the file systems of volumes'),
  ];
}

const rootCheck = (): Check => {
  const ok = process.getuid?.() === 0;
  return {
    what: 'root',
    ok,
    detail: ok ? 'yes' : 'a node makes cgroups, mounts and networks: run it with sudo',
    fatal: true,
  };
};

function cgroupCheck(): Check {
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const legacy = existsSync('/sys/fs/cgroup/memory') && existsSync('/sys/fs/cgroup/cpu');
  const detail = unified ? 'version 2' : legacy ? 'version 1' : 'no cgroup file system is mounted at /sys/fs/cgroup';
  return { what: 'cgroups', ok: unified || legacy, detail, fatal: true };
}

function overlayCheck(): Check {
  const known = readFileSync('/proc/filesystems', 'utf8').includes('overlay');
  return { what: 'overlayfs', ok: true, detail: known ? 'yes' : 'not loaded: images are copied instead' };
}

export const hasOverlay = (): boolean => readFileSync('/proc/filesystems', 'utf8').includes('overlay');

function diskCheck(directory: string): Check {
  let existing = directory;
  while (!existsSync(existing)) existing = dirname(existing);
  const { bavail, bsize } = statfsSync(existing);
  const free = bavail * bsize;
  const ok = free > MIN_FREE_BYTES;
  const detail = `${mebibytes(free)} free for ${directory}`;
  const todo = `, ${mebibytes(MIN_FREE_BYTES)} are needed: make room, or name another place with --dir=PATH`;
  return { what: 'disk', ok, detail: ok ? detail : `${detail}${todo}`, fatal: true };
}

const CNI_DIRECTORIES = ['/usr/lib/cni', '/opt/cni/bin'];
export const cniDirectory = (): string | undefined => CNI_DIRECTORIES.find((d) => existsSync(join(d, 'bridge')));

function pluginCheck(): Check {
  const found = cniDirectory();
  return {
    what: 'CNI plugins',
    ok: found !== undefined,
    detail: found ?? 'missing: give pods their network',
    package: 'containernetworking-plugins',
  };
}

/** The image is built from it, and from the libraries it needs. */
function busyboxCheck(): Check {
  const ok = existsSync('/bin/busybox');
  return {
    what: 'busybox',
    ok,
    detail: ok ? '/bin/busybox' : 'missing: the example image is made of it',
    package: 'busybox-static',
  };
}

/** `1.6.20` of `containerd github.com/containerd/containerd 1.6.20~ds1 …`. */
export function containerdVersion(): string {
  const text = execFileSync(findProgram('containerd') ?? 'containerd', ['--version'], { encoding: 'utf8' });
  return /\bv?(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? '1.6.0';
}

export const missingPackages = (checks: readonly Check[]): readonly string[] => [
  ...new Set(checks.filter((c) => !c.ok && c.package !== undefined).map((c) => c.package ?? '')),
];
