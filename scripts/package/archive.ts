// Archives byte for byte the same whenever the content is: tar and ar with fixed owners, modes, times and order.
import { gzipSync } from 'node:zlib';

export type Entry =
  | { readonly path: string; readonly mode: number; readonly data: Buffer }
  | { readonly path: string; readonly link: string }
  | { readonly path: string; readonly directory: true };

const BLOCK = 512;

/** A tar of ustar headers. Parents of files are added; entries are sorted by path. */
export function tar(entries: readonly Entry[], mtimeSeconds: number, prefix = './'): Buffer {
  const all = new Map<string, Entry>(entries.map((entry) => [entry.path, entry]));
  for (const { path } of entries)
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
      const parent = path.slice(0, at);
      if (!all.has(parent)) all.set(parent, { path: parent, directory: true });
    }
  const blocks: Buffer[] = [header(prefix, 0o755, 0, '5', '', mtimeSeconds)];
  for (const path of [...all.keys()].sort()) blocks.push(...entryBlocks(all.get(path), prefix, mtimeSeconds));
  blocks.push(Buffer.alloc(BLOCK * 2));
  return Buffer.concat(blocks);
}

function entryBlocks(entry: Entry | undefined, prefix: string, mtime: number): Buffer[] {
  if (entry === undefined) return [];
  const path = `${prefix}${entry.path}`;
  if ('link' in entry) return [header(path, 0o777, 0, '2', entry.link, mtime)];
  if ('directory' in entry) return [header(`${path}/`, 0o755, 0, '5', '', mtime)];
  const { data, mode } = entry;
  const padding = Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK);
  return [header(path, mode, data.length, '0', '', mtime), data, padding];
}

function header(path: string, mode: number, size: number, type: string, link: string, mtime: number): Buffer {
  if (path.length > 100) throw new Error(`${path} is too long for a tar header`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number): void =>
    void block.write(value.toString(8).padStart(width - 1, '0'), at, 'latin1');
  block.write(path, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(mtime, 136, 12);
  block.fill(' ', 148, 156);
  block.write(type, 156);
  block.write(link, 157);
  block.write('ustar\x0000', 257, 'latin1');
  block.write('root', 265);
  block.write('root', 297);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** A Debian package is an ar of three members. */
export function ar(members: readonly (readonly [name: string, data: Buffer])[], mtimeSeconds: number): Buffer {
  const parts: Buffer[] = [Buffer.from('!<arch>\n')];
  for (const [name, data] of members) {
    const fields = [name.padEnd(16), String(mtimeSeconds).padEnd(12), '0'.padEnd(6), '0'.padEnd(6), '100644'.padEnd(8)];
    parts.push(Buffer.from(`${fields.join('')}${String(data.length).padEnd(10)}\`\n`), data);
    if (data.length % 2 === 1) parts.push(Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}

/** Without a name and a time in its header. Byte 9, the operating system, is set to "unknown". */
export function gzip(data: Buffer, level = 9): Buffer {
  const out = gzipSync(data, { level });
  out[9] = 0xff;
  return out;
}
