// Streams on a real node, spoken raw: SPDY and WebSocket, well-formed, broken, many at once.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { SpdyClient } from '../../src/server/streaming/spdy-client.ts';
import { maskedFrame, openWebSocket, send, TestWebSocket, upgrade } from '../contracts/server/http-client.ts';
import { createNamespace, startPod, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';
import { tunnelOver } from '../contracts/server/tunnel.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

const V5 = ['v5.channel.k8s.io'];
const query = (command: readonly string[], flags: string): string =>
  `/exec/golden/simple/web?${command.map((c) => `command=${encodeURIComponent(c)}`).join('&')}&${flags}`;

describe('streams', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  before(async () => {
    server = await startServerNode();
    await createNamespace(server.node);
    await startPod(server.node, 'simple');
    const echo = 'while :; do nc -l -p 8080 -e cat; done';
    await startPod(server.node, 'talker', `echo ready; read line; echo "got $line"; ${echo}`, {
      stdin: true,
      stdinOnce: false,
    });
  });
  after(() => server.stop());

  const open = async (path: string, protocols: readonly string[] = V5): Promise<TestWebSocket> => {
    const socket = await openWebSocket(server.main, path, protocols);
    assert.ok(socket instanceof TestWebSocket, JSON.stringify(socket));
    return socket;
  };
  const memoryKb = (): number => {
    const status = readFileSync(`/proc/${server.node.kubelet.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  };
  const openSockets = (): number => {
    const pid = String(server.node.kubelet.pid);
    const own = readFileSync(`/proc/${pid}/net/tcp`, 'utf8');
    const port = server.node.port.toString(16).toUpperCase().padStart(4, '0');
    return own.split('\n').filter((l) => l.includes(`:${port} `) && / 01 /.test(l)).length;
  };

  it('v5: stdin to its end, close of the channel, output, exit code', async () => {
    const socket = await open(query(['sh', '-c', 'cat; echo end >&2; exit 7'], 'input=1&output=1&error=1'));
    socket.send(0, 'one ');
    socket.send(0, 'two');
    socket.raw(maskedFrame(2, Buffer.from([255, 0])));
    assert.equal(await socket.closed, 1000);
    assert.equal(socket.text(1), 'one two');
    assert.equal(socket.text(2), 'end\n');
    const status = JSON.parse(socket.text(3)) as { details: { causes: { message: string }[] } };
    assert.equal(status.details.causes[0]?.message, '7');
  });

  it('v5: success, and a command that is not there', async () => {
    const good = await open(query(['true'], 'output=1'));
    await good.closed;
    assert.equal(good.text(3), '{"metadata":{},"status":"Success"}');
    const bad = await open(query(['/nosuch'], 'output=1'));
    await bad.closed;
    const { status, reason, code } = JSON.parse(bad.text(3)) as { status: string; reason: string; code: number };
    assert.deepEqual({ status, reason, code }, { status: 'Failure', reason: 'InternalError', code: 500 });
  });

  it('v5: terminal with its size, and changes of it', async () => {
    const script = 'stty size; until stty size | grep -q "30 90"; do sleep 0.05; done; stty size';
    const socket = await open(query(['sh', '-c', `sleep 0.3; ${script}`], 'input=1&output=1&tty=1'));
    socket.send(4, '{"Width":100,"Height":40}');
    await untilSeen(
      'the first size',
      () => socket.text(1),
      (seen) => seen.includes('40 100'),
    );
    socket.send(4, 'nonsense');
    socket.send(4, '{"Width":90,"Height":30}');
    assert.equal(await socket.closed, 1000);
    assert.match(socket.text(1), /40 100[\s\S]*30 90/);
  });

  it('v5: pings are answered, messages may come in parts', async () => {
    const socket = await open(query(['cat'], 'input=1&output=1'));
    socket.raw(maskedFrame(9, Buffer.from('are you there')));
    socket.raw(maskedFrame(2, Buffer.from([0, 0x61]), false));
    socket.raw(maskedFrame(9, Buffer.alloc(0)));
    socket.raw(maskedFrame(0, Buffer.from('bc'), true));
    await untilSeen(
      'echo',
      () => socket.text(1),
      (seen) => seen === 'abc',
    );
    assert.ok(socket.frames.some((f) => f.opcode === 10 && f.payload.toString() === 'are you there'));
    socket.raw(maskedFrame(8, Buffer.from([3, 232])));
    assert.equal(await socket.closed, 1000);
  });

  it('v5: 16 MiB through stdin and back, unchanged', async () => {
    const data = randomBytes(16 * 1024 * 1024);
    const socket = await open(query(['cat'], 'input=1&output=1'));
    for (let at = 0; at < data.length; at += 32_768)
      if (!socket.send(0, data.subarray(at, at + 32_768)))
        await new Promise((ready) => socket.socket.once('drain', ready));
    socket.raw(maskedFrame(2, Buffer.from([255, 0])));
    assert.equal(await socket.closed, 1000);
    const hash = createHash('sha256');
    for (const f of socket.frames) if (f.opcode === 2 && f.payload[0] === 1) hash.update(f.payload.subarray(1));
    assert.equal(hash.digest('hex'), createHash('sha256').update(data).digest('hex'));
  });

  it('SPDY exec passes through', async () => {
    const opened = await upgrade(server.main, 'POST', query(['sh', '-c', 'cat; exit 3'], 'input=1&output=1'), {
      upgrade: 'SPDY/3.1',
      'x-stream-protocol-version': 'v4.channel.k8s.io',
    });
    assert.ok(opened.socket !== undefined);
    const client = new SpdyClient(opened.socket, systemClock);
    const got: Record<string, string> = { error: '', stdout: '' };
    const ends = new Set<string>();
    const on = (name: string) => ({
      data: (payload: Buffer) => void (got[name] += payload.toString()),
      end: () => void ends.add(name),
    });
    client.open({ streamtype: 'error' }, on('error'));
    const stdin = client.open({ streamtype: 'stdin' }, {});
    client.open({ streamtype: 'stdout' }, on('stdout'));
    client.start(opened.first);
    stdin.write(Buffer.from('through'));
    stdin.end();
    await untilSeen(
      'both streams end',
      () => ends.size,
      (seen) => seen === 2,
    );
    assert.equal(got['stdout'], 'through');
    assert.match(got['error'] ?? '', /"message":"3"/);
    client.close();
  });

  it('attach: output and input of a running container', async () => {
    const socket = await open('/attach/golden/talker/web?input=1&output=1&error=1');
    socket.send(0, 'hello\n');
    await untilSeen(
      'the container answers',
      () => socket.text(1),
      (seen) => seen.includes('got hello'),
    );
    socket.socket.destroy();
  });

  it('port-forward through a tunnel, half-close included', async () => {
    const socket = await open('/portForward/golden/talker', ['SPDY/3.1+portforward.k8s.io']);
    assert.equal(socket.protocol, 'SPDY/3.1+portforward.k8s.io');
    const client = new SpdyClient(tunnelOver(socket), systemClock);
    let got = '';
    let failure = '';
    client.open({ streamtype: 'error', port: '8080', requestid: '0' }, { data: (p) => void (failure += p.toString()) });
    const data = client.open(
      { streamtype: 'data', port: '8080', requestid: '0' },
      { data: (p) => void (got += p.toString()) },
    );
    client.start(Buffer.alloc(0));
    data.write(Buffer.from('over the wire'));
    await until('the echo', () => got === 'over the wire' || failure !== '');
    assert.equal(failure, '');
    client.close();
  });

  it('200 execs and 50 followed logs at once, and memory comes back', async () => {
    await Promise.all(Array.from({ length: 20 }, async () => (await open(query(['true'], 'output=1'))).closed));
    const before = memoryKb();
    const logs = Array.from({ length: 50 }, () => follow(server));
    const execs = await Promise.all(Array.from({ length: 200 }, () => open(query(['cat'], 'input=1&output=1'))));
    for (const [i, socket] of execs.entries()) socket.send(0, `I am ${i}`);
    for (const [i, socket] of execs.entries())
      await untilSeen(
        `echo ${i}`,
        () => socket.text(1),
        (seen) => seen === `I am ${i}`,
      );
    for (const socket of execs) socket.raw(maskedFrame(2, Buffer.from([255, 0])));
    await Promise.all(execs.map((s) => s.closed));
    for (const stop of logs) (await stop)();
    await untilSeen('all connections are closed', openSockets, (seen) => seen === 0);
    await untilSeen(
      'memory is less than a fifth more than before',
      () => memoryKb() / before,
      (seen) => seen < 1.2,
    );
  });

  it('10,000 fuzzed frames end their own stream at most', async () => {
    const lanes = 10;
    for (let round = 0; round < 5; round++)
      await Promise.all(
        Array.from({ length: lanes }, async () => {
          const socket = await open(query(['cat'], 'input=1&output=1&tty=1'));
          for (let i = 0; i < 199; i++) socket.raw(fuzzedFrame());
          socket.raw(randomBytes(1 + Math.floor(Math.random() * 60)));
          socket.socket.end();
          await socket.closed;
        }),
      );
    assert.equal(/[^\n]*unexpected failure[^\n]*/.exec(await server.node.log())?.[0], undefined);
    assert.equal((await send(server.main, 'GET', '/healthz')).body, 'ok');
    await untilSeen('all connections are closed', openSockets, (seen) => seen === 0);
  });

  it('10,000 broken requests: an answer or a closed connection, never a crash or a leak', async () => {
    const pid = server.node.kubelet.pid;
    const { host, port, as } = server.main;
    let answers = 0;
    for (let round = 0; round < 50; round++)
      await Promise.all(
        Array.from({ length: 20 }, async (_, lane) => {
          const socket = connect({ host, port, ...as, rejectUnauthorized: false });
          socket.on('error', () => socket.destroy());
          socket.on('data', (chunk: Buffer) => void (answers += chunk.toString().split('HTTP/1.1 ').length - 1));
          await new Promise((ready) => socket.once('secureConnect', ready).once('close', ready));
          // Behind a request that ends the connection the rest is for nobody: each starts with another one.
          for (let i = 0; i < 10; i++) if (!socket.destroyed) socket.write(brokenRequest(round * 20 + lane + i));
          const heard = new Promise<void>(
            (resolve) => void socket.once('data', () => resolve()).once('close', () => resolve()),
          );
          await Promise.race([heard, timePasses(2000, 'nothing to happen')]);
          await timePasses(20, 'another instant');
          socket.destroy();
        }),
      );
    const crash = /[^\n]*unexpected failure[^\n]*/.exec(await server.node.log());
    assert.equal(crash?.[0], undefined);
    assert.ok(answers > 500, `${answers} answers`);
    assert.equal(server.node.kubelet.pid, pid);
    assert.equal((await send(server.main, 'GET', '/healthz')).body, 'ok');
    await untilSeen('all connections are closed', openSockets, (seen) => seen === 0);
  });
});

/** A frame that the protocol allows most of the time, with any channel and any contents. */
function fuzzedFrame(): Buffer {
  const any = (below: number): number => Math.floor(Math.random() * below);
  const payload = randomBytes(any(200));
  const channels = [0, 1, 2, 3, 4, 4, 7, 254];
  if (payload.length > 0) payload[0] = channels[any(channels.length)] ?? 0;
  const opcode = [2, 2, 2, 2, 1, 9, 10][any(7)] ?? 2;
  const frame = maskedFrame(opcode, opcode > 8 ? payload.subarray(0, 125) : payload);
  // Now and then one that breaks it: what follows is for nobody.
  if (any(400) === 0) frame[any(4)] = any(256);
  return frame;
}

/** Well-formed, half-formed and nonsense, by number. */
function brokenRequest(n: number): Buffer {
  const bytes = randomBytes(12)
    .toString('latin1')
    .replaceAll(/[\r\n]/g, '?');
  const host = 'Host: x\r\n';
  const upgradeHeaders = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  const forms = [
    `GET /${encodeURIComponent(bytes)} HTTP/1.1\r\n${host}\r\n`,
    `GET /exec/golden/simple/web?command=true&output=1 HTTP/1.1\r\n${host}${upgradeHeaders}Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n`,
    `POST /run/golden/simple/%zz?cmd=x HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n`,
    `GET /containerLogs/golden/simple/web?tailLines=${encodeURIComponent(bytes)} HTTP/1.1\r\n${host}\r\n`,
    `GET /portForward/golden/simple?port=${n} HTTP/1.1\r\n${host}${upgradeHeaders}\r\n`,
    `GET /logs/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n${host}\r\n`,
    `PUT /debug/flags/v HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nx${n % 10}y`,
    `${bytes} /pods HTTP/1.1\r\n${host}\r\n`,
    `GET /pods HTTP/9.9\r\n${host}\r\n`,
    `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
    `GET /healthz HTTP/1.1\r\n${host}X-${'a'.repeat(n % 500)}: ${bytes}\r\n\r\n`,
    `POST /exec/golden/simple/web?command=true&output=1 HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n${bytes}`,
    bytes,
  ];
  return Buffer.from(forms[n % forms.length] ?? '', 'latin1');
}

function follow({ main }: ServerNode): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const path = '/containerLogs/golden/simple/web?follow=true';
    const { host, port, as } = main;
    const outgoing = request({ host, port, path, ...as, rejectUnauthorized: false, agent: false });
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      incoming.on('error', () => undefined);
      incoming.once('data', () => resolve(() => incoming.destroy()));
    });
    outgoing.end();
  });
}
