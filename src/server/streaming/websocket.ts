// A WebSocket the kubelet itself ends: handshake, pings, close, and messages in both directions with back-pressure.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { KubeletError } from '../../lib/errors.ts';
import { lingeringEnd } from '../lingering-end.ts';
import {
  acceptOf,
  closeFrame,
  FrameDecoder,
  frameOf,
  NO_STATUS,
  Opcode,
  WebSocketError,
  type FrameEvent,
} from './websocket-frames.ts';

const KEY = /^[A-Za-z0-9+/]{22}==$/;
const NORMAL = 1000;
const INTERNAL = 1011;

/** Rejects requests that are no WebSocket handshake. */
export function checkHandshake({ headers, method }: IncomingMessage): void {
  if (method !== 'GET') throw new KubeletError('invalid', 'a WebSocket handshake is a GET request');
  if (headers['sec-websocket-version'] !== '13') throw new KubeletError('invalid', 'unsupported WebSocket version');
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) throw new KubeletError('invalid', 'bad Sec-WebSocket-Key');
}

export const handshakeAnswer = ({ headers }: IncomingMessage, protocol: string): string =>
  [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptOf(headers['sec-websocket-key'] ?? '')}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
    '',
    '',
  ].join('\r\n');

export type MessagePiece = { readonly payload: Buffer; readonly start: boolean; readonly end: boolean };

export type WebSocketHandlers = {
  /** False: read no more until `resume`. */
  readonly piece: (piece: MessagePiece) => void;
  /** The client closed or is gone. */
  readonly closed: () => void;
};

export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #handlers: WebSocketHandlers;
  readonly #decoder = new FrameDecoder();
  #closing = false;
  /** The newest ping that could not be answered yet. */
  #unanswered: Buffer | undefined;

  constructor(socket: Duplex, handlers: WebSocketHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
  }

  /** `head` is what came behind the handshake. */
  start(head: Buffer): void {
    const socket = this.#socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.#gone());
    socket.on('close', () => this.#handlers.closed());
    if (head.length > 0) this.#take(head);
  }

  /** False when the client is slow: wait for `drained`. */
  send(...parts: readonly Buffer[]): boolean {
    if (this.#closing || this.#socket.destroyed) return true;
    return this.#socket.write(frameOf(Opcode.binary, ...parts));
  }

  drained(fn: () => void): void {
    this.#socket.once('drain', fn);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Says goodbye once and ends the connection when that is written. */
  close(code = NORMAL): void {
    if (this.#closing) return;
    this.#closing = true;
    lingeringEnd(this.#socket, closeFrame(code));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#closing) return;
    try {
      for (const event of this.#decoder.push(chunk)) this.#on(event);
    } catch (err) {
      this.close(err instanceof WebSocketError ? err.code : INTERNAL);
      this.#handlers.closed();
    }
  }

  #on(event: FrameEvent): void {
    if (this.#closing) return;
    if (event.kind === 'data') this.#handlers.piece(event);
    else if (event.kind === 'ping') this.#pong(event.payload);
    else if (event.kind === 'close') {
      // The answer repeats the code.
      this.close(event.code === NO_STATUS ? NORMAL : event.code);
      this.#handlers.closed();
    }
  }

  /** A client that does not read gets no pong; of the pings that came meanwhile the newest is answered (RFC 6455, 5.5.3). */
  #pong(payload: Buffer): void {
    if (!this.#socket.writableNeedDrain) return void this.#socket.write(frameOf(Opcode.pong, payload));
    if (this.#unanswered === undefined)
      this.#socket.once('drain', () => {
        const newest = this.#unanswered;
        this.#unanswered = undefined;
        if (newest !== undefined && !this.#closing && !this.#socket.destroyed) this.#pong(newest);
      });
    this.#unanswered = payload;
  }

  #gone(): void {
    this.#handlers.closed();
    lingeringEnd(this.#socket);
  }
}
