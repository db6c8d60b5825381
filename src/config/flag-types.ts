// The kinds of flag and how each reads its value. Maps and lists replace what was there on their first occurrence and
// add to it on every further one.
import { isIP } from 'node:net';
import { formatDurationMs, tryParseDuration } from '../core/duration.ts';
import { canonicalQuantity, tryParseQuantity } from '../core/quantity.ts';
import { KubeletError } from '../lib/errors.ts';
import { parseTaint } from '../core/taints.ts';
import { define } from './decode.ts';

type ScalarType = 'bool' | 'string' | 'int' | 'int32' | 'int64' | 'duration' | 'ip' | 'quantity' | 'level' | 'version';

/** What was given before is added to. */
type CollectionType =
  | 'strings'
  | 'mapStringString'
  /** One pair per occurrence, commas belong to the value. */
  | 'mapStringStringNoSplit'
  | 'mapStringBool'
  /** `k=v`, and `k` alone for an empty value. */
  | 'labels'
  /** `signal<quantity` */
  | 'langleMap'
  /** `Header:value`, keys may repeat. */
  | 'colonMultimap'
  | 'taints'
  | 'reservedMemory'
  | 'vmodule';

export type FlagType = ScalarType | CollectionType;

export type FlagGroup = 'Kubelet' | 'Configuration' | 'Logging' | 'cAdvisor' | 'Own' | 'Misc';

export type FlagDef = {
  readonly name: string;
  readonly shorthand?: string;
  readonly type: FlagType;
  readonly default: unknown;
  readonly group: FlagGroup;
  readonly help: string;
  readonly deprecated?: string;
  /** The dotted wire name of the configuration field this flag sets. */
  readonly field?: string;
};

const bad = (why: string): never => {
  throw new KubeletError('invalid', why);
};

/** Whole numbers in the notations of Go's base-0 parsing: decimal, 0x, 0o or 0, 0b, with underscores. */
function whole(text: string, bits: 32 | 64, unsigned = false): number {
  if (!/^[+-]?(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO]?(_?[0-7])+|0|[1-9](_?[0-9])*)$/.test(text))
    bad(`parsing ${JSON.stringify(text)}: invalid syntax`);
  const digits = text.replace(/^[+-]/, '').replaceAll('_', '');
  const magnitude = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase());
  const value = text.startsWith('-') ? -magnitude : magnitude;
  const max = unsigned ? 2n ** BigInt(bits) : 2n ** BigInt(bits - 1);
  if (value >= max || value < (unsigned ? 0n : -max)) bad(`parsing ${JSON.stringify(text)}: value out of range`);
  return Number(value);
}

function parseBool(text: string): boolean {
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) return true;
  if (/^(0|f|F|FALSE|false|False)$/.test(text)) return false;
  return bad(`parsing ${JSON.stringify(text)}: invalid syntax`);
}

/** Splits one line of comma-separated values with the quoting rules of CSV. */
function csv(text: string): string[] {
  if (text === '') return [];
  const out: string[] = [];
  let rest = text;
  for (;;) {
    const quoted = /^"((?:[^"]|"")*)"(?=,|$)/.exec(rest);
    const plain = quoted ?? /^([^,"]*)(?=,|$)/.exec(rest);
    if (plain === null) return bad(`parse error on ${JSON.stringify(text)}: bare or unbalanced quote`);
    out.push((plain[1] ?? '').replaceAll('""', '"'));
    if (plain[0].length === rest.length) return out;
    rest = rest.slice(plain[0].length + 1);
  }
}

type Pair = readonly [string, string];

/** `k=v` parts, cut at the first separator. */
function pairs(text: string, separator: string, what: string): Pair[] {
  const out: Pair[] = [];
  for (const part of text.split(',')) {
    if (part === '') continue;
    const at = part.indexOf(separator);
    if (at < 0) bad(`malformed pair, expect ${what}`);
    out.push([part.slice(0, at).trim(), part.slice(at + separator.length).trim()]);
  }
  return out;
}

function record<V>(entries: Iterable<readonly [string, V]>, before: unknown): Record<string, V> {
  const out: Record<string, V> = { ...(before as Record<string, V> | undefined) };
  for (const [key, value] of entries) define(out, key, value);
  return out;
}

function headers(text: string, before: unknown): Record<string, readonly string[]> {
  const out = record<readonly string[]>([], before);
  for (const [key, value] of pairs(text, ':', 'string:string')) define(out, key, [...(out[key] ?? []), value]);
  return out;
}

type ReservedMemory = { numaNode: number; limits: Record<string, string> };

/** Without a value it is as if the flag had not been given. */
function reservedMemory(text: string, before: unknown): readonly ReservedMemory[] | undefined {
  if (text === '') return before as readonly ReservedMemory[] | undefined;
  const out = [...((before as ReservedMemory[] | undefined) ?? [])];
  for (const entry of text.split(';')) {
    const [node = '', ...tail] = entry.split(':');
    if (tail.length !== 1 || node === '')
      bad(
        `the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${entry}`,
      );
    const numaNode = whole(node, 32);
    if (numaNode < 0) bad(`failed to convert the NUMA node ID "${node}": must not be negative`);
    const limits: Record<string, string> = {};
    for (const [type, amount] of pairs(tail[0] ?? '', '=', 'type=quantity')) {
      const parsed = tryParseQuantity(amount);
      if (parsed === undefined) bad(`failed to parse the quantity ${JSON.stringify(amount)} of ${type}`);
      if (type !== 'memory' && !type.startsWith('hugepages-'))
        bad(`memory type conversion error, unknown type: "${type}"`);
      define(limits, type, canonicalQuantity(amount));
    }
    out.push({ numaNode, limits });
  }
  return out;
}

