// Volumes on other machines: which of their fields must be there. Their plugins check the rest when they mount.
import type { Findings } from './field-error.ts';
import { checkNoBacksteps } from './paths.ts';

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  nfs: ['server', 'path'],
  iscsi: ['targetPortal', 'iqn'],
  fc: [],
  gitRepo: ['repository'],
  flexVolume: ['driver'],
  rbd: ['monitors', 'image'],
  cephfs: ['monitors'],
  cinder: ['volumeID'],
  glusterfs: ['endpoints', 'path'],
  flocker: [],
  quobyte: ['registry', 'volume'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  storageos: ['volumeName'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  awsElasticBlockStore: ['volumeID'],
  gcePersistentDisk: ['pdName'],
  portworxVolume: ['volumeID'],
  vsphereVolume: ['volumePath'],
  photonPersistentDisk: ['pdID'],
};

export const NETWORK_VOLUME_KINDS: ReadonlySet<string> = new Set(Object.keys(REQUIRED));

export function checkNetworkVolume(f: Findings, field: string, kind: string, source: unknown): void {
  const given = source as Readonly<Record<string, unknown>>;
  for (const part of REQUIRED[kind] ?? []) {
    const value = given[part];
    if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0))
      f.required(`${field}.${part}`);
  }
  if (kind === 'nfs' && typeof given['path'] === 'string' && given['path'] !== '' && !given['path'].startsWith('/'))
    f.invalid(`${field}.path`, given['path'], 'must be an absolute path');
  if (kind === 'gitRepo' && typeof given['directory'] === 'string')
    checkNoBacksteps(f, `${field}.directory`, given['directory']);
}
