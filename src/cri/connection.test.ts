// The CRI client against real sockets: what happens to calls when the runtime is slow, away, restarted or talkative.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttp2, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { Registry } from '../lib/metrics.ts';
import { losingSupport } from './metrics.ts';
import { openCri, readCgroupDriver, validateCri, type CriConnection } from './connection.ts';
import { parseEndpoint } from './endpoint.ts';
import { CgroupDriver, ImageService, RuntimeService, type Container } from './gen/cri.ts';
import { criMetrics, operationType } from './metrics.ts';
import type { CallInterceptor } from './services.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-cri-'));
after(() => rmSync(root, { recursive: true, force: true }));
const forever = new AbortController().signal;
let next = 0;
const newSocket = (): string => join(root, `${next++}.sock`);
const connect = (socketPath: string, timeoutMs = 5000, intercept?: CallInterceptor): CriConnection =>
  openCri(systemClock, {
    runtimeEndpoint: `unix://${socketPath}`,
    imageEndpoint: '',
    timeoutMs,
    ...(intercept === undefined ? {} : { intercept }),
  });
const version = { version: '0.1.0', runtimeName: 'test', runtimeVersion: '1', runtimeApiVersion: 'v1' };

/** Serves the two verbs of the start-up check, and what else `more` adds. */
async function serve(socketPath: string, more: (server: GrpcServer) => void = () => undefined): Promise<GrpcServer> {
  const server = new GrpcServer();
  server.unary(RuntimeService.version, async () => version);
  server.unary(ImageService.imageFsInfo, async () => ({ imageFilesystems: [], containerFilesystems: [] }));
  more(server);
  await server.listen(socketPath);
  return server;
}

describe('CRI connection', () => {
  it('connects with the first call, and anew with the first call after a restart', async () => {
    const path = newSocket();
    const cri = connect(path);
    await assert.rejects(cri.runtime.version({}, forever), { kind: 'unavailable' });
    for (let i = 0; i < 3; i++) {
      const server = await serve(path);
      assert.equal((await cri.runtime.version({}, forever)).runtimeName, 'test');
      await server.close();
      await assert.rejects(cri.runtime.version({}, forever), { kind: 'unavailable' });
      rmSync(path, { force: true });
    }
    cri.close();
  });

  it('rejects calls in flight as unavailable when the runtime goes away', async () => {
    const path = newSocket();
    const arrived = Promise.withResolvers<void>();
    const server = await serve(path, (s) =>
      s.unary(RuntimeService.stopContainer, () => {
        arrived.resolve();
        return new Promise(() => undefined);
      }),
    );
    const cri = connect(path);
    const calls = [1, 2, 3].map(() => cri.runtime.stopContainer({ containerId: 'x', timeout: 30 }, forever));
    const settled = Promise.allSettled(calls);
    await arrived.promise;
    await server.close();
    for (const result of await settled)
      assert.equal(result.status === 'rejected' && (result.reason as GrpcError).kind, 'unavailable');
    cri.close();
  });

  it('takes no more of what a command printed than upstream does', async () => {
    const path = newSocket();
    const answer = { stdout: Buffer.alloc(17 * 1024 * 1024), stderr: Buffer.alloc(0), exitCode: 0 };
    const server = await serve(path, (s) => s.unary(RuntimeService.execSync, async () => answer));
    const cri = connect(path);
    await assert.rejects(cri.runtime.execSync({ containerId: 'x', timeout: 1 }, forever), /larger than max/);
    cri.close();
    await server.close();
  });

  it('gives up after the verb’s deadline and tells the runtime', async () => {
    const path = newSocket();
    const cancelled = Promise.withResolvers<void>();
    const server = await serve(path, (s) =>
      s.unary(RuntimeService.status, (_, signal) => {
        signal.addEventListener('abort', () => cancelled.resolve());
        return new Promise(() => undefined);
      }),
    );
    const cri = connect(path, 100);
    await assert.rejects(cri.runtime.status({}, forever), { kind: 'deadline', codeName: 'DeadlineExceeded' });
    await cancelled.promise;
    await server.close();
    cri.close();
  });

  it('cancels with its signal, at once even when nobody answers the connection', async () => {
    const path = newSocket();
    const sockets: Socket[] = [];
    const deaf: Server = createServer((s) => sockets.push(s)).listen(path);
    await once(deaf, 'listening');
    const cri = connect(path);
    const stop = new AbortController();
    const call = cri.runtime.version({}, stop.signal);
    setTimeout(() => stop.abort(new Error('enough')), 50);
    await assert.rejects(call, { message: 'enough' });
    cri.close();
    for (const s of sockets) s.destroy();
    deaf.close();
  });

  it('takes lists larger than 16 MiB', async () => {
    const path = newSocket();
    const one: Container = {
      id: 'c'.repeat(64),
      podSandboxId: 's'.repeat(64),
      imageRef: '',
      state: 2,
      createdAt: 1n,
      labels: { 'io.kubernetes.pod.uid': 'u'.repeat(36) },
      annotations: { note: 'n'.repeat(1500) },
      imageId: '',
    };
    const containers = Array.from({ length: 12_000 }, () => one);
    const server = await serve(path, (s) => s.unary(RuntimeService.listContainers, async () => ({ containers })));
    const cri = connect(path, 300_000); // it is about the size: an emulated processor takes its time
    const answer = await cri.runtime.listContainers({}, forever);
    assert.equal(answer.containers.length, 12_000);
    assert.equal(answer.containers.at(-1)?.annotations['note']?.length, 1500);
    await server.close();
    cri.close();
  });

  it('calls an answer that breaks off unavailable', async () => {
    const path = newSocket();
    const server: Http2Server = createHttp2().listen(path);
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.write(Buffer.from([0, 0, 0, 1, 0, 1, 2, 3]));
      setTimeout(() => stream.session?.destroy(), 20);
    });
    server.on('sessionError', () => undefined);
    await once(server, 'listening');
    const cri = connect(path);
    await assert.rejects(cri.runtime.version({}, forever), { kind: 'unavailable' });
    cri.close();
    server.close();
  });

  it('counts and times calls under upstream names', async () => {
    const path = newSocket();
    const server = await serve(path);
    const registry = new Registry();
    const cri = connect(path, 5000, criMetrics(systemClock, registry));
    await cri.runtime.version({}, forever);
    await assert.rejects(cri.runtime.listPodSandbox({}, forever), { kind: 'unimplemented' });
    const text = registry.render();
    assert.match(text, /kubelet_runtime_operations_total\{operation_type="version"\} 1/);
    assert.match(text, /kubelet_runtime_operations_errors_total\{operation_type="list_podsandbox"\} 1/);
    assert.match(text, /kubelet_runtime_operations_duration_seconds_count\{operation_type="version"\} 1/);
    assert.doesNotMatch(text, /errors_total\{operation_type="version"\}/);
    await server.close();
    cri.close();
  });

  it('names operations as upstream does', () => {
    const rows = [
      ['runPodSandbox', 'run_podsandbox'],
      ['updateContainerResources', 'update_container'],
      ['imageFsInfo', 'image_fs_info'],
      ['execSync', 'exec_sync'],
      ['getContainerEvents', 'get_container_events'],
      ['listPodSandboxStats', 'list_podsandbox_stats'],
      ['reopenContainerLog', 'reopen_container_log'],
    ] as const;
    for (const [verb, name] of rows) assert.equal(operationType(verb), name);
  });

  it('uses a separate image endpoint when there is one', async () => {
    const [a, b] = [newSocket(), newSocket()];
    const runtime = await serve(a);
    const images = await serve(b, (s) => s.unary(ImageService.listImages, async () => ({ images: [] })));
    const options = { runtimeEndpoint: a, imageEndpoint: `unix://${b}`, timeoutMs: 1000 };
    const cri = openCri(systemClock, options);
    assert.deepEqual(await cri.images.listImages({}, forever), { images: [] });
    await assert.rejects(cri.runtime.status({}, forever), { kind: 'unimplemented' });
    cri.close();
    await Promise.all([runtime.close(), images.close()]);
  });
});

