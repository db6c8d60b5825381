// The receiving half of an HTTP/2 connection: what each frame means, whether it may come now, and how much of it. Throws a
// ProtocolError where the connection cannot go on.
import {
  DEFAULT_MAX_FRAME,
  Flag,
  FrameSplitter,
  FrameType,
  MAX_WINDOW,
  pingFrame,
  Setting,
  SETTINGS_ACK,
} from './frames.ts';
import { HeaderBlocks } from './header-blocks.ts';
import { fieldOf, HpackDecoder, type HeaderList } from './hpack-decoder.ts';
import { ErrorCode, errorName, ProtocolError } from './protocol-error.ts';
import type { Sender } from './sender.ts';
import type { Stream } from './stream.ts';

/** What is told of frames. */
export interface ReceiverPort {
  /** Nothing more is wanted. */
  readonly isClosed: boolean;
  readonly streams: ReadonlyMap<number, Stream>;
  /** The stream that would be opened next. */
  readonly nextId: number;
  ready(): void;
  limitStreams(limit: number): void;
  pong(): void;
  /** Without a stream: nobody reads them. */
  consumed(stream: Stream | undefined, bytes: number): void;
  ended(stream: Stream): void;
  lost(stream: Stream, code: number, error: Error | undefined): void;
  /** The peer broke the rules on this stream: it is told, and so is the caller. */
  refuse(stream: Stream, code: number, what: string): void;
  goAway(lastStream: number, code: number): void;
}

export type ReceiverOptions = {
  /** Of the connection. */
  readonly window: number;
  /** Chunks are valid during the call only. */
  readonly isShared: boolean;
};

/** Of one header block; Go's gRPC takes more, but no server sends as much. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Frames without any use that a peer may send in a row: pings, settings, empty data, what it invents. */
const MAX_USELESS = 10_000;

