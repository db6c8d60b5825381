// Lists as streams against real sockets: a runtime that has them, and one that does not.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { openCri } from './connection.ts';
import { ImageService, RuntimeService, type Container } from './gen/cri.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-streams-'));
after(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();

const container = (id: string): Container => ({ id, labels: {}, annotations: {} }) as unknown as Container;

async function withServer(name: string, add: (server: GrpcServer) => void, verbs: string[]) {
  const server = new GrpcServer();
  add(server);
  const socket = join(root, `${name}.sock`);
  await server.listen(socket);
  const cri = openCri(systemClock, {
    runtimeEndpoint: `unix://${socket}`,
    imageEndpoint: '',
    timeoutMs: 5000,
    streamLists: true,
    intercept: (verb, call) => {
      verbs.push(verb);
      return call();
    },
  });
  return {
    cri,
    close: async () => {
      cri.close();
      await server.close();
    },
  };
}

test('the parts of a stream become one list', async () => {
  const verbs: string[] = [];
  const { cri, close } = await withServer(
    'with',
    (server) => {
      server.serverStream(RuntimeService.streamContainers, async (_request, _signal, send) => {
        send({ containers: [container('a'), container('b')] });
        send({ containers: [container('c')] });
      });
      server.serverStream(ImageService.streamImages, async (_request, _signal, send) => void send({ images: [] }));
    },
    verbs,
  );
  const { containers } = await cri.runtime.listContainers({}, signal);
  assert.deepEqual(
    containers.map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  assert.deepEqual(await cri.images.listImages({}, signal), { images: [] });
  assert.deepEqual(verbs, ['streamContainers', 'streamImages']);
  await close();
});

test('a runtime without streams is asked for them once', async () => {
  const verbs: string[] = [];
  const { cri, close } = await withServer(
    'without',
    (server) => server.unary(RuntimeService.listContainers, async () => ({ containers: [container('a')] })),
    verbs,
  );
  for (let i = 0; i < 2; i++) {
    const { containers } = await cri.runtime.listContainers({}, signal);
    assert.equal(containers[0]?.id, 'a');
  }
  assert.deepEqual(verbs, ['streamContainers', 'listContainers', 'listContainers']);
  await close();
});
