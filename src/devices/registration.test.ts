import assert from 'node:assert/strict';
import { existsSync, linkSync, mkdtempSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { DeviceRegistration } from './registration.ts';

const PLUGINS = 20;

test('a plugin that sees its socket go never finds the one of the kubelet before', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'registration-'));
  const kubelet = join(directory, 'kubelet.sock');
  await leaveDeadSocket(kubelet, join(directory, 'first'));
  const servers = await Promise.all(Array.from({ length: PLUGINS }, (_, i) => listen(join(directory, `${i}.sock`))));
  const answers: Promise<string>[] = [];
  const watcher = watch(directory, (_, name) => {
    if (name !== null && /^\d+\.sock$/.test(name)) answers.push(knock(kubelet));
  });
  const stop = new AbortController();
  const labelled: string[] = [];
  const registration = new DeviceRegistration(
    {
      clock: systemClock,
      plugins: { connect: () => Promise.resolve(), disconnect: () => undefined },
      log: silentLogger,
      label: async (path) => void labelled.push(path),
      registrations: new Registry().counter('registrations', 'of plugins', ['resource_name']),
    },
    { directory },
  );
  const running = registration.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    watcher.close();
    for (const server of servers) server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  while (answers.length < PLUGINS || !existsSync(kubelet)) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    (await Promise.all(answers)).filter((answer) => answer === 'ECONNREFUSED'),
    [],
  );
  assert.equal(registration.failing(), undefined);
  assert.deepEqual(labelled, [directory]);
  assert.equal(await knock(kubelet), 'connected');
  stop.abort();
  await running;
  assert.deepEqual(readdirSync(directory), [], 'nothing is left of it');
});

test('plugins can register once the directory can be used', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'registration-'));
  const directory = join(root, 'device-plugins');
  writeFileSync(directory, '');
  const clock = new ManualClock();
  const registration = new DeviceRegistration(
    {
      clock,
      plugins: { connect: () => Promise.resolve(), disconnect: () => undefined },
      log: silentLogger,
      registrations: new Registry().counter('registrations', 'of plugins', ['resource_name']),
    },
    { directory },
  );
  const stop = new AbortController();
  const running = registration.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    rmSync(root, { recursive: true, force: true });
  });
  while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.match(registration.failing() ?? '', /no device plugins can register: EEXIST/);
  rmSync(directory);
  await clock.advance(1000);
  while (registration.failing() !== undefined) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await knock(join(directory, 'kubelet.sock')), 'connected');
});

const listen = (path: string): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(path, () => resolve(server));
  });

/** A socket nobody listens on any more; closing the server removes only the name it was given. */
async function leaveDeadSocket(path: string, name: string): Promise<void> {
  const server = await listen(name);
  linkSync(name, path);
  await new Promise((resolve) => server.close(resolve));
}

const knock = (path: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve('connected'));
    socket.once('error', (err: NodeJS.ErrnoException) => resolve(err.code ?? ''));
    socket.once('close', () => resolve('closed'));
    socket.once('connect', () => socket.destroy());
  });
