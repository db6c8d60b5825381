// Requests with large bodies: to a peer that measures the line meanwhile, as grpc-go servers do (a PING after data that came), to
// peers that read slowly, and to one that floods.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { until } from '../../../test/harness/until.ts';
import { DEFAULT_WINDOW, Flag, FrameType, Setting, settingsFrame, windowUpdateFrame } from './frames.ts';
import { encodeHeaders } from './hpack-encoder.ts';
import { data, frameOf, HEAD, NO_SETTINGS, play, Told, type Frame, type Played } from './peer.fixture.ts';

const block = encodeHeaders([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
]);
const { Data, Headers, Ping } = FrameType;
const { EndStream, EndHeaders, Ack } = Flag;
const KIB = 1024;
const MIB = 1024 * KIB;
const ping = frameOf(Ping, 0, 0, '00'.repeat(8));
const repeated = (frame: Buffer, times: number): Buffer => Buffer.concat(Array.from({ length: times }, () => frame));

/** Windows that a peer grants once it has measured the line. */
const WIDE = [settingsFrame([[Setting.InitialWindowSize, 16 * MIB]]), windowUpdateFrame(0, 16 * MIB)];

/** A peer that reads everything, gives the windows back, and sends `pings` PINGs after each DATA frame; a wide one widens them. */
class MeasuringPeer {
  readonly played: Played = play();
  readonly received = new Map<number, number>();
  sent = 0;
  pongs = 0;

  constructor(pings: number, isWide: boolean) {
    const { peer } = this.played;
    const afterData = Buffer.concat([repeated(ping, pings), NO_SETTINGS]);
    peer.onFrame = (frame) => {
      if (frame.type === Ping && frame.flags === Ack) this.pongs++;
      if (frame.type !== Data) return;
      peer.frames.pop();
      const isMeasured = isWide && this.sent === 0;
      this.sent += pings;
      peer.send(...(isMeasured ? WIDE : []), afterData, ...this.#taken(frame));
    };
    peer.send(NO_SETTINGS);
  }

  /** The windows for what was read; the answer after the last of a body. */
  #taken({ stream, flags, payload }: Frame): readonly Buffer[] {
    this.received.set(stream, (this.received.get(stream) ?? 0) + payload.length);
    const bytes = payload.length;
    const windows = bytes === 0 ? [] : [windowUpdateFrame(0, bytes), windowUpdateFrame(stream, bytes)];
    return (flags & EndStream) === 0 ? windows : [...windows, frameOf(Headers, EndHeaders | EndStream, stream, '88')];
  }

  request(body?: Buffer): Told {
    const told = new Told();
    this.played.connection.request(body === undefined ? { block } : { block, body }, told);
    return told;
  }
}

describe('a peer that pings while a body comes in', () => {
  for (const [count, bytes, pings, windows] of [
    [1, 64 * KIB, 1, 'wide'],
    [1, MIB, 1, 'wide'],
    [1, 8 * MIB, 1, 'wide'],
    [1, 16 * MIB, 1, 'wide'],
    [100, 30 * KIB, 1, 'wide'],
    [30, 200 * KIB, 1, 'wide'],
    [8, MIB, 1, 'wide'],
    [1, 8 * MIB, 1, 'usual'],
    [1, 8 * MIB, 50, 'usual'],
  ] as const)
    it(`${count} x ${bytes / KIB} KiB, ${pings} a frame, ${windows} windows; other calls of the connection live`, async () => {
      const world = new MeasuringPeer(pings, windows === 'wide');
      const sleeping = [1, 2, 3].map(() => world.request());
      const body = Buffer.alloc(bytes);
      const told = Array.from({ length: count }, () => world.request(body));
      await until('the answers', () => told.every((each) => each.isOver), 30_000, 1);
      assert.equal(world.played.closing.error, undefined);
      await until('the pongs', () => world.pongs === world.sent, 30_000, 1);
      assert.equal(world.played.closing.error, undefined);
      for (const each of told) assert.deepEqual(each.log, ['head 200', 'end']);
      assert.deepEqual(
        [...world.received.values()],
        Array.from({ length: count }, () => bytes),
      );
      for (const each of sleeping) assert.deepEqual(each.log, []);
      assert.equal(world.played.connection.active, sleeping.length);
    });
});

describe('a large request to a peer that reads slowly', () => {
  /** Bodies that the peer has room for and does not read yet. */
  async function begun(bodies: readonly Buffer[]): Promise<Played & { told: readonly Told[] }> {
    const played = play();
    const told = bodies.map((body) => {
      const each = new Told();
      played.connection.request({ block, body }, each);
      return each;
    });
    await until('the first window is used up', () => received(played) === DEFAULT_WINDOW);
    played.peer.freeze();
    played.peer.send(...WIDE);
    await until('the settings were read', () => played.closing.log.length > 0);
    return { ...played, told };
  }
  const received = ({ peer }: Played): number => peer.of(Data).reduce((sum, f) => sum + f.payload.length, 0);

  it('goes on when the peer pings meanwhile', async () => {
    const played = await begun([Buffer.alloc(2 << 20)]);
    for (let i = 0; i < 20; i++) {
      played.peer.send(ping);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    assert.equal(played.closing.error, undefined);
    played.peer.thaw();
    await until('the request and the answers came', () => received(played) === 2 << 20 && pongs(played) === 20);
    played.peer.send(HEAD, data(1, Buffer.from('abc'), EndStream));
    await until('the answer', () => played.told[0]?.isOver === true);
    assert.equal(played.told[0]?.body.toString(), 'abc');
  });
  const pongs = ({ peer }: Played): number => peer.of(Ping).filter((f) => f.flags === Ack).length;

  it('has answers ahead of what is left of it', async () => {
    const played = await begun([Buffer.alloc(8 * MIB)]);
    for (let i = 0; i < 20; i++) {
      played.peer.send(ping);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    played.peer.thaw();
    await until('the answers', () => pongs(played) === 20);
    const last = played.peer.frames.findLastIndex(({ type }) => type === Ping);
    const ahead = played.peer.frames.slice(0, last).reduce((sum, f) => sum + f.payload.length, 0);
    assert.ok(ahead < 300_000, `${ahead} bytes of the body came before the answers`);
  });

  it('does not excuse a peer that floods and reads nothing', async () => {
    const played = await begun([Buffer.alloc(8 * MIB)]);
    let flood = 0;
    for (; flood < 100_000 && !played.connection.isClosed; flood += 1000) {
      played.connection.request({ block }, new Told()); // something of use in between
      played.peer.send(repeated(ping, 1000));
      await new Promise((resolve) => void setImmediate(resolve));
    }
    await until('the end', () => played.connection.isClosed);
    assert.match(String(played.closing.error), /does not read the answers/);
    assert.ok(flood * ping.length < 600_000, `${flood} pings`);
  });

  it('keeps little of it in memory until the peer reads, of many requests too', async () => {
    const bodies = Array.from({ length: 40 }, () => Buffer.alloc(150_000));
    const played = await begun(bodies);
    const kept = played.written.reduce((sum, chunk) => sum + chunk.length, 0) - DEFAULT_WINDOW;
    assert.ok(kept < 300_000, `${kept} bytes`);
    played.peer.thaw();
    await until('the requests came', () => received(played) === 40 * 150_000);
    assert.equal(played.closing.error, undefined);
  });
});
