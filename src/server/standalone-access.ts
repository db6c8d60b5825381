// Access to the server of a node without an API server: holders of a client certificate, and root of this machine over the
// loopback interface. Nobody else, unless the configuration says AlwaysAllow.
import type { Socket } from 'node:net';
import { Semaphore } from '../lib/semaphore.ts';
import type { Authenticator, Authorizer } from './guard.ts';
import { tcpPeer } from './tcp-peer.ts';
import { ANONYMOUS, type UserInfo } from './user.ts';

const LOCAL_ROOT: UserInfo = { username: 'system:local-root', groups: ['system:masters'] };
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;

/** The process at the other end of a local connection. */
export type LocalPeer = {
  readonly uid: number;
  /** In a mount namespace of its own, as containers are: root in there is not root of this machine. */
  readonly contained: boolean;
  /** This very process: a probe or hook that a container sent here. */
  readonly agent: boolean;
};
/** Addresses and ports of an accepted connection: `local` is the server's end. */
export type ConnectionEnds = {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
};
export type PeerOf = (ends: ConnectionEnds) => Promise<LocalPeer | undefined>;

const NEVER = new AbortController().signal;

/**
 * Identifies once per connection: its other end does not change. One at a time, because every user of the machine can connect
 * and the tables are read on the threads of all files.
 */
export function localRoot(peerOf: PeerOf = tcpPeer): Authenticator {
  const known = new WeakMap<Socket, Promise<UserInfo | undefined>>();
  const turns = new Semaphore(1);
  const identify = async (socket: Socket): Promise<UserInfo | undefined> => {
    const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
    if (!LOOPBACK.test(remoteAddress) || !LOOPBACK.test(localAddress)) return undefined;
    const peer = await peerOf({ remoteAddress, remotePort, localAddress, localPort });
    return peer?.uid === 0 && !peer.contained && !peer.agent ? LOCAL_ROOT : undefined;
  };
  return ({ socket }) => {
    const before = known.get(socket);
    if (before !== undefined) return before;
    const user = turns.run(NEVER, () => identify(socket));
    known.set(socket, user);
    return user;
  };
}

/** Everybody who could show who they are; there is no finer rule without an API server. */
export const knownUsersOnly: Authorizer = {
  authorize: ({ user }) => Promise.resolve({ allowed: user.username !== ANONYMOUS.username }),
};

export const everybody: Authorizer = { authorize: () => Promise.resolve({ allowed: true }) };
