// Who may use the server of a node without an API server, where nobody can be asked: holders of a client certificate,
// and root of this very machine over the loopback interface. Nobody else, unless the configuration says AlwaysAllow.
import { readFile } from 'node:fs/promises';
import type { Authenticator, Authorizer } from './guard.ts';
import { ANONYMOUS } from './user.ts';

const LOCAL_ROOT = { username: 'system:local-root', groups: ['system:masters'] };
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;

/** The user id a local TCP connection belongs to, by the address and port of its far end. */
export type OwnerOf = (address: string, port: number) => Promise<number | undefined>;

export const localRoot =
  (ownerOf: OwnerOf = tcpOwner): Authenticator =>
  async ({ socket }) => {
    const { remoteAddress = '', remotePort = 0 } = socket;
    if (!LOOPBACK.test(remoteAddress)) return undefined;
    return (await ownerOf(remoteAddress, remotePort)) === 0 ? LOCAL_ROOT : undefined;
  };

/** Everybody who could show who they are; there is no finer rule without an API server. */
export const knownUsersOnly: Authorizer = {
  authorize: ({ user }) => Promise.resolve({ allowed: user.username !== ANONYMOUS.username }),
};

export const everybody: Authorizer = { authorize: () => Promise.resolve({ allowed: true }) };

async function tcpOwner(address: string, port: number): Promise<number | undefined> {
  const [ipv4, ipv6] = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readTable));
  return findOwner(`${ipv4 ?? ''}\n${ipv6 ?? ''}`, address, port);
}

// Without IPv6 there is no such table.
const readTable = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

export function findOwner(tables: string, address: string, port: number): number | undefined {
  const wanted = new Set(spellings(address).map((a) => `${a}:${port.toString(16).toUpperCase().padStart(4, '0')}`));
  for (const line of tables.split('\n')) {
    const columns = line.trim().split(/\s+/);
    if (wanted.has(columns[1] ?? '')) return Number(columns[7]);
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
