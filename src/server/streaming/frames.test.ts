import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { statusOf } from './exec-status.ts';
import { dataHead, FrameType, HeaderWriter, SpdyDecoder, SpdyError, type SpdyEvent } from './spdy-frames.ts';
import { WebSocketConnection } from './websocket.ts';
import { masked } from './websocket.fixture.ts';
import { FrameDecoder, frameOf, Opcode, WebSocketError, type FrameEvent } from './websocket-frames.ts';
import { randomRuns } from '../../../test/harness/random-runs.ts';

/** The same bytes cut in pieces of any size. */
const pieces = (bytes: Buffer, sizes: readonly number[]): Buffer[] => {
  const out: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    out.push(bytes.subarray(at, at + size));
    at += size;
  }
  return out;
};
const sizes = fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 8 });
const bytes = (maxLength: number): fc.Arbitrary<Buffer> => fc.uint8Array({ maxLength }).map((a) => Buffer.from(a));

describe('WebSocket frames', () => {
  it('come out as they went in, however they are cut', () => {
    const messages = fc.array(fc.array(bytes(300), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(messages, sizes, (list, cut) => {
        const wire = list.flatMap((parts) =>
          parts.map((p, i) => masked(i === 0 ? Opcode.binary : Opcode.continuation, p, i === parts.length - 1)),
        );
        const decoder = new FrameDecoder();
        const got: Buffer[] = [];
        let current: Buffer[] = [];
        for (const chunk of pieces(Buffer.concat(wire), cut))
          for (const event of decoder.push(chunk)) {
            assert.equal(event.kind, 'data');
            if (event.kind !== 'data') continue;
            if (event.start) current = [];
            current.push(event.payload);
            if (event.end) got.push(Buffer.concat(current));
          }
        assert.deepEqual(
          got,
          list.map((parts) => Buffer.concat(parts)),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('may have control frames between the parts of a message', () => {
    const wire = Buffer.concat([
      masked(Opcode.text, Buffer.from('ab'), false),
      masked(Opcode.ping, Buffer.from('p')),
      masked(Opcode.continuation, Buffer.from('c')),
      masked(Opcode.close, Buffer.from([3, 232])),
    ]);
    const events = [...new FrameDecoder().push(wire)].map((e: FrameEvent) =>
      e.kind === 'close' ? e : { ...e, payload: e.payload.toString() },
    );
    assert.deepEqual(events, [
      { kind: 'data', payload: 'ab', start: true, end: false },
      { kind: 'ping', payload: 'p' },
      { kind: 'data', payload: 'c', start: false, end: true },
      { kind: 'close', code: 1000 },
    ]);
  });

  it('of every length have the head of that length', () => {
    for (const length of [0, 125, 126, 65_535, 65_536]) {
      const payload = Buffer.alloc(length, 7);
      const events = [...new FrameDecoder().push(masked(Opcode.binary, payload))];
      assert.deepEqual(events, [{ kind: 'data', payload, start: true, end: true }], `${length} bytes`);
    }
  });

  it('answers and closes without a code are told apart', () => {
    const wire = Buffer.concat([masked(Opcode.pong, Buffer.from('p')), masked(Opcode.close, Buffer.alloc(0))]);
    assert.deepEqual(
      [...new FrameDecoder().push(wire)],
      [
        { kind: 'pong', payload: Buffer.from('p') },
        { kind: 'close', code: 1005 },
      ],
    );
  });

  const closing = (code: number, reason = ''): Buffer =>
    masked(Opcode.close, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason, 'hex')]));
  const PROTOCOL = 1002;
  const NO_UTF8 = 1007;
  const broken: readonly (readonly [string, Buffer, number])[] = [
    ['no mask', frameOf(Opcode.binary, Buffer.from('x')), PROTOCOL],
    ['reserved bits', Buffer.from([0xc2, 0x80]), PROTOCOL],
    ['unknown opcode', Buffer.from([0x83, 0x80]), PROTOCOL],
    ['unknown control opcode', Buffer.from([0x8b, 0x80]), PROTOCOL],
    ['continuation of nothing', Buffer.from([0x80, 0x80]), PROTOCOL],
    ['long ping', Buffer.from([0x89, 0xfe]), PROTOCOL],
    ['ping in parts', Buffer.from([0x09, 0x80]), PROTOCOL],
    ['length beyond numbers', Buffer.from('82ffffffffffffffffff00000000', 'hex'), PROTOCOL],
    [
      'message within a message',
      Buffer.concat([masked(2, Buffer.from('a'), false), masked(2, Buffer.from('b'))]),
      PROTOCOL,
    ],
    ['close with half a code', masked(Opcode.close, Buffer.from([3])), PROTOCOL],
    ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65_535].map(
      (code) => [`close with the code ${code}`, closing(code), PROTOCOL] as const,
    ),
    ['close with a reason that is not UTF-8', closing(1000, 'ff'), NO_UTF8],
    ['close with a reason that ends in a letter', closing(1000, 'c3'), NO_UTF8],
    ['text that is not UTF-8', masked(Opcode.text, Buffer.from([0, 255, 254])), NO_UTF8],
    ['text that ends in a letter', masked(Opcode.text, Buffer.from([65, 0xc3])), NO_UTF8],
    [
      'text that is not UTF-8 in its second part',
      Buffer.concat([masked(Opcode.text, Buffer.from([0xc3]), false), masked(Opcode.continuation, Buffer.from('x'))]),
      NO_UTF8,
    ],
  ];
  for (const [what, wire, code] of broken)
    it(`${what} is an error of the protocol`, () => {
      assert.throws(
        () => [...new FrameDecoder().push(wire)],
        (err) => err instanceof WebSocketError && err.code === code,
      );
    });

  it('every other code of a close is taken, with a reason', () => {
    for (const code of [1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4000, 4999])
      assert.deepEqual([...new FrameDecoder().push(closing(code, 'c3bc'))], [{ kind: 'close', code }]);
  });

  it('text may be cut within a letter, binary data is no text', () => {
    const wire = Buffer.concat([
      masked(Opcode.text, Buffer.from([0xc3]), false),
      masked(Opcode.continuation, Buffer.from([0xbc])),
      masked(Opcode.binary, Buffer.from([0xff])),
    ]);
    const got: Buffer[] = [];
    const decoder = new FrameDecoder();
    for (const byte of wire)
      for (const event of decoder.push(Buffer.from([byte]))) if (event.kind === 'data') got.push(event.payload);
    assert.deepEqual(Buffer.concat(got), Buffer.from([0xc3, 0xbc, 0xff]));
  });

  it('random bytes give frames or that error, 10,000 times', () => {
    fc.assert(
      fc.property(fc.array(bytes(60), { minLength: 1, maxLength: 6 }), (chunks) => {
        const decoder = new FrameDecoder();
        try {
          for (const chunk of chunks) for (const event of decoder.push(chunk)) assert.ok(event.kind !== undefined);
        } catch (err) {
          assert.ok(err instanceof WebSocketError);
        }
      }),
      { numRuns: randomRuns(10_000) },
    );
  });
});

describe('SPDY frames', () => {
  it('data comes out as it went in, however it is cut', () => {
    const frames = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), bytes(200), fc.boolean()), { minLength: 1 });
    fc.assert(
      fc.property(frames, sizes, (list, cut) => {
        const wire = list.flatMap(([id, payload, fin]) => [dataHead(id, payload.length, fin), payload]);
        const decoder = new SpdyDecoder();
        const got: [number, string][] = [];
        let fins = 0;
        for (const chunk of pieces(Buffer.concat(wire), cut))
          for (const event of decoder.push(chunk)) {
            assert.equal(event.kind, 'data');
            if (event.kind !== 'data') continue;
            const last = got.at(-1);
            if (last?.[0] === event.streamId) last[1] += event.payload.toString('hex');
            else got.push([event.streamId, event.payload.toString('hex')]);
            if (event.fin) fins++;
          }
        const want: [number, string][] = [];
        for (const [id, payload] of list) {
          const last = want.at(-1);
          if (last?.[0] === id) last[1] += payload.toString('hex');
          else want.push([id, payload.toString('hex')]);
        }
        assert.deepEqual(got, want);
        assert.equal(fins, list.filter(([, , fin]) => fin).length);
      }),
      { numRuns: 300 },
    );
  });

  it('a header block is a zlib stream with stored blocks, its head only once', () => {
    const writer = new HeaderWriter();
    const events = [
      ...new SpdyDecoder().push(
        Buffer.concat([writer.synStream(1, { streamtype: 'error' }), writer.synStream(3, { port: '80' })]),
      ),
    ] as Extract<SpdyEvent, { kind: 'control' }>[];
    assert.deepEqual(
      events.map((e) => [e.type, e.payload.readUInt32BE(0)]),
      [
        [FrameType.synStream, 1],
        [FrameType.synStream, 3],
      ],
    );
    const [first, second] = events.map((e) => e.payload.subarray(10).toString('hex'));
    assert.match(first ?? '', /^78bbe3c6a7c200/);
    assert.match(second ?? '', /^00/);
    for (const block of [first, second]) assert.match(block ?? '', /000000ffff$/);
  });

  const broken: readonly (readonly [string, string, RegExp])[] = [
    ['another version', '8002000100000000', /not SPDY\/3/],
    ['a control frame longer than any', '8003000100ffffff', /control frame too long/],
  ];
  for (const [what, wire, error] of broken)
    it(`${what} is an error`, () => assert.throws(() => [...new SpdyDecoder().push(Buffer.from(wire, 'hex'))], error));

  it('data has a length of three bytes', () => {
    assert.equal(dataHead(1, 2 ** 24 - 1, false).toString('hex'), '0000000100ffffff');
    assert.throws(() => dataHead(1, 2 ** 24, false), /data frame too long/);
  });

  it('random bytes give frames or an error, 10,000 times', () => {
    fc.assert(
      fc.property(fc.array(bytes(60), { minLength: 1, maxLength: 6 }), (chunks) => {
        const decoder = new SpdyDecoder();
        try {
          for (const chunk of chunks) for (const event of decoder.push(chunk)) assert.ok(event.kind !== undefined);
        } catch (err) {
          assert.ok(err instanceof SpdyError);
        }
      }),
      { numRuns: randomRuns(10_000) },
    );
  });
});

