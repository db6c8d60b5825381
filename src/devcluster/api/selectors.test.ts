import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { requestInfo } from './request-info.ts';
import { fieldTerms, labelSelector } from './selectors.ts';

const LABELS = { app: 'web', tier: 'front', 'example.com/x': '1', n: '5' };
const ROWS: [string, boolean][] = [
  ['app=web', true],
  ['app==web', true],
  ['app!=web', false],
  ['none!=web', true],
  ['app', true],
  ['!app', false],
  ['!none', true],
  ['app in (web, db)', true],
  ['app notin (web)', false],
  ['none notin (web)', true],
  ['app in (db),tier=front', false],
  ['tier=front,app=web', true],
  ['example.com/x=1', true],
  ['n>4,n<6', true],
  ['n>5', false],
  ['empty=', false],
];
for (const [text, expected] of ROWS)
  test(`label selector ${text}`, () => assert.equal(labelSelector(text)?.(LABELS), expected));

test('nothing to select by, and nonsense', () => {
  assert.equal(labelSelector(''), undefined);
  assert.throws(() => labelSelector('a b c'), /unable to parse/);
  assert.throws(() => fieldTerms('abc'), /can't understand/);
  assert.deepEqual(fieldTerms('a=1,b!=x\\,y'), [
    { field: 'a', equal: true, value: '1' },
    { field: 'b', equal: false, value: 'x,y' },
  ]);
});

const REQUESTS: [string, string, Partial<ReturnType<typeof requestInfo>>][] = [
  ['GET', '/api/v1/namespaces/ns/pods/p', { verb: 'get', namespace: 'ns', resource: 'pods', name: 'p' }],
  ['GET', '/api/v1/pods', { verb: 'list', namespace: '', resource: 'pods' }],
  ['GET', '/api/v1/pods?watch=true', { verb: 'watch' }],
  ['GET', '/api/v1/namespaces/ns/secrets?fieldSelector=metadata.name%3Dx', { verb: 'list', name: 'x' }],
  [
    'DELETE',
    '/apis/apps/v1/namespaces/ns/deployments',
    { verb: 'deletecollection', group: 'apps', resource: 'deployments' },
  ],
  ['PATCH', '/api/v1/namespaces/ns/pods/p/status', { verb: 'patch', subresource: 'status' }],
  ['GET', '/api/v1/namespaces/ns', { verb: 'get', resource: 'namespaces', name: 'ns', namespace: 'ns' }],
  ['PUT', '/api/v1/namespaces/ns/finalize', { verb: 'update', resource: 'namespaces', subresource: 'finalize' }],
  ['GET', '/api/v1/nodes/n/proxy/metrics/cadvisor', { verb: 'get', subresource: 'proxy', rest: '/metrics/cadvisor' }],
  ['GET', '/healthz', { verb: 'get', isResource: false }],
  ['GET', '/apis/apps/v1', { isResource: false }],
];
for (const [method, path, expected] of REQUESTS)
  test(`${method} ${path}`, () => {
    const url = new URL(path, 'https://x');
    const info = requestInfo(method, url.pathname, url.searchParams);
    assert.deepEqual({ ...info, ...expected }, info);
  });
