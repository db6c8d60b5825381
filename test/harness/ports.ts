// Ports for servers that are told where to listen, or that come back to where they were. Below the range that the kernel
// gives to connections, or one of those could take a port between the look and the use, or while its server is away.
import { createServer } from 'node:net';

const FIRST = 20_000;
const LAST = 32_000;
let next = FIRST + ((process.pid * 10) % (LAST - FIRST));

/** Free at this moment, and given to nobody else while this process lives. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = next === LAST ? FIRST : next + 1;
    if ((await reserved(port)) && (await isFree(port))) return port;
  }
}

/** Test files run side by side: whoever has the abstract socket of this name has the port. */
const reserved = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const mark = createServer().unref();
    mark.once('error', () => resolve(false));
    mark.listen({ path: `\0kts-port-${port}` }, () => resolve(true));
  });

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
