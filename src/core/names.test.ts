import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as names from './names.ts';

type Row = readonly [check: names.NameCheck, good: readonly string[], bad: readonly string[]];

const rows: Readonly<Record<string, Row>> = {
  dns1123Label: [names.dns1123Label, ['a', '1-2', 'x'.repeat(63)], ['', 'A', '-a', 'a-', 'a.b', 'x'.repeat(64), 'a\n']],
  dns1123Subdomain: [names.dns1123Subdomain, ['a.b', 'a', 'x.1-y'], ['a..b', '.a', 'a_b', 'x'.repeat(254), 'a b']],
  dns1123SubdomainWithUnderscore: [names.dns1123SubdomainWithUnderscore, ['_tcp.a', 'a_b'], ['a..b', 'A']],
  qualifiedName: [
    names.qualifiedName,
    ['a', 'A_b.c', 'x.y/Z'],
    ['', '/', 'a/', '/b', 'a/b/c', '-a', 'X/y', 'x'.repeat(64)],
  ],
  labelValue: [names.labelValue, ['', 'a', 'A.b_c-d'], ['-', 'a b', 'é', 'x'.repeat(64)]],
  envVarName: [names.envVarName, ['A', 'a b', '1', '-', '~'], ['', 'A=B', 'é', 'a\n', '\t']],
  configMapKey: [names.configMapKey, ['a', 'A.b_c-d', '__proto__'], ['', '.', '..', '..a', 'a/b', 'é']],
  portName: [names.portName, ['http', 'a-1'], ['', '80', 'a--b', '-a', 'a-', 'A', 'x'.repeat(16)]],
  httpHeaderName: [names.httpHeaderName, ['X-A', 'a1'], ['', 'a b', 'a:', 'a\r\nb']],
  sysctlName: [
    names.sysctlName,
    ['kernel.shm_rmid_forced', 'net/ipv4/x', 'a.b-c'],
    ['', 'A.b', 'a..b', 'a=b', 'a b', '.a', 'x'.repeat(254)],
  ],
  csiDriverName: [names.csiDriverName, ['a.B'], ['', '-', 'x'.repeat(64)]],
  signerName: [names.signerName, ['a.b/c', 'a.b/c.d'], ['', 'a', 'a/b', 'a.b/', 'A.b/c']],
};

describe('names', () => {
  for (const [name, [check, good, bad]] of Object.entries(rows)) {
    it(`${name} accepts`, () => {
      for (const text of good) assert.deepEqual(check(text), [], text);
    });
    it(`${name} refuses with a reason`, () => {
      for (const text of bad) assert.ok(check(text).length > 0, JSON.stringify(text));
    });
  }
  it('numbers', () => {
    for (const port of [0, -1, 65536, 1.5, Number.NaN]) assert.equal(names.portNumber(port).length, 1);
    assert.deepEqual(names.portNumber(65535), []);
    for (const id of [-1, 2 ** 31, 0.5]) assert.equal(names.userOrGroupId(id).length, 1);
    assert.deepEqual(names.userOrGroupId(0), []);
  });
});
