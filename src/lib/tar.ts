// A writer for ustar archives, enough for images and bundles: files, directories, symbolic links.

export type TarEntry =
  | { readonly path: string; readonly type: 'file'; readonly mode: number; readonly data: Uint8Array }
  | { readonly path: string; readonly type: 'dir'; readonly mode: number }
  | { readonly path: string; readonly type: 'link'; readonly target: string };

const BLOCK = 512;
/** Longer names would need extensions of the format. */
const MAX_NAME_BYTES = 100;

export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    const data = entry.type === 'file' ? Buffer.from(entry.data) : Buffer.alloc(0);
    parts.push(header(entry, data.length), data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void =>
    void block.write(value.toString(8).padStart(length - 1, '0'), at, 'ascii');
  block.write(named(entry.type === 'dir' ? `${entry.path}/` : entry.path), 0, 'utf8');
  octal(entry.type === 'link' ? 0o777 : entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  block.write({ file: '0', dir: '5', link: '2' }[entry.type], 156, 'ascii');
  if (entry.type === 'link') block.write(named(entry.target), 157, 'utf8');
  block.write('ustar\u000000', 257, 'ascii');
  block.fill(' ', 148, 156);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'ascii');
  return block;
}

function named(path: string): string {
  if (Buffer.byteLength(path) > MAX_NAME_BYTES) throw new Error(`path too long for ustar: ${path}`);
  return path;
}