export class Receiver {
  readonly #port: ReceiverPort;
  readonly #sender: Sender;
  readonly #isShared: boolean;
  readonly #splitter = new FrameSplitter((type, flags, stream, bytes, from, to) =>
    this.#frame(type, flags, stream, bytes, from, to),
  );
  readonly #decoder = new HpackDecoder(MAX_HEADER_BYTES);
  readonly #blocks = new HeaderBlocks(MAX_HEADER_BYTES);
  #window: number;
  #hasSettings = false;
  #useless = 0;

  constructor(port: ReceiverPort, sender: Sender, options: ReceiverOptions) {
    this.#port = port;
    this.#sender = sender;
    this.#isShared = options.isShared;
    this.#window = options.window;
  }

  push(chunk: Buffer): void {
    this.#splitter.push(chunk);
  }

  /** The peer has been told that it may send so much more. */
  widen(bytes: number): void {
    this.#window += bytes;
  }

  /** Something of use happened. */
  calm(): void {
    this.#useless = 0;
  }

  #frame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (this.#port.isClosed) return;
    if (!this.#hasSettings && (type !== FrameType.Settings || (flags & Flag.Ack) !== 0))
      throw protocol('the peer does not begin with its settings');
    const { open } = this.#blocks;
    if (open !== 0 && (type !== FrameType.Continuation || stream !== open))
      throw protocol('another frame in the middle of a header block');
    switch (type) {
      case FrameType.Data:
        return this.#data(flags, stream, bytes, from, to);
      case FrameType.Headers:
        return this.#headers(flags, stream, bytes, from, to);
      case FrameType.Continuation:
        return this.#continuation(flags, stream, bytes.subarray(from, to));
      case FrameType.ResetStream:
        return this.#resetStream(stream, sized(bytes, from, to, 4));
      case FrameType.WindowUpdate:
        return this.#windowUpdate(stream, sized(bytes, from, to, 4));
      case FrameType.Settings:
        ofConnection(stream);
        return this.#settings(flags, bytes.subarray(from, to));
      case FrameType.Ping:
        ofConnection(stream);
        return this.#ping(flags, sized(bytes, from, to, 8));
      case FrameType.GoAway:
        ofConnection(stream);
        return this.#goAway(bytes.subarray(from, to));
      case FrameType.PushPromise:
        throw protocol('a push, which we have forbidden');
      default: // PRIORITY, and what others have added to the protocol
        this.#unused();
    }
  }

  #data(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    const stream = this.#streamOf(id);
    const size = to - from;
    this.#window -= size;
    if (this.#window < 0) throw flowControl();
    const start = (flags & Flag.Padded) === 0 ? from : from + 1;
    const end = to - padding(flags, bytes, from, to);
    if (end === start && (flags & Flag.EndStream) === 0) this.#unused();
    if (stream === undefined) return this.#port.consumed(undefined, size);
    stream.receiveWindow -= size;
    if (stream.receiveWindow < 0) throw flowControl();
    if (!stream.hasHead) {
      this.#port.consumed(undefined, size);
      return this.#port.refuse(stream, ErrorCode.Protocol, 'data ahead of the headers');
    }
    if (size > end - start) this.#port.consumed(stream, size - (end - start));
    if (end > start) {
      this.#useless = 0;
      if (stream.missingBytes !== undefined) stream.missingBytes -= end - start;
      const chunk = bytes.subarray(start, end);
      stream.deliver(this.#isShared ? Buffer.from(chunk) : chunk);
    }
    if ((flags & Flag.EndStream) !== 0) this.#end(stream);
  }

  #headers(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    this.#streamOf(id);
    const end = to - padding(flags, bytes, from, to);
    const start = from + ((flags & Flag.Padded) === 0 ? 0 : 1) + ((flags & Flag.Priority) === 0 ? 0 : 5);
    if (start > end) throw frameSize(to - from);
    if ((flags & Flag.EndHeaders) === 0) this.#blocks.begin(id, flags, bytes.subarray(start, end));
    else this.#fields(id, flags, this.#decoder.decode(bytes, start, end));
  }

  #continuation(flags: number, id: number, part: Buffer): void {
    if (this.#blocks.open !== id || id === 0) throw protocol('CONTINUATION of nothing');
    const block = this.#blocks.add(part, (flags & Flag.EndHeaders) !== 0);
    if (block === undefined) return;
    this.#fields(block.stream, block.flags, this.#decoder.decode(block.bytes, 0, block.bytes.length));
  }

  #fields(id: number, flags: number, headers: HeaderList): void {
    const stream = this.#port.streams.get(id);
    if (stream === undefined) return this.#unused();
    const isLast = (flags & Flag.EndStream) !== 0;
    if (stream.hasHead) {
      if (!isLast) return this.#port.refuse(stream, ErrorCode.Protocol, 'a second head');
      stream.events.onTrailers(headers);
    } else {
      const status = statusOf(headers);
      if (status === undefined) return this.#port.refuse(stream, ErrorCode.Protocol, 'an answer without a status');
      if (status < 200) {
        this.#unused();
        return isLast ? this.#port.refuse(stream, ErrorCode.Protocol, 'the end before the answer') : undefined;
      }
      this.#useless = 0;
      stream.hasHead = true;
      stream.missingBytes = lengthOf(headers);
      stream.events.onHead(status, headers);
    }
    if (isLast) this.#end(stream);
  }

  #end(stream: Stream): void {
    if (stream.isClosed) return; // the caller has had enough in the meantime
    if (stream.missingBytes !== undefined && stream.missingBytes !== 0)
      return this.#port.refuse(stream, ErrorCode.Protocol, 'a body of another length than announced');
    this.#port.ended(stream);
  }

  #resetStream(id: number, payload: Buffer): void {
    const stream = this.#streamOf(id);
    if (stream === undefined) return this.#unused();
    const code = payload.readUInt32BE(0);
    const isQuiet = code === ErrorCode.None || code === ErrorCode.Cancel;
    this.#port.lost(stream, code, isQuiet ? undefined : new Error(`Stream closed with error code ${errorName(code)}`));
  }

  #windowUpdate(id: number, payload: Buffer): void {
    const increment = payload.readUInt32BE(0) & MAX_WINDOW;
    const stream = id === 0 ? undefined : this.#streamOf(id);
    if (stream === undefined || increment === 0) this.#unused();
    if (id === 0) {
      if (increment === 0) throw protocol('a window that grows by nothing');
      this.#sender.widenAll(increment);
    } else if (stream !== undefined) {
      if (increment === 0) this.#port.refuse(stream, ErrorCode.Protocol, 'a window that grows by nothing');
      else if (!this.#sender.widen(stream, increment))
        this.#port.refuse(stream, ErrorCode.FlowControl, 'a window is too large');
    }
  }

  #settings(flags: number, payload: Buffer): void {
    this.#unused();
    const isAnswer = (flags & Flag.Ack) !== 0;
    if (isAnswer ? payload.length > 0 : payload.length % 6 !== 0) throw frameSize(payload.length);
    if (isAnswer) return;
    for (let at = 0; at < payload.length; at += 6)
      this.#setting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    this.#sender.answer(SETTINGS_ACK);
    if (this.#hasSettings) return;
    this.#hasSettings = true;
    this.#port.ready();
  }

  #setting(id: number, value: number): void {
    switch (id) {
      case Setting.HeaderTableSize:
        return this.#sender.tableChanged();
      case Setting.EnablePush:
        if (value !== 0) throw protocol('a server that allows pushes');
        return;
      case Setting.MaxConcurrentStreams:
        return this.#port.limitStreams(value);
      case Setting.InitialWindowSize:
        if (value > MAX_WINDOW) throw flowControl();
        return this.#sender.setInitialWindow(value, this.#port.streams.values());
      case Setting.MaxFrameSize:
        if (value < DEFAULT_MAX_FRAME || value >= 2 ** 24) throw protocol(`frames of up to ${value} bytes`);
        return this.#sender.setMaxFrame(value);
      default: // of no concern to us, or unknown
    }
  }

  #ping(flags: number, data: Buffer): void {
    this.#unused();
    if ((flags & Flag.Ack) !== 0) this.#port.pong();
    else this.#sender.answer(pingFrame(true, data));
  }

  #goAway(data: Buffer): void {
    if (data.length < 8) throw frameSize(data.length);
    this.#port.goAway(data.readUInt32BE(0) & 0x7fffffff, data.readUInt32BE(4));
  }

  /** Undefined for one that is over: what comes late of it is of no use. */
  #streamOf(id: number): Stream | undefined {
    if (id % 2 === 0 || id >= this.#port.nextId) throw protocol(`a frame of stream ${id}, which nobody opened`);
    return this.#port.streams.get(id);
  }

  #unused(): void {
    if (++this.#useless > MAX_USELESS) throw new ProtocolError(ErrorCode.EnhanceYourCalm, 'frames without any use');
  }
}

