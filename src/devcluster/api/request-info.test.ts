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

test('the attributes of a request', () => {
  for (const [method, path, expected] of [
    ['GET', '/api/v1/nodes/n1/proxy/runningpods/', 'get nodes n1 proxy'],
    ['GET', '/api/v1/pods?watch=1', 'watch pods  '],
    ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection pods  '],
    ['GET', '/api/v1/namespaces/a', 'get namespaces a '],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update namespaces a finalize'],
    ['PATCH', '/apis/apps/v1/namespaces/a/deployments/d/scale', 'patch deployments d scale'],
    ['GET', '/api/v1/watch/namespaces/a/pods/p', 'watch pods p '],
  ] as const) {
    const url = new URL(path, 'https://server');
    const { verb, resource, name, subresource } = requestInfo(method, url.pathname, url.searchParams);
    assert.equal(`${verb} ${resource} ${name} ${subresource}`, expected, path);
  }
});
