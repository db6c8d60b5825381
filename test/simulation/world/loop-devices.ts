// Loop devices of the simulated kernel, as losetup(8) makes them and sysfs shows them. The file under one is open in the
// kernel: it cannot be unmounted.
import type { FileTree } from '../engine/file-tree.ts';
import { fail } from '../engine/inode.ts';

const BLOCK = '/sys/block';
const MOST = 64;

const backingOf = (index: number): string => `${BLOCK}/loop${index}/loop/backing_file`;

/** Whatever loop devices are over, by the number of the device. */
export function loopsOf(files: FileTree): ReadonlyMap<number, string> {
  const loops = new Map<number, string>();
  const { inode } = files.find(BLOCK, 'scandir');
  for (const name of inode?.entries.keys() ?? []) {
    const index = Number(name.replace('loop', ''));
    const file = inode?.entries.get(name)?.entries.get('loop')?.entries.get('backing_file');
    if (file !== undefined) loops.set(index, file.content.toString().trim());
  }
  return loops;
}

export function losetup(files: FileTree, args: readonly string[]): string {
  const [what = '', name = ''] = args;
  if (what === '-f') {
    const { inode, path } = files.find(name, 'open');
    if (inode === undefined) return fail('ENOENT', 'open', name);
    const used = loopsOf(files);
    const free = Array.from({ length: MOST }, (_, i) => i).find((i) => !used.has(i));
    if (free === undefined) return fail('EBUSY', 'ioctl', name);
    attach(files, free, path);
    files.heldByKernel.add(path);
    return '';
  }
  const index = Number(/^\/dev\/loop(\d+)$/.exec(name)?.[1] ?? -1);
  const over = loopsOf(files).get(index);
  if (what !== '-d' || over === undefined) return fail('ENXIO', 'ioctl', name);
  files.unlink(backingOf(index));
  files.rmdir(`${BLOCK}/loop${index}/loop`);
  if (![...loopsOf(files).values()].includes(over)) files.heldByKernel.delete(over);
  return '';
}

function attach(files: FileTree, index: number, path: string): void {
  for (const dir of [`${BLOCK}/loop${index}`, `${BLOCK}/loop${index}/loop`])
    if (files.find(dir, 'mkdir').inode === undefined) files.mkdir(dir, 0o755);
  const { parent, name: file } = files.find(backingOf(index), 'open');
  files.write(files.create(parent, file, 'file', 0o444, 'open'), Buffer.from(`${path}\n`), 'write');
}

/** None is there yet, and there is room for some. */
export function bootLoops(files: FileTree): void {
  files.mkdir(BLOCK, 0o755);
  files.heldByKernel.clear();
}
