// The small text formats of cgroup files. Pure; a file that is missing or torn gives nothing, never a wrong number.

/** What is above this counts as no limit: v1 prints its page-rounded maximum. */
const NO_LIMIT_ABOVE = 2 ** 62;

/** A single number. */
export function numberOf(text: string | undefined): number | undefined {
  const word = text?.trim() ?? '';
  return /^-?\d+$/.test(word) ? Number(word) : undefined;
}

/** A limit in bytes or a count; undefined when there is none. */
export function limitOf(text: string | undefined): number | undefined {
  const value = numberOf(text);
  return value === undefined || value < 0 || value > NO_LIMIT_ABOVE ? undefined : value;
}

/** Lines of `key value`. */
export function keyedNumbers(text: string | undefined): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [, key = '', value] of (text ?? '').matchAll(KEYED)) found.set(key, Number(value));
  return found;
}
const KEYED = /^[^\S\n]*(\S+)[^\S\n]+(-?\d+)[^\S\n]*$/gm;

export type DeviceIo = {
  readonly major: number;
  readonly minor: number;
  /** Bytes by operation: Read, Write, and on v1 also Sync, Async, Discard, Total. */
  readonly bytes: ReadonlyMap<string, number>;
  /** Requests done, by operation. */
  readonly requests: ReadonlyMap<string, number>;
  /** What the io.cost controller charged, in microseconds: usage, wait, indebt, indelay. */
  readonly costUs?: ReadonlyMap<string, number>;
};

/** blkio.*.io_service_bytes and io_serviced: lines of `major:minor Operation amount` and a last `Total amount`. */
export function blkio(bytes: string | undefined, requests: string | undefined): readonly DeviceIo[] {
  const devices = new Map<string, DeviceIo>();
  const read = (text: string | undefined, what: 'bytes' | 'requests'): void => {
    for (const line of text?.split('\n') ?? []) {
      const match = /^(\d+):(\d+) (\w+) (\d+)$/.exec(line.trim());
      if (match === null) continue;
      const [, major = '', minor = '', operation = '', amount = ''] = match;
      const key = `${major}:${minor}`;
      const device = devices.get(key) ?? noTraffic(Number(major), Number(minor));
      devices.set(key, { ...device, [what]: new Map([...device[what], [operation, Number(amount)]]) });
    }
  };
  read(bytes, 'bytes');
  read(requests, 'requests');
  return [...devices.values()];
}

const noTraffic = (major: number, minor: number): DeviceIo => ({ major, minor, bytes: new Map(), requests: new Map() });

type KeyedOperations = readonly (readonly [key: string, operation: string])[];
/** What is discarded is no traffic to cAdvisor. */
const V2_BYTES: KeyedOperations = [
  ['rbytes', 'Read'],
  ['wbytes', 'Write'],
];
const V2_REQUESTS: KeyedOperations = [
  ['rios', 'Read'],
  ['wios', 'Write'],
];
const COSTS = ['usage', 'wait', 'indebt', 'indelay'];

/** io.stat: lines of `major:minor key=value…`. */
export function ioStat(text: string | undefined): readonly DeviceIo[] {
  const devices: DeviceIo[] = [];
  for (const line of text?.split('\n') ?? []) {
    const match = /^(\d+):(\d+) (.+)$/.exec(line.trim());
    if (match === null) continue;
    const [, major = '', minor = '', rest = ''] = match;
    const values = new Map(
      rest.split(/\s+/).map((pair): [string, number] => {
        const [key = '', value = ''] = pair.split('=');
        return [key, Number(value)];
      }),
    );
    const picked = (key: string, as: string): [string, number][] => {
      const value = values.get(key);
      return value === undefined || Number.isNaN(value) ? [] : [[as, value]];
    };
    const costs = COSTS.flatMap((key) => picked(`cost.${key}`, key));
    devices.push({
      major: Number(major),
      minor: Number(minor),
      bytes: new Map(V2_BYTES.flatMap(([key, as]) => picked(key, as))),
      requests: new Map(V2_REQUESTS.flatMap(([key, as]) => picked(key, as))),
      ...(costs.length === 0 ? {} : { costUs: new Map(costs) }),
    });
  }
  return devices;
}

export type PressureLine = {
  readonly totalUs: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
};
export type Pressure = { readonly full: PressureLine; readonly some: PressureLine };

const NO_PRESSURE_LINE: PressureLine = { totalUs: 0, avg10: 0, avg60: 0, avg300: 0 };
export const NO_PRESSURE: Pressure = { full: NO_PRESSURE_LINE, some: NO_PRESSURE_LINE };

const SOME = /^some avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/m;
const FULL = /^full avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/m;

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and `full …` where the kernel has it. */
export function pressureOf(text: string | undefined): Pressure | undefined {
  const line = (format: RegExp): PressureLine | undefined => {
    const match = text === undefined ? null : format.exec(text);
    if (match === null) return undefined;
    const [avg10 = 0, avg60 = 0, avg300 = 0, totalUs = 0] = match.slice(1).map(Number);
    return { totalUs, avg10, avg60, avg300 };
  };
  const some = line(SOME);
  return some === undefined ? undefined : { some, full: line(FULL) ?? NO_PRESSURE_LINE };
}
