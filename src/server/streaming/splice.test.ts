import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { splice } from './splice.ts';

const never = new AbortController().signal;

describe('splice', () => {
  let server: Server;
  const waiting: Socket[] = [];
  before(async () => {
    server = createServer({ allowHalfOpen: true }, (socket) => void waiting.push(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());

  /** Two ends of one connection. */
  async function pair(): Promise<[Socket, Socket]> {
    const { port } = server.address() as AddressInfo;
    const near = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    await once(near, 'connect');
    while (waiting.length === 0) await systemClock.sleep(1, never);
    const far = waiting.shift();
    assert.ok(far !== undefined);
    for (const socket of [near, far]) socket.on('error', () => socket.destroy());
    return [near, far];
  }

  it('carries both ways, and an end as an end', async () => {
    const [client, a] = await pair();
    const [b, runtime] = await pair();
    const over = splice(a, b, { clock: systemClock, idleMs: 0 }, never);
    client.end('question');
    assert.equal(await everything(runtime), 'question');
    runtime.end('answer after the end of the question');
    assert.equal(await everything(client), 'answer after the end of the question');
    await over;
  });

  it('a slow reader stops the writer', async () => {
    const [client, a] = await pair();
    const [b, runtime] = await pair();
    const over = splice(a, b, { clock: systemClock, idleMs: 0 }, never);
    client.pause();
    const block = Buffer.alloc(64 * 1024);
    let written = 0;
    while (runtime.write(block) || (await drainsSoon(runtime))) {
      written += block.length;
      assert.ok(written < 64 * 1024 * 1024, 'nothing holds the writer back');
    }
    assert.ok(a.writableLength < 4 * 1024 * 1024, `${a.writableLength} bytes pile up`);
    client.destroy();
    runtime.destroy();
    await over;
  });

  it('a peer that is gone takes the other along', async () => {
    const [client, a] = await pair();
    const [b, runtime] = await pair();
    const over = splice(a, b, { clock: systemClock, idleMs: 0 }, never);
    runtime.on('data', () => undefined);
    const ended = once(runtime, 'end');
    client.resetAndDestroy();
    await ended;
    runtime.destroy();
    await over;
  });

  it('closes what is idle for too long, by the clock', async () => {
    const clock = new ManualClock();
    const [client, a] = await pair();
    const [b, runtime] = await pair();
    const over = splice(a, b, { clock, idleMs: 60_000 }, never);
    client.on('data', () => undefined);
    runtime.on('data', () => undefined);
    await clock.advance(40_000);
    client.write('still here');
    await once(runtime, 'data');
    await clock.advance(40_000);
    assert.equal(a.destroyed, false);
    await clock.advance(61_000);
    await over;
    assert.ok(a.destroyed && b.destroyed);
    client.destroy();
    runtime.destroy();
  });

  it('ends with its signal', async () => {
    const stop = new AbortController();
    const [client, a] = await pair();
    const [b, runtime] = await pair();
    const over = splice(a, b, { clock: systemClock, idleMs: 0 }, stop.signal);
    stop.abort();
    await over;
    client.destroy();
    runtime.destroy();
  });
});

async function everything(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => void (text += chunk.toString()));
  await once(socket, 'end');
  return text;
}

const drainsSoon = (socket: Socket): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = systemClock.after(300, () => resolve(false));
    socket.once('drain', () => {
      timer.cancel();
      resolve(true);
    });
  });
