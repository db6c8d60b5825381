// `dra_manager_state` in upstream's format: the claims in use as a text of JSON with a sum over it. Pure.
import { crc32 } from 'node:zlib';
import { goJson, parseObject } from '../core/go-json.ts';
import type { ClaimEntry, PreparedDevice } from './claim-cache.ts';

const KIND = 'DRACheckpoint';
const API_VERSION = 'checkpoint.dra.kubelet.k8s.io/v1';

type DeviceJson = {
  readonly PoolName: string;
  readonly DeviceName: string;
  readonly ShareID: string | null;
  readonly RequestNames: readonly string[] | null;
  readonly CDIDeviceIDs: readonly string[] | null;
};

export function formatClaims(claims: readonly ClaimEntry[]): string {
  const list = claims.map((claim) => ({
    ClaimUID: claim.uid,
    ClaimName: claim.name,
    Namespace: claim.namespace,
    PodUIDs: Object.fromEntries([...claim.pods].sort().map((uid) => [uid, {}])),
    DriverState: Object.fromEntries(
      [...claim.drivers]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([driver, devices]) => [driver, { Devices: orNull(devices.map(deviceJson)) }]),
    ),
  }));
  const data = goJson({ kind: KIND, apiVersion: API_VERSION, ClaimInfoStateList: orNull(list) });
  return goJson({ Data: data, Checksum: crc32(data) });
}

const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);

const deviceJson = (device: PreparedDevice): DeviceJson => ({
  PoolName: device.pool,
  DeviceName: device.device,
  ShareID: device.shareId ?? null,
  RequestNames: orNull(device.requestNames),
  CDIDeviceIDs: orNull(device.cdiIds),
});

/** Throws on a text that is no such file, or was cut off or changed. */
export function parseClaims(text: string): readonly ClaimEntry[] {
  const { Data, Checksum } = parseObject(text);
  if (typeof Data !== 'string' || Checksum !== crc32(Data)) throw new Error('checkpoint is corrupted');
  const { kind, apiVersion, ClaimInfoStateList: list } = recordOf(JSON.parse(Data));
  if (kind !== KIND || apiVersion !== API_VERSION)
    throw new Error(`unknown checkpoint ${String(apiVersion)} ${String(kind)}`);
  return listOf(list).map(claimOf);
}

function claimOf(value: unknown): ClaimEntry {
  const json = recordOf(value);
  const drivers = Object.entries(recordOf(json['DriverState'])).map(([driver, state]): [string, PreparedDevice[]] => [
    driver,
    listOf(recordOf(state)['Devices']).map(deviceOf),
  ]);
  return {
    uid: textOf(json['ClaimUID']),
    name: textOf(json['ClaimName']),
    namespace: textOf(json['Namespace']),
    pods: new Set(Object.keys(recordOf(json['PodUIDs']))),
    drivers: new Map(drivers),
    prepared: false,
  };
}

function deviceOf(value: unknown): PreparedDevice {
  const json = recordOf(value);
  const shareId = json['ShareID'];
  return {
    pool: textOf(json['PoolName']),
    device: textOf(json['DeviceName']),
    ...(shareId === null || shareId === undefined ? {} : { shareId: textOf(shareId) }),
    requestNames: listOf(json['RequestNames']).map(textOf),
    cdiIds: listOf(json['CDIDeviceIDs']).map(textOf),
  };
}

function recordOf(value: unknown): Record<string, unknown> {
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new Error('not an object');
  return value as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Error('not a list');
  return value as unknown[];
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new Error('not a text');
  return value;
}
