// The end of a connection on which more may still come: the peer can read the last words, but not stay.
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const LINGER_MS = 5000;

/** Ends after `last`; what still comes is thrown away, and a peer that does not leave is cut off. */
export function lingeringEnd(socket: Duplex, last?: Buffer): void {
  if (socket.destroyed) return;
  if (last === undefined) socket.end();
  else socket.end(last);
  socket.resume();
  if (socket instanceof Socket) socket.setTimeout(LINGER_MS, () => socket.destroy());
}
