import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Listener } from '../listener.ts';
import { silentLogger } from '../../lib/logger.ts';
import { subresourcesOf } from '../guard.ts';
import { waterfallRoutes } from './waterfalls.ts';

const PORT = 20_000 + (process.pid % 900);

describe('waterfalls over HTTP', () => {
  it('as a drawing or as JSON, of one pod or the slowest', async () => {
    const endpoint = waterfallRoutes({
      waterfalls: {
        ofPod: (namespace, name) => (namespace === 'default' && name === 'web' ? ['its start', 'its stop'] : []),
        slowest: (_count, kind) => [`slowest ${kind}`],
      },
      drawn: (waterfall) => `drawing of ${waterfall}`,
    });
    const listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: PORT });
    const stop = new AbortController();
    const running = listener.run(stop.signal);
    const get = async (path: string, accept = '*/*'): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${PORT}${path}`, { headers: { accept } });
      return `${answer.status} ${await answer.text()}`;
    };
    try {
      for (const [path, accept, expected] of [
        ['/debug/waterfalls/default/web', '*/*', '200 drawing of its start\n\ndrawing of its stop\n'],
        ['/debug/waterfalls/default/web', 'application/json, */*', '200 {"waterfalls":["its start","its stop"]}\n'],
        [
          '/debug/waterfalls/default/web?output=text',
          'application/json',
          '200 drawing of its start\n\ndrawing of its stop\n',
        ],
        ['/debug/waterfalls/default/web?output=json', '*/*', '200 {"waterfalls":["its start","its stop"]}\n'],
        ['/debug/waterfalls', '*/*', '200 drawing of slowest start\n'],
        ['/debug/waterfalls?kind=stop', '*/*', '200 drawing of slowest stop\n'],
        [
          '/debug/waterfalls/default/x',
          '*/*',
          '404 no start or stop of pod "x" in namespace "default" is remembered\n',
        ],
      ] as const)
        assert.equal(await get(path, accept), expected, path);
    } finally {
      stop.abort();
      await running;
    }
  });

  it('is for those who may use the node’s proxy', () => {
    assert.deepEqual(subresourcesOf('/debug/waterfalls/default/web'), ['proxy']);
  });
});
