import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { configuredGroups } from './create.ts';

const config = { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 };
const rows: readonly [string, Parameters<typeof environmentOf>[0], number][] = [
  ['not configured', {}, 0],
  ['configured', { config }, 2],
  ['configured, but the gate is off', { config, gates: { GracefulNodeShutdown: false } }, 0],
];

describe('whether a shutdown is held up', () => {
  for (const [name, otherwise, groups] of rows)
    it(name, () => assert.equal(configuredGroups(environmentOf(otherwise)).length, groups));
});
