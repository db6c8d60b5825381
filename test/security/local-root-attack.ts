// The program of local-root.test.ts, in a network namespace whose connections all have the same client port. Prints how often
// a connection of another user was taken for root, and how often one of root was not.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { localRoot } from '../../src/server/standalone-access.ts';

export type AttackResult = Record<
  'attempts' | 'takenForRoot' | 'rootConnections' | 'rootRefused' | 'clientPorts',
  number
>;
type Role = 'daemon' | 'user' | 'root';

const ATTEMPTS = 1000;
const ROOT_CONNECTIONS = 20;
const HOST = '127.0.0.1';
const PORT = 10250;
/** Servers of this machine that a daemon of root is connected to, and those it was connected to until now. */
const DAEMON_PORTS = Array.from({ length: 24 }, (_, i) => 8000 + i);
const CLOSED_PORTS = Array.from({ length: 24 }, (_, i) => 9000 + i);
const NOBODY = 65_534;

async function open(port: number): Promise<Socket> {
  const socket = connect(port, HOST);
  await once(socket, 'connect');
  return socket;
}

/** The answer of the server; a reset leaves no TIME_WAIT, so that the next connection gets the same port. */
async function ask(): Promise<string> {
  const socket = await open(PORT);
  const port = socket.localPort;
  socket.write('?');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.resetAndDestroy();
  return `${port} ${answer.toString()}`;
}

const ROLES: Readonly<Record<Role, () => Promise<void>>> = {
  daemon: async () => {
    for (const port of DAEMON_PORTS) await open(port);
    // The end that closes first stays in TIME_WAIT.
    for (const port of CLOSED_PORTS) {
      const socket = await open(port);
      socket.end();
      socket.resume();
      await once(socket, 'close');
    }
    console.log('ready');
  },
  user: async () => {
    process.setgid?.(NOBODY);
    process.setuid?.(NOBODY);
    for (let i = 0; i < ATTEMPTS; i++) console.log(await ask());
  },
  root: async () => {
    for (let i = 0; i < ROOT_CONNECTIONS; i++) console.log(await ask());
  },
};

async function listen(port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    onConnection(socket);
  });
  server.listen(port, HOST);
  await once(server, 'listening');
  return server;
}

const start = (role: Role): ChildProcess =>
  spawn(process.execPath, ['--disable-warning=ExperimentalWarning', import.meta.filename, role], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

async function answersTo(role: Role): Promise<string[][]> {
  const child = start(role);
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  assert.equal(code, 0, `${role} ended with ${code}`);
  return text
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
}

async function attack(): Promise<AttackResult> {
  const authenticate = localRoot();
  const signal = new AbortController().signal;
  const answer = async (socket: Socket): Promise<void> => {
    await once(socket, 'data');
    const user = await authenticate({ socket } as IncomingMessage, signal);
    socket.write(user?.username ?? 'nobody');
  };
  const servers = [await listen(PORT, (socket) => void answer(socket))];
  for (const port of [...DAEMON_PORTS, ...CLOSED_PORTS])
    servers.push(await listen(port, (socket) => void socket.resume()));
  const daemon = start('daemon');
  try {
    assert.ok(daemon.stdout);
    await once(daemon.stdout, 'data');
    const [users, roots] = [await answersTo('user'), await answersTo('root')];
    return {
      attempts: users.length,
      takenForRoot: users.filter(([, name]) => name === 'system:local-root').length,
      rootConnections: roots.length,
      rootRefused: roots.filter(([, name]) => name !== 'system:local-root').length,
      clientPorts: new Set([...users, ...roots].map(([port]) => port)).size,
    };
  } finally {
    daemon.kill();
    for (const server of servers) server.close();
  }
}

const role = process.argv[2];
if (role === 'daemon' || role === 'user' || role === 'root') await ROLES[role]();
else {
  console.log(JSON.stringify(await attack()));
  process.exit(0);
}
