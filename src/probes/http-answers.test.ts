// Answers as servers write them that follow no book: a shell and netcat, a length counted in characters. And where they are
// looked for by name.
import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { NameLookup } from '../lib/name-lookup.ts';
import { httpProber } from './http-prober.ts';
import type { Answer } from './prober.ts';
import { tcpProber } from './tcp-prober.ts';

const PATIENCE_MS = 30_000;
const { signal } = new AbortController();

/** What a probe makes of these bytes as the answer. */
async function probeOf(bytes: string): Promise<Answer> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const target = { container: { name: 'c' }, containerId: 'id', podIp: '127.0.0.1', timeoutMs: PATIENCE_MS };
  try {
    return await httpProber(systemClock, new NameLookup(), 'test')({ ...target, probe: { httpGet: { port } } }, signal);
  } finally {
    server.close();
  }
}

const OK = 'HTTP/1.1 200 OK';

describe('an HTTP probe takes', () => {
  for (const [what, bytes] of [
    ['lines without a carriage return', `${OK}\n\nhello`],
    ['headers without a carriage return', `${OK}\nContent-Type: text/plain\nContent-Length: 5\n\nhello`],
    ['both ends of lines in one head', `${OK}\r\nContent-Type: text/plain\n\nhello`],
    ['no headers, by HTTP/1.0', 'HTTP/1.0 200 OK\n\nhello'],
    ['no word for the status', 'HTTP/1.1 200\r\n\r\nhello'],
    [
      'a length beside chunks',
      `${OK}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ],
    ['a header that goes on in the next line', `${OK}\r\nX-A: a\r\n b\r\nContent-Length: 5\r\n\r\nhello`],
    ['more than the length', `${OK}\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello, world`],
  ] as const)
    it(what, async () => assert.deepEqual(await probeOf(bytes), { result: 'success', output: 'hello' }));

  it('a body where there can be none', async () =>
    assert.equal((await probeOf('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello')).result, 'success'));

  it('nothing that is no HTTP', async () => assert.equal((await probeOf('hello\n\n')).result, 'failure'));
});

describe('a name', () => {
  const addresses = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ];
  const never = (): Promise<never> => new Promise(() => undefined);
  const both = new NameLookup({ search: () => Promise.resolve(addresses), system: never });
  const target = { container: { name: 'c' }, containerId: 'id', podIp: '192.0.2.1', timeoutMs: PATIENCE_MS };
  const host = 'both.test';

  for (const [what, prober, probe] of [
    ['HTTP', httpProber(systemClock, both, 'test'), (port: number) => ({ httpGet: { host, port } })],
    ['TCP', tcpProber(systemClock, both), (port: number) => ({ tcpSocket: { host, port } })],
  ] as const)
    it(`of both kinds of address is probed by ${what} where somebody listens`, async () => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.end(`${OK}\r\n\r\n`));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      try {
        const answer = await prober({ ...target, probe: probe((server.address() as AddressInfo).port) }, signal);
        assert.equal(answer.result, 'success', answer.output);
      } finally {
        server.close();
      }
    });

  it('that is not answered for fails its probe in time', async () => {
    const silent = new NameLookup({ search: never, system: never });
    const asked = { ...target, timeoutMs: 50 };
    const tcp = await tcpProber(systemClock, silent)({ ...asked, probe: { tcpSocket: { host, port: 80 } } }, signal);
    assert.deepEqual(tcp, { result: 'failure', output: 'dial tcp both.test:80: i/o timeout' });
    const http = await httpProber(
      systemClock,
      silent,
      't',
    )({ ...asked, probe: { httpGet: { host, port: 80 } } }, signal);
    assert.match(http.output, /context deadline exceeded/);
  });
});
