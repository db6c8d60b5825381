import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_FIELDS } from './config-fields.ts';
import { completeConfig } from './convert.ts';
import { decodeFields } from './decode.ts';
import { FeatureGates } from './feature-gates.ts';
import type { JsonObject } from './schema.ts';
import { allowlistErrors } from './validate-images.ts';

function problems(wire: JsonObject): string[] {
  const config = completeConfig(decodeFields(CONFIG_FIELDS, wire, () => undefined).value);
  return allowlistErrors(config, FeatureGates.fromKnown(config.featureGates));
}

test('nothing about verification may be set with its gate off', () => {
  const featureGates = { KubeletEnsureSecretPulledImages: false };
  assert.deepEqual(problems({ featureGates }), []);
  const set = {
    imagePullCredentialsVerificationPolicy: 'AlwaysVerify',
    preloadedImagesVerificationAllowlist: ['registry.io/a'],
  };
  assert.deepEqual(
    problems({ featureGates, ...set }),
    Object.keys(set).map(
      (field) => `\`${field}\` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled`,
    ),
  );
});

test('image patterns', () => {
  const why = (pattern: string): string[] =>
    problems({
      imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages',
      preloadedImagesVerificationAllowlist: [pattern],
    });
  for (const good of [
    'registry.io/a/b',
    'registry.io/*',
    'registry.io:5000/a/*',
    'localhost/a',
    'busybox',
    'registry.io/a-b/c_d',
  ])
    assert.deepEqual(why(good), [], good);
  for (const bad of [
    '',
    'a b/c',
    'reg/*/b',
    '*',
    '/*',
    'reg*/a',
    'registry.io/a:tag',
    'registry.io/a@sha256:0',
    'busybox:1',
    'a/B',
  ])
    assert.equal(why(bad).length, 1, bad);
});
