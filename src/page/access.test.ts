// Who gets in: by token, cookie and certificate, and from where.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { COOKIE, hostOf, PageAccess } from './access.ts';
import { openToken, PageToken } from './token.ts';

const SECRET = 'a'.repeat(32);
const token = new PageToken(SECRET);
const never = new AbortController().signal;
const good = { cookie: `x=1; ${COOKIE}=${token.cookie}` };

type Asked = { readonly headers?: Record<string, string>; readonly url?: string; readonly authorized?: boolean };

const request = ({ headers = {}, url = '/page/api/now', authorized = false }: Asked): IncomingMessage =>
  ({ headers: { host: '127.0.0.1:4194', ...headers }, url, socket: { authorized } }) as unknown as IncomingMessage;

async function statusOf(asked: Asked, certified?: boolean): Promise<number> {
  const access = new PageAccess(
    {
      token,
      ...(certified === undefined
        ? {}
        : {
            certified: {
              decide: () =>
                Promise.resolve(certified ? { ok: true, user: {} } : { ok: false, status: 403, body: 'Forbidden' }),
            },
          }),
    },
    { hosts: new Set(['127.0.0.1', 'localhost', '::1']), tokenFile: '/t' },
  );
  const path = (asked.url ?? '/page/api/now').split('?')[0] ?? '';
  const decision = await access.decide(request(asked), path, never);
  return decision.ok ? 200 : decision.status;
}

describe('access to the node page', () => {
  const table: readonly [string, Asked, number][] = [
    ['nothing shown', {}, 401],
    ['the cookie', { headers: good }, 200],
    ['another cookie', { headers: { cookie: `${COOKIE}=${token.cookie}x` } }, 401],
    ['the token is no cookie', { headers: { cookie: `${COOKIE}=${SECRET}` } }, 401],
    ['the token as bearer', { headers: { authorization: `Bearer ${SECRET}` } }, 200],
    ['a wrong bearer with a good cookie', { headers: { ...good, authorization: 'Bearer x' } }, 401],
    ['the bare address, which leads to the page', { url: '/' }, 200],
    ['the page without anything', { url: '/page/' }, 401],
    ['a link with the token', { url: `/?token=${SECRET}` }, 200],
    ['a link with the token to the page', { url: `/page/?token=${SECRET}` }, 200],
    ['a link with a wrong token', { url: '/page/?token=b' }, 401],
    ['the token in the address of an answer', { url: `/page/api/now?token=${SECRET}` }, 401],
    ['another host (DNS rebinding)', { headers: { ...good, host: 'evil.example:4194' } }, 403],
    ['no host', { headers: { ...good, host: '' } }, 403],
    ['by name', { headers: { ...good, host: 'LOCALHOST:4194' } }, 200],
    ['by IPv6 address', { headers: { ...good, host: '[::1]:4194' } }, 200],
    ['through a tunnel on another port', { headers: { ...good, host: 'localhost:9000' } }, 200],
    ['sent by another site', { headers: { ...good, 'sec-fetch-site': 'cross-site' } }, 403],
    ['sent by another port of this machine', { headers: { ...good, 'sec-fetch-site': 'same-site' } }, 403],
    ['sent by the page', { headers: { ...good, 'sec-fetch-site': 'same-origin' } }, 200],
    ['typed into the address bar', { headers: { ...good, 'sec-fetch-site': 'none' }, url: '/page/' }, 200],
    [
      'a link on another site to the page',
      {
        headers: {
          ...good,
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
        },
        url: '/page/',
      },
      200,
    ],
    [
      'a link on another site to an answer',
      {
        headers: {
          ...good,
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
        },
      },
      403,
    ],
    [
      'a frame on another site',
      {
        headers: { ...good, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
        url: '/page/',
      },
      403,
    ],
    ['another origin, from a browser that says no more', { headers: { ...good, origin: 'http://evil.example' } }, 403],
    ['its own origin', { headers: { ...good, origin: 'http://127.0.0.1:4194' } }, 200],
    ['no origin at all (a sandboxed frame)', { headers: { ...good, origin: 'null' } }, 403],
  ];
  for (const [name, asked, status] of table)
    it(`${name}: ${status}`, async () => assert.equal(await statusOf(asked), status));

  it('asks the main port about a verified certificate, and about nothing else', async () => {
    assert.equal(await statusOf({ authorized: true }, true), 200);
    assert.equal(await statusOf({ authorized: true }, false), 403);
    assert.equal(await statusOf({ authorized: false }, true), 401);
    assert.equal(await statusOf({ authorized: true }), 401);
    assert.equal(await statusOf({ authorized: true, headers: { host: 'evil.example' } }, true), 403);
  });

  it('reads host names with and without ports', () => {
    assert.deepEqual(['a.b:1', 'A', '[::1]:2', '[::1]', '', 'a:b:c', undefined].map(hostOf), [
      'a.b',
      'a',
      '::1',
      '::1',
      '',
      '',
      '',
    ]);
  });
});

describe('the token', () => {
  it('is made once, for root only, and made anew when it is damaged', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-token-'));
    try {
      const first = await openToken(join(dir, 'page'));
      const secret = (await readFile(first.file, 'utf8')).trim();
      assert.equal((await stat(first.file)).mode & 0o777, 0o600);
      const again = await openToken(join(dir, 'page'));
      assert.equal(again.token.isToken(secret), true);
      assert.equal(secret.length, 32);
      await writeFile(first.file, 'x\n');
      const third = await openToken(join(dir, 'page'));
      assert.equal(third.token.isToken(secret), false);
      assert.equal(third.token.isCookie(first.token.cookie), false);
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('is good before its file can be written, and is kept once it can', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-token-'));
    try {
      const folder = join(dir, 'page');
      await writeFile(folder, '');
      const { token, keep } = await openToken(folder);
      await assert.rejects(keep?.() ?? Promise.resolve(), { code: 'EEXIST' });
      await rm(folder);
      await keep?.();
      const again = await openToken(folder);
      assert.equal(again.keep, undefined);
      assert.equal(again.token.isCookie(token.cookie), true);
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