describe('start-up check', () => {
  it('passes a runtime of our version and says what it is', async () => {
    const path = newSocket();
    const server = await serve(path);
    const cri = connect(path);
    assert.deepEqual(await validateCri(cri, forever), { name: 'test', version: '1', apiVersion: 'v1' });
    await server.close();
    await assert.rejects(validateCri(cri, forever), {
      message: new RegExp(`^validate CRI v1 runtime API for endpoint "unix://${path}": rpc error: code = Unavailable`),
    });
    cri.close();
  });

  it('refuses another version, and a runtime without images', async () => {
    for (const more of [
      (s: GrpcServer) => s.unary(RuntimeService.version, async () => ({ ...version, version: '0.2.0' })),
      (s: GrpcServer) =>
        s.unary(ImageService.imageFsInfo, async () => {
          throw new GrpcError(GrpcCode.Unimplemented, 'unknown service runtime.v1.ImageService');
        }),
    ]) {
      const path = newSocket();
      const server = await serve(path, more);
      const cri = connect(path);
      await assert.rejects(validateCri(cri, forever), { kind: 'unavailable' });
      cri.close();
      await server.close();
    }
  });

  it('reads the cgroup driver, and leaves it open where the runtime has no such verb', async () => {
    const path = newSocket();
    const server = await serve(path);
    const cri = connect(path);
    const registry = new Registry();
    assert.equal(await readCgroupDriver(cri.runtime, () => losingSupport(registry), forever), undefined);
    assert.match(registry.render(), /^kubelet_cri_losing_support\{version="1\.37\.0"\} 1$/m);
    for (const [driver, name] of [
      [CgroupDriver.SYSTEMD, 'systemd'],
      [CgroupDriver.CGROUPFS, 'cgroupfs'],
    ] as const) {
      server.unary(RuntimeService.runtimeConfig, async () => ({ linux: { cgroupDriver: driver } }));
      assert.equal(await readCgroupDriver(cri.runtime, () => assert.fail('it does'), forever), name);
    }
    await server.close();
    cri.close();
  });

  it('takes unix sockets only', () => {
    assert.deepEqual(parseEndpoint('unix:///run/c.sock'), { socketPath: '/run/c.sock' });
    assert.deepEqual(parseEndpoint('/run/c.sock'), { socketPath: '/run/c.sock' });
    for (const bad of ['', 'tcp://127.0.0.1:1', 'run/c.sock', 'npipe:////./pipe/x'])
      assert.throws(() => parseEndpoint(bad), { kind: 'invalid' });
  });
});
