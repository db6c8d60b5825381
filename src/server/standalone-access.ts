// Who may use the server of a node without an API server, where nobody can be asked: holders of a client certificate,
// and root of this very machine over the loopback interface. Nobody else, unless the configuration says AlwaysAllow.
import type { Socket } from 'node:net';
import type { Authenticator, Authorizer } from './guard.ts';
import { tcpPeer } from './tcp-peer.ts';
import { ANONYMOUS, type UserInfo } from './user.ts';

const LOCAL_ROOT: UserInfo = { username: 'system:local-root', groups: ['system:masters'] };
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;

/** Who is at the other end of a local connection. */
export type LocalPeer = {
  readonly uid: number;
  /** In a mount namespace of its own, as containers are: root in there is not root of this machine. */
  readonly contained: boolean;
  /** This very process: a probe or hook that a container sent here. */
  readonly agent: boolean;
};
export type PeerOf = (address: string, port: number) => Promise<LocalPeer | undefined>;

/** Asked once per connection: its other end does not change. */
export function localRoot(peerOf: PeerOf = tcpPeer): Authenticator {
  const known = new WeakMap<Socket, Promise<UserInfo | undefined>>();
  const identify = async ({ remoteAddress = '', remotePort = 0 }: Socket): Promise<UserInfo | undefined> => {
    if (!LOOPBACK.test(remoteAddress)) return undefined;
    const peer = await peerOf(remoteAddress, remotePort);
    return peer?.uid === 0 && !peer.contained && !peer.agent ? LOCAL_ROOT : undefined;
  };
  return ({ socket }) => {
    const before = known.get(socket);
    if (before !== undefined) return before;
    const user = identify(socket);
    known.set(socket, user);
    return user;
  };
}

/** Everybody who could show who they are; there is no finer rule without an API server. */
export const knownUsersOnly: Authorizer = {
  authorize: ({ user }) => Promise.resolve({ allowed: user.username !== ANONYMOUS.username }),
};

export const everybody: Authorizer = { authorize: () => Promise.resolve({ allowed: true }) };
