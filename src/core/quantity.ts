// Kubernetes quantities: exact values with SI, binary or exponent suffixes, kept as an integer count of nano units so
// that parsing, adding and printing never change them. Values finer than nano are rounded up, as upstream does.

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';
export type Quantity = { readonly nano: bigint; readonly format: QuantityFormat };

const NANO = 1_000_000_000n;
/** Larger magnitudes are capped, as upstream caps them. */
const MAX_NANO = (2n ** 63n - 1n) * NANO;

const DECIMAL_SUFFIXES: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY_SUFFIXES: Record<string, bigint> = {
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  Pi: 2n ** 50n,
  Ei: 2n ** 60n,
};

const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d{1,4})|([numkMGTPE]?|[KMGTPE]i))$/;

/** Quantities that were parsed: a cluster has a few dozen of them, and each is looked at many times an hour. */
const parsed = new Map<string, Quantity | undefined>();
const MOST_PARSED = 1000;
const LONGEST_KEPT = 40;

/** Parses a quantity, or returns undefined for text that is none. */
export function tryParseQuantity(text: string): Quantity | undefined {
  const known = parsed.get(text);
  if (known !== undefined || parsed.has(text)) return known;
  const found = parse(text);
  if (parsed.size >= MOST_PARSED) parsed.clear();
  if (text.length <= LONGEST_KEPT) parsed.set(text, found);
  return found;
}

function parse(text: string): Quantity | undefined {
  const match = PATTERN.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent, suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(whole + fraction || '0');
  const scale = BINARY_SUFFIXES[suffix];
  let nano: bigint;
  let format: QuantityFormat;
  if (exponent !== undefined) {
    nano = scaled(digits, Number(exponent.slice(1)) - fraction.length);
    format = 'DecimalExponent';
  } else if (scale !== undefined) {
    nano = scaled(digits * scale, -fraction.length);
    format = 'BinarySI';
  } else {
    nano = scaled(digits, (DECIMAL_SUFFIXES[suffix] ?? 0) - fraction.length);
    format = 'DecimalSI';
  }
  if (nano > MAX_NANO) nano = MAX_NANO;
  // A binary quantity below one would print as nonsense.
  if (format === 'BinarySI' && nano > 0n && nano < NANO) format = 'DecimalSI';
  return { nano: sign === '-' ? -nano : nano, format };
}

/** Parses a quantity that is known to be valid (it came through validation); garbage counts as zero. */
export const quantity = (text: string | number | undefined): Quantity =>
  (text === undefined ? undefined : tryParseQuantity(String(text))) ?? { nano: 0n, format: 'DecimalSI' };

/** `digits × 10^exponent` in nano units, rounded up. */
function scaled(digits: bigint, exponent: number): bigint {
  const power = exponent + 9;
  if (digits === 0n) return 0n;
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}

const ceilDiv = (value: bigint, divisor: bigint): bigint =>
  value > 0n ? (value + divisor - 1n) / divisor : value / divisor;

/** Whole units, rounded up: bytes of memory, counts. */
export const toUnits = (q: Quantity): bigint => ceilDiv(q.nano, NANO);
/** Thousandths, rounded up: CPU. */
export const toMilli = (q: Quantity): number => Number(ceilDiv(q.nano, 1_000_000n));
/** Whole units as a number; beyond 2^53 precision is lost, which no byte count on a node reaches. */
export const toNumber = (q: Quantity): number => Number(toUnits(q));

export const bytesOf = (text: string | undefined): number => toNumber(quantity(text));
export const milliOf = (text: string | undefined): number => toMilli(quantity(text));

export const fromUnits = (units: bigint | number, format: QuantityFormat = 'DecimalSI'): Quantity => ({
  nano: BigInt(units) * NANO,
  format,
});
export const fromMilli = (milli: number, format: QuantityFormat = 'DecimalSI'): Quantity => ({
  nano: BigInt(milli) * 1_000_000n,
  format,
});

export const addQuantities = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano + b.nano,
  format: a.nano === 0n ? b.format : a.format,
});
export const subtractQuantities = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano - b.nano,
  format: a.nano === 0n ? b.format : a.format,
});
export const compareQuantities = (a: Quantity, b: Quantity): number => (a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0);
export const maxQuantity = (a: Quantity, b: Quantity): Quantity => (compareQuantities(a, b) >= 0 ? a : b);

/** Canonical text: the largest suffix that leaves no fraction, in the quantity's own family. */
export function formatQuantity(q: Quantity): string {
  if (q.nano === 0n) return '0';
  const sign = q.nano < 0n ? '-' : '';
  const magnitude = q.nano < 0n ? -q.nano : q.nano;
  if (q.format === 'BinarySI' && magnitude % NANO === 0n && magnitude >= 1024n * NANO) {
    const units = magnitude / NANO;
    let best = ['', 1n] as [string, bigint];
    for (const [suffix, scale] of Object.entries(BINARY_SUFFIXES)) if (units % scale === 0n) best = [suffix, scale];
    return `${sign}${units / best[1]}${best[0]}`;
  }
  let digits = magnitude;
  let exponent = -9;
  while (exponent < 18 && digits % 1000n === 0n) {
    digits /= 1000n;
    exponent += 3;
  }
  if (q.format === 'DecimalExponent') return exponent === 0 ? `${sign}${digits}` : `${sign}${digits}e${exponent}`;
  const suffix = Object.keys(DECIMAL_SUFFIXES).find((s) => DECIMAL_SUFFIXES[s] === exponent) ?? '';
  return `${sign}${digits}${suffix}`;
}

/** Canonical text of user input (`1.5` → `1500m`, `0.5Gi` → `512Mi`). */
export const canonicalQuantity = (text: string): string => formatQuantity(quantity(text));
