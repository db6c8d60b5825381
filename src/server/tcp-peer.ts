// The process at the other end of a TCP connection within this machine, by the tables of the kernel.
import { readdir, readFile, readlink } from 'node:fs/promises';
import type { ConnectionEnds, LocalPeer } from './standalone-access.ts';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
/** The kernel writes its table a page at a time, and may leave out a socket while others come and go in between. */
const READS = 3;
const ESTABLISHED = '01';
/** Of a socket without a descriptor: its process has closed it. */
const NO_INODE = '0';

export async function tcpPeer(ends: ConnectionEnds): Promise<LocalPeer | undefined> {
  const found = await findListed(() => Promise.all(TABLES.map(readTable)), ends);
  if (found === undefined) return undefined;
  // Other users are refused anyway: their process is not looked for.
  if (found.uid !== 0) return { uid: found.uid, contained: false, agent: false };
  const holders = await holdersOf(found.inode);
  const own = await readlink('/proc/self/ns/mnt');
  const spaces = await Promise.all(holders.map((pid) => readlink(`/proc/${pid}/ns/mnt`).catch(() => '')));
  // A socket without a holder, or with a holder in a container, is not root's own.
  return {
    uid: found.uid,
    contained: spaces.length === 0 || spaces.some((space) => space !== own),
    agent: holders.includes(String(process.pid)),
  };
}

export async function findListed(
  read: () => Promise<readonly string[]>,
  ends: ConnectionEnds,
): Promise<ClientSocket | undefined> {
  for (let tries = 0; tries < READS; tries++) {
    const rows = rowsOf((await read()).join('\n'), ends);
    if (rows.length > 0) return clientOf(rows);
  }
  return undefined;
}

// Without IPv6 the second table does not exist.
const readTable = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

export type ClientSocket = { readonly uid: number; readonly inode: string };
type Row = ClientSocket & { readonly state: string };

/**
 * The rows of the client's end. Several connections may share a client port as long as their destinations differ, so the
 * server's end is part of the key.
 */
function rowsOf(tables: string, ends: ConnectionEnds): Row[] {
  const clients = spellings(ends.remoteAddress, ends.remotePort);
  const servers = spellings(ends.localAddress, ends.localPort);
  const wanted = new Set(clients.map((client, i) => `${client} ${servers[i]}`));
  return tables.split('\n').flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    if (!wanted.has(`${columns[1]} ${columns[2]}`)) return [];
    return [{ state: columns[3] ?? '', uid: Number(columns[7]), inode: columns[9] ?? NO_INODE }];
  });
}

/** The one established socket that a process has open. The kernel may list a socket twice while others come and go. */
function clientOf(rows: readonly Row[]): ClientSocket | undefined {
  const open = rows.filter((row) => row.state === ESTABLISHED && row.inode !== NO_INODE);
  const [first] = open;
  if (first === undefined || open.some((row) => row.inode !== first.inode || row.uid !== first.uid)) return undefined;
  return { uid: first.uid, inode: first.inode };
}

/** As the kernel prints addresses, in 32-bit words of host byte order: IPv4, and IPv4 within IPv6; or ::1. */
function spellings(address: string, port: number): string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  if (address === '::1') return [`00000000000000000000000001000000:${hexPort}`];
  const octets = address.replace('::ffff:', '').split('.').map(Number);
  const word = octets.map((o) => o.toString(16).toUpperCase().padStart(2, '0')).reverse();
  return [`${word.join('')}:${hexPort}`, `0000000000000000FFFF0000${word.join('')}:${hexPort}`];
}

/** Processes come and go during the search: those that are gone hold nothing. */
async function holdersOf(inode: string): Promise<string[]> {
  const wanted = `socket:[${inode}]`;
  const holders: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const fds = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
    const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    if (links.includes(wanted)) holders.push(pid);
  }
  return holders;
}
