// WebSocket v5.channel.k8s.io towards the client, SPDY v4.channel.k8s.io towards the runtime. One binary message per
// piece of a channel, its first byte says which; 255 closes a channel. The last message is the command's Status.
import type { Socket } from 'node:net';
import { messageOf } from '../../lib/errors.ts';
import type { Exchange } from '../router.ts';
import { internalError, statusOf } from './exec-status.ts';
import type { StreamDeps } from './pass-through.ts';
import { dialRuntime } from './runtime-dial.ts';
import { SpdyClient, type SpdyStream } from './spdy-client.ts';
import { IdleTimer } from './splice.ts';
import { CLOSING_PROTOCOL, type StreamOptions } from './stream-options.ts';
import { checkHandshake, handshakeAnswer, WebSocketConnection, type MessagePiece } from './websocket.ts';

const Channel = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const;
const byte = (channel: number): Buffer => Buffer.from([channel]);
const MAX_SMALL_MESSAGE = 16 * 1024;
const MAX_STATUS_BYTES = 64 * 1024;
const RUNTIME_PROTOCOL = 'v4.channel.k8s.io';

export async function serveV5(
  deps: StreamDeps,
  exchange: Exchange,
  url: string,
  options: StreamOptions,
): Promise<void> {
  const { request, response, upgrade, signal } = exchange;
  if (upgrade === undefined) throw new Error('serveV5 needs an upgrade');
  checkHandshake(request);
  const { socket } = upgrade;
  response.detachSocket(socket as Socket);
  socket.write(handshakeAnswer(request, CLOSING_PROTOCOL));
  const session = new V5Session(deps, socket, options);
  await session.run(url, upgrade.head, signal);
}

class V5Session {
  readonly #deps: StreamDeps;
  readonly #options: StreamOptions;
  readonly #client: WebSocketConnection;
  readonly #over = Promise.withResolvers<void>();
  readonly #idle: IdleTimer;
  #runtime: SpdyClient | undefined;
  #stdin: SpdyStream | undefined;
  #resize: SpdyStream | undefined;
  /** Of the message being read: its channel, once its first byte is there, and what came of it where it must be read whole. */
  #channel: number | undefined;
  #small: Buffer[] = [];
  #smallBytes = 0;
  /** What the runtime says of the command's end. */
  readonly #said: Buffer[] = [];
  #saidBytes = 0;
  /** Streams that must end before the status is told. */
  #open = 0;
  #broken = false;
  #finished = false;

  constructor(
    deps: StreamDeps,
    socket: Exchange['request']['socket'] | NonNullable<Exchange['upgrade']>['socket'],
    options: StreamOptions,
  ) {
    this.#deps = deps;
    this.#options = options;
    this.#client = new WebSocketConnection(socket, { piece: (p) => this.#piece(p), closed: () => this.#stop() });
    this.#idle = new IdleTimer(deps.clock, deps.idleMs, () => this.#destroy());
  }

  async run(url: string, head: Buffer, signal: AbortSignal): Promise<void> {
    const { stdout, stderr } = this.#options;
    const destroy = (): void => this.#destroy();
    signal.addEventListener('abort', destroy, { once: true });
    this.#client.send(byte(stdout ? Channel.stdout : stderr ? Channel.stderr : Channel.status));
    try {
      await this.#connect(url, signal);
      this.#client.start(head);
      if (signal.aborted) destroy();
      await this.#over.promise;
    } catch (err) {
      this.#finish(internalError(messageOf(err)));
    } finally {
      this.#idle.stop();
      signal.removeEventListener('abort', destroy);
    }
  }

