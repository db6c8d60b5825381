import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseImageName, withDefaultTag, withoutTag } from './reference.ts';

const HEX = 'a'.repeat(64);

describe('withDefaultTag', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['busybox', 'busybox:latest'],
    ['busybox:1.36', 'busybox:1.36'],
    ['localhost/busybox', 'localhost/busybox:latest'],
    ['127.0.0.1:5000/a/b', '127.0.0.1:5000/a/b:latest'],
    [`reg.io/a@sha256:${HEX}`, `reg.io/a@sha256:${HEX}`],
    [`reg.io/a:v1@sha256:${HEX}`, `reg.io/a:v1@sha256:${HEX}`],
    ['Reg.Example.com/a', 'Reg.Example.com/a:latest'],
    ['a__b/c-d.e', 'a__b/c-d.e:latest'],
  ];
  for (const [given, expected] of rows) it(given, () => assert.equal(withDefaultTag(given), expected));
});

describe('withoutTag', () => {
  for (const [given, expected] of [
    ['busybox', 'busybox'],
    ['busybox:1.36', 'busybox'],
    ['127.0.0.1:5000/a', '127.0.0.1:5000/a'],
    [`reg.io/a@sha256:${HEX}`, 'reg.io/a'],
    [`reg.io:5000/a:v1@sha256:${HEX}`, 'reg.io:5000/a'],
  ] as const)
    it(given, () => assert.equal(withoutTag(given), expected));
});

describe('parseImageName', () => {
  it('qualifies names of the default registry', () => {
    assert.equal(parseImageName('busybox').repository, 'docker.io/library/busybox');
    assert.equal(parseImageName('org/app:x').repository, 'docker.io/org/app');
    assert.equal(parseImageName('index.docker.io/app').repository, 'docker.io/library/app');
    assert.equal(parseImageName('localhost/app').repository, 'localhost/app');
    assert.equal(parseImageName('host:1/app:t').tag, 't');
  });

  const bad: readonly (readonly [string, string])[] = [
    ['INVALID::image', 'invalid reference format: repository name (library/INVALID) must be lowercase'],
    ['', 'invalid reference format'],
    ['a b', 'invalid reference format'],
    ['a:', 'invalid reference format'],
    ['a:-x', 'invalid reference format'],
    [`a:${'t'.repeat(129)}`, 'invalid reference format'],
    ['a//b', 'invalid reference format'],
    ['reg.io/', 'invalid reference format'],
    ['a@sha256:abc', 'invalid reference format'],
    [`a@md5:${'a'.repeat(32)}`, 'unsupported digest algorithm'],
    [`a@sha256:${'a'.repeat(63)}`, 'invalid checksum digest length'],
    [`a@sha256:${'A'.repeat(64)}`, 'invalid checksum digest format'],
    [HEX, `invalid repository name (${HEX}), cannot specify 64-byte hexadecimal strings`],
    ['a'.repeat(256), 'repository name must not be more than 255 characters'],
  ];
  for (const [given, problem] of bad)
    it(`refuses ${JSON.stringify(given.slice(0, 30))}`, () => {
      const message = `couldn't parse image name ${JSON.stringify(given)}: ${problem}`;
      assert.throws(() => parseImageName(given), { kind: 'invalid', message });
    });
});
