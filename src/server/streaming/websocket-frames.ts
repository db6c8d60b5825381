// WebSocket frames (RFC 6455) as the server side reads and writes them. Payloads are handed on as they arrive, so a huge
// message costs no memory. Pure.
import { createHash } from 'node:crypto';
import { messageOf } from '../../lib/errors.ts';

export const Opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export type FrameEvent =
  /** A piece of a message; `start` on its first piece, `end` on its last. */
  | { readonly kind: 'data'; readonly payload: Buffer; readonly start: boolean; readonly end: boolean }
  | { readonly kind: 'ping' | 'pong'; readonly payload: Buffer }
  | { readonly kind: 'close'; readonly code: number };

/** The peer broke the protocol; `code` is what to close the connection with. */
export class WebSocketError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const PROTOCOL_ERROR = 1002;
const NO_UTF8 = 1007;
/** What a close frame without a code means; it is never sent. */
export const NO_STATUS = 1005;
const MAX_CONTROL_BYTES = 125;
const fail = (message: string): never => {
  throw new WebSocketError(PROTOCOL_ERROR, message);
};

type Head = { opcode: number; fin: boolean; mask: Buffer; length: number; done: number };

export class FrameDecoder {
  #pending: Buffer = Buffer.alloc(0);
  #head: Head | undefined;
  /** Inside a message of several frames. */
  #inMessage = false;
  #started = false;
  /** Checks the message where it is text. */
  #text: TextDecoder | undefined;

  *push(chunk: Buffer): Generator<FrameEvent, void, undefined> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const head = (this.#head ??= this.#readHead());
      const event = head && this.#readPayload(head);
      if (event === undefined) return;
      yield event;
    }
  }

  #readHead(): Head | undefined {
    const bytes = this.#pending;
    const [first, second] = bytes;
    if (first === undefined || second === undefined) return undefined;
    const opcode = first & 0x0f;
    const fin = (first & 0x80) !== 0;
    const short = second & 0x7f;
    const at = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0);
    this.#check(first, second, opcode, fin, short);
    if (bytes.length < at + 4) return undefined;
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? longLength(bytes) : short;
    this.#pending = bytes.subarray(at + 4);
    return { opcode, fin, mask: bytes.subarray(at, at + 4), length, done: 0 };
  }

  #check(first: number, second: number, opcode: number, fin: boolean, short: number): void {
    if ((first & 0x70) !== 0) fail('reserved bits are set');
    if ((second & 0x80) === 0) fail('a client must mask its frames');
    if (opcode >= 8) {
      if (opcode > Opcode.pong) fail('unknown opcode');
      if (!fin || short > MAX_CONTROL_BYTES) fail('control frame too long or in parts');
    } else if (opcode > Opcode.binary) fail('unknown opcode');
    else if ((opcode === Opcode.continuation) !== this.#inMessage) fail('frame out of order');
  }

  #readPayload(head: Head): FrameEvent | undefined {
    const left = head.length - head.done;
    const control = head.opcode >= 8;
    if (control ? this.#pending.length < left : left > 0 && this.#pending.length === 0) return undefined;
    const raw = this.#pending.subarray(0, left);
    this.#pending = this.#pending.subarray(raw.length);
    const payload = unmasked(raw, head.mask, head.done);
    head.done += raw.length;
    const complete = head.done === head.length;
    if (complete) this.#head = undefined;
    if (control) return controlEvent(head.opcode, payload);
    const start = !this.#started;
    const end = complete && head.fin;
    this.#started = !end;
    if (start) this.#text = head.opcode === Opcode.text ? strictUtf8() : undefined;
    if (this.#text !== undefined) checkUtf8(this.#text, payload, end);
    if (complete) this.#inMessage = !head.fin;
    return { kind: 'data', payload, start, end };
  }
}

function longLength(bytes: Buffer): number {
  const length = bytes.readBigUInt64BE(2);
  return length > BigInt(Number.MAX_SAFE_INTEGER) ? fail('frame too long') : Number(length);
}

/** Four bytes at a time: what a client sends goes through here to the last byte. */
function unmasked(raw: Buffer, mask: Buffer, offset: number): Buffer {
  const out = Buffer.from(new Uint8Array(raw).buffer);
  const turned = Uint8Array.from({ length: 4 }, (_, i) => mask[(offset + i) & 3] ?? 0);
  const words = new Uint32Array(out.buffer, 0, out.length >>> 2);
  const [key = 0] = new Uint32Array(turned.buffer);
  for (let i = 0; i < words.length; i++) words[i]! ^= key;
  for (let i = words.length * 4; i < out.length; i++) out[i]! ^= turned[i & 3] ?? 0;
  return out;
}

const strictUtf8 = (): TextDecoder => new TextDecoder('utf-8', { fatal: true });

function checkUtf8(decoder: TextDecoder, bytes: Buffer, isLast: boolean): void {
  try {
    decoder.decode(bytes, { stream: !isLast });
  } catch (err) {
    throw new WebSocketError(NO_UTF8, `text that is not UTF-8: ${messageOf(err)}`);
  }
}

/** Those that RFC 6455 and its registry define, and those that are free for applications; 1004 to 1006 are never sent. */
const isCloseCode = (code: number): boolean =>
  (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);

function closeEvent(payload: Buffer): FrameEvent {
  if (payload.length === 0) return { kind: 'close', code: NO_STATUS };
  if (payload.length === 1) fail('close frame with half a code');
  const code = payload.readUInt16BE(0);
  if (!isCloseCode(code)) fail(`close frame with the code ${code}`);
  checkUtf8(strictUtf8(), payload.subarray(2), true);
  return { kind: 'close', code };
}

function controlEvent(opcode: number, payload: Buffer): FrameEvent {
  if (opcode === Opcode.ping) return { kind: 'ping', payload };
  if (opcode === Opcode.pong) return { kind: 'pong', payload };
  return closeEvent(payload);
}

/** One whole frame, unmasked, as a server sends it. `parts` are its payload. */
export function frameOf(opcode: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, p) => sum + p.length, 0);
  const head = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = length;
  else if (length < 65536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, ...parts]);
}

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return frameOf(Opcode.close, payload);
}

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64');
