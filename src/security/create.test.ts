import assert from 'node:assert/strict';
import { it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { createReviews } from './create.ts';

it('nobody can be asked about callers without an API server', () => {
  assert.equal(
    createReviews(environmentOf(), undefined, () => undefined),
    undefined,
  );
  const client = { create: () => Promise.reject(new Error('not asked')) };
  assert.ok(createReviews(environmentOf(), client, () => undefined)?.access);
});
