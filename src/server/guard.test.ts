import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { KubeletError } from '../lib/errors.ts';
import { Guard, subresourcesOf, type AccessQuestion, type Authenticator, type GuardOptions } from './guard.ts';

const never = new AbortController().signal;
const request = (method: string): IncomingMessage => ({ method, headers: {} }) as IncomingMessage;
const options: GuardOptions = { nodeName: 'n', anonymous: false, strictStreams: false };

const known: Authenticator = async () => ({ username: 'alice', groups: ['staff'] });
const notMine: Authenticator = async () => undefined;
const bad: Authenticator = async () => {
  throw new Error('refused');
};

const busy: Authenticator = async () => {
  throw new KubeletError('exhausted', 'too many');
};

describe('who it is', () => {
  const table: readonly (readonly [string, readonly Authenticator[], boolean, string | 401 | 429])[] = [
    ['nobody', [notMine], false, 401],
    ['nobody, where that is enough', [notMine], true, 'system:anonymous'],
    ['a bad credential is not made good by that', [bad], true, 401],
    ['somebody', [notMine, known], false, 'alice'],
    ['nobody can say now', [busy, notMine], true, 429],
    ['nobody can say now, but another credential is good', [busy, known], true, 'alice'],
    ['a second credential may be good', [bad, known], false, 'alice'],
  ];
  for (const [what, authenticators, anonymous, want] of table)
    it(what, async () => {
      const asked: AccessQuestion[] = [];
      const authorizer = {
        authorize: async (question: AccessQuestion) => {
          asked.push(question);
          return { allowed: true };
        },
      };
      const guard = new Guard({ authenticators, authorizer }, { ...options, anonymous });
      const got = await guard.decide(request('GET'), '/pods', never);
      assert.equal(got.ok ? got.user.username : got.status, want);
      if (want === 'alice') assert.deepEqual(asked[0]?.user.groups, ['staff', 'system:authenticated']);
    });
});

describe('whether they may', () => {
  const ask = async (method: string, path: string, allow: (q: AccessQuestion) => boolean, strictStreams = false) => {
    const asked: string[] = [];
    const authorizer = {
      authorize: async (q: AccessQuestion) => {
        asked.push(`${q.verb} ${q.subresource}`);
        return { allowed: allow(q) };
      },
    };
    const guard = new Guard({ authenticators: [known], authorizer }, { ...options, strictStreams });
    return { asked, decision: await guard.decide(request(method), path, never) };
  };

  it('the first permission that is given counts', async () => {
    const { asked, decision } = await ask('GET', '/pods', (q) => q.subresource === 'proxy');
    assert.deepEqual(asked, ['get pods', 'get proxy']);
    assert.ok(decision.ok);
  });

  it('the refusal says what was asked', async () => {
    const { decision } = await ask('POST', '/run/a/b/c', () => false);
    assert.deepEqual(decision, {
      ok: false,
      status: 403,
      body: 'Forbidden (user=alice, verb=create, resource=nodes, subresource(s)=[proxy])\n',
    });
  });

  it('when nobody can be asked, that is an error and the end of asking', async () => {
    let times = 0;
    const authorizer = {
      authorize: async () => {
        times++;
        throw new Error('down');
      },
    };
    const guard = new Guard({ authenticators: [known], authorizer }, options);
    assert.deepEqual(await guard.decide(request('GET'), '/pods', never), {
      ok: false,
      status: 500,
      body: 'Authorization error (user=alice, verb=get, resource=nodes, subresource=pods)',
    });
    assert.equal(times, 1);
  });

  it('strict: streams are changes, whatever the method says', async () => {
    for (const path of ['/exec/a/b/c', '/attach/a/b/c', '/portForward/a/b', '/run/a/b/c'])
      for (const method of ['GET', 'HEAD', 'POST']) {
        assert.deepEqual((await ask(method, path, () => true, true)).asked, ['create proxy'], `${method} ${path}`);
        assert.notDeepEqual((await ask('GET', path, () => true)).asked, ['create proxy']);
      }
    assert.deepEqual((await ask('GET', '/containerLogs/a/b/c', () => true, true)).asked, ['get proxy']);
  });

  it('subresources by path', () => {
    const table: readonly (readonly [string, string])[] = [
      ['/pods', 'pods proxy'],
      ['/podsx', 'proxy'],
      ['/runningpods/', 'pods proxy'],
      ['/healthz/log', 'healthz proxy'],
      ['/configz', 'configz proxy'],
      ['/stats/summary', 'stats'],
      ['/metrics/cadvisor', 'metrics'],
      ['/logs/a', 'log'],
      ['/checkpoint/a/b/c', 'checkpoint'],
      ['/statusz', 'statusz'],
      ['/flagz', 'configz'],
      ['/exec/a/b/c', 'proxy'],
      ['/debug/pprof/heap', 'proxy'],
    ];
    for (const [path, want] of table) assert.equal(subresourcesOf(path).join(' '), want, path);
  });
});
