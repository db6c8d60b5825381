import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { flushOnStop } from './flush-on-stop.ts';

describe('flush on stop', () => {
  it('writes every record once, at the end and not before', async () => {
    const stop = new AbortController();
    const written: string[] = [];
    const record = (name: string) => ({ close: async () => void written.push(name) });
    const part = flushOnStop('records', [record('a'), record('b')]);
    assert.equal(part.name, 'records');
    const running = part.run(stop.signal);
    await new Promise(setImmediate);
    assert.deepEqual(written, []);
    stop.abort();
    await running;
    assert.deepEqual(written, ['a', 'b']);
  });

  it('says that a record could not be written, and writes the others', async () => {
    const written: string[] = [];
    const records = [
      { close: () => Promise.reject(new Error('disk full')) },
      { close: async () => void written.push('other') },
    ];
    await assert.rejects(flushOnStop('records', records).run(AbortSignal.abort()), /disk full/);
    assert.deepEqual(written, ['other']);
  });
});
