// `vol_data.json`: what is needed to take a volume down again, written before the driver is called. Upstream's file: one
// line, keys sorted.
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic-file.ts';
import { errnoOf, KubeletError, messageOf } from '../../lib/errors.ts';

export type VolumeData = {
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly attachmentID?: string;
  readonly nodeName?: string;
  readonly specVolID?: string;
  readonly volumeLifecycleMode?: string;
  readonly seLinuxMountContext?: string;
};

const FILE = 'vol_data.json';
const MODE = 0o644;

const volumeDataText = (data: VolumeData): string =>
  `${JSON.stringify(Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1))))}\n`;

/** Leaves a file alone that says the same already. */
export async function writeVolumeData(dir: string, data: VolumeData): Promise<void> {
  const text = volumeDataText(data);
  const path = join(dir, FILE);
  if ((await readText(path)) !== text) await writeFileAtomic(path, text, MODE);
}

/** Undefined when there is no file; `invalid` for one that cannot be used. */
export async function readVolumeData(dir: string): Promise<VolumeData | undefined> {
  const text = await readText(join(dir, FILE));
  if (text === undefined) return undefined;
  try {
    const data: unknown = JSON.parse(text);
    if (isVolumeData(data)) return data;
  } catch (err) {
    throw damaged(dir, messageOf(err));
  }
  throw damaged(dir, 'driverName or volumeHandle is missing');
}

/** Also what is left of a write that was cut off. */
export async function removeVolumeData(dir: string): Promise<void> {
  const names = await namesIn(dir);
  const own = names.filter((name) => name === FILE || (name.startsWith(`${FILE}.`) && name.endsWith('.tmp')));
  await Promise.all(own.map((name) => rm(join(dir, name), { force: true })));
}

const damaged = (dir: string, why: string): KubeletError =>
  new KubeletError('invalid', `failed to load volume data file [${join(dir, FILE)}]: ${why}`);

function isVolumeData(data: unknown): data is VolumeData {
  if (typeof data !== 'object' || data === null) return false;
  const { driverName, volumeHandle } = data as Record<string, unknown>;
  const hasNames = typeof driverName === 'string' && driverName !== '' && typeof volumeHandle === 'string';
  return hasNames && Object.values(data).every((value) => typeof value === 'string');
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return undefined;
    throw err;
  }
}

/** The names in a directory; none when it is not there. */
export async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}
