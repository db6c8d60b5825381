// What a container mounts: volumes and block devices.
import type { Container, Volume, VolumeMount } from '../pod.ts';
import { item, type Findings } from './field-error.ts';
import { checkDescending, checkNoBacksteps } from './paths.ts';

type Volumes = ReadonlyMap<string, Volume>;

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const RECURSIVE = ['Disabled', 'Enabled', 'IfPossible'];

export function checkMounts(f: Findings, field: string, container: Container, volumes: Volumes): void {
  const devices = container.volumeDevices ?? [];
  const seen = new Set<string>();
  (container.volumeMounts ?? []).forEach((mount, i) => {
    const at = item(field, i);
    if (!mount.name) f.required(`${at}.name`);
    if (!volumes.has(mount.name ?? '')) f.notFound(`${at}.name`, mount.name ?? '');
    if (!mount.mountPath) f.required(`${at}.mountPath`);
    if (seen.has(mount.mountPath)) f.invalid(`${at}.mountPath`, mount.mountPath, 'must be unique');
    seen.add(mount.mountPath);
    if (devices.some((d) => d.name === mount.name))
      f.invalid(`${at}.name`, mount.name, 'must not already exist in volumeDevices');
    if (devices.some((d) => d.devicePath === mount.mountPath))
      f.invalid(`${at}.mountPath`, mount.mountPath, 'must not already exist as a path in volumeDevices');
    checkSubPath(f, at, mount);
    checkPropagation(f, at, mount, container.securityContext?.privileged === true);
  });
}

function checkSubPath(f: Findings, at: string, mount: VolumeMount): void {
  if (mount.subPath) checkDescending(f, `${at}.subPath`, mount.subPath);
  if (!mount.subPathExpr) return;
  if (mount.subPath)
    f.invalid(`${at}.subPathExpr`, mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive');
  checkDescending(f, `${at}.subPathExpr`, mount.subPathExpr);
}

function checkPropagation(f: Findings, at: string, mount: VolumeMount, privileged: boolean): void {
  const { mountPropagation: propagation, recursiveReadOnly: recursive } = mount;
  if (propagation !== undefined) {
    if (!PROPAGATIONS.includes(propagation)) f.notSupported(`${at}.mountPropagation`, propagation, PROPAGATIONS);
    if (propagation === 'Bidirectional' && !privileged)
      f.forbidden(
        `${at}.mountPropagation`,
        'Bidirectional mount propagation is available only to privileged containers',
      );
  }
  if (recursive === undefined || recursive === 'Disabled') return;
  if (!RECURSIVE.includes(recursive)) return f.notSupported(`${at}.recursiveReadOnly`, recursive, RECURSIVE);
  if (mount.readOnly !== true) f.forbidden(`${at}.recursiveReadOnly`, 'may only be specified when readOnly is true');
  if (propagation !== undefined && propagation !== 'None')
    f.forbidden(`${at}.recursiveReadOnly`, 'may only be specified when mountPropagation is None or not specified');
}

export function checkDevices(f: Findings, field: string, container: Container, volumes: Volumes): void {
  const mounts = container.volumeMounts ?? [];
  const names = new Set<string>();
  const paths = new Set<string>();
  (container.volumeDevices ?? []).forEach((device, i) => {
    const at = item(field, i);
    const volume = volumes.get(device.name ?? '');
    if (!device.name) f.required(`${at}.name`);
    if (names.has(device.name)) f.invalid(`${at}.name`, device.name, 'must be unique');
    if (volume === undefined) f.notFound(`${at}.name`, device.name ?? '');
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined)
      f.invalid(
        `${at}.name`,
        device.name,
        'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      );
    if (!device.devicePath) f.required(`${at}.devicePath`);
    else checkNoBacksteps(f, `${at}.devicePath`, device.devicePath);
    if (paths.has(device.devicePath)) f.invalid(`${at}.devicePath`, device.devicePath, 'must be unique');
    if (mounts.some((m) => m.name === device.name))
      f.invalid(`${at}.name`, device.name, 'must not already exist in volumeMounts');
    if (mounts.some((m) => m.mountPath === device.devicePath))
      f.invalid(`${at}.devicePath`, device.devicePath, 'must not already exist as a path in volumeMounts');
    names.add(device.name);
    paths.add(device.devicePath);
  });
}
