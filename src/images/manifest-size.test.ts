// The size of an image, asked of a registry on loopback that wants no login, a login, or a token.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { goArch } from '../host/host-facts.ts';
import { systemClock } from '../lib/clock.ts';
import { ManifestSizes, platformDigest, sizeOfLayers, tokenPlace } from './manifest-size.ts';

const forever = new AbortController().signal;
const LOGIN = { username: 'reader', password: 'hunter2' };
const BASIC = `Basic ${Buffer.from('reader:hunter2').toString('base64')}`;
const IMAGE = { layers: [{ size: 70 }, { size: 30 }] };
const INDEX = {
  manifests: [
    { digest: 'sha256:other', platform: { os: 'linux', architecture: 'other' } },
    { digest: 'sha256:own', platform: { os: 'linux', architecture: goArch(process.arch) } },
  ],
};

describe('the size of an image', () => {
  let server: Server;
  let host: string;
  const asked: string[] = [];
  const sizes = new ManifestSizes(systemClock);
  before(async () => {
    server = createServer((request, response) => answer(request, response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const answer = ({ url = '', headers }: IncomingMessage, response: ServerResponse): void => {
    asked.push(url);
    const give = (status: number, body: unknown, challenge?: string): void => {
      response.writeHead(status, challenge === undefined ? {} : { 'www-authenticate': challenge });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    const realm = `http://${host}/token`;
    if (url.startsWith('/token')) return give(headers.authorization === BASIC ? 200 : 401, { token: 'given' });
    if (url.includes('/basic/') && headers.authorization !== BASIC) return give(401, '', 'Basic realm="x"');
    if (url.includes('/bearer/') && headers.authorization !== 'Bearer given')
      return give(401, '', `Bearer realm="${realm}",service="reg"`);
    if (url.includes('/broken/')) return give(200, 'not JSON');
    if (url.includes('/gone/')) return give(404, {});
    give(200, url.includes('/many/') && !url.endsWith('sha256:own') ? INDEX : IMAGE);
  };

  for (const [name, image, logins, expected] of [
    ['from one who asks for nothing', 'open/app:1', [], 100],
    ['of the own platform', 'many/app:1', [], 100],
    ['with a login', 'basic/app:1', [LOGIN], 100],
    ['with the second login', 'basic/app:1', [{ username: 'x', password: 'y' }, LOGIN], 100],
    ['with a token for the login', 'bearer/app:1', [LOGIN], 100],
    ['not without the login', 'basic/app:1', [], undefined],
    ['not without the token', 'bearer/app:1', [], undefined],
    ['not of what is not there', 'gone/app:1', [], undefined],
    ['not of what makes no sense', 'broken/app:1', [], undefined],
  ] as const)
    it(name, async () => assert.equal(await sizes.sizeOf(`${host}/${image}`, logins, forever), expected));

  it('asks for a token for reading this repository', () =>
    assert.ok(asked.includes('/token?service=reg&scope=repository%3Abearer%2Fapp%3Apull')));

  it('is not asked of a registry that counts such questions', async () =>
    assert.equal(await sizes.sizeOf('busybox:1', [LOGIN], forever), undefined));
});

describe('where a token is to be had', () => {
  for (const [challenge, expected] of [
    ['Bearer realm="https://auth.io/t",service="s"', 'https://auth.io/t?service=s&scope=repository%3Aa%2Fb%3Apull'],
    ['Bearer realm="https://auth.io/t",scope="x"', 'https://auth.io/t?scope=x'],
    ['Bearer realm="http://auth.io/t"', undefined],
    ['Bearer realm="nonsense"', undefined],
    ['Basic realm="https://auth.io/t"', undefined],
    ['', undefined],
  ] as const)
    it(`${challenge}: ${expected}`, () => assert.equal(tokenPlace(challenge, 'a/b')?.href, expected));
});

describe('a manifest', () => {
  it('that makes no sense says nothing', () => {
    for (const value of [undefined, null, 1, [], {}, { layers: 1 }, { layers: [null] }, { layers: [{ size: 'x' }] }]) {
      assert.equal(sizeOfLayers(value), undefined);
      assert.equal(platformDigest(value, 'amd64'), undefined);
    }
  });
});
