// What people are told about volumes that are not mounted, in upstream's words plus what each one waits for. Pure.
import { formatDurationMs } from '../core/duration.ts';
import type { EventRecorder, EventType } from '../core/events.ts';
import type { Pod } from '../core/pod.ts';
import { rejection } from '../core/rejection.ts';
import type { PersistentVolume } from '../core/storage.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import { systemErrorText } from '../lib/system-error-text.ts';
import type { PersistentSource } from './plugin.ts';

export type MountFailure = { readonly reason: string; readonly message: string; readonly unresolved: boolean };

/** Volumes that keep a pod waiting, by their names in the pod. */
export type Missing = {
  readonly unmounted: readonly string[];
  readonly unattached: readonly string[];
  readonly unresolved: readonly string[];
};

const list = (names: readonly string[]): string => `[${[...names].sort().join(' ')}]`;

const missingText = ({ unmounted, unattached, unresolved }: Missing): string =>
  `unmounted volumes=${list(unmounted)}, unattached volumes=${list(unattached)}, failed to process volumes=${list(unresolved)}`;

/** The event of a failed attempt. The error may name the stage it failed in (`detail.stage`). */
export function mountFailure(specName: string, err: unknown, missing: Missing): MountFailure {
  const why = systemErrorText(err);
  const detail = isFault(err) ? err.detail : {};
  if (detail['unresolved'] === true)
    return {
      reason: 'FailedMount',
      message: `Unable to attach or mount volumes: ${missingText(missing)}: ${why}`,
      unresolved: true,
    };
  const named = typeof detail['stage'] === 'string' ? detail['stage'] : 'MountVolume.SetUp';
  const stage = named.includes('failed') ? named : `${named} failed`;
  return { reason: reasonOf(stage), message: `${stage} for volume "${specName}" : ${why}`, unresolved: false };
}

function reasonOf(stage: string): string {
  if (stage.startsWith('AttachVolume')) return 'FailedAttachVolume';
  if (stage.startsWith('NodeExpandVolume')) return 'VolumeResizeFailed';
  return stage.startsWith('MapVolume') && !stage.includes('NodeAffinity') ? 'FailedMapVolume' : 'FailedMount';
}

export interface PersistentVolumeEvents {
  volume(volume: PersistentVolume, type: EventType, reason: string, message: string): void;
}

/** A disk has another file system than its persistent volume says: that is told to whoever looks at the volume. */
export function tellMismatch(
  events: PersistentVolumeEvents | undefined,
  persistent: PersistentSource | undefined,
  err: unknown,
): void {
  if (persistent === undefined || !isFault(err) || err.detail['filesystemMismatch'] !== true) return;
  const message = `MountVolume failed for volume "${persistent.volume.metadata.name}" ${err.message}`;
  events?.volume(persistent.volume, 'Warning', 'FailedMountOnFilesystemMismatch', message);
}

/** Says once that a claim names another volume than the one that is mounted for the pod, and returns the mounted one. */
export function tellOther<Volume extends { readonly specName: string }>(
  events: Pick<EventRecorder, 'pod'>,
  pod: Pod,
  entry: { readonly name: string; other: string },
  other: Volume,
  mounted: Volume,
): Volume {
  if (entry.other === other.specName) return mounted;
  entry.other = other.specName;
  const names = `its claim names "${other.specName}" now, which is not mounted`;
  const message = `volume "${entry.name}" stays "${mounted.specName}" until the pod ends: ${names}`;
  events.pod(pod, 'Warning', 'VolumeNotReplaced', message);
  return mounted;
}

/** The error of a wait that ended before every volume was mounted. */
export function notMountedError(missing: Missing, complaints: readonly string[], why: string): KubeletError {
  const text = `${missingText(missing)}: ${why}`;
  return new KubeletError('deadline', complaints.length === 0 ? text : `${text}: ${complaints.join('; ')}`, {
    detail: { unmounted: [...missing.unmounted].sort() },
  });
}

/** The same for a pod that waits for a volume that the node cannot take. */
export const attachLimitError = (missing: Missing, why: string): KubeletError =>
  rejection(
    'VolumeAttachmentLimitExceeded',
    `Node has reached its volume attachment limit, rejecting pod. ${missingText(missing)}: ${why}`,
  );

export const ago = (now: number, sinceMs: number): string =>
  formatDurationMs(Math.max(0, Math.round((now - sinceMs) / 1000)) * 1000);

export const unmountFailure = (specName: string, err: unknown): string =>
  `UnmountVolume.TearDown failed for volume "${specName}" : ${messageOf(err)}`;
