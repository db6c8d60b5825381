import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeNameOf } from './node-name.ts';

test('the override, else the host name, in lower case', () => {
  assert.equal(nodeNameOf(' Node-A ', 'host'), 'node-a');
  assert.equal(nodeNameOf('  ', 'Host.Example '), 'host.example');
  assert.throws(() => nodeNameOf('', ' '), /empty hostname is invalid/);
});
