// iscsi: a disk of a storage server on the network, in a pod or as a persistent volume.
import { namespaceOf } from '../../core/pod.ts';
import type { Iscsi, IscsiTarget } from '../../host/block/iscsi.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import type { VolumeRequest } from '../plugin.ts';
import type { AttachedDisk, DiskAttacher, DiskIdentity } from './attached-disk.ts';
import type { ObjectSource } from './sources.ts';

/** What is written down of a volume: never a secret. */
export type IscsiConfig = Pick<IscsiTarget, 'portals' | 'iqn' | 'lun' | 'iface' | 'baseIface' | 'initiatorName'> & {
  /** As the volume names it: whoever attaches calls the volume by it, with or without a port. */
  readonly targetPortal: string;
};

export type IscsiAttacherDeps = {
  readonly iscsi: Pick<Iscsi, 'attach' | 'detach'>;
  readonly objects: Pick<ObjectSource, 'secret'>;
};

type Source = Readonly<Record<string, unknown>>;

const DEFAULT_PORT = '3260';

export class IscsiAttacher implements DiskAttacher<IscsiConfig> {
  readonly plugin = 'kubernetes.io/iscsi';
  readonly #deps: IscsiAttacherDeps;

  constructor(deps: IscsiAttacherDeps) {
    this.#deps = deps;
  }

  describe(
    request: Pick<VolumeRequest, 'volume' | 'specName' | 'persistent'> & { readOnly?: boolean },
  ): AttachedDisk<IscsiConfig> {
    const source = sourceOf(request);
    const config = configOf(source, request.specName);
    const readOnly = request.persistent === undefined ? source['readOnly'] === true : request.readOnly === true;
    return { ...identityOf(config), fsType: text(source['fsType']), readOnly, config };
  }

  identify(config: unknown): (DiskIdentity & { readonly config: IscsiConfig }) | undefined {
    const given = (typeof config === 'object' && config !== null ? config : {}) as Source;
    const portals = texts(given['portals']);
    const [iqn, lun, iface] = [text(given['iqn']), text(given['lun']), text(given['iface'])];
    if (portals.length === 0 || iqn === '' || lun === '' || iface === '') return undefined;
    const baseIface = text(given['baseIface']) || iface;
    const targetPortal = text(given['targetPortal']) || (portals[0] ?? '');
    const known = { targetPortal, portals, iqn, lun, iface, baseIface, initiatorName: text(given['initiatorName']) };
    return { ...identityOf(known), config: known };
  }

  async attach({ config }: AttachedDisk<IscsiConfig>, request: VolumeRequest, signal: AbortSignal): Promise<string> {
    const source = sourceOf(request);
    const chapDiscovery = source['chapAuthDiscovery'] === true;
    const chapSession = source['chapAuthSession'] === true;
    const secret =
      chapDiscovery || chapSession ? await this.#secret(source, request, signal) : new Map<string, string>();
    return this.#deps.iscsi.attach({ ...config, chapDiscovery, chapSession, secret }, request.progress, signal);
  }

  detach(config: IscsiConfig, others: readonly string[], signal: AbortSignal): Promise<void> {
    const target = { ...config, chapDiscovery: false, chapSession: false, secret: new Map<string, string>() };
    const sameTarget = `${config.portals[0]}-${config.iqn}-lun-`;
    return this.#deps.iscsi.detach(target, !others.some((name) => name.startsWith(sameTarget)), signal);
  }

  /** In upstream's form, so that a node can change hands. */
  stateFile(config: IscsiConfig, specName: string): { name: string; content: string } {
    const content = JSON.stringify({
      VolName: specName,
      Portals: config.portals,
      Iqn: config.iqn,
      Lun: config.lun,
      InitIface: config.baseIface,
      Iface: config.iface,
      InitiatorName: config.initiatorName,
      MetricsProvider: null,
    });
    return { name: 'iscsi.json', content: `${content}\n` };
  }

  async #secret(source: Source, { pod, persistent }: VolumeRequest, signal: AbortSignal): Promise<Map<string, string>> {
    const reference = (source['secretRef'] ?? {}) as Source;
    const name = text(reference['name']);
    const namespace = persistent === undefined ? namespaceOf(pod) : text(reference['namespace']) || namespaceOf(pod);
    if (name === '') throw new KubeletError('invalid', 'CHAP enabled but secretRef is not specified');
    try {
      const { data = {} } = await this.#deps.objects.secret(namespace, name, signal);
      return new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
    } catch (err) {
      signal.throwIfAborted();
      throw new KubeletError('unavailable', `couldn't get secret ${namespace}/${name} error: ${messageOf(err)}`, {
        cause: err,
      });
    }
  }
}

function sourceOf({ volume, persistent }: Pick<VolumeRequest, 'volume' | 'persistent'>): Source {
  const source = persistent === undefined ? volume.iscsi : persistent.volume.spec['iscsi'];
  return (typeof source === 'object' && source !== null ? source : {}) as Source;
}

function configOf(source: Source, specName: string): IscsiConfig {
  const targetPortal = text(source['targetPortal']);
  const given = [targetPortal, ...texts(source['portals'])].filter((portal) => portal !== '');
  const portals = [...new Set(given.map(withPort))];
  const iqn = text(source['iqn']);
  const [first] = portals;
  const baseIface = text(source['iscsiInterface']) || 'default';
  // They become names of directories.
  if (first === undefined || iqn === '' || [...portals, iqn, baseIface].some((part) => part.includes('/')))
    throw new KubeletError('invalid', 'an iSCSI volume names a portal, a target and an interface, without slashes');
  const initiatorName = text(source['initiatorName']);
  const lun = String(typeof source['lun'] === 'number' ? source['lun'] : 0);
  const iface = initiatorName === '' ? baseIface : `${first}:${specName}`;
  return { targetPortal, portals, iqn, lun, iface, baseIface, initiatorName };
}

function identityOf({ targetPortal, portals, iqn, lun, iface }: IscsiConfig): DiskIdentity {
  const [first = ''] = portals;
  return {
    turn: iqn,
    directory: `iface-${iface}/${first}-${iqn}-lun-${lun}`,
    volumeName: `${targetPortal}:${iqn}:${lun}`,
  };
}

const withPort = (portal: string): string => (/:\d+$/.test(portal) ? portal : `${portal}:${DEFAULT_PORT}`);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
