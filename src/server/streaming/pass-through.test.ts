// What a client sees of a runtime that answers a stream request with something else than a stream.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { answered } from './answered.fixture.ts';

describe('an answer that is no stream', () => {
  it('is passed on', async () => {
    const { text } = await answered('HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nX-A: b\r\n\r\nnope\n');
    assert.equal(text, 'HTTP/1.1 404 Not Found\r\nX-A: b\r\nConnection: close\r\n\r\nnope\n');
  });

  for (const status of [301, 302, 303, 307, 308])
    it(`with status ${status} is refused, without its location`, async () => {
      const { text } = await answered(
        `HTTP/1.1 ${status} Moved\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n`,
      );
      assert.match(text, /^HTTP\/1.1 502 Bad Gateway\r\n/);
      assert.doesNotMatch(text, /elsewhere/i);
    });

  it('that breaks off ends the connection without an answer', async () => {
    assert.equal((await answered('HTTP/1.1 500 Oops\r\nContent-Length: 50\r\n\r\nhalf')).text, '');
  });
});
