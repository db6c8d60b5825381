// A host for storage tests: iscsiadm, multipath, sysfs and /dev/disk are stand-ins under a directory of the test, because this
// kernel has neither iSCSI nor fibre channel. The disks behind them are loop devices, so that formatting, mounting and
// unmounting are real.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import type { Pod } from '../../src/core/pod.ts';
import type { VolumeMode } from '../../src/core/storage.ts';
import type { ChildResult } from '../../src/host/mounts/child.ts';
import { ChildCommands, type HostCommands } from '../../src/host/mounts/commands.ts';
import { SafeHostFiles } from '../../src/host/mounts/host-files.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { GroupOwner } from '../../src/volumes/group-owner.ts';
import { VolumeLayout } from '../../src/volumes/layout.ts';
import type { VolumePlugin, VolumeRequest } from '../../src/volumes/plugin.ts';
import { storagePlugins } from '../../src/volumes/storage-plugins.ts';
import type { Bench } from './volumes-setup.ts';

const real = new ChildCommands({ clock: systemClock });
export const IQN = 'iqn.2026-01.example:disk';
const SHOWN =
  '# BEGIN RECORD 2.1\niface.iscsi_ifacename = default\niface.transport_name = <empty>\niface.mtu = 0\n# END RECORD';

export class ScriptedHost implements HostCommands {
  readonly ran: string[] = [];
  readonly sys: string;
  readonly dev: string;
  /** Exit code and output by a part of the command line. */
  readonly answers = new Map<string, ChildResult>();
  /** What appears when a host is scanned: link in /dev/disk and the disk it leads to. */
  readonly appears: { by: string; name: string; disk: string }[] = [];
  readonly #root: string;
  readonly #disks: string[] = [];

  constructor(root: string) {
    this.#root = root;
    this.sys = join(root, 'sys');
    this.dev = join(root, 'dev');
    mkdirSync(join(this.sys, 'class/scsi_host/host3'), { recursive: true });
    mkdirSync(join(this.sys, 'block'), { recursive: true });
    mkdirSync(join(this.dev, 'disk/by-path'), { recursive: true });
    mkdirSync(join(this.dev, 'disk/by-id'), { recursive: true });
  }

  async run(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    const line = [command, ...args].join(' ');
    if (command === 'sh') return this.#written(args.at(-2) ?? '', args.at(-1) ?? '');
    if (!['iscsiadm', 'multipath', 'blockdev'].includes(command)) return real.run(command, args, signal);
    this.ran.push(line);
    for (const [part, answer] of this.answers) if (line.includes(part)) return answer;
    if (line.includes('-o show')) return { code: 0, output: SHOWN };
    if (args.includes('--login')) this.#session(args[args.indexOf('-p') + 1] ?? '');
    if (args.includes('--logout')) rmSync(join(this.sys, 'class/iscsi_host'), { recursive: true, force: true });
    return { code: 0, output: '' };
  }

  #written(value: string, file: string): ChildResult {
    this.ran.push(`${value} > ${file.slice(this.sys.length)}`);
    if (file.endsWith('scan')) for (const { by, name, disk } of this.appears) this.link(by, name, disk);
    if (file.endsWith('delete')) {
      const disk = basename(join(file, '../..'));
      for (const by of ['by-path', 'by-id'])
        for (const name of readdirSync(join(this.dev, 'disk', by))) {
          const link = join(this.dev, 'disk', by, name);
          if (basename(readlinkSync(link)) === disk) rmSync(link);
        }
      rmSync(join(this.sys, 'block', disk), { recursive: true });
    }
    return { code: 0, output: '' };
  }

  link(by: string, name: string, disk: string): void {
    const link = join(this.dev, 'disk', by, name);
    if (existsSync(link)) return;
    symlinkSync(`../../${disk}`, link);
    mkdirSync(join(this.sys, 'block', disk, 'device/model'), { recursive: true });
  }

  /** A multipath device over disks; the device itself is the first of them. */
  multipath(name: string, disks: readonly string[], device: string): void {
    for (const disk of disks) mkdirSync(join(this.sys, 'block', name, 'slaves', disk), { recursive: true });
    symlinkSync(device, join(this.dev, name));
  }

  #session(portal: string): void {
    const session = join(this.sys, 'class/iscsi_host/host3/device/session1');
    const connection = join(session, 'connection1:0/iscsi_connection/connection1:0');
    mkdirSync(join(session, 'iscsi_session/session1'), { recursive: true });
    mkdirSync(connection, { recursive: true });
    writeFileSync(join(session, 'iscsi_session/session1/targetname'), `${IQN}\n`);
    const [address = '', port = ''] = portal.split(':');
    writeFileSync(join(connection, 'address'), `${address}\n`);
    writeFileSync(join(connection, 'port'), `${port}\n`);
  }

  /** A disk of this machine, reachable under its own name in the scripted /dev. */
  disk(directory = this.#root): string {
    const file = join(directory, `disk-${this.#disks.length}`);
    writeFileSync(file, '');
    truncateSync(file, 16 << 20);
    const how = directory === this.#root ? [] : ['--direct-io=on'];
    const device = execFileSync('losetup', [...how, '-f', '--show', file], { encoding: 'utf8' }).trim();
    this.#disks.push(device);
    symlinkSync(device, join(this.dev, basename(device)));
    return basename(device);
  }

  /** Gives the disks back. To be called when nothing is mounted any more. */
  dispose(): void {
    for (const device of this.#disks.splice(0)) execFileSync('losetup', ['-d', device]);
  }
}

/** The plugin of a kind, as a kubelet that was just started has it. */
export function openPlugin(
  bench: Bench,
  host: ScriptedHost,
  kind: string,
  commands: HostCommands = host,
): VolumePlugin {
  const mounter = new HostMounter({ clock: systemClock }, { rootDir: bench.root });
  const { events, objects } = bench.deps();
  const owner = new GroupOwner({ clock: systemClock, events });
  const files = new SafeHostFiles({ clock: systemClock, mounter });
  const layout = new VolumeLayout(bench.root);
  const parts = { clock: systemClock, layout, mounter, files, owner, events, objects, log: silentLogger, commands };
  const places = { sysDir: host.sys, devDir: host.dev, linkTimeoutMs: 50, multipathTimeoutMs: 200 };
  const plugin = storagePlugins(parts, places)[kind];
  if (plugin === undefined) throw new Error(`no plugin for ${kind}`);
  return plugin;
}

/** A volume of a pod; `local` is one of a claim. */
export function requestFor(
  bench: Bench,
  pod: Pod,
  source: Readonly<Record<string, unknown>>,
  volumeMode: VolumeMode = 'Filesystem',
): VolumeRequest {
  mkdirSync(new VolumeLayout(bench.root).volumesDir(pod.metadata.uid ?? ''), { recursive: true });
  const volume = { metadata: { name: 'data' }, spec: { volumeMode, ...source } };
  const persistent = { volume, claim: { metadata: { name: 'c' } }, mountOptions: [], migrated: false };
  return {
    pod,
    volume: { name: 'data', ...source },
    specName: 'data',
    ...('local' in source ? { persistent } : {}),
    volumeMode,
    readOnly: false,
    inUse: false,
    attachedPath: '',
    progress: () => undefined,
  };
}
