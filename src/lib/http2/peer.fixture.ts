// The other end of a client's connection, played by hand: frames that the client sent, frames that a test makes up.
import { duplexPair, type Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { ClientConnection, type ConnectionOptions } from './connection.ts';
import { Flag, FrameSplitter, FrameType, PREFACE, settingsFrame, writeFrameHead } from './frames.ts';
import type { HeaderList } from './hpack-decoder.ts';
import type { StreamEvents } from './stream.ts';

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
};

export function frameOf(type: number, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const body = typeof payload === 'string' ? Buffer.from(payload, 'hex') : payload;
  const out = Buffer.alloc(9 + body.length);
  body.copy(out, writeFrameHead(out, 0, body.length, type, flags, stream));
  return out;
}

export const NO_SETTINGS = settingsFrame([]);
/** `:status: 200`. */
export const HEAD = frameOf(FrameType.Headers, Flag.EndHeaders, 1, '88');
export const data = (stream: number, payload: Buffer, flags = 0): Buffer =>
  frameOf(FrameType.Data, flags, stream, payload);
class Peer {
  readonly frames: Frame[] = [];
  /** Called with each frame as it arrives. */
  onFrame: (frame: Frame) => void = () => undefined;
  readonly #side: Duplex;
  #preface = '';

  constructor(side: Duplex) {
    this.#side = side;
    const splitter = new FrameSplitter((type, flags, stream, bytes, from, to) => {
      const frame = { type, flags, stream, payload: Buffer.from(bytes.subarray(from, to)) };
      this.frames.push(frame);
      this.onFrame(frame);
    });
    side.on('error', () => undefined);
    side.on('data', (chunk: Buffer) => {
      const missing = PREFACE.length - this.#preface.length;
      this.#preface += chunk.toString('latin1', 0, missing);
      if (chunk.length > missing) splitter.push(chunk.subarray(Math.max(missing, 0)));
    });
  }

  send(...frames: readonly Buffer[]): void {
    this.#side.write(Buffer.concat(frames));
  }

  of(type: number, stream?: number): Frame[] {
    return this.frames.filter((f) => f.type === type && (stream === undefined || f.stream === stream));
  }

  /** Reads no more. */
  freeze(): void {
    this.#side.pause();
  }

  /** Reads on. */
  thaw(): void {
    this.#side.resume();
  }

  end(): void {
    this.#side.end();
  }
}

/** What a request was told. */
export class Told implements StreamEvents {
  readonly log: string[] = [];
  headers: HeaderList = [];
  trailers: HeaderList = [];
  readonly chunks: Buffer[] = [];
  code = -1;
  error: Error | undefined;

  get body(): Buffer {
    return Buffer.concat(this.chunks);
  }

  get isOver(): boolean {
    return this.log.some((line) => line === 'end' || line === 'lost');
  }

  onHead(status: number, headers: HeaderList): void {
    this.log.push(`head ${status}`);
    this.headers = headers;
  }

  onData(chunk: Buffer): void {
    if (this.log.at(-1) !== 'data') this.log.push('data');
    this.chunks.push(chunk);
  }

  onTrailers(headers: HeaderList): void {
    this.log.push('trailers');
    this.trailers = headers;
  }

  onEnd(): void {
    this.log.push('end');
  }

  onLost(code: number, error: Error | undefined): void {
    this.log.push('lost');
    this.code = code;
    this.error = error;
  }
}

export type Closing = { log: string[]; error: Error | undefined };

export type Played = {
  connection: ClientConnection;
  peer: Peer;
  closing: Closing;
  /** What the client gave its socket; the last of it may not reach a peer. */
  written: readonly Buffer[];
};

export const WINDOWS: ConnectionOptions = { streamWindow: 100_000, connectionWindow: 200_000 };

export function play(options: Partial<ConnectionOptions> = {}): Played {
  const [near, far] = duplexPair();
  const peer = new Peer(far);
  const written: Buffer[] = [];
  const write = near.write.bind(near);
  near.write = (chunk: Buffer) => {
    written.push(chunk);
    return write(chunk);
  };
  const end = near.end.bind(near);
  near.end = (last?: unknown) => {
    if (Buffer.isBuffer(last)) written.push(last);
    return end(last);
  };
  const closing: Closing = { log: [], error: undefined };
  const connection = ClientConnection.on(
    near as unknown as Socket,
    { ...WINDOWS, ...options },
    {
      onReady: () => closing.log.push('ready'),
      onRetired: () => closing.log.push('retired'),
      onClose: (error) => {
        closing.log.push('closed');
        closing.error = error;
      },
    },
  );
  return { connection, peer, closing, written };
}
