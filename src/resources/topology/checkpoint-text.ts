// What the state files of the CPU and the memory manager have in common. Pure.
import { goJson } from '../../core/go-json.ts';
import { KubeletError } from '../../lib/errors.ts';

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const checkpointProblem = (message: string): KubeletError => new KubeletError('invalid', message);

/** Undefined when the value or a part of it has the wrong type; absent and null are empty. */
export function mapOf<T>(value: unknown, part: (value: unknown) => T | undefined): Map<string, T> | undefined {
  const out = new Map<string, T>();
  if (value === null || value === undefined) return out;
  if (!isRecord(value)) return undefined;
  for (const [key, each] of Object.entries(value)) {
    const known = part(each);
    if (known === undefined) return undefined;
    out.set(key, known);
  }
  return out;
}

/** Entries by key in text order, as Go writes maps. */
const sorted = <T>(map: ReadonlyMap<string, T>): (readonly [string, T])[] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));

/** Says which file has to go before the kubelet can start. */
export const restoreProblem = (manager: string, path: string, problem: string): KubeletError =>
  new KubeletError(
    'invalid',
    `could not restore state from checkpoint: ${problem}, please drain this node and delete the ${manager} manager ` +
      `checkpoint file "${path}" before restarting Kubelet`,
  );

/** A map as Go encodes it in JSON. Not through an object: that would put keys like `10` and `2` in another order. */
export const mapJson = <T>(map: ReadonlyMap<string, T>, format: (value: T) => string): string =>
  `{${sorted(map)
    .map(([key, value]) => `${goJson(key)}:${format(value)}`)
    .join(',')}}`;

/** A map as Go prints it for a checksum. */
export const mapText = <T>(map: ReadonlyMap<string, T>, format: (value: T) => string): string =>
  `map[${sorted(map)
    .map(([key, value]) => `${key}:${format(value)}`)
    .join(' ')}]`;
