import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { requestInfo } from './request-info.ts';

const rest = (path: string): string => requestInfo('GET', path, new URLSearchParams()).rest;

test('the path behind a proxy is what the client wrote', () => {
  const node = '/api/v1/nodes/n1/proxy';
  for (const [path, expected] of [
    [node, ''],
    [`${node}/`, '/'],
    [`${node}/runningpods/`, '/runningpods/'],
    [`${node}/runningpods`, '/runningpods'],
    [`${node}/logs//a%20b%2Fc/`, '/logs//a%20b%2Fc/'],
    [`${node}//pods`, '//pods'],
    ['/api/v1/namespaces/default/pods/web:8080/proxy/x/y', '/x/y'],
  ] as const)
    assert.equal(rest(path), expected, path);
});
