import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { CONFIG_SEEN, CONFIG_SOURCE, type Pod } from '../core/pod.ts';
import { sandboxId } from '../core/ids.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Decoder } from './decoder.ts';
import { HttpSource } from './http-source.ts';
import type { FoundProblem } from './problem.ts';
import { until } from '../../test/harness/until.ts';

const podText = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });

describe('http source', () => {
  let server: Server;
  let answer: { status: number; body: string; headers?: Record<string, string> } = { status: 200, body: '' };
  const headers: (string | string[] | undefined)[] = [];
  before(async () => {
    server = createServer((request, response) => {
      headers.push(request.headers['x-token']);
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  it('follows what the URL says, and keeps the last good word when it says nothing usable', async () => {
    const sets: (readonly Pod[])[] = [];
    let heard: readonly FoundProblem[] = [];
    const first = (): FoundProblem | undefined => heard[0];
    const source = new HttpSource(
      {
        clock: systemClock,
        log: silentLogger,
        decoder: new Decoder(systemClock),
        emit: (pods) => sets.push(pods),
        report: (found) => (heard = found),
      },
      {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`,
        headers: { 'X-Token': ['a', 'b'] },
        nodeName: 'n1',
        pollMs: 10,
      },
    );
    const stopper = new AbortController();
    const say = async (status: number, body: string, check: () => boolean): Promise<void> => {
      answer = { status, body };
      await until(`it is so: ${JSON.stringify({ heard, names: names() })}`, check);
    };
    const names = (): string => (sets.at(-1) ?? []).map((p) => p.metadata.name).join(' ');
    answer = { status: 200, body: podText('one') };
    const running = source.run(stopper.signal);

    try {
      await say(200, podText('one'), () => names() === 'one-n1');
      assert.deepEqual(headers[0], 'a, b');
      const list = `{"apiVersion":"v1","kind":"PodList","items":[${podText('two')},${podText('three')}]}`;
      await say(200, list, () => names() === 'two-n1 three-n1');
      assert.deepEqual(heard, []);

      const count = sets.length;
      await say(500, 'oops', () => first()?.message === 'answered 500 Internal Server Error');
      await say(200, 'apiVersion: v1\nkind: Pod\n', () => first()?.field === 'metadata.name');
      await say(200, 'x'.repeat(11 * 1024 * 1024), () => /larger than 10 MiB/.test(first()?.message ?? ''));
      assert.equal(sets.length, count, 'nothing is said while nothing good is heard');
      await say(200, list, () => heard.length === 0);

      await say(200, '', () => sets.length > count && names() === '');
      assert.match(first()?.message ?? '', /zero-length/);
    } finally {
      stopper.abort();
      await running;
    }
  });

  it('shows no credential of its URL, and gives its headers to nobody else', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const elsewhere = createServer((request, response) => {
      seen.push(request.headers);
      response.end(podText('moved'));
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    const home = createServer((request, response) => {
      seen.push(request.headers);
      response.writeHead(302, { location: `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/` }).end();
    });
    await new Promise<void>((resolve) => home.listen(0, '127.0.0.1', resolve));
    const port = (home.address() as AddressInfo).port;
    const ask = async (url: string): Promise<{ problems: readonly FoundProblem[]; pods: readonly Pod[] }> => {
      const stop = new AbortController();
      let problems: readonly FoundProblem[] = [];
      let pods: readonly Pod[] = [];
      const source = new HttpSource(
        {
          clock: systemClock,
          log: silentLogger,
          decoder: new Decoder(systemClock),
          emit: (found) => {
            pods = found;
            stop.abort();
          },
          report: (found) => {
            problems = found;
            if (found.length > 0) stop.abort();
          },
        },
        { url, headers: { 'X-Token': ['planted'] }, nodeName: 'n1', pollMs: 10 },
      );
      await source.run(stop.signal);
      return { problems, pods };
    };
    try {
      assert.equal((await ask(`http://me:planted@127.0.0.1:${port}/?token=planted`)).pods.length, 1);
      assert.deepEqual(
        seen.map((headers) => [headers['x-token'], headers.authorization]),
        [
          ['planted', `Basic ${Buffer.from('me:planted').toString('base64')}`],
          [undefined, undefined],
        ],
      );
      home.close();
      for (const url of [`http://me:planted@127.0.0.1:${port}/?token=planted`, 'ftp://h/?planted']) {
        const { problems } = await ask(url);
        assert.equal(problems.length, 1);
        assert.doesNotMatch(JSON.stringify(problems), /planted/);
      }
    } finally {
      home.close();
      elsewhere.close();
    }
  });

  it('adopts a pod that runs, where the answer is older than the pod', async () => {
    const NOW = Date.UTC(2026, 0, 2);
    for (const [age, uid] of [
      [60, 'theirs'],
      [0, 'computed'],
      [undefined, 'computed'],
    ] as const) {
      const date = new Date(NOW + 3_600_000); // the server's clock is an hour ahead
      const modified =
        age === undefined ? {} : { 'last-modified': new Date(date.getTime() - age * 1000).toUTCString() };
      answer = { status: 200, body: podText('web'), headers: { date: date.toUTCString(), ...modified } };
      const emitted = Promise.withResolvers<readonly Pod[]>();
      const seen = new Date(NOW - 30_000).toISOString();
      const annotations = { [CONFIG_SOURCE]: 'http', [CONFIG_SEEN]: seen };
      const running = { ...aliveSnapshot('theirs'), name: 'web-n1', namespace: 'default' };
      const id = sandboxId('s');
      const sandbox = { id, attempt: 0, ready: true, createdAt: 1n, hostNetwork: false, ips: [], runtimeHandler: '' };
      const stopper = new AbortController();
      const source = new HttpSource(
        {
          clock: { ...systemClock, now: () => NOW },
          log: silentLogger,
          decoder: new Decoder(systemClock),
          emit: (pods) => emitted.resolve(pods),
          report: () => undefined,
          observed: { all: () => [{ ...running, sandboxes: [{ ...sandbox, annotations }] }] },
        },
        { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, headers: {}, nodeName: 'n1', pollMs: 10 },
      );
      const polling = source.run(stopper.signal);
      const [pod] = await emitted.promise;
      stopper.abort();
      await polling;
      assert.equal(pod?.metadata.uid === 'theirs' ? 'theirs' : 'computed', uid, `changed ${age} s ago`);
    }
  });
});
