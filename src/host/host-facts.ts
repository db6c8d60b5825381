// Who this machine is, as the operating system says. Read once at start; of all this only the release changes while we run.
import { readFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { readMachine } from './machine.ts';

export type HostFacts = {
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  readonly architecture: string;
  readonly swapBytes: number;
};

/** `root` is `/`, or another tree in tests. */
export async function readHostFacts(root = '/'): Promise<HostFacts> {
  const text = (path: string): Promise<string> => firstText(root, path);
  const machine = await readMachine(root);
  const machineId = await firstText(root, 'etc/machine-id', 'var/lib/dbus/machine-id');
  const uuid = await firstText(
    root,
    'sys/class/dmi/id/product_uuid',
    'proc/device-tree/system-id',
    'proc/device-tree/vm,uuid',
    'etc/machine-id',
  );
  return {
    machineId,
    systemUuid: uuid.replaceAll('\0', ''),
    bootId: await text('proc/sys/kernel/random/boot_id'),
    kernelVersion: machine.kernelRelease,
    osImage: await readOsImage(root),
    architecture: goArch(arch()),
    swapBytes: machine.swapBytes,
  };
}

export const readOsImage = async (root = '/'): Promise<string> =>
  prettyName(await firstText(root, 'etc/os-release', 'usr/lib/os-release'));

/** The first file that exists and is not empty; files missing on this machine are the normal case. */
async function firstText(root: string, ...paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const text = await readFile(join(root, path), 'utf8').catch(() => '');
    if (text.trim() !== '') return text.trim();
  }
  return '';
}

const GO_ARCH: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le', mipsel: 'mipsle' };
export const goArch = (nodeArch: string): string => GO_ARCH[nodeArch] ?? nodeArch;

/** os-release's PRETTY_NAME, quotes removed; `Linux` when there is none. */
export function prettyName(osRelease: string): string {
  const match = /^PRETTY_NAME=(.*)$/m.exec(osRelease);
  const raw = match?.[1]?.trim() ?? '';
  const name = raw.replace(/^(["'])(.*)\1$/, '$2');
  return name === '' ? 'Linux' : name;
}
