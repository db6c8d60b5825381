// What Go makes of a value, byte for byte, where upstream hashes or stores exactly those bytes. Pure.

/** JSON as Go's encoder escapes it. Key order is the caller's. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export function fnv1a32(text: string): number {
  let hash = FNV_OFFSET;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash >>> 0;
}

/** Upstream's state files: the entries as JSON text, and a sum over that text as Go prints a string. */
export function formatState(entries: object): string {
  const data = goJson({ entries });
  return goJson({ data, checksum: sumOf(data) });
}

/** Throws on a text that is no such file, or was cut off or changed. */
export function parseState<E>(text: string): Record<string, E> {
  const { data, checksum } = JSON.parse(text) as { data?: unknown; checksum?: unknown };
  if (typeof data !== 'string' || checksum !== sumOf(data)) throw new Error('checksum does not match');
  return (JSON.parse(data) as { entries?: Record<string, E> }).entries ?? {};
}

const sumOf = (data: string): number => fnv1a32(`(string)${data}`);
