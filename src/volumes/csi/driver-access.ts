// What mounting a filesystem and mapping a device have in common: the driver's client, what the attacher left, the fields
// that every publish has.
import type { Pod } from '../../core/pod.ts';
import type { CsiClient } from './csi-client.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { inStage, stageError } from './csi-errors.ts';
import { attachmentName } from './csi-layout.ts';
import { attachedContext, secretValues, type CsiObjects } from './csi-objects.ts';
import { needsAttach, type CsiVolume } from './requests.ts';
import type { VolumeData } from './vol-data.ts';

export type DriverAccess = {
  readonly drivers: Pick<CsiDrivers, 'client'>;
  readonly objects: CsiObjects;
  readonly nodeName: string;
};

/** `doing` is upstream's name of the place, for a driver that is not there. */
export function clientOf({ drivers }: DriverAccess, driver: string, stage: string, doing: string): CsiClient {
  try {
    return drivers.client(driver);
  } catch (err) {
    throw stageError(stage, err, `kubernetes.io/csi: ${doing}: `);
  }
}

export function attachedFor(
  { objects, nodeName }: DriverAccess,
  { driver, handle }: CsiVolume,
  stage: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (!needsAttach(objects.driver(driver))) return Promise.resolve({});
  const name = attachmentName(handle, driver, nodeName);
  return inStage(stage, () => attachedContext(objects, handle, name, signal));
}

const RESOURCE_EXHAUSTED = 8;

/** Whether the volume was refused because the node has as many as it can take. Then the cluster is told the new limit. */
export async function limitReached(
  { objects, nodeName }: DriverAccess,
  driver: string,
  handle: string,
  refresh: () => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  if (objects.driver(driver)?.spec.nodeAllocatableUpdatePeriodSeconds === undefined) return false;
  const attachment = await objects.attachment(attachmentName(handle, driver, nodeName), signal).catch(() => undefined);
  if (attachment?.status?.attachError?.errorCode !== RESOURCE_EXHAUSTED) return false;
  // Whoever schedules learns it a little later if this fails: the pod cannot be here either way.
  await refresh().catch(() => undefined);
  return true;
}

export function publishSecrets(
  { objects }: DriverAccess,
  volume: CsiVolume,
  pod: Pod,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const inline = volume.inlineSource?.nodePublishSecretRef;
  const own = { ...inline, namespace: pod.metadata.namespace ?? 'default' };
  const reference = inline === undefined ? volume.source?.nodePublishSecretRef : own;
  return secretValues(objects, 'NodePublishSecretRef', reference, signal);
}

/** What is written of every published volume. */
export const publishedData = (
  { nodeName }: DriverAccess,
  { driver, handle, specName, selinuxLabel }: CsiVolume,
): VolumeData => ({
  ...(selinuxLabel === undefined ? {} : { seLinuxMountContext: selinuxLabel }),
  attachmentID: attachmentName(handle, driver, nodeName),
  driverName: driver,
  nodeName,
  specVolID: specName,
  volumeHandle: handle,
});

export const userOf = (uid: string, specName: string): string => `${uid}/${specName}`;