describe('how a command ended', () => {
  const failure = (causes: unknown): string =>
    JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes } });
  const table: readonly (readonly [string, string, RegExp])[] = [
    ['nothing said', '', /^\{"metadata":\{\},"status":"Success"\}$/],
    ['success', '{"status":"Success"}', /^\{"metadata":\{\},"status":"Success"\}$/],
    [
      'exit code',
      failure([{ reason: 'ExitCode', message: '7' }]),
      /"command terminated with non-zero exit code: command terminated with exit code 7".*"NonZeroExitCode"/,
    ],
    ['no code', failure([]), /no ExitCode cause given.*InternalError/],
    ['bad code', failure([{ reason: 'ExitCode', message: '256' }]), /invalid exit code value \\"256\\"/],
    ['another failure', '{"status":"Failure","message":"boom"}', /"Internal error occurred: boom".*"code":500/],
    ['not JSON', 'boom', /error stream protocol error: boom/],
    ['something else', '{"status":"Odd"}', /unknown error/],
  ];
  for (const [what, said, want] of table) it(what, () => assert.match(JSON.stringify(statusOf(said)), want));
});

describe('a WebSocket client that does not read', () => {
  it('is not sent pong after pong', () => {
    const socket = new Duplex({
      read: () => undefined,
      writableHighWaterMark: 64,
      // It never takes anything.
      write: () => undefined,
    });
    const client = new WebSocketConnection(socket, { piece: () => undefined, closed: () => undefined });
    client.start(Buffer.concat(Array.from({ length: 10_000 }, () => masked(Opcode.ping, Buffer.alloc(100)))));
    assert.ok(socket.writableLength <= 64 + 2 * 102, `${socket.writableLength} bytes wait for the client`);
    socket.destroy();
  });
});
