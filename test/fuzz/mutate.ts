// Changes samples at random. Everything follows from the seed.

export type Random = () => number;

/** mulberry32 */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const below = (random: Random, n: number): number => Math.floor(random() * n);
const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)] as T;

const BYTES = [0, 1, 0x0a, 0x20, 0x22, 0x7f, 0x80, 0xc0, 0xfe, 0xff];

type Change = (random: Random, bytes: Buffer, other: Buffer) => Buffer;
const CHANGES: readonly Change[] = [
  (r, b) => {
    const out = Buffer.from(b);
    const at = below(r, out.length);
    out[at] = (out[at] ?? 0) ^ (1 << below(r, 8));
    return out;
  },
  (r, b) => {
    const out = Buffer.from(b);
    out[below(r, out.length)] = pick(r, BYTES);
    return out;
  },
  (r, b) =>
    Buffer.concat([b.subarray(0, below(r, b.length)), Buffer.from([pick(r, BYTES)]), b.subarray(below(r, b.length))]),
  (r, b) => {
    const from = below(r, b.length);
    return Buffer.concat([b.subarray(0, from), b.subarray(from + 1 + below(r, 16))]);
  },
  (r, b) => {
    const from = below(r, b.length);
    const part = b.subarray(from, from + below(r, 64));
    return Buffer.concat([
      b.subarray(0, from),
      ...Array.from({ length: 1 + below(r, 40) }, () => part),
      b.subarray(from),
    ]);
  },
  (r, b) => b.subarray(0, below(r, b.length)),
  (r, b, other) => Buffer.concat([b.subarray(0, below(r, b.length)), other.subarray(below(r, other.length))]),
  (r, b) => {
    const out = Buffer.from(b);
    if (out.length >= 4)
      out.writeUInt32BE(pick(r, [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]), below(r, out.length - 3));
    return out;
  },
];

export function mutateBytes(random: Random, samples: readonly Buffer[]): Buffer {
  let bytes = Buffer.from(pick(random, samples));
  for (let i = below(random, 6); i >= 0; i--) {
    if (bytes.length === 0) bytes = Buffer.from([below(random, 256)]);
    bytes = Buffer.from(pick(random, CHANGES)(random, bytes, pick(random, samples))).subarray(0, 1 << 20);
  }
  return bytes;
}

const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  '',
  ' ',
  '\u0000',
  '€\ud800',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'x'.repeat(5000),
  '9'.repeat(400),
  '-9223372036854775808',
  '1e999999999',
  [],
  [null],
  [[]],
  {},
  { '': null },
  JSON.parse('{"__proto__":{"polluted":1}}'),
];
const KEYS = ['', '__proto__', 'constructor', 'toString', 'name', '0', 'length'];

/** A value of which something is replaced, removed, repeated or added. */
export function mutateJson(random: Random, sample: unknown): unknown {
  const depth = 1 + below(random, 6);
  const out = structuredClone(sample);
  return change(random, out, depth);
}

function change(random: Random, value: unknown, depth: number): unknown {
  if (depth === 0 || typeof value !== 'object' || value === null || random() < 0.08) return pick(random, VALUES);
  if (Array.isArray(value)) return changeList(random, value, depth);
  const keys = Object.keys(value);
  const record = value as Record<string, unknown>;
  const key = keys.length === 0 || random() < 0.1 ? pick(random, KEYS) : pick(random, keys);
  if (random() < 0.1) delete record[key];
  else
    Object.defineProperty(record, key, {
      value: change(random, Object.hasOwn(record, key) ? record[key] : undefined, depth - 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return record;
}

function changeList(random: Random, list: unknown[], depth: number): unknown[] {
  const at = below(random, list.length + 1);
  const roll = random();
  if (roll < 0.15) list.splice(at, 1);
  else if (roll < 0.3) list.push(...structuredClone(list), ...structuredClone(list));
  else if (at < list.length) list[at] = change(random, list[at], depth - 1);
  else list.push(pick(random, VALUES));
  return list;
}