const protocol = (what: string): ProtocolError => new ProtocolError(ErrorCode.Protocol, what);
const flowControl = (): ProtocolError => new ProtocolError(ErrorCode.FlowControl, 'more than the window allows');
const frameSize = (bytes: number): ProtocolError =>
  new ProtocolError(ErrorCode.FrameSize, `a frame of ${bytes} bytes, which its kind does not have`);

function ofConnection(stream: number): void {
  if (stream !== 0) throw protocol(`a frame of the whole connection on stream ${stream}`);
}

function sized(bytes: Buffer, from: number, to: number, size: number): Buffer {
  if (to - from !== size) throw frameSize(to - from);
  return bytes.subarray(from, to);
}

/** Bytes at the end of a frame that mean nothing. */
function padding(flags: number, bytes: Buffer, from: number, to: number): number {
  if ((flags & Flag.Padded) === 0) return 0;
  const size = from < to ? (bytes[from] as number) : 256;
  if (size >= to - from) throw protocol('more padding than frame');
  return size;
}

function statusOf(headers: HeaderList): number | undefined {
  const status = fieldOf(headers, ':status') ?? '';
  return /^[1-9]\d\d$/.test(status) ? Number(status) : undefined;
}

function lengthOf(headers: HeaderList): number | undefined {
  const length = fieldOf(headers, 'content-length');
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}
