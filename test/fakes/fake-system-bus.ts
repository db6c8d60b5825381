// A system bus with systemd behind it, as far as a kubelet asks it: a unix socket that speaks D-Bus, makes slices when it is
// asked for units, and can freeze: it then takes connections and calls and answers nothing. Never grants an inhibitor.
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';

const METHOD_CALL = 1;
const METHOD_RETURN = 2;
const FIELD = { member: 3, replySerial: 5, sender: 7, signature: 8 };

type Call = { readonly member: string; readonly serial: number; readonly body: Buffer };
type Answer = { readonly signature: string; readonly body: Buffer };

const EMPTY: Answer = { signature: '', body: Buffer.alloc(0) };

export class FakeSystemBus {
  readonly address: string;
  readonly #path: string;
  readonly #makeSlice: (path: string) => Promise<unknown>;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #held: (() => void)[] = [];
  #frozen = false;

  /** `makeSlice` is told the cgroup of every unit that is started. */
  constructor(path: string, makeSlice: (path: string) => Promise<unknown>) {
    this.#path = path;
    this.address = `unix:path=${path}`;
    this.#makeSlice = makeSlice;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#path, resolve));
  }

  freeze(): void {
    this.#frozen = true;
  }

  /** Answers what was asked meanwhile. */
  thaw(): void {
    this.#frozen = false;
    for (const go of this.#held.splice(0)) go();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#path, { force: true });
  }

  #serve(socket: Socket): void {
    let pending: Buffer = Buffer.alloc(0);
    let greeted = false;
    this.#sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
    const read = (): void => {
      if (this.#frozen) return void this.#held.push(read);
      if (!greeted) [greeted, pending] = greet(socket, pending);
      while (greeted) {
        const length = messageLength(pending);
        if (length === undefined || pending.length < length) return;
        const call = callIn(pending.subarray(0, length));
        pending = pending.subarray(length);
        if (call !== undefined) void this.#reply(socket, call);
      }
    };
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      read();
    });
  }

  async #reply(socket: Socket, { member, serial, body }: Call): Promise<void> {
    const answer = await this.#answer(member, body);
    if (answer !== undefined && !socket.destroyed) socket.write(replyTo(serial, answer));
  }

  async #answer(member: string, body: Buffer): Promise<Answer | undefined> {
    switch (member) {
      case 'Hello':
        return { signature: 's', body: text(':1.1') };
      case 'StartTransientUnit':
        await this.#makeSlice(sliceCgroup(body.toString('utf8', 4, 4 + body.readUInt32LE(0))));
        return { signature: 'o', body: text('/org/freedesktop/systemd1/job/1') };
      case 'StartUnit':
      case 'StopUnit':
        return { signature: 'o', body: text('/org/freedesktop/systemd1/job/2') };
      case 'Inhibit':
        return undefined;
      case 'Get': {
        // The longest delay logind grants, a variant of an unsigned number of microseconds.
        const delay = Buffer.from([1, 't'.charCodeAt(0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        delay.writeBigUInt64LE(3_600_000_000n, 8);
        return { signature: 'v', body: delay };
      }
      default:
        return EMPTY;
    }
  }
}

/** `a-b.slice` lies in `a.slice`. */
function sliceCgroup(unit: string): string {
  const parts = unit.replace(/\.slice$/, '').split('-');
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('-')}.slice`).join('');
}

/** The lines before the first message; true when they are over. */
function greet(socket: Socket, pending: Buffer): [boolean, Buffer] {
  let rest = pending[0] === 0 ? pending.subarray(1) : pending;
  for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
    const line = rest.toString('latin1', 0, end);
    rest = rest.subarray(end + 2);
    if (line === 'BEGIN') return [true, rest];
    if (line === 'AUTH EXTERNAL') socket.write('DATA\r\n');
    else if (line.startsWith('AUTH EXTERNAL') || line.startsWith('DATA')) socket.write(`OK ${'0'.repeat(32)}\r\n`);
    else if (line === 'NEGOTIATE_UNIX_FD') socket.write('AGREE_UNIX_FD\r\n');
    else socket.write('REJECTED EXTERNAL\r\n');
  }
  return [false, rest];
}

const aligned = (offset: number, to: number): number => Math.ceil(offset / to) * to;

function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < 16) return undefined;
  return aligned(16 + bytes.readUInt32LE(12), 8) + bytes.readUInt32LE(4);
}

function callIn(message: Buffer): Call | undefined {
  const fieldsEnd = 16 + message.readUInt32LE(12);
  let member = '';
  for (let at = 16; at < fieldsEnd;) {
    at = aligned(at, 8);
    const code = message.readUInt8(at);
    const type = String.fromCharCode(message.readUInt8(at + 2));
    at += 4;
    if (type === 'g') at += message.readUInt8(at) + 2;
    else if (type === 'u') at = aligned(at, 4) + 4;
    else {
      at = aligned(at, 4);
      const length = message.readUInt32LE(at);
      if (code === FIELD.member) member = message.toString('utf8', at + 4, at + 4 + length);
      at += 4 + length + 1;
    }
  }
  if (message.readUInt8(1) !== METHOD_CALL) return undefined;
  return { member, serial: message.readUInt32LE(8), body: message.subarray(aligned(fieldsEnd, 8)) };
}

function text(value: string): Buffer {
  const out = Buffer.alloc(4 + value.length + 1);
  out.writeUInt32LE(value.length, 0);
  out.write(value, 4, 'latin1');
  return out;
}

function replyTo(serial: number, { signature, body }: Answer): Buffer {
  const number = Buffer.alloc(8);
  number.set([FIELD.replySerial, 1, 'u'.charCodeAt(0), 0]);
  number.writeUInt32LE(serial, 4);
  const sender = Buffer.concat([Buffer.from([FIELD.sender, 1, 's'.charCodeAt(0), 0]), text('org.freedesktop.DBus')]);
  const fields = [number, sender];
  if (signature !== '')
    fields.push(Buffer.from([FIELD.signature, 1, 'g'.charCodeAt(0), 0, signature.length, signature.charCodeAt(0), 0]));
  let array = Buffer.alloc(0);
  for (const field of fields)
    array = Buffer.concat([array, Buffer.alloc(aligned(array.length, 8) - array.length), field]);
  const header = Buffer.alloc(16);
  header.set(['l'.charCodeAt(0), METHOD_RETURN, 1, 1]);
  header.writeUInt32LE(body.length, 4);
  header.writeUInt32LE(1, 8);
  header.writeUInt32LE(array.length, 12);
  const padding = Buffer.alloc(aligned(16 + array.length, 8) - 16 - array.length);
  return Buffer.concat([header, array, padding, body]);
}
