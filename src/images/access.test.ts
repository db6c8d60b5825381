import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accessOf, grants, mayRecord, mergeAccess, mustVerify } from './access.ts';
import type { Credential } from './keyring.ts';

const secret = (name: string, password: string): Credential => ({
  username: 'u',
  password,
  source: { from: 'secret', uid: `uid-${name}`, namespace: 'n', name },
});
const account = (name: string): Credential => ({
  username: 'u',
  password: 'p',
  source: { from: 'serviceAccount', uid: `uid-${name}`, namespace: 'n', name },
});

describe('image access', () => {
  it('is node-wide after an anonymous pull or one with node credentials', () => {
    assert.deepEqual(accessOf(undefined), { nodePodsAccessible: true });
    assert.deepEqual(accessOf({ username: '', password: '', source: { from: 'node' } }), { nodePodsAccessible: true });
    assert.ok(grants(accessOf(undefined), []));
  });

  it('is granted to the same secret, the same credentials and the same account only', () => {
    const access = mergeAccess(accessOf(secret('a', 'one')), accessOf(account('sa')));
    assert.ok(grants(access, [secret('a', 'changed')]));
    assert.ok(grants(access, [secret('b', 'one')]));
    assert.ok(grants(access, [account('sa')]));
    assert.ok(!grants(access, [secret('b', 'two')]));
    assert.ok(!grants(access, [account('other')]));
    assert.ok(!grants(access, []));
    assert.ok(!grants(undefined, [secret('a', 'one')]));
  });

  it('merges without doubling, and node-wide access wins', () => {
    const once = accessOf(secret('a', 'one'));
    assert.deepEqual(mergeAccess(once, once), once);
    assert.equal(mergeAccess(once, accessOf(secret('a', 'two'))).kubernetesSecrets?.length, 1);
    assert.equal(mergeAccess(once, accessOf(secret('b', 'two'))).kubernetesSecrets?.length, 2);
    assert.deepEqual(mergeAccess(once, { nodePodsAccessible: true }), { nodePodsAccessible: true });
    assert.deepEqual(mergeAccess({ nodePodsAccessible: true }, once), { nodePodsAccessible: true });
  });

  it('of accounts is merged with that of secrets, and neither stands for the other', () => {
    const byAccount = accessOf(account('sa'));
    assert.deepEqual(mergeAccess(byAccount, byAccount), byAccount);
    assert.ok(!grants(byAccount, [secret('a', 'one')]));
    assert.ok(!grants(accessOf(secret('a', 'one')), [account('sa')]));
    assert.ok(!grants(byAccount, [{ username: '', password: '', source: { from: 'node' } }]));
    assert.deepEqual(mergeAccess(byAccount, accessOf(secret('a', 'one'))), {
      ...byAccount,
      ...accessOf(secret('a', 'one')),
    });
  });

  it('of more than a hundred secrets is remembered for those that pulled only', () => {
    let access = accessOf(secret('0', '0'));
    for (let i = 1; i < 150; i++) {
      assert.equal(mayRecord(access), i < 100);
      access = mergeAccess(access, accessOf(secret(`${i}`, `${i}`)));
    }
    assert.ok(grants(access, [secret('149', '149')]));
  });

  it('keeps the latest hundred service accounts and secrets of an image', () => {
    let access = accessOf(account('sa-0'));
    for (let i = 0; i < 1000; i++) {
      access = mergeAccess(access, accessOf(account(`sa-${i}`)));
      access = mergeAccess(access, accessOf(secret(`s-${i}`, `login-${i}`)));
    }
    assert.equal(access.kubernetesServiceAccounts?.length, 100);
    assert.equal(access.kubernetesServiceAccounts[0]?.name, 'sa-900');
    assert.equal(access.kubernetesSecrets?.length, 100);
    assert.ok(grants(access, [account('sa-999')]));
    assert.ok(!grants(access, [account('sa-1')]));
  });

  it('is told apart by the hash that the Go kubelet makes of a login', () => {
    const login = { username: 'ada', password: 'smash', email: 'ada@example.com' };
    const { kubernetesSecrets } = accessOf({ ...secret('a', ''), ...login });
    const hash = '353258b53f5e9a57b059eab3f05312fc35bbeb874f08ce101e7bf0bf46977423';
    assert.equal(kubernetesSecrets?.[0]?.credentialHash, hash);
  });

  it('never keeps a password', () => {
    assert.ok(!JSON.stringify(accessOf(secret('a', 'hunter2'))).includes('hunter2'));
  });

  it('is verified as the policy says', () => {
    const rows = [
      ['NeverVerify', false, false],
      ['NeverVerifyPreloadedImages', true, false],
      ['NeverVerifyPreloadedImages', false, true],
      ['AlwaysVerify', true, true],
    ] as const;
    for (const [policy, preloaded, expected] of rows)
      assert.equal(mustVerify(policy, [], 'reg.io/a', preloaded), expected, `${policy} ${preloaded}`);
    const listed = (repository: string, preloaded: boolean): boolean =>
      mustVerify('NeverVerifyAllowlistedImages', ['reg.io/team/*', 'reg.io/one'], repository, preloaded);
    assert.ok(!listed('reg.io/team/x', true));
    assert.ok(!listed('reg.io/one', true));
    assert.ok(listed('reg.io/teams', true));
    assert.ok(listed('reg.io/one', false));
  });
});
