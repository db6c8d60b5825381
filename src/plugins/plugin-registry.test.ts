import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { Registration } from '../lib/csi-api/gen/pluginregistration.ts';
import type { PluginInfo } from './plugin-handler.ts';
import { PluginRegistry } from './plugin-registry.ts';

/** A registry on a folder of its own, with one kind of plugin, and what happened in order. */
class Scene {
  readonly dir: string;
  readonly seen: string[] = [];
  readonly metrics = new Registry();
  validate: (plugin: PluginInfo) => void = () => undefined;
  register: (plugin: PluginInfo, signal: AbortSignal) => Promise<void> = () => Promise.resolve();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];

  constructor(dir: string) {
    this.dir = dir;
  }

  run(): void {
    const registry = new PluginRegistry(
      {
        handlers: [
          {
            type: 'CSIPlugin',
            validate: (plugin) => this.validate(plugin),
            register: async (plugin, signal) => {
              await this.register(plugin, signal);
              this.note(
                `register ${plugin.name} ${plugin.endpoint.replace(this.dir, '')} ${plugin.versions.join(',')}`,
              );
            },
            deregister: (plugin) => this.note(`deregister ${plugin.name}`),
          },
        ],
        clock: systemClock,
        log: silentLogger,
        metrics: this.metrics,
      },
      { dir: this.dir },
    );
    this.#running = registry.run(this.#stop.signal);
  }

  note(what: string): void {
    this.seen.push(what);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async until(what: string, times = 1): Promise<void> {
    while (this.seen.filter((s) => s === what).length < times)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

async function scene(t: TestContext): Promise<Scene> {
  const dir = join(await mkdtemp(join(tmpdir(), 'plugins-')), 'registry');
  const s = new Scene(dir);
  t.after(async () => {
    await s.end();
    await rm(join(dir, '..'), { recursive: true, force: true });
  });
  return s;
}

async function plugin(t: TestContext, s: Scene, path: string, name: string, type = 'CSIPlugin'): Promise<GrpcServer> {
  const server = new GrpcServer();
  server.unary(Registration.getInfo, async () => ({ type, name, endpoint: '', supportedVersions: ['1.0.0'] }));
  server.unary(Registration.notifyRegistrationStatus, async ({ pluginRegistered, error }) => {
    s.note(pluginRegistered ? `${name} told yes` : `${name} told no: ${error.replaceAll(s.dir, '')}`);
    return {};
  });
  await server.listen(path);
  t.after(() => server.close());
  return server;
}

test('plugins are registered when their sockets come, at any depth, and deregistered when they go', async (t) => {
  const s = await scene(t);
  await mkdir(s.dir);
  await plugin(t, s, join(s.dir, 'early.sock'), 'early');
  s.run();
  await s.until('early told yes');
  await mkdir(join(s.dir, 'a', 'b'), { recursive: true });
  const late = await plugin(t, s, join(s.dir, 'a', 'b', 'late.sock'), 'late');
  await s.until('late told yes');
  assert.deepEqual(s.seen, [
    'register early /early.sock 1.0.0',
    'early told yes',
    'register late /a/b/late.sock 1.0.0',
    'late told yes',
  ]);
  assert.match(s.metrics.render(), /total_plugins\{socket_path="[^"]*early.sock",state="actual_state_of_world"\} 1/);
  await chmod(join(s.dir, 'a', 'b', 'late.sock'), 0o777);
  await late.close();
  await s.until('deregister late');
  await rename(join(s.dir, 'early.sock'), join(s.dir, 'renamed.sock'));
  await s.until('deregister early');
  await s.until('register early /renamed.sock 1.0.0');
  assert.equal(s.seen.filter((x) => x.startsWith('register late')).length, 1, 'another mode is no other plugin');
});

test('a socket that another took the place of is deregistered and registered again', async (t) => {
  const s = await scene(t);
  s.run();
  await mkdir(s.dir, { recursive: true });
  for (let i = 1; i <= 5; i++) {
    const server = await plugin(t, s, join(s.dir, 'x.sock'), 'x');
    await s.until('x told yes', i);
    await server.close();
  }
  await s.until('deregister x', 5);
  const one = ['register x /x.sock 1.0.0', 'x told yes', 'deregister x'];
  assert.deepEqual(s.seen, [...one, ...one, ...one, ...one, ...one]);
});

test('a refusal is told to the plugin in upstream’s words, and tried again', async (t) => {
  const s = await scene(t);
  await mkdir(s.dir);
  await plugin(t, s, join(s.dir, 'q.sock'), 'q', 'Odd');
  s.run();
  await s.until('q told no: RegisterPlugin error -- no handler registered for plugin type: Odd at socket /q.sock', 2);
  s.validate = () => {
    throw new KubeletError('invalid', 'too old');
  };
  await plugin(t, s, join(s.dir, 'v.sock'), 'v');
  await s.until('v told no: RegisterPlugin error -- plugin validation failed with err: too old');
  s.validate = () => undefined;
  s.register = () => Promise.reject(new KubeletError('unavailable', 'no node'));
  await s.until('v told no: RegisterPlugin error -- plugin registration failed with err: no node');
  s.register = () => Promise.resolve();
  await s.until('v told yes');
});

test('a plugin that says too much of itself is not registered', async (t) => {
  const s = await scene(t);
  await mkdir(s.dir);
  const server = new GrpcServer();
  server.unary(Registration.getInfo, async () => {
    s.note('asked');
    return { type: 'CSIPlugin', name: 'x'.repeat(65_536), endpoint: '', supportedVersions: ['1.0.0'] };
  });
  await server.listen(join(s.dir, 'long.sock'));
  t.after(() => server.close());
  s.run();
  await s.until('asked', 2); // the first answer was of no use
  assert.deepEqual(s.seen, ['asked', 'asked']);
});

test('junk, silent sockets and a handler that hangs hold up no other plugin', async (t) => {
  const s = await scene(t);
  await mkdir(join(s.dir, '.hidden'), { recursive: true });
  const silent: Server[] = [];
  for (let i = 0; i < 20; i++) {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(join(s.dir, `silent-${i}.sock`), resolve));
    silent.push(server);
  }
  t.after(() => silent.forEach((server) => server.close()));
  await Promise.all(Array.from({ length: 1000 }, (_, i) => writeFile(join(s.dir, `junk-${i}.sock`), '')));
  await plugin(t, s, join(s.dir, '.hidden', 'h.sock'), 'hidden');
  await plugin(t, s, join(s.dir, '.h.sock'), 'dotted');
  s.register = ({ name }, signal) =>
    name === 'stuck'
      ? new Promise((_, reject) => {
          s.note('stuck');
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        })
      : Promise.resolve();
  const stuck = await plugin(t, s, join(s.dir, 'a-stuck.sock'), 'stuck');
  s.run();
  await s.until('stuck');
  await plugin(t, s, join(s.dir, 'z.sock'), 'z');
  await s.until('z told yes');
  await stuck.close();
  s.register = () => Promise.resolve();
  await plugin(t, s, join(s.dir, 'a-stuck.sock'), 'stuck');
  await s.until('stuck told yes');
  assert.ok(!s.seen.some((x) => x.includes('hidden') || x.includes('dotted')), s.seen.join('\n'));
});