function vmodule(text: string, before: unknown): readonly { filePattern: string; verbosity: number }[] {
  const out = [...((before as { filePattern: string; verbosity: number }[] | undefined) ?? [])];
  for (const part of text.split(',')) {
    if (part === '') continue;
    const [pattern = '', level = '', ...more] = part.split('=');
    if (pattern === '' || level === '' || more.length > 0)
      bad(`${JSON.stringify(part)} does not have the pattern=N format`);
    out.push({ filePattern: pattern, verbosity: whole(level, 32, true) });
  }
  return out;
}

function durationOf(text: string): number {
  const nanos = tryParseDuration(text);
  return nanos === undefined ? bad(`time: invalid duration ${JSON.stringify(text)}`) : nanos / 1e6;
}

type Readers = { readonly [K in ScalarType]: (text: string) => unknown } & {
  readonly [K in CollectionType]: (text: string, before: unknown) => unknown;
};

const READERS: Readers = {
  bool: parseBool,
  string: (text) => text,
  int: (text) => whole(text, 64),
  int64: (text) => whole(text, 64),
  int32: (text) => whole(text, 32),
  level: (text) => whole(text, 32, true),
  duration: durationOf,
  ip: (text) =>
    text === '' || isIP(text.trim()) !== 0 ? text.trim() : bad(`failed to parse IP: ${JSON.stringify(text)}`),
  quantity: (text) =>
    tryParseQuantity(text) === undefined
      ? bad(`${JSON.stringify(text)} is no quantity such as 64Ki`)
      : canonicalQuantity(text),
  version: (text) => (text === 'raw' ? 'raw' : String(parseBool(text))),
  strings: (text, before) => [...((before as string[] | undefined) ?? []), ...csv(text)],
  mapStringString: (text, before) => record(pairs(text, '=', 'string=string'), before),
  mapStringStringNoSplit: (text, before) => record([onePair(text)], before),
  mapStringBool: (text, before) =>
    record(
      pairs(text, '=', 'string=bool').map(([k, v]) => [k, boolOf(k, v)] as const),
      before,
    ),
  labels: (text, before) => record(labelPairs(text), before),
  langleMap: (text, before) => record(pairs(text, '<', 'string<string'), before),
  colonMultimap: headers,
  taints: taintList,
  reservedMemory,
  vmodule,
};

/** The in-process value after one more occurrence; `before` is undefined on the first. Undefined: it says nothing. */
export const readFlag = (type: FlagType, text: string, before: unknown): unknown => READERS[type](text, before);

function onePair(text: string): Pair {
  const at = text.indexOf('=');
  if (at < 0) bad('malformed pair, expect string=string');
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

const labelPairs = (text: string): Pair[] =>
  text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => (part.includes('=') ? onePair(part) : [part.trim(), '']));

function boolOf(key: string, value: string): boolean {
  try {
    return parseBool(value);
  } catch {
    // The parser's own words would not say which of the pairs is wrong.
    return bad(`invalid value of ${key}: ${value}, err: parsing ${JSON.stringify(value)}: invalid syntax`);
  }
}

/** Of a flag that is given twice the last one counts. Taints to be taken away (`key:Effect-`) are none to register with. */
function taintList(text: string): readonly unknown[] {
  const found = new Map<string, object>();
  for (const part of text === '' ? [] : text.split(',')) {
    const isRemoval = part.endsWith('-');
    const taint = parseTaint(isRemoval ? part.slice(0, -1) : part);
    if (typeof taint === 'string') return bad(taint);
    if (isRemoval) continue;
    const { key, value = '', effect } = taint;
    const id = `${key}:${effect}`;
    if (found.has(id)) bad(`duplicated taints with the same key and effect: {${key} ${value} ${effect} <nil>}`);
    found.set(id, { key, value, effect, timeAdded: undefined });
  }
  return [...found.values()];
}

/** A value as help and /flagz show it. */
export function printFlag(type: FlagType, value: unknown): string {
  switch (type) {
    case 'duration':
      return formatDurationMs(value as number);
    case 'strings':
      return `[${(value as string[]).join(',')}]`;
    case 'mapStringString':
    case 'mapStringStringNoSplit':
    case 'mapStringBool':
    case 'labels':
      return sortedPairs(value, '=');
    case 'langleMap':
      return sortedPairs(value, '<');
    case 'colonMultimap':
      return Object.entries(value as Record<string, string[]>)
        .flatMap(([k, list]) => list.map((v) => `${k}:${v}`))
        .sort()
        .join(',');
    case 'taints':
      return (value as { key: string; value: string; effect: string }[])
        .map((t) => `${t.key}=${t.value}:${t.effect}`)
        .join(',');
    case 'reservedMemory':
      return (value as ReservedMemory[]).map((r) => `${r.numaNode}:${sortedPairs(r.limits, '=')}`).join(';');
    case 'vmodule':
      return (value as { filePattern: string; verbosity: number }[])
        .map((v) => `${v.filePattern}=${v.verbosity}`)
        .join(',');
    default:
      return String(value);
  }
}

const sortedPairs = (value: unknown, separator: string): string =>
  Object.entries(value as Record<string, unknown>)
    .map(([k, v]) => `${k}${separator}${String(v)}`)
    .sort()
    .join(',');
