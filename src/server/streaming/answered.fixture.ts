// A client whose stream the runtime answers with something of the test's choice.
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { systemClock } from '../../lib/clock.ts';
import { passAnswer } from './pass-through.ts';
import { dialRuntime } from './runtime-dial.ts';

/** What the client sees, and whether its connection is closed after it. */
export async function answered(answer: string): Promise<{ readonly text: string; readonly closed: boolean }> {
  const { signal } = new AbortController();
  const server = createServer((socket) => void socket.once('data', () => socket.end(answer)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec/token`;
  let text = '';
  const client = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => {
      text += String(chunk);
      done();
    },
  });
  try {
    const reply = await dialRuntime(systemClock, { url, method: 'POST', headers: {} }, signal);
    await passAnswer(systemClock, reply, client, signal);
    return { text, closed: client.writableEnded || client.destroyed };
  } finally {
    client.destroy();
    server.close();
  }
}
