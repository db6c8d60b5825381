import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { pullOptions } from './create.ts';

describe('how images are pulled', () => {
  for (const [given, policy] of [
    ['', 'NeverVerifyPreloadedImages'],
    ['AlwaysVerify', 'AlwaysVerify'],
  ] as const)
    it(`verification "${given}"`, () => {
      const config = { imagePullCredentialsVerificationPolicy: given };
      assert.equal(pullOptions(environmentOf({ config })).verification, policy);
    });

  for (const [gate, field] of [
    ['KubeletEnsureSecretPulledImages', 'verifyAccess'],
    ['RuntimeClassInImageCriApi', 'sendRuntimeHandler'],
  ] as const)
    it(`gate ${gate}`, () => {
      for (const on of [true, false]) assert.equal(pullOptions(environmentOf({ gates: { [gate]: on } }))[field], on);
    });
});
