// Live views: once for all who look, nothing for nobody.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { LiveViews, type Topic } from './live.ts';
import { wholeTopic } from './topics.ts';

describe('live views', () => {
  const live = new LiveViews(systemClock, silentLogger);
  const stop = new AbortController();
  const opened: string[] = [];
  let wake: () => void = () => undefined;
  let value = 1;
  let server: Server;
  const topic = (): Topic => {
    opened.push('open');
    const inner = wholeTopic('view', () => ({ atMs: performance.now(), value }), {
      everyMs: 60_000,
      onChange: (given) => {
        wake = given;
        return () => void opened.push('off');
      },
    });
    return { ...inner, close: () => void opened.push('close') };
  };
  before(async () => {
    server = createServer((request, response) => {
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      void live.visit(request.url ?? '', topic, response, gone.signal, stop.signal);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => {
    stop.abort();
    server.close();
  });

  const visit = async (): Promise<{ answer: IncomingMessage; next: () => Promise<number> }> => {
    const { port } = server.address() as AddressInfo;
    const request = get({ port, path: '/a', host: '127.0.0.1', agent: false });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const lines = answer.setEncoding('utf8')[Symbol.asyncIterator]();
    let text = '';
    const next = async (): Promise<number> => {
      for (;;) {
        const found = /event: view\ndata: (.*)\n\n/.exec(text);
        if (found !== null) {
          text = text.slice(found.index + found[0].length);
          return (JSON.parse(found[1] ?? '') as { value: number }).value;
        }
        text += (await lines.next()).value as string;
      }
    };
    return { answer, next };
  };

  it('are made once for two visitors, sent when they change, and end with the last', async () => {
    const [one, two] = [await visit(), await visit()];
    assert.deepEqual([await one.next(), await two.next()], [1, 1]);
    assert.deepEqual(opened, ['open']);
    assert.equal(live.visitors, 2);
    value = 2;
    const told = (async () => {
      for (let seen = 0; seen !== 2;) seen = await one.next();
      for (let seen = 0; seen !== 2;) seen = await two.next();
    })();
    const nudge = setInterval(() => wake(), 20);
    await told;
    clearInterval(nudge);
    one.answer.destroy();
    two.answer.destroy();
    while (opened.length < 3) await systemClock.sleep(5, stop.signal);
    assert.deepEqual(opened, ['open', 'off', 'close']);
    assert.equal(live.visitors, 0);
  });
});
