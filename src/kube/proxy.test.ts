import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyFor } from './proxy.ts';

const P = 'http://proxy:3128';
const ROWS: [string, string, Record<string, string>, string | undefined][] = [
  ['nothing set', 'https://api:6443', {}, undefined],
  ['the variable of the scheme', 'https://api:6443', { HTTPS_PROXY: P }, `${P}/`],
  ['in small letters', 'https://api:6443', { https_proxy: P }, `${P}/`],
  ['without a scheme', 'https://api:6443', { HTTPS_PROXY: 'proxy:3128' }, `${P}/`],
  ['the other scheme', 'https://api:6443', { HTTP_PROXY: P }, undefined],
  ['localhost never', 'https://localhost:6443', { HTTPS_PROXY: P }, undefined],
  ['nor a loopback address', 'https://127.1.2.3:6443', { HTTPS_PROXY: P }, undefined],
  ['nor that of IPv6', 'https://[::1]:6443', { HTTPS_PROXY: P }, undefined],
  ['an exempt name', 'https://api.corp:6443', { HTTPS_PROXY: P, NO_PROXY: 'x, api.corp' }, undefined],
  ['below an exempt name', 'https://api.corp:6443', { HTTPS_PROXY: P, NO_PROXY: 'corp' }, undefined],
  ['with a dot only what is below', 'https://corp:6443', { HTTPS_PROXY: P, NO_PROXY: '.corp' }, `${P}/`],
  ['with a dot, below', 'https://api.corp:6443', { HTTPS_PROXY: P, NO_PROXY: '.corp' }, undefined],
  ['with a star', 'https://api.corp:6443', { HTTPS_PROXY: P, NO_PROXY: '*.corp' }, undefined],
  ['a name that only ends alike', 'https://mycorp:6443', { HTTPS_PROXY: P, NO_PROXY: 'corp' }, `${P}/`],
  ['an exempt address', 'https://10.0.0.1:6443', { HTTPS_PROXY: P, NO_PROXY: '10.0.0.1' }, undefined],
  ['an exempt range', 'https://10.0.9.1:6443', { HTTPS_PROXY: P, NO_PROXY: '10.0.0.0/16' }, undefined],
  ['outside the range', 'https://10.1.0.1:6443', { HTTPS_PROXY: P, NO_PROXY: '10.0.0.0/16' }, `${P}/`],
  ['a range of IPv6', 'https://[fd00::1]:6443', { HTTPS_PROXY: P, NO_PROXY: 'fd00::/8' }, undefined],
  ['an address of IPv6', 'https://[fd00::1]:6443', { HTTPS_PROXY: P, NO_PROXY: 'fd00::1' }, undefined],
  ['a port that fits', 'https://api:6443', { HTTPS_PROXY: P, NO_PROXY: 'api:6443' }, undefined],
  ['a port that does not', 'https://api:6443', { HTTPS_PROXY: P, NO_PROXY: 'api:443' }, `${P}/`],
  ['everything exempt', 'https://api:6443', { HTTPS_PROXY: P, NO_PROXY: '*' }, undefined],
  ['no proxy we speak to', 'https://api:6443', { HTTPS_PROXY: 'socks5://p:1' }, undefined],
  ['nonsense', 'https://api:6443', { HTTPS_PROXY: 'http://[', NO_PROXY: ',,/,10.0.0.0/99' }, undefined],
];

for (const [name, server, env, expected] of ROWS)
  test(`proxy: ${name}`, () => assert.equal(proxyFor(new URL(server), undefined, env)?.href, expected));

test('proxy: the kubeconfig’s own, whatever the environment says', () => {
  const env = { HTTPS_PROXY: 'http://other', NO_PROXY: '*' };
  assert.equal(proxyFor(new URL('https://127.0.0.1'), P, env)?.href, `${P}/`);
});
