// The state files of the Go kubelet, written and checked by its rules and nothing of ours: the sums are those of its own
// printing of the structs, as recorded.
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';

function fnv(text: string): number {
  let sum = 0x811c9dc5;
  for (const byte of Buffer.from(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

type Entries = Readonly<Record<string, Readonly<Record<string, string>>>>;
type Cpus = { policyName: string; defaultCpuSet: string; entries?: Entries; checksum: number };

const goMap = <V>(map: Readonly<Record<string, V>>, print: (value: V) => string): string =>
  `map[${Object.keys(map)
    .sort()
    .map((key) => `${key}:${print(map[key] as V)}`)
    .join(' ')}]`;

function cpuSum(policyName: string, defaultCpuSet: string, entries: Entries = {}): number {
  const own = goMap(entries, (containers) => goMap(containers, (set) => set));
  return fnv(
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} ` +
      `Entries:(map[string]map[string]string)${own} Checksum:(checksum.Checksum)0}`,
  );
}

export const cpuManagerState = (defaultCpuSet: string, entries: Entries): string =>
  JSON.stringify({ policyName: 'static', defaultCpuSet, entries, checksum: cpuSum('static', defaultCpuSet, entries) });

/** As it is found on nodes without a policy. */
export const MEMORY_MANAGER_STATE = '{"policyName":"None","machineState":{},"checksum":4236770233}';

export type DeviceEntry = {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
  /** Base64. */
  readonly AllocResp: string;
};
type Registered = Readonly<Record<string, readonly string[] | null>>;

function deviceSum(entries: readonly DeviceEntry[] | null, registered: Registered): number {
  const list = (ids: readonly string[] | null): string => (ids === null ? '<nil>' : `[${ids.join(' ')}]`);
  const entry = (e: DeviceEntry): string =>
    `{PodUID:(string)${e.PodUID} ContainerName:(string)${e.ContainerName} ResourceName:(string)${e.ResourceName} ` +
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${goMap(e.DeviceIDs, list)} ` +
    `AllocResp:([]uint8)[${[...Buffer.from(e.AllocResp, 'base64')].join(' ')}]}`;
  return fnv(
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${entries === null ? '<nil>' : `[${entries.map(entry).join(' ')}]`} ` +
      `RegisteredDevices:(map[string][]string)${goMap(registered, list)}}`,
  );
}

export const deviceState = (entries: readonly DeviceEntry[], registered: Registered): string =>
  JSON.stringify({
    Data: { PodDeviceEntries: entries, RegisteredDevices: registered },
    Checksum: deviceSum(entries, registered),
  });

export function claimState(claims: readonly object[]): string {
  const Data = JSON.stringify({
    kind: 'DRACheckpoint',
    apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1',
    ClaimInfoStateList: claims,
  });
  return JSON.stringify({ Data, Checksum: crc32(Data) });
}

export function resourceState(entries: Readonly<Record<string, object>>): string {
  const data = JSON.stringify({ entries });
  return JSON.stringify({ data, checksum: fnv(`(string)${data}`) });
}

/** What the Go kubelet would read; throws where it would refuse the file or find other bytes than it writes. */
export const goReads = {
  cpus(text: string): Cpus {
    const read = JSON.parse(text) as Cpus;
    assert.deepEqual(
      Object.keys(read).filter((key) => key !== 'entries'),
      ['policyName', 'defaultCpuSet', 'checksum'],
    );
    assert.equal(read.checksum, cpuSum(read.policyName, read.defaultCpuSet, read.entries));
    return read;
  },
  memory(text: string): void {
    assert.equal(text, MEMORY_MANAGER_STATE);
  },
  devices(text: string): readonly DeviceEntry[] {
    const { Data, Checksum } = JSON.parse(text) as {
      Data: { PodDeviceEntries: DeviceEntry[] | null; RegisteredDevices: Registered };
      Checksum: number;
    };
    assert.equal(Checksum, deviceSum(Data.PodDeviceEntries, Data.RegisteredDevices));
    return Data.PodDeviceEntries ?? [];
  },
  claims(text: string): readonly unknown[] {
    const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number };
    assert.equal(Checksum, crc32(Data));
    const { kind, apiVersion, ClaimInfoStateList } = JSON.parse(Data) as Record<string, unknown>;
    assert.deepEqual([kind, apiVersion], ['DRACheckpoint', 'checkpoint.dra.kubelet.k8s.io/v1']);
    return (ClaimInfoStateList ?? []) as unknown[];
  },
  resources(text: string): Readonly<Record<string, { ContainerResources: object }>> {
    const { data, checksum } = JSON.parse(text) as { data: string; checksum: number };
    assert.equal(checksum, fnv(`(string)${data}`));
    return (JSON.parse(data) as { entries: Record<string, { ContainerResources: object }> }).entries;
  },
};
