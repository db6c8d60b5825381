// fc: a disk behind a fibre channel, in a pod or as a persistent volume.
import type { FcTarget, FibreChannel } from '../../host/block/fibre-channel.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { VolumeRequest } from '../plugin.ts';
import type { AttachedDisk, DiskAttacher, DiskIdentity } from './attached-disk.ts';

type Source = Readonly<Record<string, unknown>>;

export class FibreChannelAttacher implements DiskAttacher<FcTarget> {
  readonly plugin = 'kubernetes.io/fc';
  readonly #channel: Pick<FibreChannel, 'attach' | 'detach'>;

  constructor(channel: Pick<FibreChannel, 'attach' | 'detach'>) {
    this.#channel = channel;
  }

  describe({
    volume,
    persistent,
    readOnly,
  }: Pick<VolumeRequest, 'volume' | 'persistent'> & { readOnly?: boolean }): AttachedDisk<FcTarget> {
    const given = persistent === undefined ? volume.fc : persistent.volume.spec['fc'];
    const source = (typeof given === 'object' && given !== null ? given : {}) as Source;
    const config = targetOf(source, 'targetWWNs');
    if (config === undefined)
      throw new KubeletError('invalid', 'fc: no fc disk information found. failed to make a new mounter');
    return {
      ...identityOf(config),
      fsType: typeof source['fsType'] === 'string' ? source['fsType'] : '',
      readOnly: persistent === undefined ? source['readOnly'] === true : readOnly === true,
      config,
    };
  }

  identify(config: unknown): (DiskIdentity & { readonly config: FcTarget }) | undefined {
    const known = targetOf((typeof config === 'object' && config !== null ? config : {}) as Source, 'wwns');
    return known === undefined ? undefined : { ...identityOf(known), config: known };
  }

  attach({ config }: AttachedDisk<FcTarget>, request: VolumeRequest, signal: AbortSignal): Promise<string> {
    request.progress('looking for the fibre channel disk');
    return this.#channel.attach(config, signal);
  }

  detach(config: FcTarget, _others: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#channel.detach(config, signal);
  }
}

function targetOf(source: Source, wwnsField: string): FcTarget | undefined {
  const [wwns, wwids] = [texts(source[wwnsField]), texts(source['wwids'])];
  const { lun } = source;
  if (wwns.length > 0 && typeof lun === 'number') return { wwns, lun, wwids: [] };
  return wwids.length > 0 ? { wwns: [], lun: 0, wwids } : undefined;
}

function identityOf({ wwns, lun, wwids }: FcTarget): DiskIdentity {
  if (wwns.length > 0) {
    const list = `[${wwns.join(' ')}]:${lun}`;
    return { turn: list, directory: `${wwns.join('-')}-lun-${lun}`, volumeName: list };
  }
  const list = `[${wwids.join(' ')}]`;
  return { turn: list, directory: wwids.join('-').replaceAll(' ', '_'), volumeName: list };
}

const texts = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.filter((item): item is string => typeof item === 'string' && item !== '' && !item.includes('/'))
    : [];
