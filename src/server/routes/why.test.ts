import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Listener } from '../listener.ts';
import { silentLogger } from '../../lib/logger.ts';
import { subresourcesOf } from '../guard.ts';
import { whyRoutes } from './why.ts';

const PORT = 21_000 + (process.pid % 900);

const broken = {
  state: 'failing',
  cause: 'ImageNotFound',
  sentence: 'Image "x" cannot be pulled.',
  evidence: ['ErrImagePull: not found'],
  todo: 'Check its name.',
};
const well = { state: 'ready', cause: 'Ready', sentence: 'The pod is ready.', evidence: [], todo: '' };

describe('why over HTTP', () => {
  it('as text or as JSON, of one pod or all that are not well', async () => {
    const endpoint = whyRoutes({
      byName: (namespace, name) => (namespace !== 'shop' ? undefined : name === 'web' ? broken : well),
      all: () => [
        { namespace: 'shop', name: 'web', why: broken },
        { namespace: 'shop', name: 'db', why: well },
      ],
    });
    const listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: PORT });
    const stop = new AbortController();
    const running = listener.run(stop.signal);
    const get = async (path: string, accept = '*/*'): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${PORT}${path}`, { headers: { accept } });
      return `${answer.status} ${await answer.text()}`;
    };
    const asText = `${broken.sentence}\n  - ErrImagePull: not found\nWhat to do: Check its name.\n`;
    try {
      for (const [path, accept, expected] of [
        ['/debug/why/shop/web', '*/*', `200 ${asText}`],
        ['/debug/why/shop/db', '*/*', '200 The pod is ready.\n'],
        ['/debug/why/shop/web?output=text', 'application/json', `200 ${asText}`],
        ['/debug/why/a/b', '*/*', '404 no pod "b" in namespace "a" is on this node\n'],
        ['/debug/why', '*/*', '200 shop/web: Image "x" cannot be pulled.\n'],
      ] as const)
        assert.equal(await get(path, accept), expected, path);
      const answer = (await get('/debug/why/shop/web', 'application/json')).slice('200 '.length);
      assert.deepEqual(JSON.parse(answer), { namespace: 'shop', name: 'web', why: broken });
      const all = (await get('/debug/why?output=json')).slice('200 '.length);
      assert.deepEqual(JSON.parse(all), { pods: [{ namespace: 'shop', name: 'web', why: broken }] });
    } finally {
      stop.abort();
      await running;
    }
  });

  it('is for those who may use the node’s proxy', () => {
    assert.deepEqual(subresourcesOf('/debug/why/shop/web'), ['proxy']);
  });
});
