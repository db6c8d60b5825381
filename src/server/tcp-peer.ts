// The process at the other end of a TCP connection within this machine, by the tables of the kernel.
import { readdir, readFile, readlink } from 'node:fs/promises';
import type { LocalPeer } from './standalone-access.ts';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
/** The kernel gives its table out a page at a time, and leaves out sockets while others come and go in between. */
const READS = 3;

export async function tcpPeer(address: string, port: number): Promise<LocalPeer | undefined> {
  const found = await findListed(() => Promise.all(TABLES.map(readTable)), address, port);
  if (found === undefined) return undefined;
  // Other users are refused anyway: no need to look for their process.
  if (found.uid !== 0) return { uid: found.uid, contained: false, agent: false };
  const holders = await holdersOf(found.inode);
  const own = await readlink('/proc/self/ns/mnt');
  const spaces = await Promise.all(holders.map((pid) => readlink(`/proc/${pid}/ns/mnt`).catch(() => '')));
  // A socket that nobody seems to hold, or that anybody in a container holds, is not root's own.
  return {
    uid: found.uid,
    contained: spaces.length === 0 || spaces.some((space) => space !== own),
    agent: holders.includes(String(process.pid)),
  };
}

export async function findListed(
  read: () => Promise<readonly string[]>,
  address: string,
  port: number,
): Promise<FoundSocket | undefined> {
  for (let tries = 0; tries < READS; tries++) {
    const found = findSocket((await read()).join('\n'), address, port);
    if (found !== undefined) return found;
  }
  return undefined;
}

// Without IPv6 there is no such table.
const readTable = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

export type FoundSocket = { readonly uid: number; readonly inode: string };

export function findSocket(tables: string, address: string, port: number): FoundSocket | undefined {
  const wanted = new Set(spellings(address).map((a) => `${a}:${port.toString(16).toUpperCase().padStart(4, '0')}`));
  for (const line of tables.split('\n')) {
    const columns = line.trim().split(/\s+/);
    if (wanted.has(columns[1] ?? '')) return { uid: Number(columns[7]), inode: columns[9] ?? '' };
  }
  return undefined;
}

/** As the kernel prints addresses: 32-bit words in host byte order. */
function spellings(address: string): string[] {
  if (address === '::1') return ['00000000000000000000000001000000'];
  const octets = address.replace('::ffff:', '').split('.').map(Number);
  const word = octets.map((o) => o.toString(16).toUpperCase().padStart(2, '0')).reverse();
  return [word.join(''), `0000000000000000FFFF0000${word.join('')}`];
}

/** Processes come and go while they are looked through: those that are gone hold nothing. */
async function holdersOf(inode: string): Promise<string[]> {
  const wanted = `socket:[${inode}]`;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const holds = async (pid: string): Promise<boolean> => {
    const fds = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
    const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    return links.includes(wanted);
  };
  const holding = await Promise.all(pids.map(holds));
  return pids.filter((_, i) => holding[i] === true);
}
