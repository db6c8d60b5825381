import assert from 'node:assert/strict';
import { it } from 'node:test';
import { containerIdOf, logLinkName } from './log-links.ts';

it('links are named after everything, within the length of a file name', () => {
  assert.equal(logLinkName('p', 'ns', 'my-c', 'abc123'), 'p_ns_my-c-abc123.log');
  assert.equal(logLinkName('x'.repeat(300), 'ns', 'c', 'abc123').length, 255);
});

it('the id is read back from a name', () => {
  assert.equal(containerIdOf('/var/log/containers/p_ns_my-c-abc123.log'), 'abc123');
  assert.equal(containerIdOf('/var/log/containers/other'), undefined);
});
