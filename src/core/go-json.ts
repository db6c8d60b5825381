// What Go makes of a value, byte for byte, where upstream hashes or stores exactly those bytes. Pure.

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

/** Throws on a text that is no such file, or was cut off or changed. */
export function parseState<E>(text: string): Record<string, E> {
  const { data, checksum } = JSON.parse(text) as { data?: unknown; checksum?: unknown };
  if (typeof data !== 'string' || checksum !== sumOf(data)) throw new Error('checksum does not match');
  return (JSON.parse(data) as { entries?: Record<string, E> }).entries ?? {};
}

const sumOf = (data: string): number => fnv1a32(`(string)${data}`);
