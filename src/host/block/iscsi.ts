// iSCSI through iscsiadm(8): sessions with a target through one or several portals, and the disk they lead to.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, KubeletError, messageOf } from '../../lib/errors.ts';
import type { ChildResult } from '../mounts/child.ts';
import type { HostCommands } from '../mounts/commands.ts';
import type { ScsiDisks } from './scsi-disks.ts';

export type IscsiTarget = {
  /** With their ports; the first one names the volume. */
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: string;
  /** The interface that sessions go through. */
  readonly iface: string;
  /** What `iface` is a copy of, where the volume has an initiator name of its own. */
  readonly baseIface: string;
  readonly initiatorName: string;
  readonly chapDiscovery: boolean;
  readonly chapSession: boolean;
  /** Values for CHAP by iscsiadm's names for them. */
  readonly secret: ReadonlyMap<string, string>;
};

export type IscsiDeps = { readonly scsi: ScsiDisks; readonly commands: HostCommands };
export type IscsiOpts = {
  readonly sysDir?: string;
  readonly linkTimeoutMs?: number;
  readonly multipathTimeoutMs?: number;
};

const ROUNDS = 5;
const ENOUGH_AFTER_ROUND = 2;
const ENOUGH_PATHS = 2;
/** Exit codes of iscsiadm: no such session, no such record. */
const GONE = [2, 21];
const CHAP_KEYS = ['username', 'password', 'username_in', 'password_in'];

export class Iscsi {
  readonly #deps: IscsiDeps;
  readonly #sys: string;
  readonly #linkMs: number;
  readonly #multipathMs: number;

  constructor(deps: IscsiDeps, opts: IscsiOpts = {}) {
    this.#deps = deps;
    this.#sys = opts.sysDir ?? '/sys';
    this.#linkMs = opts.linkTimeoutMs ?? 30_000;
    this.#multipathMs = opts.multipathTimeoutMs ?? 10_000;
  }

