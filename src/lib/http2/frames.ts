// HTTP/2 frames (RFC 9113, sections 4 and 6) as bytes: cutting what comes into frames, and making those that are sent.
// Pure: no socket, no state but that of a frame that has come in part.
import { ErrorCode, ProtocolError } from './protocol-error.ts';

export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  ResetStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  GoAway: 7,
  WindowUpdate: 8,
  Continuation: 9,
} as const;

export const Flag = { EndStream: 0x1, Ack: 0x1, EndHeaders: 0x4, Padded: 0x8, Priority: 0x20 } as const;

export const Setting = {
  HeaderTableSize: 1,
  EnablePush: 2,
  MaxConcurrentStreams: 3,
  InitialWindowSize: 4,
  MaxFrameSize: 5,
} as const;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const FRAME_HEAD_BYTES = 9;
/** The least that either side may announce, and what we take: larger frames would only be held longer. */
export const DEFAULT_MAX_FRAME = 16_384;
export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 2 ** 31 - 1;
export const MAX_STREAM_ID = 2 ** 31 - 1;

/** The payload is `bytes` from `from` up to `to`; it is only valid during the call. */
export type OnFrame = (type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number) => void;

/** Cuts a byte stream into frames, however it comes in pieces. */
export class FrameSplitter {
  readonly #onFrame: OnFrame;
  /** A frame of which the beginning has come. */
  #held = Buffer.alloc(0);
  #heldBytes = 0;

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame;
  }

  push(chunk: Buffer): void {
    let at = this.#heldBytes === 0 ? 0 : this.#complete(chunk);
    while (chunk.length - at >= FRAME_HEAD_BYTES) {
      const end = at + FRAME_HEAD_BYTES + payloadBytes(chunk, at);
      if (end > chunk.length) break;
      this.#deliver(chunk, at, end);
      at = end;
    }
    if (at < chunk.length) this.#hold(chunk, at);
  }

  /** Adds to the frame that is held; says how much of the chunk it took. */
  #complete(chunk: Buffer): number {
    let at = 0;
    if (this.#heldBytes < FRAME_HEAD_BYTES) {
      at = this.#take(chunk, 0, FRAME_HEAD_BYTES);
      if (this.#heldBytes < FRAME_HEAD_BYTES) return at;
      const whole = Buffer.allocUnsafe(FRAME_HEAD_BYTES + payloadBytes(this.#held, 0));
      this.#held.copy(whole, 0, 0, FRAME_HEAD_BYTES);
      this.#held = whole;
    }
    at += this.#take(chunk, at, this.#held.length);
    if (this.#heldBytes < this.#held.length) return at;
    const frame = this.#held;
    this.#heldBytes = 0;
    this.#deliver(frame, 0, frame.length);
    return at;
  }

  #take(chunk: Buffer, from: number, upTo: number): number {
    const taken = chunk.copy(this.#held, this.#heldBytes, from, from + upTo - this.#heldBytes);
    this.#heldBytes += taken;
    return taken;
  }

  #hold(chunk: Buffer, from: number): void {
    const bytes = chunk.length - from;
    const known = bytes >= FRAME_HEAD_BYTES ? payloadBytes(chunk, from) : 0;
    this.#held = Buffer.allocUnsafe(FRAME_HEAD_BYTES + known);
    this.#heldBytes = chunk.copy(this.#held, 0, from);
  }

  #deliver(bytes: Buffer, from: number, to: number): void {
    const stream = bytes.readUInt32BE(from + 5) & 0x7fffffff;
    this.#onFrame(bytes[from + 3] as number, bytes[from + 4] as number, stream, bytes, from + FRAME_HEAD_BYTES, to);
  }
}

function payloadBytes(bytes: Buffer, at: number): number {
  const length = bytes.readUIntBE(at, 3);
  if (length > DEFAULT_MAX_FRAME)
    throw new ProtocolError(ErrorCode.FrameSize, `a frame of ${length} bytes, or no HTTP/2 at all`);
  return length;
}

/** Writes the nine bytes before a payload; says where the payload begins. */
export function writeFrameHead(
  out: Buffer,
  at: number,
  payload: number,
  type: number,
  flags: number,
  stream: number,
): number {
  out.writeUIntBE(payload, at, 3);
  out[at + 3] = type;
  out[at + 4] = flags;
  out.writeUInt32BE(stream, at + 5);
  return at + FRAME_HEAD_BYTES;
}

function frame(type: number, flags: number, stream: number, payload: number): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEAD_BYTES + payload);
  writeFrameHead(out, 0, payload, type, flags, stream);
  return out;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const out = frame(FrameType.Settings, 0, 0, settings.length * 6);
  settings.forEach(([id, value], i) => {
    out.writeUInt16BE(id, FRAME_HEAD_BYTES + i * 6);
    out.writeUInt32BE(value, FRAME_HEAD_BYTES + i * 6 + 2);
  });
  return out;
}

export const SETTINGS_ACK = frame(FrameType.Settings, Flag.Ack, 0, 0);

export function windowUpdateFrame(stream: number, increment: number): Buffer {
  const out = frame(FrameType.WindowUpdate, 0, stream, 4);
  out.writeUInt32BE(increment, FRAME_HEAD_BYTES);
  return out;
}

export function resetFrame(stream: number, code: number): Buffer {
  const out = frame(FrameType.ResetStream, 0, stream, 4);
  out.writeUInt32BE(code, FRAME_HEAD_BYTES);
  return out;
}

/** `data` are eight bytes. */
export function pingFrame(isAnswer: boolean, data: Buffer): Buffer {
  const out = frame(FrameType.Ping, isAnswer ? Flag.Ack : 0, 0, 8);
  data.copy(out, FRAME_HEAD_BYTES, 0, 8);
  return out;
}

/** A client names no stream of the server: there are none. */
export function goAwayFrame(code: number): Buffer {
  const out = frame(FrameType.GoAway, 0, 0, 8);
  out.writeUInt32BE(0, FRAME_HEAD_BYTES);
  out.writeUInt32BE(code, FRAME_HEAD_BYTES + 4);
  return out;
}
