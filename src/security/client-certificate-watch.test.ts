import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isFault } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ClientCertificateWatch } from './client-certificate-watch.ts';

describe('the watch over the client certificate', () => {
  const rows: readonly [string, { valid: object | undefined; serverAnswers: boolean }, boolean][] = [
    ['with a certificate', { valid: {}, serverAnswers: true }, false],
    ['without one, while nobody answers', { valid: undefined, serverAnswers: false }, false],
    ['without one, although the server answers', { valid: undefined, serverAnswers: true }, true],
  ];
  for (const [name, manager, ends] of rows)
    it(`${name}: the process ${ends ? 'ends after five minutes' : 'goes on'}`, async () => {
      const clock = new ManualClock(0);
      const end = new AbortController();
      const ended: unknown[] = [];
      const running = new ClientCertificateWatch({ manager, clock, log: silentLogger })
        .run(end.signal)
        .catch((err: unknown) => void ended.push(err));
      await clock.advance(295_000);
      assert.deepEqual(ended, []);
      await clock.advance(30_000);
      assert.equal(isFault(ended[0], 'denied'), ends);
      end.abort();
      await running;
    });
});
