// `kubelet_internal_checkpoint` in upstream's format, byte for byte: who has which devices, and which resources had
// plugins. Pure.
import { fnv1a32, goJson, parseObject } from '../core/go-json.ts';
import { messageOf } from '../lib/errors.ts';
import { decode, encode } from '../lib/proto/codec.ts';
import { ContainerAllocateResponse } from './gen/device-plugin.ts';
import type { GrantEntry } from './pod-devices.ts';

export type DeviceCheckpoint = {
  readonly grants: readonly GrantEntry[];
  /** Healthy ids by resource. */
  readonly registered: ReadonlyMap<string, readonly string[]>;
};

/** What was read, and entries that could not be used. */
export type ParsedCheckpoint = DeviceCheckpoint & { readonly damaged: readonly string[] };

type IdsByNode = Readonly<Record<string, readonly string[] | null>>;
type EntryJson = {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: IdsByNode | null;
  /** Base64. */
  readonly AllocResp: string | null;
};
type DataJson = {
  readonly PodDeviceEntries: readonly EntryJson[] | null;
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>> | null;
};

const NO_NODE = '-1';

export function formatCheckpoint({ grants, registered }: DeviceCheckpoint): string {
  const data: DataJson = {
    PodDeviceEntries: grants.length === 0 ? null : grants.map(entryOf),
    RegisteredDevices: Object.fromEntries([...registered].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  // Go sorts the keys of a map as text, JavaScript numbers first: the nodes' keys are written out here.
  return `{"Data":${dataText(data)},"Checksum":${checksumOf(data)}}`;
}

function entryOf({ podUid, container, resource, grant }: GrantEntry): EntryJson {
  const byNode: Record<string, string[]> = {};
  for (const [id, nodes] of grant.devices)
    for (const key of nodes.length === 0 ? [NO_NODE] : nodes.map(String)) (byNode[key] ??= []).push(id);
  return {
    PodUID: podUid,
    ContainerName: container,
    ResourceName: resource,
    DeviceIDs: byNode,
    AllocResp: encode(ContainerAllocateResponse, grant.response).toString('base64'),
  };
}

function dataText(data: DataJson): string {
  const nodes = (ids: IdsByNode | null): string =>
    `{${Object.entries(ids ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([node, list]) => `${goJson(node)}:${goJson(list)}`)
      .join(',')}}`;
  const entry = (e: EntryJson): string =>
    `{"PodUID":${goJson(e.PodUID)},"ContainerName":${goJson(e.ContainerName)},"ResourceName":${goJson(e.ResourceName)},"DeviceIDs":${nodes(e.DeviceIDs)},"AllocResp":${goJson(e.AllocResp)}}`;
  const entries = data.PodDeviceEntries === null ? 'null' : `[${data.PodDeviceEntries.map(entry).join(',')}]`;
  return `{"PodDeviceEntries":${entries},"RegisteredDevices":${goJson(data.RegisteredDevices)}}`;
}

/** FNV over the data as Go prints it. */
function checksumOf({ PodDeviceEntries, RegisteredDevices }: DataJson): number {
  const list = (ids: readonly string[] | null): string => (ids === null ? '<nil>' : `[${ids.join(' ')}]`);
  const map = <V>(value: Readonly<Record<string, V>> | null, print: (v: V) => string, order: Order): string =>
    value === null
      ? '<nil>'
      : `map[${Object.entries(value)
          .sort(([a], [b]) => order(a, b))
          .map(([k, v]) => `${k}:${print(v)}`)
          .join(' ')}]`;
  const bytes = (base64: string | null): string =>
    base64 === null ? '<nil>' : `[${[...Buffer.from(base64, 'base64')].join(' ')}]`;
  const entry = (e: EntryJson): string =>
    `{PodUID:(string)${e.PodUID} ContainerName:(string)${e.ContainerName} ResourceName:(string)${e.ResourceName} ` +
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${map(e.DeviceIDs, list, byNumber)} AllocResp:([]uint8)${bytes(e.AllocResp)}}`;
  const entries = PodDeviceEntries === null ? '<nil>' : `[${PodDeviceEntries.map(entry).join(' ')}]`;
  return fnv1a32(
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${entries} ` +
      `RegisteredDevices:(map[string][]string)${map(RegisteredDevices, list, byText)}}`,
  );
}

type Order = (a: string, b: string) => number;
const byNumber: Order = (a, b) => Number(a) - Number(b);
const byText: Order = (a, b) => (a < b ? -1 : 1);

/** Throws on a text that is no such file, or was cut off or changed. */
export function parseCheckpoint(text: string): ParsedCheckpoint {
  const { Data, Checksum } = parseObject(text);
  const data = dataOf(Data);
  if (Checksum !== 0 && Checksum !== checksumOf(data)) throw new Error('checkpoint is corrupted');
  const damaged: string[] = [];
  const grants = (data.PodDeviceEntries ?? []).flatMap((entry) => {
    try {
      return [grantOf(entry)];
    } catch (err) {
      damaged.push(`${entry.PodUID}/${entry.ContainerName}/${entry.ResourceName}: ${messageOf(err)}`);
      return [];
    }
  });
  const registered = new Map(Object.entries(data.RegisteredDevices ?? {}).map(([name, ids]) => [name, ids ?? []]));
  return { grants, registered, damaged };
}

function grantOf(entry: EntryJson): GrantEntry {
  const devices = new Map<string, number[]>();
  for (const [node, ids] of Object.entries(entry.DeviceIDs ?? {}))
    for (const id of ids ?? []) {
      const nodes = devices.get(id) ?? [];
      if (node !== NO_NODE) nodes.push(Number(node));
      devices.set(id, nodes);
    }
  const response = decode(ContainerAllocateResponse, Buffer.from(entry.AllocResp ?? '', 'base64'));
  const { PodUID: podUid, ContainerName: container, ResourceName: resource } = entry;
  return { podUid, container, resource, grant: { devices, response } };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isTexts = (value: unknown): value is readonly string[] | null =>
  value === null || (Array.isArray(value) && value.every((v) => typeof v === 'string'));
const isTextLists = (value: unknown): value is Readonly<Record<string, readonly string[] | null>> | null =>
  value === null || (isRecord(value) && Object.values(value).every(isTexts));

/** The shape only; throws where it is another one. */
function dataOf(value: unknown): DataJson {
  if (!isRecord(value)) throw new Error('no data');
  const { PodDeviceEntries: entries = null, RegisteredDevices: registered = null } = value;
  if (!isTextLists(registered)) throw new Error('RegisteredDevices is not a map of lists');
  if (entries !== null && !Array.isArray(entries)) throw new Error('PodDeviceEntries is not a list');
  return { PodDeviceEntries: entries === null ? null : entries.map(entryJsonOf), RegisteredDevices: registered };
}

function entryJsonOf(value: unknown): EntryJson {
  if (!isRecord(value)) throw new Error('an entry is not an object');
  const text = (name: string): string => {
    const field = value[name];
    if (typeof field !== 'string') throw new Error(`${name} is not a text`);
    return field;
  };
  const { DeviceIDs = null, AllocResp = null } = value;
  if (!isTextLists(DeviceIDs)) throw new Error('DeviceIDs is not a map of lists');
  return {
    PodUID: text('PodUID'),
    ContainerName: text('ContainerName'),
    ResourceName: text('ResourceName'),
    DeviceIDs,
    AllocResp: AllocResp === null ? null : text('AllocResp'),
  };
}
