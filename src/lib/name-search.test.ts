import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressesInHosts, candidatesOf, searchAddresses } from './name-search.ts';

const HOSTS =
  '127.0.0.1 localhost me # is 10.0.0.9 other\n::1\tlocalhost ip6\nnone of us\n#10.0.0.1 off\n10.0.0.2 Big.Name\n';
const V4 = { address: '192.0.2.1', family: 4 };
const { signal } = new AbortController();

const failure = (code: string): Error => Object.assign(new Error(`query ${code}`), { code });

/** What servers say of each name: addresses, or the code of a failure. */
function search(
  name: string,
  answers: Readonly<Record<string, string>>,
  resolvConf = '',
): { readonly asked: string[]; readonly found: ReturnType<typeof searchAddresses> } {
  const asked: string[] = [];
  const read = (path: string): Promise<string> => Promise.resolve(path === '/etc/hosts' ? HOSTS : resolvConf);
  const query = (full: string, family: 4 | 6): Promise<string[]> => {
    asked.push(`${full} ${family}`);
    const answer = answers[`${full} ${family}`] ?? 'ENOTFOUND';
    return answer.startsWith('E') ? Promise.reject(failure(answer)) : Promise.resolve(answer.split(' '));
  };
  return { asked, found: searchAddresses(name, { read, query }, signal) };
}

describe('a name', () => {
  it('is in the hosts file under any of its names', () => {
    const addresses = (name: string): string[] => addressesInHosts(HOSTS, name).map((a) => `${a.address} ${a.family}`);
    assert.deepEqual(addresses('localhost'), ['127.0.0.1 4', '::1 6']);
    assert.deepEqual(addresses('ME.'), ['127.0.0.1 4']);
    assert.deepEqual(addresses('big.name'), ['10.0.0.2 4']);
    for (const name of ['other', 'off', 'of', 'localhos', '']) assert.deepEqual(addresses(name), [], name);
  });

  it('is asked for with the domains of the search list, before them or after', () => {
    const conf = 'domain old\nsearch a.b. c # d\noptions timeout:1 ndots:2\n';
    assert.deepEqual(candidatesOf('x', ''), ['x']);
    assert.deepEqual(candidatesOf('x', 'search a c'), ['x.a', 'x.c', 'x']);
    assert.deepEqual(candidatesOf('x.y', 'search a'), ['x.y', 'x.y.a']);
    assert.deepEqual(candidatesOf('x.y', conf), ['x.y.a.b', 'x.y.c', 'x.y']);
    assert.deepEqual(candidatesOf('x.y.z', conf), ['x.y.z', 'x.y.z.a.b', 'x.y.z.c']);
    assert.deepEqual(candidatesOf('x.', conf), ['x']);
    assert.deepEqual(candidatesOf('x', 'search .\noptions ndots:0'), ['x']);
  });

  it('that is in the hosts file is no question for servers', async () => {
    const { asked, found } = search('localhost', { 'localhost 4': '192.0.2.1' });
    assert.equal((await found)?.length, 2);
    assert.deepEqual(asked, []);
  });

  it('has the addresses of the first candidate that has any, of either family', async () => {
    const { asked, found } = search('x', { 'x.b 4': '192.0.2.1', 'x.b 6': 'ETIMEOUT' }, 'search a b c');
    assert.deepEqual(await found, [V4]);
    assert.deepEqual(asked, ['x.a 4', 'x.a 6', 'x.b 4', 'x.b 6']);
    const both = search('x', { 'x 4': '192.0.2.1', 'x 6': '2001:db8::1' });
    assert.deepEqual(await both.found, [V4, { address: '2001:db8::1', family: 6 }]);
  });

  it('that servers do not know, or nobody serves, may be known to others', async () => {
    assert.equal(await search('x', {}).found, undefined);
    assert.equal(await search('x', { 'x 4': 'ECONNREFUSED', 'x 6': 'ENODATA' }).found, undefined);
  });

  it('that a server owes the answer for is nobody else’s question', async () => {
    for (const code of ['ETIMEOUT', 'ESERVFAIL', 'EREFUSED'])
      await assert.rejects(search('x', { 'x.a 6': code }, 'search a').found, { code: 'EAI_AGAIN' }, code);
  });
});
