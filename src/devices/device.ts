// A device as its plugin describes it, read from the wire once.
import type { Device as WireDevice } from './gen/device-plugin.ts';

export type Device = {
  readonly id: string;
  /** `Healthy`; any other text means it must not be given to anybody. */
  readonly health: string;
  /** NUMA nodes it is near to; none when the plugin does not say. */
  readonly nodes: readonly number[];
};

export type Devices = ReadonlyMap<string, Device>;

export const HEALTHY = 'Healthy';

/** Of several devices with one id the last one counts. */
export const devicesOf = (listed: readonly WireDevice[]): Devices =>
  new Map(
    listed.map(({ ID, health, topology }) => [ID, { id: ID, health, nodes: (topology?.nodes ?? []).map((n) => n.ID) }]),
  );
