// Port-forward for clients that can only speak WebSocket: binary messages carry the bytes of a SPDY connection, which
// goes on to the runtime as it is.
import type { Socket } from 'node:net';
import { lingeringEnd } from '../lingering-end.ts';
import type { Exchange } from '../router.ts';
import { passAnswer, type StreamDeps } from './pass-through.ts';
import { dialRuntime } from './runtime-dial.ts';
import { IdleTimer } from './splice.ts';
import { tunnelled } from './stream-options.ts';
import { checkHandshake, handshakeAnswer, WebSocketConnection } from './websocket.ts';

export async function serveTunnel(deps: StreamDeps, exchange: Exchange, url: string, protocol: string): Promise<void> {
  const { request, response, upgrade, signal, stop } = exchange;
  if (upgrade === undefined) throw new Error('serveTunnel needs an upgrade');
  checkHandshake(request);
  const headers = {
    connection: 'Upgrade',
    upgrade: 'SPDY/3.1',
    'x-stream-protocol-version': tunnelled(protocol),
  };
  const dialled = await dialRuntime(deps.clock, { url, method: 'POST', headers }, signal);
  const { socket } = upgrade;
  response.detachSocket(socket as Socket);
  if (dialled.upgraded === undefined) return passAnswer(deps.clock, dialled, socket, signal);
  socket.write(handshakeAnswer(request, protocol));
  const { socket: runtime, first } = dialled.upgraded;
  const over = Promise.withResolvers<void>();
  const destroy = (): void => {
    socket.destroy();
    runtime.destroy();
  };
  const idle = new IdleTimer(deps.clock, deps.idleMs, destroy);
  const client = new WebSocketConnection(socket, {
    piece: ({ payload }) => {
      idle.touch();
      if (payload.length === 0 || runtime.destroyed || runtime.writableEnded || runtime.write(payload)) return;
      client.pause();
      runtime.once('drain', () => client.resume());
    },
    closed: () => {
      lingeringEnd(runtime);
      over.resolve();
    },
  });
  const toClient = (chunk: Buffer): void => {
    idle.touch();
    if (client.send(chunk)) return;
    runtime.pause();
    client.drained(() => runtime.resume());
  };
  runtime.on('data', toClient);
  runtime.on('close', () => {
    client.close();
    over.resolve();
  });
  if (first.length > 0) toClient(first);
  stop.addEventListener('abort', destroy, { once: true });
  client.start(upgrade.head);
  await over.promise;
  idle.stop();
  stop.removeEventListener('abort', destroy);
}
