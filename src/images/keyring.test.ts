import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addSecret, parseDockerConfig } from './docker-config.ts';
import { Keyring, patternMatches } from './keyring.ts';

const ring = (...registries: string[]): Keyring => {
  const keyring = new Keyring();
  for (const r of registries) keyring.add(r, { username: r, password: 'p' }, { from: 'node' });
  return keyring;
};
const users = (keyring: Keyring, image: string): string[] => keyring.lookup(image).map((c) => c.username);

describe('Keyring', () => {
  const rows: readonly (readonly [keys: string[], image: string, found: string[]])[] = [
    [['reg.io'], 'reg.io/a/b', ['reg.io']],
    [['https://reg.io/v2/'], 'reg.io/a', ['https://reg.io/v2/']],
    [['reg.io/v1/a'], 'reg.io/a/b', ['reg.io/v1/a']],
    [['reg.io', 'reg.io/a', 'reg.io/b'], 'reg.io/a/x', ['reg.io/a', 'reg.io']],
    [['reg.io:5000'], 'reg.io/a', []],
    [['reg.io'], 'reg.io:5000/a', []],
    [['*.reg.io'], 'x.reg.io/a', ['*.reg.io']],
    [['*.reg.io'], 'y.x.reg.io/a', []],
    [['*.reg.io'], 'reg.io/a', []],
    [['r?g.io'], 'reg.io/a', ['r?g.io']],
    [['r[ae]g.io'], 'reg.io/a', ['r[ae]g.io']],
    [['reg.io'], 'regXio/a', []],
    [['index.docker.io'], 'docker.io/library/busybox', ['index.docker.io']],
    [['https://index.docker.io/v1/'], 'docker.io/library/busybox', ['https://index.docker.io/v1/']],
    [['index.docker.io'], 'reg.io/a', []],
    [['other.io'], 'reg.io/a', []],
  ];
  for (const [keys, image, found] of rows)
    it(`${keys.join(' ')} for ${image}`, () => assert.deepEqual(users(ring(...keys), image), found));

  it('keeps the order of several logins for one registry', () => {
    const keyring = new Keyring();
    for (const username of ['one', 'two']) keyring.add('reg.io', { username, password: '' }, { from: 'node' });
    assert.deepEqual(users(keyring, 'reg.io/a'), ['one', 'two']);
  });

  it('matches patterns of providers', () => {
    assert.ok(patternMatches('*.dkr.ecr.*.amazonaws.com', '1.dkr.ecr.eu.amazonaws.com/app'));
    assert.ok(!patternMatches('*.dkr.ecr.*.amazonaws.com', 'dkr.ecr.eu.amazonaws.com/app'));
    assert.ok(patternMatches('reg.io:8080/path', 'reg.io:8080/path/app'));
  });
});

describe('docker configuration', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  it('reads both formats, auth before plain fields', () => {
    const auths = {
      'reg.io': { auth: base64('u:p:w'), username: 'x' },
      'b.io': { username: 'b', password: 'c', email: 'e' },
    };
    const expected = [
      ['reg.io', { username: 'u', password: 'p:w' }],
      ['b.io', { username: 'b', password: 'c', email: 'e' }],
    ];
    assert.deepEqual(parseDockerConfig(JSON.stringify({ auths }), 'json'), expected);
    assert.deepEqual(parseDockerConfig(JSON.stringify(auths), 'cfg'), expected);
    assert.deepEqual(parseDockerConfig('{}', 'json'), []);
  });

  it('reads fields in any case, as tools write them, the right one first', () => {
    const auths = {
      'a.io': { Username: 'u', PassWord: 'p' },
      'b.io': { Auth: base64('u:p') },
      'c.io': { Username: 'no', username: 'u', password: 'p' },
    };
    const logins = parseDockerConfig(JSON.stringify({ Auths: auths }), 'json').map(([, login]) => login);
    assert.deepEqual(
      logins,
      [1, 2, 3].map(() => ({ username: 'u', password: 'p' })),
    );
  });

  it('takes secrets of the two types and ignores others', () => {
    const keyring = new Keyring();
    const metadata = { name: 's', namespace: 'n', uid: 'u' };
    const config = base64(JSON.stringify({ auths: { 'reg.io': { auth: base64('a:b') } } }));
    addSecret(keyring, { metadata, type: 'Opaque', data: { '.dockerconfigjson': config } });
    addSecret(keyring, { metadata, type: 'kubernetes.io/dockerconfigjson', data: {} });
    assert.deepEqual(users(keyring, 'reg.io/x'), []);
    addSecret(keyring, { metadata, type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': config } });
    assert.deepEqual(keyring.lookup('reg.io/x')[0]?.source, { from: 'secret', uid: 'u', namespace: 'n', name: 's' });
  });

  it('never quotes a broken secret', () => {
    const data = { '.dockerconfigjson': base64('{"auths": hunter2') };
    const secret = { metadata: { name: 's', namespace: 'n' }, type: 'kubernetes.io/dockerconfigjson', data };
    assert.throws(
      () => addSecret(new Keyring(), secret),
      (err: Error) => err.message.startsWith('pull secret n/s: ') && !err.message.includes('hunter2'),
    );
  });
});
