// The body of an answer that comes as one of Node's streams.
import type { Readable } from 'node:stream';
import { cutShort, type Body } from './exchange.ts';

export const readableBody = (stream: Readable): Body => ({
  read(sink) {
    if (stream.destroyed) return sink.onError(stream.errored ?? cutShort());
    let isOver = false;
    const fail = (err: Error): void => {
      if (!isOver) sink.onError(err);
      isOver = true;
    };
    stream.on('data', (chunk: Buffer) => sink.onData(chunk));
    stream.once('end', () => {
      isOver = true;
      sink.onEnd();
    });
    stream.once('error', fail);
    // An error is dear to make where nobody would hear of it.
    stream.once('close', () => {
      if (!isOver) fail(cutShort());
    });
  },
  pause: () => void stream.pause(),
  resume: () => void stream.resume(),
  destroy: (reason) => void stream.destroy(reason),
});