  /** Logs in where needed and returns the disk's device, the multipath device if there is one. */
  async attach(target: IscsiTarget, progress: (doing: string) => void, signal: AbortSignal): Promise<string> {
    const transport = await this.#prepareInterface(target, signal);
    const links = new Map<string, string>();
    let last: unknown;
    for (let round = 1; round <= ROUNDS; round++) {
      for (const portal of target.portals.filter((one) => !links.has(one))) {
        progress(`logging in to ${target.iqn} at ${portal}`);
        try {
          links.set(portal, await this.#path(target, portal, transport, signal));
        } catch (err) {
          signal.throwIfAborted();
          last = err;
        }
      }
      if (links.size === target.portals.length) break;
      if (round >= ENOUGH_AFTER_ROUND && links.size >= ENOUGH_PATHS) break;
    }
    const [link] = links.values();
    if (link === undefined)
      throw new KubeletError(
        'unavailable',
        `failed to get any path for iscsi disk, last err seen:\n${messageOf(last)}`,
        { cause: last },
      );
    for (const portal of links.keys())
      await this.#admin(['-m', 'node', '-p', portal, '-T', target.iqn, ...set('node.startup', 'manual')], signal);
    const disk = await this.#deps.scsi.diskOf(link);
    if (disk === undefined) throw new KubeletError('unavailable', `${link} is gone`);
    const waitMs = target.portals.length > 1 ? this.#multipathMs : 0;
    return (await this.#deps.scsi.waitForMultipath(disk, waitMs, signal)) ?? this.#deps.scsi.deviceOf(disk);
  }

  /** Takes the disk away; `isLast`: no other volume uses the target, so that its sessions end too. */
  async detach(target: IscsiTarget, isLast: boolean, signal: AbortSignal): Promise<void> {
    const { scsi } = this.#deps;
    const links = await scsi.links('by-path', (name) => name.endsWith(`-iscsi-${target.iqn}-lun-${target.lun}`));
    const disks = new Set(
      (await Promise.all(links.map((link) => scsi.diskOf(link)))).filter((disk) => disk !== undefined),
    );
    for (const disk of disks) {
      const multipath = await scsi.multipathOver(disk);
      if (multipath !== undefined) await scsi.flushMultipath(multipath, signal);
    }
    for (const disk of disks) await scsi.remove(disk, signal);
    if (!isLast) return;
    for (const portal of target.portals) {
      const node = ['-m', 'node', '-p', portal, '-T', target.iqn, '-I', target.iface];
      for (const verb of [['--logout'], ['-o', 'delete']]) {
        const result = await this.#run([...node, ...verb], signal);
        if (result.code !== 0 && !GONE.includes(result.code)) throw failed([...node, ...verb], result);
      }
    }
    if (target.iface === target.baseIface) return;
    const result = await this.#run(['-m', 'iface', '-I', target.iface, '-o', 'delete'], signal);
    if (result.code !== 0 && !GONE.includes(result.code)) throw failed(['-m', 'iface'], result);
  }

  /** Makes the copy of an interface that an initiator name of one's own needs, and says how it transports. */
  async #prepareInterface(target: IscsiTarget, signal: AbortSignal): Promise<string> {
    const shown = await this.#admin(['-m', 'iface', '-I', target.baseIface, '-o', 'show'], signal);
    const settings = parseSettings(shown);
    if (target.iface !== target.baseIface) {
      const own = ['-m', 'iface', '-I', target.iface];
      // Made by an earlier attempt: then it is only brought up to date.
      await this.#run([...own, '-o', 'new'], signal);
      const wanted = new Map([...settings, ['iface.initiatorname', target.initiatorName]]);
      wanted.delete('iface.iscsi_ifacename');
      for (const [key, value] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)))
        if (value !== '<empty>') await this.#admin([...own, ...set(key, value)], signal);
    }
    const transport = settings.get('iface.transport_name') ?? '<empty>';
    return transport === '<empty>' ? 'tcp' : transport;
  }

  /** The link to the disk through one portal. */
  async #path(target: IscsiTarget, portal: string, transport: string, signal: AbortSignal): Promise<string> {
    let host = (await this.#sessions(target.iqn)).get(portal);
    if (host === undefined) {
      await this.#logIn(target, portal, signal);
      host = (await this.#sessions(target.iqn)).get(portal);
    }
    if (host !== undefined) await this.#deps.scsi.scan(host, `0 0 ${target.lun}`, signal);
    const plain = `ip-${portal}-iscsi-${target.iqn}-lun-${target.lun}`;
    const fits = (name: string): boolean =>
      transport === 'tcp' ? name === plain : name.startsWith('pci-') && name.endsWith(`-${plain}`);
    const link = await this.#deps.scsi.waitForLink(fits, this.#linkMs, signal);
    if (link === undefined)
      throw new KubeletError(
        'unavailable',
        `Timed out waiting for device at path ${plain} after ${this.#linkMs / 1000}s`,
      );
    return link;
  }

  async #logIn(target: IscsiTarget, portal: string, signal: AbortSignal): Promise<void> {
    const { iqn, iface } = target;
    const discovery = ['-m', 'discoverydb', '-t', 'sendtargets', '-p', portal, '-I', iface];
    const node = ['-m', 'node', '-p', portal, '-T', iqn, '-I', iface];
    await this.#admin([...discovery, '-o', 'new'], signal);
    if (target.chapDiscovery) await this.#setChap(discovery, 'discovery.sendtargets.auth', target, signal);
    await this.#orForget([...discovery, '--discover'], discovery, signal);
    await this.#admin([...node, ...set('node.session.scan', 'manual')], signal);
    if (target.chapSession) await this.#setChap(node, 'node.session.auth', target, signal);
    await this.#orForget([...node, '--login'], node, signal);
  }

  async #setChap(record: readonly string[], prefix: string, target: IscsiTarget, signal: AbortSignal): Promise<void> {
    await this.#admin([...record, ...set(`${prefix}.authmethod`, 'CHAP')], signal);
    for (const key of CHAP_KEYS.map((name) => `${prefix}.${name}`)) {
      const value = target.secret.get(key);
      if (value === undefined) continue;
      const { code } = await this.#run([...record, ...set(key, value)], signal);
      // The command line has the secret in it: it is not repeated.
      if (code !== 0) throw new KubeletError('unavailable', `iscsi: failed to update ${key}: exit status ${code}`);
    }
  }

  /** A record that did not work must not be found by the next attempt. */
  async #orForget(args: readonly string[], record: readonly string[], signal: AbortSignal): Promise<void> {
    const result = await this.#run(args, signal);
    if (result.code === 0) return;
    await this.#run([...record, '-o', 'delete'], signal);
    throw failed(args, result);
  }

  /** The hosts of the sessions with a target, by portal. */
  async #sessions(iqn: string): Promise<Map<string, string>> {
    const hosts = join(this.#sys, 'class/iscsi_host');
    const found = new Map<string, string>();
    for (const host of await namesIn(hosts)) {
      const device = join(hosts, host, 'device');
      for (const session of (await namesIn(device)).filter((name) => name.startsWith('session'))) {
        const name = await textOf(join(device, session, 'iscsi_session', session, 'targetname'));
        if (name !== iqn) continue;
        for (const connection of (await namesIn(join(device, session))).filter((one) => one.startsWith('connection'))) {
          const dir = join(device, session, connection, 'iscsi_connection', connection);
          for (const kind of ['', 'persistent_']) {
            const address = await textOf(join(dir, `${kind}address`));
            const port = await textOf(join(dir, `${kind}port`));
            if (address !== undefined && port !== undefined) found.set(portalOf(address, port), host);
          }
        }
      }
    }
    return found;
  }

  async #admin(args: readonly string[], signal: AbortSignal): Promise<string> {
    const result = await this.#run(args, signal);
    if (result.code !== 0) throw failed(args, result);
    return result.output;
  }

  #run(args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    return this.#deps.commands.run('iscsiadm', args, signal);
  }
}

const set = (key: string, value: string): string[] => ['-o', 'update', '-n', key, '-v', value];

const failed = (args: readonly string[], { code, output }: ChildResult): KubeletError =>
  new KubeletError('unavailable', `iscsiadm ${args.join(' ')} failed: exit status ${code}: ${output}`);

const portalOf = (address: string, port: string): string =>
  `${address.includes(':') ? `[${address}]` : address}:${port}`;

/** `key = value` lines; the rest is comments. */
function parseSettings(text: string): Map<string, string> {
  const settings = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, key, value] = /^(iface\.[\w.]+)\s*=\s*(.*)$/.exec(line.trim()) ?? [];
    if (key !== undefined && value !== undefined) settings.set(key, value);
  }
  return settings;
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (err) {
    if (['ENOENT', 'ENOTDIR', 'ENODEV', 'ENOTCONN'].includes(errnoOf(err) ?? '')) return undefined;
    throw err;
  }
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir)).sort();
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}
