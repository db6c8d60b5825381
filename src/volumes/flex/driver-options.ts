// The source of a FlexVolume, and the options a driver is told: one JSON object of texts, keys sorted. Pure.
import { namespaceOf, uidOf, type Pod } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { VolumeRequest } from '../plugin.ts';

export type FlexSource = {
  readonly driver: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly options: Readonly<Record<string, string>>;
  readonly secret?: { readonly namespace: string; readonly name: string };
};

type Options = Readonly<Record<string, string>>;
type Json = Readonly<Record<string, unknown>>;

/** The driver that a pod's or a persistent volume's source names. */
export const driverOf = (source: unknown): string => text(objectOf(source)['driver']);

export function sourceOf({
  pod,
  volume,
  persistent,
  readOnly,
}: Pick<VolumeRequest, 'pod' | 'volume' | 'persistent' | 'readOnly'>): FlexSource {
  const given = objectOf(persistent === undefined ? volume.flexVolume : persistent.volume.spec['flexVolume']);
  const driver = driverOf(given);
  if (driver === '') throw new KubeletError('invalid', 'a flexVolume names a driver');
  const reference = objectOf(given['secretRef']);
  const name = text(reference['name']);
  const ofVolume = persistent === undefined ? '' : text(reference['namespace']);
  return {
    driver,
    fsType: text(given['fsType']),
    readOnly: persistent === undefined ? given['readOnly'] === true : readOnly,
    options: Object.fromEntries(
      Object.entries(objectOf(given['options'])).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    ),
    ...(name === '' ? {} : { secret: { namespace: ofVolume === '' ? namespaceOf(pod) : ofVolume, name } }),
  };
}

/** What every call is told; what the volume says itself comes last and wins. */
export function optionsText({ fsType, readOnly, options }: FlexSource, specName: string, extra: Options = {}): string {
  const all = {
    'kubernetes.io/fsType': fsType,
    'kubernetes.io/readwrite': readOnly ? 'ro' : 'rw',
    'kubernetes.io/pvOrVolumeName': specName,
    ...extra,
    ...options,
  };
  return JSON.stringify(Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** What only `mount` is told. `secret`: values as the API has them, in base64. */
export function mountOptionsFor(pod: Pod, secret: Options): Options {
  const group = pod.spec.securityContext?.fsGroup;
  return {
    'kubernetes.io/pod.name': pod.metadata.name,
    'kubernetes.io/pod.namespace': namespaceOf(pod),
    'kubernetes.io/pod.uid': uidOf(pod),
    'kubernetes.io/serviceAccount.name': pod.spec.serviceAccountName ?? '',
    ...Object.fromEntries(Object.entries(secret).map(([key, value]) => [`kubernetes.io/secret/${key}`, value])),
    ...(group === undefined ? {} : { 'kubernetes.io/mounterArgs.FsGroup': String(group) }),
  };
}

const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
