// Container logs over a real port: when the answer begins, and what it says when the log cannot be read.
import assert from 'node:assert/strict';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, it } from 'node:test';
import type { Pod } from '../../core/pod.ts';
import type { Exchange } from '../router.ts';
import { containerLogRoutes, type ContainerLogDeps, type ReadLogs } from './container-logs.ts';

const POD: Pod = {
  metadata: { name: 'p', namespace: 'n' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status: {
    containerStatuses: [
      {
        name: 'c',
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
        lastState: {},
        ready: true,
        restartCount: 0,
        image: 'i',
        imageID: '',
        containerID: 'containerd://abc',
      },
    ],
  },
};

let close: () => void = () => undefined;
afterEach(() => close());

async function ask(more: Partial<ContainerLogDeps>, query = ''): Promise<IncomingMessage> {
  const { routes } = containerLogRoutes({
    finder: { pod: () => POD },
    places: { pathOf: async () => '/log', isRunning: () => true },
    read: async function* () {
      yield Buffer.from('line\n');
    },
    splitStreams: true,
    nowMs: () => 0,
    ...more,
  });
  const stop = new AbortController();
  const server = createServer((request, response) => {
    const params = { namespace: 'n', pod: 'p', container: 'c' };
    const exchange = { request, response, params, query: new URLSearchParams(query), signal: stop.signal };
    void routes[0]?.handle(exchange as unknown as Exchange);
  });
  close = (): void => {
    stop.abort();
    server.closeAllConnections();
    server.close();
  };
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return new Promise((answered, failed) => get({ port, host: '127.0.0.1' }, answered).once('error', failed));
}

it('the answer begins although the container says nothing', async () => {
  const silent: ReadLogs = async function* (_path, _query, _running, signal) {
    await new Promise((over) => signal.addEventListener('abort', over));
    yield Buffer.from('never read');
  };
  assert.equal((await ask({ read: silent }, 'follow=true')).statusCode, 200);
});

const lost = { pathOf: () => Promise.reject(new Error('code = NotFound')), isRunning: () => false };

it('of a container that the runtime lost it says so, in an answer that has begun', async () => {
  const answer = await ask({ places: lost });
  assert.equal(answer.statusCode, 200);
  assert.equal(await text(answer), 'unable to retrieve container logs for containerd://abc');
});

it('errors alone are no reason to begin', async () => {
  const answer = await ask({ places: lost }, 'stream=Stderr');
  assert.equal(answer.statusCode, 400);
  assert.equal(await text(answer), 'unable to retrieve container logs for containerd://abc');
});

it('what breaks off the reading is told behind the lines', async () => {
  const broken: ReadLogs = async function* () {
    yield Buffer.from('line\n');
    throw new Error('failed to open log file "/log": gone');
  };
  const answer = await ask({ read: broken });
  assert.equal(await text(answer), 'line\nfailed to open log file "/log": gone');
});
