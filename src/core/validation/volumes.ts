// Volumes: one source each, with the rules of its kind.
import { csiDriverName, dns1123Label, dns1123Subdomain } from '../names.ts';
import type { KeyToPath, Pod, Volume } from '../pod.ts';
import { tryParseQuantity } from '../quantity.ts';
import { checkFieldRef, checkResourceFieldRef, VOLUME_FIELD_PATHS } from './env.ts';
import { item, type Findings } from './field-error.ts';
import { checkFileMode, checkNoBacksteps, checkNonReserved } from './paths.ts';
import { checkProjected } from './projected.ts';
import { checkNetworkVolume, NETWORK_VOLUME_KINDS } from './network-volumes.ts';

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];

/** Checks all volumes and returns the good ones, which are those that may be mounted. */
export function checkVolumes(f: Findings, pod: Pod): ReadonlyMap<string, Volume> {
  const good = new Map<string, Volume>();
  const claims = new Set(
    (pod.spec.volumes ?? []).filter((v) => v.ephemeral !== undefined).map((v) => `${pod.metadata.name}-${v.name}`),
  );
  (pod.spec.volumes ?? []).forEach((volume, i) => {
    const at = item('spec.volumes', i);
    const before = f.list.length;
    checkSource(f, at, volume, pod.metadata.name);
    f.name(`${at}.name`, volume.name, dns1123Label);
    if (good.has(volume.name)) f.duplicate(`${at}.name`, volume.name);
    if (f.list.length === before) good.set(volume.name, volume);
    const claim = volume.persistentVolumeClaim?.claimName;
    if (claim !== undefined && claims.has(claim))
      f.invalid(
        `${at}.persistentVolumeClaim.claimName`,
        claim,
        'must not reference a PVC that gets created for an ephemeral volume',
      );
  });
  return good;
}

function checkSource(f: Findings, at: string, volume: Volume, podName: string): void {
  const kinds = Object.keys(volume).filter((kind) => kind !== 'name' && volume[kind] !== undefined);
  const [kind, ...extra] = kinds;
  if (kind === undefined) return f.required(at, 'must specify a volume type');
  for (const other of extra) f.forbidden(`${at}.${other}`, 'may not specify more than 1 volume type');
  const field = `${at}.${kind}`;
  checkLocalKind(f, field, kind, volume);
  checkReferenceKind(f, field, kind, volume);
  if (kind === 'ephemeral') {
    const template = volume.ephemeral?.['volumeClaimTemplate'];
    if (template === undefined) f.required(`${field}.volumeClaimTemplate`);
    f.reasons(`${at}.name`, volume.name, podName ? dns1123Subdomain(`${podName}-${volume.name}`) : []);
  }
  if (NETWORK_VOLUME_KINDS.has(kind)) checkNetworkVolume(f, field, kind, volume[kind]);
}

function checkLocalKind(f: Findings, field: string, kind: string, volume: Volume): void {
  if (kind === 'emptyDir' && volume.emptyDir?.sizeLimit !== undefined) {
    const limit = tryParseQuantity(volume.emptyDir.sizeLimit);
    if (limit === undefined || limit.nano < 0n)
      f.forbidden(`${field}.sizeLimit`, 'SizeLimit field must be a valid resource quantity');
  }
  if (kind === 'hostPath' && volume.hostPath !== undefined) {
    const { path, type } = volume.hostPath;
    if (!path) f.required(`${field}.path`);
    else checkNoBacksteps(f, `${field}.path`, path);
    if (type !== undefined && !HOST_PATH_TYPES.includes(type)) f.notSupported(`${field}.type`, type, HOST_PATH_TYPES);
  }
  if (kind === 'downwardAPI' && volume.downwardAPI !== undefined) {
    checkFileMode(f, `${field}.defaultMode`, volume.downwardAPI.defaultMode);
    checkDownwardItems(f, `${field}.items`, volume.downwardAPI.items ?? []);
  }
  if (kind === 'image' && volume.image !== undefined) {
    if (!volume.image.reference) f.required(`${field}.reference`);
    f.oneOf(`${field}.pullPolicy`, volume.image.pullPolicy, PULL_POLICIES);
  }
}

function checkReferenceKind(f: Findings, field: string, kind: string, volume: Volume): void {
  if (kind === 'configMap' && volume.configMap !== undefined) {
    if (!volume.configMap.name) f.required(`${field}.name`);
    checkFileMode(f, `${field}.defaultMode`, volume.configMap.defaultMode);
    checkItems(f, `${field}.items`, volume.configMap.items ?? []);
  }
  if (kind === 'secret' && volume.secret !== undefined) {
    if (!volume.secret.secretName) f.required(`${field}.secretName`);
    checkFileMode(f, `${field}.defaultMode`, volume.secret.defaultMode);
    checkItems(f, `${field}.items`, volume.secret.items ?? []);
  }
  if (kind === 'projected' && volume.projected !== undefined)
    checkProjected(f, field, volume.projected, { checkItems, checkDownwardItems });
  if (kind === 'persistentVolumeClaim' && !volume.persistentVolumeClaim?.claimName) f.required(`${field}.claimName`);
  if (kind === 'csi' && volume.csi !== undefined) {
    f.name(`${field}.driver`, volume.csi.driver, csiDriverName);
    const secret = volume.csi['nodePublishSecretRef'] as { name?: string } | undefined;
    if (secret !== undefined) f.name(`${field}.nodePublishSecretRef.name`, secret.name, dns1123Subdomain);
  }
}

function checkItems(f: Findings, field: string, items: readonly KeyToPath[]): void {
  items.forEach((entry, i) => {
    const at = item(field, i);
    if (!entry.key) f.required(`${at}.key`);
    if (!entry.path) f.required(`${at}.path`);
    else checkNonReserved(f, `${at}.path`, entry.path);
    checkFileMode(f, `${at}.mode`, entry.mode);
  });
}

function checkDownwardItems(
  f: Findings,
  field: string,
  items: NonNullable<NonNullable<Volume['downwardAPI']>['items']>,
): void {
  items.forEach((file, i) => {
    const at = item(field, i);
    if (!file.path) f.required(`${at}.path`);
    else checkNonReserved(f, `${at}.path`, file.path);
    if (file.fieldRef !== undefined) {
      checkFieldRef(f, `${at}.fieldRef`, file.fieldRef, VOLUME_FIELD_PATHS);
      if (file.resourceFieldRef !== undefined)
        f.invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously');
    } else if (file.resourceFieldRef !== undefined) {
      checkResourceFieldRef(f, `${at}.resourceFieldRef`, file.resourceFieldRef, true);
    } else {
      f.required(at, 'one of fieldRef and resourceFieldRef is required');
    }
    checkFileMode(f, `${at}.mode`, file.mode);
  });
}
