// What a client sees of a runtime that answers a stream request with something else than a stream.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { after, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { passAnswer } from './pass-through.ts';
import { dialRuntime } from './runtime-dial.ts';

const open: Server[] = [];
after(() => {
  for (const server of open) server.close();
});

/** Everything that is written to the client. */
async function seenBy(answer: string): Promise<string> {
  const server = createServer((socket) => void socket.once('data', () => socket.end(answer)));
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { signal } = new AbortController();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec/token`;
  const reply = await dialRuntime(systemClock, { url, method: 'POST', headers: {} }, signal);
  let text = '';
  const client = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => {
      text += String(chunk);
      done();
    },
  });
  await passAnswer(systemClock, reply, client, signal);
  client.destroy();
  return text;
}

describe('an answer that is no stream', () => {
  it('is passed on', async () => {
    const text = await seenBy('HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nX-A: b\r\n\r\nnope\n');
    assert.equal(text, 'HTTP/1.1 404 Not Found\r\nX-A: b\r\nConnection: close\r\n\r\nnope\n');
  });

  for (const status of [301, 302, 303, 307, 308])
    it(`with status ${status} is refused, without its location`, async () => {
      const text = await seenBy(
        `HTTP/1.1 ${status} Moved\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n`,
      );
      assert.match(text, /^HTTP\/1.1 502 Bad Gateway\r\n/);
      assert.doesNotMatch(text, /elsewhere/i);
    });

  it('that breaks off ends the connection without an answer', async () => {
    assert.equal(await seenBy('HTTP/1.1 500 Oops\r\nContent-Length: 50\r\n\r\nhalf'), '');
  });
});
