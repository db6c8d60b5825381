// A container's mounts and block devices, from its spec and what the volume code has made ready.
import { isAbsolute } from 'node:path';
import { MountPropagation, type Device, type ImageSpec, type Mount } from '../cri/gen/cri.ts';
import { containerBudget, PATH_MAX } from '../core/bounds.ts';
import { absolutePath } from '../core/paths.ts';
import type { Container, VolumeMount } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Budget } from '../lib/budget.ts';
import { expandStrictly, type Lookup } from '../lib/expansion.ts';
import type { Partially } from '../lib/proto/codec.ts';
import type { UserNamespaceMapping } from './namespaces.ts';

export type MountedVolume = {
  /** Where it is on the host; empty for image volumes. */
  readonly hostPath: string;
  readonly readOnly: boolean;
  /** Managed by the kubelet and able to carry labels. */
  readonly selinuxRelabel: boolean;
  /** A group that members of the pod need to use it. */
  readonly gid?: number;
  /** Set for volumes used as a raw device. */
  readonly devicePath?: string;
};
export type MountedVolumes = ReadonlyMap<string, MountedVolume>;

export type MountFacts = { readonly selinux: boolean; readonly recursiveReadOnly: boolean };

export type MountInput = {
  readonly container: Container;
  readonly volumes: MountedVolumes;
  /** Host paths prepared for the mounts with a sub-path, for image volumes the path itself, by index in volumeMounts. */
  readonly subPaths: ReadonlyMap<number, string>;
  /** Images of image volumes, by volume name. */
  readonly images: ReadonlyMap<string, Partially<ImageSpec>>;
  readonly userns: UserNamespaceMapping | undefined;
};

const invalid = (message: string): KubeletError => new KubeletError('invalid', message);

/** The sub path of a mount with its variables filled in; undefined when it has none. No longer than a path can be. */
export function subPathOf(mount: VolumeMount, lookup: Lookup, budget: Budget = containerBudget()): string | undefined {
  const field = `subPath of the mount of volume ${mount.name}`;
  const spending = { budget, field };
  const raw = mount.subPathExpr ? expandStrictly(mount.subPathExpr, lookup, spending) : mount.subPath;
  if (raw === undefined || raw === '') return undefined;
  if (Buffer.byteLength(raw) >= PATH_MAX) throw invalid(`${field} is longer than ${PATH_MAX - 1} bytes`);
  if (isAbsolute(raw)) throw invalid(`error SubPath \`${raw}\` must not be an absolute path`);
  if (raw.split('/').includes('..')) throw invalid(`unable to provision SubPath \`${raw}\`: must not contain '..'`);
  return raw;
}

export function volumeMounts(input: MountInput, facts: MountFacts): Partially<Mount>[] {
  const relabelled = new Set<string>();
  return (input.container.volumeMounts ?? []).map((mount, index) => {
    const image = input.images.get(mount.name);
    const base = {
      containerPath: isAbsolute(mount.mountPath) ? mount.mountPath : absolutePath(mount.mountPath),
      propagation: propagationOf(mount),
      recursiveReadOnly: recursiveReadOnly(mount, facts),
      ...idMappings(input.userns),
    };
    if (image !== undefined) return { ...base, image, imageSubPath: input.subPaths.get(index) ?? '', readonly: true };
    const volume = input.volumes.get(mount.name);
    if (volume === undefined || volume.devicePath !== undefined)
      throw invalid(`cannot find volume "${mount.name}" to mount into container "${input.container.name}"`);
    const readonly = mount.readOnly === true || volume.readOnly;
    const relabel = facts.selinux && volume.selinuxRelabel && !relabelled.has(mount.name);
    if (relabel) relabelled.add(mount.name);
    return {
      ...base,
      hostPath: input.subPaths.get(index) ?? volume.hostPath,
      readonly,
      selinuxRelabel: relabel,
    };
  });
}

export const idMappings = (userns: UserNamespaceMapping | undefined): Partially<Mount> =>
  userns === undefined ? {} : { uidMappings: userns.uids, gidMappings: userns.gids };

function propagationOf(mount: VolumeMount): MountPropagation {
  switch (mount.mountPropagation) {
    case 'HostToContainer':
      return MountPropagation.PROPAGATION_HOST_TO_CONTAINER;
    case 'Bidirectional':
      return MountPropagation.PROPAGATION_BIDIRECTIONAL;
    default:
      return MountPropagation.PROPAGATION_PRIVATE;
  }
}

const notRecursive = (mount: VolumeMount, why: string): KubeletError =>
  invalid(
    `failed to resolve recursive read-only mode: volume "${mount.name}" requested recursive read-only mode, but ${why}`,
  );

function recursiveReadOnly(mount: VolumeMount, facts: MountFacts): boolean {
  const mode = mount.recursiveReadOnly ?? 'Disabled';
  if (mode === 'Disabled') return false;
  if (mount.readOnly !== true) throw notRecursive(mount, 'it is not read-only');
  if (propagationOf(mount) !== MountPropagation.PROPAGATION_PRIVATE)
    throw notRecursive(mount, `it is not compatible with propagation "${mount.mountPropagation}"`);
  switch (mode) {
    case 'IfPossible':
      return facts.recursiveReadOnly;
    case 'Enabled':
      if (!facts.recursiveReadOnly) throw notRecursive(mount, 'it is not supported by the runtime');
      return true;
    default:
      throw invalid(`failed to resolve recursive read-only mode: unknown recursive read-only mode "${String(mode)}"`);
  }
}

export function blockDevices(container: Container, volumes: MountedVolumes): Partially<Device>[] {
  const devices: Partially<Device>[] = [];
  for (const { name, devicePath } of container.volumeDevices ?? []) {
    const volume = volumes.get(name);
    if (volume?.devicePath === undefined)
      throw invalid(`cannot find volume "${name}" to pass into container "${container.name}"`);
    if (!isAbsolute(devicePath)) throw invalid(`error DevicePath \`${devicePath}\` must be an absolute path`);
    devices.push({
      containerPath: devicePath,
      hostPath: volume.devicePath,
      permissions: volume.readOnly ? 'r' : 'mrw',
    });
  }
  return devices;
}
