// emptyDir: a directory of the pod's own, on disk, in memory or on huge pages, that lives as long as the pod.
import { containersOf, uidOf, type Pod } from '../../core/pod.ts';
import { formatQuantity, quantity } from '../../core/quantity.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { GroupOwner } from '../group-owner.ts';
import type { MountedVolume, VolumeOnDisk, VolumePlugin, VolumeRequest } from '../plugin.ts';
import { memorySize, type EmptyDirBacking, type Medium } from './empty-dir-backing.ts';

const HUGEPAGES = 'hugepages-';

/** The medium of an emptyDir of this pod. */
export function mediumOf(
  pod: Pod,
  source: { readonly medium?: string; readonly sizeLimit?: string },
  allocatableBytes: number,
): Medium {
  const medium = source.medium ?? '';
  if (medium === '') return { on: 'disk' };
  if (medium === 'Memory') return { on: 'memory', sizeBytes: memorySize(pod, allocatableBytes, source.sizeLimit) };
  if (medium === 'HugePages') return { on: 'hugepages', pageSize: onlyPageSize(pod) };
  const size = /^HugePages-(.+)$/.exec(medium)?.[1];
  if (size === undefined) throw new KubeletError('invalid', `unknown storage medium "${medium}"`);
  const pageSize = formatQuantity(quantity(size));
  if (!pageSizesOf(pod).has(pageSize)) throw notRequested(medium);
  return { on: 'hugepages', pageSize };
}

function pageSizesOf(pod: Pod): Set<string> {
  const sizes = new Set<string>();
  const add = (list: Readonly<Record<string, string>> | undefined): void => {
    for (const name of Object.keys(list ?? {})) {
      if (name.startsWith(HUGEPAGES)) sizes.add(formatQuantity(quantity(name.slice(HUGEPAGES.length))));
    }
  };
  for (const { container } of containersOf(pod)) {
    add(container.resources?.requests);
    add(container.resources?.limits);
  }
  add(pod.spec.resources?.requests);
  return sizes;
}

function onlyPageSize(pod: Pod): string {
  const sizes = [...pageSizesOf(pod)];
  const [only] = sizes;
  if (only === undefined) throw notRequested('HugePages');
  if (sizes.length > 1)
    throw new KubeletError('invalid', "medium: HugePages can't be used if container requests multiple huge page sizes");
  return only;
}

const notRequested = (medium: string): KubeletError =>
  new KubeletError(
    'invalid',
    `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`,
  );

export type EmptyDirDeps = {
  readonly backing: EmptyDirBacking;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly allocatableMemory: () => number;
  /** `LocalStorageCapacityIsolationFSQuotaMonitoring` */
  readonly quotas?: {
    assign(path: string, signal: AbortSignal): Promise<unknown>;
    clear(path: string, signal: AbortSignal): Promise<void>;
  };
};

export class EmptyDirPlugin implements VolumePlugin {
  readonly name = 'kubernetes.io/empty-dir';
  readonly refreshes = false;
  readonly #deps: EmptyDirDeps;

  constructor(deps: EmptyDirDeps) {
    this.#deps = deps;
  }

  async setUp(volumeRequest: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const { pod, volume, specName } = volumeRequest;
    const medium = mediumOf(pod, volume.emptyDir ?? {}, this.#deps.allocatableMemory());
    const request = { uid: uidOf(pod), plugin: this.name, specName, markerName: specName, medium };
    const hostPath = this.#deps.backing.pathOf(request);
    if ((await this.#deps.backing.setUp(request, signal)) !== 'ready') {
      await this.#deps.owner.give(volumeRequest, hostPath, { readOnly: false, changePolicy: 'Always' }, signal);
      await this.#deps.backing.markReady(request);
    }
    // Outside of a user namespace a container could move its files to another project.
    if (medium.on === 'disk' && pod.spec.hostUsers === false) await this.#deps.quotas?.assign(hostPath, signal);
    return { hostPath, readOnly: false, selinuxRelabel: true };
  }

  async tearDown({ uid, specName }: VolumeOnDisk, signal: AbortSignal): Promise<void> {
    const request = { uid, plugin: this.name, specName, markerName: specName, small: false };
    await this.#deps.quotas?.clear(this.#deps.backing.pathOf(request), signal);
    await this.#deps.backing.tearDown(request, signal);
  }
}
