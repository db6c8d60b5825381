// The client's end of a tunnel: a byte stream carried in binary WebSocket messages.
import { Duplex } from 'node:stream';
import { maskedFrame, type TestWebSocket } from './http-client.ts';

export function tunnelOver(socket: TestWebSocket): Duplex {
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      if (socket.raw(maskedFrame(2, chunk))) done();
      else socket.socket.once('drain', () => done());
    },
    final(done) {
      socket.raw(maskedFrame(8, Buffer.from([3, 232])));
      done();
    },
  });
  for (const frame of socket.frames) if (frame.opcode === 2) stream.push(frame.payload);
  socket.onFrame = (frame) => {
    if (frame.opcode === 2) stream.push(frame.payload);
  };
  void socket.closed.then(() => stream.push(null));
  return stream;
}
