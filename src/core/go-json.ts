// What Go makes of a value, byte for byte, where upstream hashes or stores exactly those bytes. Pure.
import { KubeletError } from '../lib/errors.ts';

/** JSON as Go's encoder escapes it. Key order is the caller's. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export function fnv1a32(text: string): number {
  let hash = FNV_OFFSET;
  const bytes = Buffer.from(text);
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes.readUInt8(i), FNV_PRIME);
  return hash >>> 0;
}

/** Upstream's state files: the entries (here by name, as JSON) as one text, and a sum over it as Go prints a string. */
export function formatState(entries: ReadonlyMap<string, string>): string {
  const list = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, json]) => `${goJson(name)}:${json}`);
  const data = `{"entries":{${list.join(',')}}}`;
  return goJson({ data, checksum: sumOf(data) });
}

/** The object of a state file. Fails with Go's words for the commonest damage, a file that was cut off. */
export function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (err) {
    const isCut = text.trim() === '' || /end of JSON|Unterminated string/.test(String(err));
    throw new KubeletError('invalid', isCut ? 'unexpected end of JSON input' : 'the content is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new KubeletError('invalid', 'the content is not a JSON object');
  return value as Record<string, unknown>;
}

/** Throws on a text that is no such file, or was cut off or changed. */
export function parseState<E>(text: string): Record<string, E> {
  const { data, checksum } = parseObject(text);
  if (typeof data !== 'string' || checksum !== sumOf(data)) throw new Error('checksum does not match');
  return (JSON.parse(data) as { entries?: Record<string, E> }).entries ?? {};
}

const sumOf = (data: string): number => fnv1a32(`(string)${data}`);
