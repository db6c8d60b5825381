// Volumes that a CSI driver hands out as devices: staged, a volume is a node in /dev; published, that node is bound over a file.
import type { World } from './world.ts';
import { makeDirs } from './host.ts';

const FOLDER = '/dev/block-sim';
const MAJOR = 8;

export class BlockDevices {
  readonly #world: World;
  /** Numbers by volume: they stay the same. */
  readonly #numbers = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  isStaged(volume: string): boolean {
    return (
      this.#world.files.find('/dev', 'stat').inode?.entries.has('block-sim') === true &&
      this.#node(volume) !== undefined
    );
  }

  /** Where it is bound, by whoever. */
  bindsOf(volume: string): readonly string[] {
    const node = this.isStaged(volume) ? this.#node(volume) : undefined;
    return node === undefined ? [] : this.#world.files.mounts.filter((m) => m.root === node).map((m) => m.target);
  }

  act(name: 'stage' | 'unstage' | 'publish' | 'unpublish', volume: string, target: string): void {
    if (name === 'stage') this.#stage(volume);
    else if (name === 'unstage') this.#unstage(volume);
    else if (name === 'publish') this.#publish(volume, target);
    else this.#unpublish(target);
  }

  #stage(volume: string): void {
    const { files } = this.#world;
    makeDirs(files, FOLDER);
    const { inode, parent, name } = files.find(`${FOLDER}/${volume}`, 'mknod');
    if (inode !== undefined) return;
    const number = this.#numbers.get(volume) ?? this.#numbers.size + 16;
    this.#numbers.set(volume, number);
    files.create(parent, name, 'block', 0o600, 'mknod').rdev = MAJOR * 256 + number;
  }

  #unstage(volume: string): void {
    if (this.isStaged(volume)) this.#world.files.unlink(`${FOLDER}/${volume}`);
  }

  #publish(volume: string, target: string): void {
    const { files } = this.#world;
    if (this.bindsOf(volume).includes(target)) return;
    const { inode, parent, name } = files.find(target, 'open');
    if (inode === undefined) files.create(parent, name, 'file', 0o600, 'open');
    files.bind(`${FOLDER}/${volume}`, target);
  }

  #unpublish(target: string): void {
    const { files } = this.#world;
    if (files.mounts.some((m) => m.target === target)) files.unmount(target);
    if (files.find(target, 'unlink').inode !== undefined) files.unlink(target);
  }

  #node(volume: string) {
    return this.#world.files.find(`${FOLDER}/${volume}`, 'stat').inode;
  }
}
