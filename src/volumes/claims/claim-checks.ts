// Whether a claim may be used by a pod, and whether a persistent volume is the claim's own. Pure; upstream's words.
import { containersOf, namespaceOf, uidOf, type Pod, type Volume } from '../../core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim, VolumeMode } from '../../core/storage.ts';

const PROTECTION = 'kubernetes.io/pvc-protection';

export type ClaimUse = { readonly name: string; readonly readOnly: boolean; readonly isEphemeral: boolean };

/** The claim a volume of a pod stands for; undefined for volumes that stand for themselves. */
export function claimOf(pod: Pod, volume: Volume): ClaimUse | undefined {
  const name = volume.persistentVolumeClaim?.claimName;
  if (name !== undefined) {
    // A claim that several volumes name is mounted once, as the last of them says.
    const last = pod.spec.volumes?.findLast((v) => v.persistentVolumeClaim?.claimName === name && isUsed(pod, v.name));
    return { name, readOnly: (last ?? volume).persistentVolumeClaim?.readOnly === true, isEphemeral: false };
  }
  if (volume.ephemeral === undefined) return undefined;
  return { name: `${pod.metadata.name}-${volume.name}`, readOnly: false, isEphemeral: true };
}

/** What speaks against using the claim. */
export function claimProblem(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim): string | undefined {
  const key = `${namespaceOf(pod)}/${use.name}`;
  const because = (why: string): string => `error processing PVC ${key}: ${why}`;
  const { metadata, spec, status } = claim;
  if (metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(PROTECTION) !== true)
    return because('PVC is being deleted');
  if (status?.phase !== 'Bound') return because('PVC is not bound');
  if ((spec?.volumeName ?? '') === '') return because('PVC has empty pvc.Spec.VolumeName');
  if (!use.isEphemeral) return undefined;
  const owner = metadata.ownerReferences?.find((reference) => reference.controller === true);
  if (owner?.uid === uidOf(pod)) return undefined;
  return `PVC ${key} was not created for pod ${namespaceOf(pod)}/${pod.metadata.name} (pod is not owner)`;
}

/** What speaks against the volume being the claim's. */
export function boundProblem(key: string, claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  const found = `error processing PVC ${key}: found PV object ${volume.metadata.name} but`;
  const { claimRef } = volume.spec;
  if (claimRef === undefined)
    return `${found} it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`;
  const [is, wants] = [claimRef.uid ?? '', claim.metadata.uid ?? ''];
  if (is !== wants || wants === '')
    return `${found} its pv.Spec.ClaimRef.UID ${is} does not point to claim.UID ${wants}`;
  return undefined;
}

/** A volume is used either as a filesystem or as a device; `undefined` says it may be used as the pod does. */
export function modeProblem(
  pod: Pod,
  volume: Volume,
  mode: VolumeMode | undefined,
  pvName: string,
): string | undefined {
  if (mode === undefined) return `cannot get volumeMode for volume: ${pvName}`;
  const uses = usesOf(pod, volume.name);
  if (uses.mounts && mode !== 'Filesystem')
    return `volume ${volume.name} has volumeMode ${mode}, but is specified in volumeMounts`;
  if (uses.devices && mode !== 'Block')
    return `volume ${volume.name} has volumeMode ${mode}, but is specified in volumeDevices`;
  return undefined;
}

function isUsed(pod: Pod, name: string): boolean {
  const { mounts, devices } = usesOf(pod, name);
  return mounts || devices;
}

function usesOf(pod: Pod, name: string): { mounts: boolean; devices: boolean } {
  const containers = [...containersOf(pod)].map(({ container }) => container);
  return {
    mounts: containers.some(({ volumeMounts }) => volumeMounts?.some((mount) => mount.name === name) === true),
    devices: containers.some(({ volumeDevices }) => volumeDevices?.some((device) => device.name === name) === true),
  };
}

const OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options';

export function mountOptionsOf({ metadata, spec }: PersistentVolume): readonly string[] {
  const annotated = metadata.annotations?.[OPTIONS_ANNOTATION];
  return annotated === undefined ? (spec.mountOptions ?? []) : annotated.split(',');
}
