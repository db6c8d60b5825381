// The ways in which the other end of a connection can misbehave. Each peer is a raw TCP server: nothing between it and the
// client makes its answers proper.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Peer = {
  readonly name: string;
  /** Runs when the first bytes of a request have arrived; `stop` aborts when the connection is gone. */
  readonly answer: (socket: Socket) => void;
};

const every = (socket: Socket, ms: number, next: (i: number) => string | Buffer): void => {
  let i = 0;
  const timer = setInterval(() => socket.write(next(i++)), ms);
  socket.on('close', () => clearInterval(timer));
};

/** As fast as the client takes it. */
const flood = (socket: Socket, chunk: Buffer): void => {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
};

const OK = 'HTTP/1.1 200 OK\r\n';
const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

export const MISBEHAVING_PEERS: readonly Peer[] = [
  { name: 'says nothing', answer: () => undefined },
  { name: 'closes at once', answer: (s) => s.end() },
  { name: 'resets at once', answer: (s) => s.resetAndDestroy() },
  { name: 'switches protocols', answer: (s) => s.write(UPGRADE) },
  { name: 'switches protocols and closes', answer: (s) => s.end(UPGRADE) },
  { name: 'answers 101 without an upgrade', answer: (s) => s.write('HTTP/1.1 101 Switching Protocols\r\n\r\n') },
  { name: 'answers 100 without end', answer: (s) => every(s, 5, () => 'HTTP/1.1 100 Continue\r\n\r\n') },
  { name: 'sends half a status line', answer: (s) => s.write('HTTP/1.1 2') },
  { name: 'sends half a header', answer: (s) => s.write(`${OK}Content-Le`) },
  { name: 'sends half a header and closes', answer: (s) => s.end(`${OK}Content-Le`) },
  { name: 'sends half a header and resets', answer: (s) => s.write(`${OK}X: `, () => s.resetAndDestroy()) },
  {
    name: 'sends headers without end',
    answer: (s) => flood(headed(s, OK), Buffer.from('X-Filler: abcdefgh\r\n'.repeat(500))),
  },
  { name: 'sends one header without end', answer: (s) => flood(headed(s, `${OK}X: `), Buffer.alloc(16_384, 'a')) },
  { name: 'drips its header', answer: (s) => every(headed(s, OK), 5, () => 'X') },
  { name: 'sends half a body', answer: (s) => s.write(`${OK}Content-Length: 10\r\n\r\nhalf`) },
  { name: 'sends half a body and closes', answer: (s) => s.end(`${OK}Content-Length: 10\r\n\r\nhalf`) },
  {
    name: 'sends half a body and resets',
    answer: (s) => s.write(`${OK}Content-Length: 10\r\n\r\nhalf`, () => s.resetAndDestroy()),
  },
  { name: 'drips its body', answer: (s) => every(headed(s, `${OK}Content-Length: 99999\r\n\r\n`), 5, () => 'x') },
  { name: 'sends a body without end', answer: (s) => flood(headed(s, `${OK}\r\n`), Buffer.alloc(65_536, 'b')) },
  {
    name: 'sends chunks without end',
    answer: (s) =>
      flood(headed(s, `${OK}Transfer-Encoding: chunked\r\n\r\n`), Buffer.from(`4000\r\n${'c'.repeat(16_384)}\r\n`)),
  },
  { name: 'sends a broken chunk', answer: (s) => s.write(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc`) },
  {
    name: 'sends trailers without end',
    answer: (s) =>
      flood(headed(s, `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n`), Buffer.from('X-T: abcdefgh\r\n'.repeat(500))),
  },
  { name: 'sends two lengths', answer: (s) => s.write(`${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`) },
  { name: 'sends a negative length', answer: (s) => s.write(`${OK}Content-Length: -1\r\n\r\nab`) },
  { name: 'sends an absurd length', answer: (s) => s.write(`${OK}Content-Length: 99999999999999999999\r\n\r\nab`) },
  {
    name: 'sends garbage',
    answer: (s) => s.write(Buffer.from('\x16\x03\x01\x02\x00\x01\x00\xff\x00garbage', 'latin1')),
  },
  { name: 'sends garbage without end', answer: (s) => flood(s, Buffer.alloc(65_536, 0xfe)) },
  { name: 'sends another version', answer: (s) => s.write('HTTP/9.9 200 OK\r\n\r\n') },
  {
    name: 'redirects to itself',
    answer: (s) => s.end('HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n'),
  },
  { name: 'redirects to nonsense', answer: (s) => s.end('HTTP/1.1 302 Found\r\nLocation: http://[::bad/\r\n\r\n') },
  { name: 'answers twice', answer: (s) => s.write(`${OK}Content-Length: 1\r\n\r\na`.repeat(2)) },
];

const headed = (socket: Socket, head: string): Socket => {
  socket.write(head);
  return socket;
};

export type OpenPeer = {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: () => number;
  /** Bytes the kernel took from us, on all connections. */
  readonly sent: () => number;
  readonly asked: Promise<void>;
  readonly close: () => Promise<void>;
};

export async function openPeer(peer: Peer): Promise<OpenPeer> {
  const sockets = new Set<Socket>();
  const all: Socket[] = [];
  const asked = Promise.withResolvers<void>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    all.push(socket);
    socket.on('close', () => sockets.delete(socket));
    // The client going away is what these tests want to see.
    socket.on('error', () => undefined);
    socket.once('data', () => {
      asked.resolve();
      peer.answer(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.size,
    sent: () => all.reduce((sum, s) => sum + s.bytesWritten - s.writableLength, 0),
    asked: asked.promise,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
