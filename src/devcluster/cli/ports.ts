// Whether addresses and ports can be had on this machine.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The port that was got, 0 taking any; undefined when somebody else has it. */
export const tryPort = (port: number, host = '0.0.0.0'): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : undefined));
    });
  });

/** For datagrams and for streams. */
export async function isFree(host: string, port: number): Promise<boolean> {
  if ((await tryPort(port, host)) === undefined) return false;
  const socket = createSocket('udp4');
  try {
    socket.bind(port, host);
    await once(socket, 'listening');
    return true;
  } catch {
    // Taken, or no address of this machine: both mean no.
    return false;
  } finally {
    socket.close();
  }
}

export type NamedPort = { readonly port: number; readonly what: string };

/** In words: the ports that somebody else has, and what to do. */
export function takenText(taken: readonly NamedPort[], reset: string): string {
  const lines = taken.map(
    ({ port, what }) => `port ${port} of ${what} is taken by another program: see ss -ltnp 'sport = :${port}'`,
  );
  return `${lines.join('\n')}\nStop that program, or choose other ports with: ${reset} (removes the cluster and its pods)`;
}
