// Ports for servers that are told where to listen. Below the range that the kernel gives to connections, or one of those
// could take a port between the look and the use.
import { createServer } from 'node:net';

const FIRST = 20_000;
const LAST = 32_000;
let next = FIRST + ((process.pid * 10) % (LAST - FIRST));

/** Free at this moment, and not given to anybody else in this process. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = next === LAST ? FIRST : next + 1;
    if (await isFree(port)) return port;
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