  async #connect(url: string, signal: AbortSignal): Promise<void> {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'SPDY/3.1',
      'x-stream-protocol-version': RUNTIME_PROTOCOL,
    };
    const dialled = await dialRuntime(this.#deps.clock, { url, method: 'POST', headers }, signal);
    if (dialled.upgraded === undefined) {
      dialled.destroy();
      throw new Error(`unable to upgrade connection: ${dialled.head.statusCode} ${dialled.head.statusMessage}`);
    }
    const runtime = new SpdyClient(dialled.upgraded.socket, this.#deps.clock);
    this.#runtime = runtime;
    this.#openStreams(runtime);
    runtime.start(dialled.upgraded.first);
  }

  #openStreams(runtime: SpdyClient): void {
    const { stdin, stdout, stderr, tty } = this.#options;
    const ended = (broken: boolean): void => this.#streamEnded(broken);
    const output = (name: string, channel: number): void => {
      this.#open++;
      runtime.open({ streamtype: name }, { data: (payload) => this.#toClient(channel, payload), end: ended });
    };
    this.#open++;
    runtime.open(
      { streamtype: 'error' },
      {
        data: (payload) => this.#say(payload.subarray(0, MAX_STATUS_BYTES - this.#saidBytes)),
        end: ended,
      },
    );
    if (stdin) this.#stdin = runtime.open({ streamtype: 'stdin' }, {});
    if (stdout) output('stdout', Channel.stdout);
    if (stderr) output('stderr', Channel.stderr);
    if (tty) this.#resize = runtime.open({ streamtype: 'resize' }, {});
  }

  #say(payload: Buffer): void {
    this.#said.push(payload);
    this.#saidBytes += payload.length;
  }

  #toClient(channel: number, payload: Buffer): void {
    this.#idle.touch();
    if (this.#client.send(byte(channel), payload)) return;
    this.#runtime?.pause();
    this.#client.drained(() => this.#runtime?.resume());
  }

  #streamEnded(broken: boolean): void {
    this.#broken ||= broken;
    if (--this.#open > 0) return;
    // A letter may have come in two pieces.
    const said = Buffer.concat(this.#said).toString();
    const isLost = this.#broken && said === '';
    this.#finish(isLost ? internalError('the connection to the runtime was lost') : statusOf(said));
  }

  #piece({ payload, start, end }: MessagePiece): void {
    this.#idle.touch();
    let rest = payload;
    if (start) {
      this.#channel = undefined;
      this.#small = [];
      this.#smallBytes = 0;
    }
    if (this.#channel === undefined) {
      this.#channel = payload[0];
      rest = payload.subarray(1);
    }
    if (this.#channel === Channel.stdin) this.#toRuntime(rest);
    else if (this.#channel === Channel.resize || this.#channel === Channel.close) this.#gather(rest, end);
  }

  #toRuntime(payload: Buffer): void {
    if (payload.length === 0 || this.#stdin === undefined || this.#stdin.write(payload)) return;
    this.#client.pause();
    this.#runtime?.drained(() => this.#client.resume());
  }

  #gather(piece: Buffer, end: boolean): void {
    this.#smallBytes += piece.length;
    if (this.#smallBytes > MAX_SMALL_MESSAGE) return;
    this.#small.push(piece);
    if (!end) return;
    const message = Buffer.concat(this.#small);
    if (this.#channel === Channel.resize) this.#resizeTo(message);
    else if (message[0] === Channel.stdin) this.#stdin?.end();
    else if (message[0] === Channel.resize) this.#resize?.end();
  }

  #resizeTo(message: Buffer): void {
    const size = terminalSize(message.toString());
    if (size !== undefined) this.#resize?.write(Buffer.from(`${JSON.stringify(size)}\n`));
  }

  /** The client is gone: the runtime is told by the end of its connection. */
  #stop(): void {
    this.#finished = true;
    this.#runtime?.close();
    this.#over.resolve();
  }

  #finish(status: object): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#client.send(byte(Channel.status), Buffer.from(JSON.stringify(status)));
    this.#client.close();
    this.#runtime?.close();
    this.#over.resolve();
  }

  #destroy(): void {
    this.#stop();
    this.#client.destroy();
  }
}

/** `{"Width":80,"Height":24}`; anything else is nobody's size. */
function terminalSize(text: string): { Width: number; Height: number } | undefined {
  try {
    const { Width, Height } = JSON.parse(text) as { Width?: unknown; Height?: unknown };
    const valid = [Width, Height].every((n) => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= 65535);
    return valid ? { Width: Width as number, Height: Height as number } : undefined;
  } catch {
    // Not JSON: ignored, as upstream does.
    return undefined;
  }
}
